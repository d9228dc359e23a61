"""C11: an outage loses no message, in virtual time; only one whose answer was lost comes twice, with the same id."""

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jostle.failpoint import arm
from jostle.notify import spool
from jostle.notify.outbox import LONGEST_PAUSE, MOST, REFUSED_TRIES
from jostle.notify.status import status
from tests.notify.receivers import Letters, Posts, free_port, http_server, mail_server, socket_server
from tests.notify.scene import AT, hook, mail

HOUR, DAY = 3600.0, 86400.0


@pytest.fixture(autouse=True)
def disarmed():
    yield
    arm("")


def pass_time(outbox, since, until, step=10.0, seen=None):
    """Rounds from one instant to another."""
    now = since
    while now <= until:
        outbox.step(now, seen)
        now += step


def told(posts):
    """The jobs that arrived, in order."""
    return [item["job"] for body in posts.bodies() for item in body["data"]["items"]]


def ids(posts):
    return [headers["webhook-id"] for _, headers, _ in posts.requests]


def test_c11_what_happens_together_comes_in_one_message(home):
    home.submit("a", "b", "c")
    with http_server(posts := Posts()) as port:
        outbox = home.outbox(hook(port, "failed", "finished"), gather=30.0)
        home.happens("failed", AT + 1, batch=1, job=1, run=1)
        outbox.step(AT + 2, None)
        home.happens("succeeded", AT + 20, batch=1, job=2, run=1)
        outbox.step(AT + 25, None)
        assert posts.requests == []
        pass_time(outbox, AT + 30, AT + 100)
        assert told(posts) == [1, 2] and len(posts.requests) == 1
        home.happens("failed", AT + 100, batch=1, job=3, run=1)
        pass_time(outbox, AT + 100, AT + 200)
    assert told(posts) == [1, 2, 3] and outbox.idle()
    (one, _) = posts.bodies()
    assert one["data"]["title"] == "[jostle lab-1] job 1 (a) failed, job 2 (b) succeeded"


def test_c11_a_channel_is_told_what_it_asked_for_and_nothing_else(home):
    home.submit("a", "b")
    with http_server(posts := Posts()) as port:
        outbox = home.outbox(hook(port, "failed"), gather=0.0)
        for kind in ("starting", "running", "requeued", "succeeded", "cancelled", "skipped", "held"):
            home.happens(kind, batch=1, job=1, run=1)
        home.happens("failed", batch=1, job=2, run=1)
        pass_time(outbox, AT, AT + 60)
    assert told(posts) == [2]


def test_c11_a_new_channel_begins_with_what_happens_from_then_on(home):
    home.submit("a", "b")
    home.happens("failed", batch=1, job=1, run=1)
    with http_server(posts := Posts()) as port:
        outbox = home.outbox(hook(port), gather=0.0)
        home.happens("failed", batch=1, job=2, run=1)
        pass_time(outbox, AT, AT + 60)
    assert told(posts) == [2]


@pytest.mark.parametrize("kind", ["mail", "webhook"])
def test_c11_an_outage_of_two_days_loses_no_message(home, kind):
    home.submit(*"abcdefgh")
    port = free_port()
    outbox = home.outbox((mail if kind == "mail" else hook)(port), gather=30.0)
    for job in range(1, 9):
        home.happens("failed", AT + job * 6 * HOUR, batch=1, job=job, run=1)
        pass_time(outbox, AT + job * 6 * HOUR, AT + (job + 1) * 6 * HOUR - 1, step=300.0)
    (before,) = kept = [spool.load(spool.path_of(home.path, outbox.channel.name))]
    assert len(before["queue"]) == 8 and before["failing_since"] is not None, kept
    assert before["error"]["code"] == "unreachable" and before["failures"] < 60  # the pauses grow
    if kind == "mail":
        with mail_server(letters := Letters(), port=port):
            pass_time(outbox, AT + 3 * DAY, AT + 3 * DAY + 3 * HOUR, step=300.0)
        arrived = [letter["Message-ID"].strip("<>").partition("@")[0] for letter in letters.taken]
        assert [f"job {job} (" in letter["Subject"] for job, letter in enumerate(letters.taken, 1)] == [True] * 8
    else:
        with http_server(posts := Posts(), port=port):
            pass_time(outbox, AT + 3 * DAY, AT + 3 * DAY + 3 * HOUR, step=300.0)
        arrived = ids(posts)
        assert told(posts) == list(range(1, 9))
    assert arrived == [message["id"] for message in before["queue"]]
    after = spool.load(outbox.path)
    assert (after["queue"], after["sent"], after["failing_since"], after["dropped"]) == ([], 8, None, 0)


def test_c11_however_long_the_outage_the_spool_is_bounded_and_nothing_is_lost(home):
    """Beyond its bound events wait in the store, and come in one message."""
    home.submit(*(f"job {k}" for k in range(200)))
    port = free_port()
    outbox = home.outbox(hook(port), gather=0.0)
    for job in range(1, 201):
        home.happens("failed", AT + job * 60, batch=1, job=job, run=1)
        outbox.step(AT + job * 60, None)
    assert len(outbox.kept["queue"]) == MOST
    with http_server(posts := Posts(), port=port):
        pass_time(outbox, AT + DAY, AT + DAY + 2 * HOUR, step=60.0)
    items = [item["job"] for body in posts.bodies()[:MOST] for item in body["data"]["items"]]
    assert items == list(range(1, MOST + 1)) and len(posts.requests) == MOST + 1
    rest = posts.bodies()[-1]["data"]
    assert rest["title"].endswith(f"{200 - MOST} jobs failed") and len(rest["items"]) == 100
    assert outbox.idle() and outbox.kept["dropped"] == 0


def test_c11_pauses_grow_to_an_hour_and_never_beyond(home):
    home.submit("a")
    tries = []

    def serve(connection):
        tries.append(now)

    with socket_server(serve) as port:
        outbox = home.outbox(hook(port), gather=0.0)
        home.happens("failed", batch=1, job=1, run=1)
        now = AT
        while now < AT + 8 * HOUR:
            outbox.step(now, None)
            now += 10.0
    pauses = [b - a for a, b in itertools.pairwise(tries)]
    assert all(b >= a * 0.8 for a, b in itertools.pairwise(pauses))
    assert 25 <= pauses[0] <= 45 and max(pauses) <= LONGEST_PAUSE * 1.1 + 10 and len(tries) < 20


def test_c11_a_message_that_nobody_takes_is_given_up_after_its_time_and_that_is_said(home):
    home.submit("a", "b")
    port = free_port()
    outbox = home.outbox(hook(port), gather=0.0, keep_for=DAY)
    home.happens("failed", AT, batch=1, job=1, run=1)
    pass_time(outbox, AT, AT + 2 * DAY, step=600.0)
    kept = spool.load(outbox.path)
    assert (kept["queue"], kept["dropped"], kept["dropped_why"]["code"]) == ([], 1, "too_old")
    with http_server(posts := Posts(), port=port):
        home.happens("failed", AT + 2 * DAY, batch=1, job=2, run=1)
        pass_time(outbox, AT + 2 * DAY, AT + 2 * DAY + 2 * HOUR, step=600.0)
    assert told(posts) == [2]
    assert "1 earlier message was dropped: it could not be delivered for 1d" in posts.bodies()[0]["data"]["text"]


def test_c11_a_clock_that_jumps_a_year_ahead_drops_no_message(home):
    home.submit("a")
    port = free_port()
    outbox = home.outbox(hook(port), gather=0.0)
    home.happens("failed", AT, batch=1, job=1, run=1)
    outbox.step(AT, None)
    with http_server(posts := Posts(), port=port):
        pass_time(outbox, AT + 365 * DAY, AT + 365 * DAY + HOUR)
    assert told(posts) == [1]


def test_c11_who_starts_anew_tries_at_once(home):
    """Settings were mended, perhaps, or the host was started again."""
    home.submit("a")
    port = free_port()
    outbox = home.outbox(hook(port), gather=0.0)
    home.happens("failed", AT, batch=1, job=1, run=1)
    pass_time(outbox, AT, AT + DAY, step=60.0)
    with http_server(posts := Posts(), port=port):
        home.outbox(hook(port), gather=0.0).step(AT + DAY, None)
    assert told(posts) == [1]


def test_c11_a_message_that_is_refused_keeps_no_other_waiting_and_is_given_up_in_the_end(home):
    home.submit("a", "b")
    answers = [(413, b"", {}), (200, b"", {}), (413, b"", {})]
    with http_server(posts := Posts(*answers)) as port:
        outbox = home.outbox(hook(port), gather=0.0)
        home.happens("failed", AT, batch=1, job=1, run=1)
        outbox.step(AT, None)
        home.happens("failed", AT + 1, batch=1, job=2, run=1)
        pass_time(outbox, AT + 2, AT + 4 * HOUR, step=60.0)
    assert told(posts)[:2] == [1, 2] and len(posts.requests) == REFUSED_TRIES + 1
    assert (outbox.kept["queue"], outbox.kept["sent"], outbox.kept["dropped"]) == ([], 1, 1)
    assert outbox.kept["dropped_why"] == {"code": "refused_often", "params": {"tries": REFUSED_TRIES}}


def test_c11_one_whose_answer_was_lost_comes_again_with_the_same_id_and_no_other_twice(home):
    home.submit("a", "b")
    got = []

    def serve(connection):
        """Takes the first message and dies before it says so."""
        stream = connection.makefile("rb")
        headers = {}
        for line in iter(stream.readline, b"\r\n"):
            name, _, value = line.decode().partition(":")
            headers[name.strip().lower()] = value.strip()
        got.append((headers["webhook-id"], json.loads(stream.read(int(headers["content-length"])))))
        if len(got) > 1:
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with socket_server(serve) as port:
        outbox = home.outbox(hook(port), gather=0.0)
        home.happens("failed", AT, batch=1, job=1, run=1)
        outbox.step(AT, None)
        home.happens("failed", AT + 1, batch=1, job=2, run=1)
        pass_time(outbox, AT + 2, AT + HOUR)
    assert [message["data"]["items"][0]["job"] for _, message in got] == [1, 1, 2]
    assert got[0] == got[1] and got[1][0] != got[2][0]


FAILPOINTS = ("notify.before_save", "notify.before_rename", "notify.saved", "notify.before_send", "notify.sent")


@pytest.mark.parametrize("point", FAILPOINTS)
@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5])
def test_c11_killed_at_any_step_it_loses_none_and_repeats_only_what_was_not_recorded(home, point, nth):
    """Of three messages, of which each is made, kept, sent and forgotten: the n-th time at each step is the last."""
    home.submit(*"abcd")
    with http_server(posts := Posts()) as port:
        home.outbox(hook(port, "failed", "finished")).close()  # it has its place
        died = work(home, port, AT + 100, AT + 400, f"{point}=kill@{nth}")
        assert died in (0, -signal.SIGKILL)
        assert work(home, port, AT + 400, AT + 800) == 0
    assert died == -signal.SIGKILL or nth > 3
    by_id = dict(zip(ids(posts), (tuple(item["job"] for item in body["data"]["items"]) for body in posts.bodies()), strict=True))
    assert sorted(job for jobs in by_id.values() for job in jobs) == [1, 2, 3, 4], "each is told in one message, none is missing"
    repeated = len(ids(posts)) - len(by_id)
    assert repeated <= (point not in ("notify.before_send", "notify.saved"))
    assert repeated == 1 or not (point == "notify.sent" and died)


def work(home, port, since, until, failpoints=""):
    env = {**os.environ, "JOSTLE_FAILPOINTS": failpoints, "PYTHONPATH": str(Path(__file__).parents[2])}
    words = [sys.executable, "-m", "tests.notify.killed", home.path, str(port), str(since), str(until)]
    return subprocess.run(words, env=env, cwd=Path(__file__).parents[2], timeout=120).returncode


@pytest.mark.parametrize("error", ["ENOSPC", "EIO", "EROFS"])
def test_c11_a_full_disk_loses_nothing_and_repeats_nothing(home, error):
    home.submit("a", "b")
    with http_server(posts := Posts()) as port:
        outbox = home.outbox(hook(port), gather=0.0)
        home.happens("failed", AT, batch=1, job=1, run=1)
        arm(f"notify.before_save={error}")
        pass_time(outbox, AT, AT + HOUR)
        assert posts.requests == []  # not on the disk, so not sent
        arm(f"notify.before_save={error}@2")  # on the disk, sent, and that cannot be written
        pass_time(outbox, AT + HOUR, AT + HOUR + 5)
        assert told(posts) == [1] and outbox.unsaved
        home.happens("failed", AT + HOUR, batch=1, job=2, run=1)
        arm("")
        pass_time(outbox, AT + HOUR + 10, AT + 2 * HOUR)
    assert told(posts) == [1, 2] and not outbox.unsaved


def test_c11_a_restart_neither_loses_nor_repeats(home):
    home.submit(*"abcd")
    with http_server(posts := Posts()) as port:
        for job in range(1, 5):
            outbox = home.outbox(hook(port), gather=20.0)
            pass_time(outbox, AT + job * 100, AT + job * 100 + 40)
            home.happens("failed", AT + job * 100 + 45, batch=1, job=job, run=1)
            outbox.step(AT + job * 100 + 50, None)  # seen, and still gathered
            outbox.close()
        pass_time(home.outbox(hook(port), gather=20.0), AT + 500, AT + 600)
    assert told(posts) == [1, 2, 3, 4] and len(set(ids(posts))) == 4


def test_c11_a_database_that_was_put_back_is_told_on_from_where_it_is(home):
    """Events that came after the copy are gone; others have their numbers now."""
    home.submit(*"abc")
    with http_server(posts := Posts()) as port:
        outbox = home.outbox(hook(port), gather=0.0)
        for job in (1, 2):
            home.happens("failed", AT + job, batch=1, job=job, run=1)
        pass_time(outbox, AT + 10, AT + 20)
        outbox.close()
        with home.store.transaction():
            home.store.db.execute("DELETE FROM event WHERE kind = 'failed'")
        for _ in range(4):
            home.happens("failed", AT + 30, batch=1, job=3, run=1)
        pass_time(home.outbox(hook(port), gather=0.0), AT + 40, AT + 60)
    assert told(posts) == [1, 2, 3, 3, 3, 3]


def test_c11_events_that_were_cleaned_away_unread_are_said(home):
    home.submit(*"ab")
    with http_server(posts := Posts()) as port:
        home.outbox(hook(port), gather=0.0).close()
        home.happens("failed", AT, batch=1, job=1, run=1)
        home.happens("failed", AT + DAY, batch=1, job=2, run=1)
        with home.store.transaction():
            home.store.db.execute("DELETE FROM event WHERE at < ?", (AT + 1,))
        pass_time(home.outbox(hook(port), gather=0.0), AT + DAY, AT + DAY + 60)
    assert told(posts) == [2]
    assert "Some events were removed" in posts.bodies()[0]["data"]["text"]


INSIDE = [
    {"position": "far"}, {"position": [1]}, {"position": [1 << 70, 0.0]}, {"position": [True, 0.0]}, {"queue": [{}]},
    {"queue": ["a"]},
    {"queue": [{"id": "a", "made_at": "then", "about": [], "title": "", "text": "", "items": [], "tries": 0, "next_at": 0.0}]},
    {"next_at": "soon"}, {"failures": None}, {"free": []}, {"lost": {"cards": [1]}}, {"sent": "many"}, {"dropped_untold": []},
    {"error": "bad"}, {"error": {}}, {"failing_since": "then"}, {"position": [1, float("nan")]},
]  # fmt: skip
"""Each is JSON of our version, and no spool of ours."""


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[1]", b'{"version":99,"queue":[]}', b"\xff" * 100]
    + [json.dumps({"version": spool.VERSION, "queue": [], "position": [0, 0.0]} | wrong).encode() for wrong in INSIDE],
)
def test_c11_a_damaged_spool_is_put_aside_and_said_and_the_channel_goes_on(home, damage, capfd):
    home.submit("a", "b")
    path = Path(spool.path_of(home.path, "hook"))
    path.write_bytes(damage)
    with http_server(posts := Posts()) as port:
        outbox = home.outbox(hook(port), gather=0.0)
        home.happens("failed", batch=1, job=2, run=1)
        pass_time(outbox, AT, AT + 60)
    assert told(posts) == [2] and "put aside" in capfd.readouterr().err
    (aside,) = path.parent.glob("*.damaged-*")
    assert aside.read_bytes() == damage


@pytest.mark.parametrize("trap", ["link", "pipe", "folder"])
def test_s47_a_link_or_a_pipe_in_the_place_of_a_spool_is_not_followed(home, trap, tmp_path):
    path = Path(spool.path_of(home.path, "hook"))
    other = tmp_path / "other"
    other.write_text("precious")
    {"link": lambda: path.symlink_to(other), "pipe": lambda: os.mkfifo(path), "folder": path.mkdir}[trap]()
    home.outbox(hook(1), gather=0.0).close()
    assert other.read_text() == "precious"
    assert path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o777 == 0o600


def test_s43_a_spool_is_private_from_its_first_instant_and_has_no_secret(home):
    home.submit("a")
    before = os.umask(0)
    try:
        port = free_port()
        outbox = home.outbox(hook(port), gather=0.0)
        home.happens("failed", batch=1, job=1, run=1)
        pass_time(outbox, AT, AT + 60)
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in Path(home.path, "notify").iterdir()} == {0o600}
    assert "/hook" not in Path(outbox.path).read_text()  # the address, which may be a secret


def test_c11_a_clock_that_is_set_back_makes_no_message_wait_for_long(home):
    home.submit("a")
    port = free_port()
    outbox = home.outbox(hook(port), gather=30.0)
    home.happens("failed", AT + 10 * DAY, batch=1, job=1, run=1)
    pass_time(outbox, AT + 10 * DAY, AT + 10 * DAY + HOUR)
    with http_server(posts := Posts(), port=port):
        pass_time(outbox, AT, AT + HOUR)
    assert told(posts) == [1]


def test_c11_an_error_of_our_own_is_told_without_its_words_and_the_message_stays(home, capfd):
    home.submit("a")
    outbox = home.outbox(hook(1), gather=0.0)
    outbox.deliver = lambda channel, message: 1 / ["SECRET"].index("SECRET")
    home.happens("failed", batch=1, job=1, run=1)
    outbox.step(AT, None)
    assert outbox.kept["error"]["code"] == "failed_inside" and len(outbox.kept["queue"]) == 1
    assert outbox.kept["error"]["params"]["error"].startswith("ZeroDivisionError test_outbox.py:")
    assert "SECRET" not in capfd.readouterr().err


def test_c11_the_status_tells_what_waits_what_went_wrong_and_when_it_is_tried_again(home):
    home.submit("a")
    Path(home.path, "config.yaml").write_text(
        "notify:\n  allow_private: [localhost]\n  channels:\n    hook: {kind: webhook, url: 'http://localhost:9/TOKEN'}\n"
    )
    outbox = home.outbox(hook(9), gather=0.0)
    home.happens("failed", batch=1, job=1, run=1)
    outbox.step(AT, None)
    (channel,) = (view := status(home.path))["channels"]
    assert (channel["waiting"], channel["oldest_at"], channel["failing_since"], channel["sent"]) == (1, AT, AT, 0)
    assert channel["error"]["code"] in ("unreachable", "url_port") and AT < channel["next_at"] < AT + 60
    assert "TOKEN" not in json.dumps(view) and channel["host"] in ("localhost", "")
