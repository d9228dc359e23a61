"""What people want counts when it is recorded, and not before."""

import json
import os
import socket
from types import SimpleNamespace

import pytest

from jostle import failpoint
from jostle.core.model import Lease
from jostle.engine.followers import PAGE
from jostle.engine.loop import Loop
from jostle.engine.observe import Observer, promises
from jostle.engine.server import Peer
from jostle.engine.service import Service
from jostle.errors import DiskFull, JostleError
from jostle.port import Claimed
from jostle.store.batchreads import files
from jostle.store.reads import Reader
from jostle.store.texts import broken
from jostle.wording.sentences import refused
from tests.e2e.instance import said
from tests.engine.fakes import Host


@pytest.fixture
def host(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    made = Host(str(home))
    (id,) = made.submit({})
    made.disk.durations[id] = (1000.0, 0, "")
    made.step()
    made.step(1)
    yield made
    failpoint.arm("")


def test_a_refused_stop_of_all_jobs_leaves_them_running_and_the_engine_at_work(host):
    service = Service(host.engine, Loop(), permanent=True)
    failpoint.arm("store.before_commit=ENOSPC@1")
    with pytest.raises(DiskFull):
        service.down(None, {"stop_jobs": True})
    assert (host.engine.stops_all, service.leaving, host.engine.hold()) == (False, False, None)
    assert [run.intent for run in host.engine.carried.runs.values()] == ["run"]


@pytest.mark.parametrize(("armed", "intent"), [("store.before_commit=ENOSPC@1", "run"), ("", "cancel")])
def test_a_cancel_reaches_the_run_only_when_it_is_recorded(host, armed, intent):
    service = Service(host.engine, Loop(), permanent=True)
    failpoint.arm(armed)
    ((_, answer),) = service.serve_writes([(None, {"op": "intent", "do": "cancel", "ids": [1]})])
    assert answer["ok"] is (armed == "")
    assert [run.intent for run in host.engine.carried.runs.values()] == [intent]


@pytest.mark.parametrize(
    ("do", "more"),
    [(do, {}) for do in ("hold", "unhold", "cancel", "retry")] + [("move", {"to": "last"}), ("set", {"values": {"tags": ["a"]}})],
)
def test_a_request_that_names_a_job_which_does_not_exist_changes_nothing(host, do, more):
    service = Service(host.engine, Loop(), permanent=True)
    host.submit({})
    before = host.store.db.execute("SELECT * FROM job").fetchall(), host.store.last_seq()
    ((_, answer),) = service.serve_writes([(None, {"op": "intent", "do": do, "ids": [2, 99], **more})])
    assert not answer["ok"] and answer["error"]["text"] == "there is no job 99"
    assert (host.store.db.execute("SELECT * FROM job").fetchall(), host.store.last_seq()) == before


def test_a_request_that_is_refused_brings_nothing_about_after_the_round_either(host):
    service = Service(host.engine, Loop(), permanent=True)
    (id,) = host.submit({"resize": "restart", "gpus": [1, 2]})
    host.step(1)
    host.step(1)
    assert host.states()[id] == "running"
    settings, nobody = dict(host.engine.rules.settings), {"who": 1}
    requests = [
        {"op": "intent", "do": "set", "ids": [id, 99], "values": {"gpus": [2, 2]}},
        {"op": "intent", "do": "cancel", "ids": [1], "by": nobody},
        {"op": "reload", "config": {"grace": 3}, "by": nobody},
        {"op": "intent", "do": "cancel", "ids": [id]},
    ]
    answers = service.serve_writes([(None, request) for request in requests])
    assert [answer["ok"] for _, answer in answers] == [False, False, False, True]
    (elasticity,) = (run.elasticity for run in host.engine.carried.runs.values() if run.id[0] == id)
    assert ((elasticity.least, elasticity.most), host.engine.rules.settings) == ((1, 2), settings)
    assert {run.id[0]: run.intent for run in host.engine.carried.runs.values()} == {1: "run", id: "cancel"}


@pytest.mark.parametrize("armed", ["store.before_commit=ENOSPC@1", ""])
def test_other_rules_of_a_batch_hold_when_they_are_recorded(host, armed):
    service = Service(host.engine, Loop(), permanent=True)
    (id,) = host.submit({}, policy={"max_concurrent": 3})
    host.step(1)
    batch = host.job(id)["batch"]
    assert host.engine.rules.of(batch).max_concurrent == 3
    failpoint.arm(armed)
    ((_, answer),) = service.serve_writes([(None, {"op": "amend", "batch": batch, "policy": {"max_concurrent": 5}})])
    failpoint.arm("")
    assert answer["ok"] is (armed == "")
    if armed:
        assert host.engine.rules.of(batch).max_concurrent == 3, "nobody had time to read them again"
    host.step(1)
    assert host.engine.rules.of(batch).max_concurrent == (3 if armed else 5)


@pytest.mark.parametrize("key", ["time_limit", "begin", "idle_release", "max_wait"])
def test_a_time_beyond_all_calendars_is_refused_by_its_name_and_nothing_is_queued(host, key):
    service = Service(host.engine, Loop(), permanent=True)
    for value in (1e308, 1e12, 2**70, 10**400, float("inf"), float("nan"), -1.0):
        said = {key: value}
        job = {"commands": [] if key == "idle_release" else ["true"], "workdir": "/", "name": "late"}
        asked = {"jobs": [job], "batch": {"policy": said}} if key == "max_wait" else {"jobs": [{**job, **said}]}
        ((_, answer),) = service.serve_writes([(None, {"op": "submit", **asked})])
        assert not answer["ok"] and key in answer["error"]["text"], answer
    assert list(host.states()) == [1]


@pytest.mark.parametrize(
    "head",
    [*({"owner": owner} for owner in ({}, "me", [1], [-1, 0])), {"about": {"n": float("nan")}}, {"about": {"n": 1e400}},
     *({"about": {"file": file}} for file in (5, ["/a"], "a.yaml", "/a\0.yaml")), {"about": {"suite": ["a"]}}],
)
def test_a_batch_says_nothing_of_itself_that_an_engine_could_not_begin_with_or_a_page_read(host, head):
    service = Service(host.engine, Loop(), permanent=True)
    before = host.store.db.execute("SELECT count(*) FROM batch").fetchone()
    job = {"commands": ["true"], "workdir": "/", "gpus": [0, 0]}
    ((_, answer),) = service.serve_writes([(None, {"op": "submit", "batch": head, "jobs": [job]})])
    assert not answer["ok"] and answer["error"]["code"] == "invalid"
    assert host.store.db.execute("SELECT count(*) FROM batch").fetchone() == before
    assert list(broken(host.store.db, everything=True)) == [] and files(Reader(host.engine.home)) == {}


@pytest.mark.parametrize("order", [1, -1])
def test_of_requests_that_come_together_one_that_fails_is_undone_and_the_others_are_recorded(host, order):
    service = Service(host.engine, Loop(), permanent=True)
    host.submit({}, {})
    asked = [{"op": "intent", "do": "hold", "ids": [2, 99]}, {"op": "intent", "do": "hold", "ids": [3]}]
    answers = service.serve_writes([(None, request) for request in asked[::order]])
    assert [answer["ok"] for _, answer in answers[::order]] == [False, True]
    assert host.store.db.execute("SELECT id, intent FROM job WHERE id > 1").fetchall() == [(2, "run"), (3, "hold")]


def test_a_claim_of_another_life_of_this_home_is_a_promise_of_its_own():
    """Both lives have a run 1.1; only the session tells them apart."""
    observer = Observer(os.getuid())
    observer.run_opened((1, 1), "mark", 77, ["GPU-0"])
    leases = {(1, 1): [Lease(uuid="GPU-0", index=0, mib=None)]}

    def held(uuid, sid):
        return Claimed(uuid=uuid, mib=None, run=(1, 1), session=sid, name=uuid, uid=os.getuid(), ours=True)

    assert [p.uuid for p in promises(observer, [held("GPU-0", 77)], leases)] == ["GPU-0"]
    assert [p.uuid for p in promises(observer, [held("GPU-0", 77), held("GPU-1", 99)], leases)] == ["GPU-0", "GPU-1"]


def test_b3_a_card_that_fell_idle_is_looked_at_until_its_average_has_followed():
    """The readings no longer change, but the average over 3 s still does: each of them is news until it has come to rest."""
    card = {"index": 0, "uuid": "GPU-0", "name": "c", "state": "ok", "error": "",
            "total_mib": 100, "used_mib": 0, "free_mib": 100,
            "procs": []}  # fmt: skip

    def line(load):
        head = {"asked": None, "driver": None, "error": None, "hold": None}
        return json.dumps({**head, "gpus": [{**card, "utilization": load}]}).encode()

    observer = Observer(os.getuid())
    for at, load in ((0.0, 0), (0.5, 90), (1.0, 0)):
        observer.hear(line(load), at)
    news = {at / 2: observer.hear(line(0), at / 2) for at in range(3, 12)}
    assert news[1.5] and news[3.0], "a spike in the middle of the window still counts"
    assert not news[5.0] and observer.gpus(5.0)[0].mean_utilization == 0


@pytest.mark.parametrize("how", ["subscribe", "a write that changes nothing", "an event, full disk", "a write, full disk"])
def test_followers_are_told_of_nothing_that_the_disk_does_not_have(tmp_path, monkeypatch, how):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    host = Host(str(home))
    service = Service(host.engine, Loop(), permanent=True)
    (id,) = host.submit({})
    host.step()
    host.step(1.0)
    host.clock.at += 5.0
    host.backend.listener.changed((id, 1))
    host.hear()
    host.engine.tick()
    assert host.job(id)["state"] == "succeeded" and host.store.unsynced
    told = []
    follower = SimpleNamespace(following=True, batch=None, rows=True, seq=0, out=b"")
    monkeypatch.setattr(
        service.server,
        "send",
        lambda peer, data: told.extend((json.loads(line)["kind"], host.store.unsynced) for line in data.splitlines()),
    )
    monkeypatch.setattr(service.server, "answer", lambda peer, answer: None)
    cancel = {"op": "intent", "do": "cancel", "ids": [id]}  # refused: it has ended
    service.server.peers[99] = follower
    if how == "subscribe":
        failpoint.arm("store.before_sync=EIO")
        service.subscribe(follower, {"after": 0})  # is no error, whatever the disk does
        failpoint.arm("")
        assert [kind for kind, _ in told] == ["submitted", "starting", "running"], "what the disk had, when it was last asked"
        told.clear()
        host.engine.settle()
        assert told == [("succeeded", False), ("batch_ended", False)]
    else:
        if "full disk" in how:
            failpoint.arm("store.before_commit=ENOSPC,store.before_sync=EIO")
        if "event" in how:
            host.engine.journal.event("refused", uid=1)
        else:
            service.pending = [(follower, cancel)]
            service.serve()
        failpoint.arm("")
        assert told == [] if "full disk" in how else ("succeeded", False) in told
    assert not any(unsynced for _, unsynced in told)


def test_one_who_is_far_behind_hears_everything_once_and_keeps_nobody_waiting(host):
    """Page by page: between two of them the engine does other things."""
    loop = Loop()
    service = Service(host.engine, loop, permanent=True)
    with host.store.transaction():
        for n in range(3 * PAGE + 7):
            host.store.event(float(n), "tested", batch=1 + n % 2)
    service.followers.push()
    near, far = socket.socketpair()
    near.setblocking(False)
    peer = Peer(near)
    service.server.peers[near.fileno()] = peer
    loop.watch(near.fileno(), lambda: None)
    last, rounds, heard = host.store.last_seq(), 0, b""
    service.followers.add(peer, 0, 2)
    far.settimeout(10)
    mine = [float(n) for n in range(3 * PAGE + 7) if n % 2 == 1]
    while heard.count(b"\n") <= len(mine):
        heard += far.recv(1 << 24)
        loop.wait(0.0)
        rounds += 1
    answer, *rows = [json.loads(line) for line in heard.splitlines()]
    assert answer == {"ok": True, "seq": last} and rounds > 1
    assert [row["at"] for row in rows] == mine
    near.close()
    far.close()
    loop.close()


def test_what_was_refused_does_not_act(host):
    """Cards that were to be left alone, and new settings, too, count when they are recorded."""
    service = Service(host.engine, Loop(), permanent=True)
    asked = [(None, {"op": "exclude", "gpus": [0], "on": True}), (None, {"op": "reload", "config": {"grace": 9.0}})]
    failpoint.arm("store.before_commit=ENOSPC@1")
    assert [answer["ok"] for _, answer in service.serve_writes(asked)] == [False, False]
    assert host.engine.cards.observer.excluded == set() and "grace" not in host.engine.rules.settings
    assert [answer["ok"] for _, answer in service.serve_writes(asked)] == [True, True]
    assert host.engine.cards.observer.excluded == {"GPU-0"} and host.engine.rules.settings["grace"] == 9.0


def test_a_reading_that_was_asked_for_and_does_not_come_is_told(host):
    service = Service(host.engine, Loop(), permanent=True)
    host.probe.silent = True
    assert service.hello(None, {})["probe"] == ""
    host.probe.look(host.clock.now())
    host.clock.at += 4.0
    assert service.hello(None, {})["probe"] == "probe_waits"


def test_another_error_of_the_whole_reading_is_news_though_no_card_changed():
    def line(error):
        return json.dumps({"asked": None, "driver": None, "error": error, "hold": None, "gpus": []}).encode()

    observer = Observer(os.getuid())
    assert [observer.hear(line(e), at) for at, e in enumerate(("a", "a", "b", "b", None))] == [True, False, True, False, True]


def test_an_engine_that_starts_on_a_failing_disk_tells_nobody_what_the_last_one_could_not_make_sure_of(host):
    host.store.unsynced = True  # as at each start
    failpoint.arm("store.before_sync=EIO")
    service = Service(host.engine, Loop(), permanent=True)
    sent = []
    service.server.send = lambda peer, data: sent.append(data)
    peer = SimpleNamespace(following=False, batch=None, seq=0, out=b"")
    service.subscribe(peer, {"after": 0})
    failpoint.arm("")
    assert len(sent) == 1 and b'"ok"' in sent[0]
    service.server.peers[99] = peer
    service.followers.push()
    assert b'"submitted"' in sent[1]


def test_who_wants_numbers_only_is_told_how_far_it_is_and_no_event_is_read_for_it(host, monkeypatch):
    """As the console does: it reads the store itself."""
    service = Service(host.engine, Loop(), permanent=True)
    told = []
    monkeypatch.setattr(service.followers.reader, "events", lambda **_: pytest.fail("an event was read"))
    monkeypatch.setattr(service.server, "answer", lambda peer, answer: told.append(answer))
    peer = service.server.peers[99] = SimpleNamespace(following=False, batch=None, seq=0, out=b"")
    service.subscribe(peer, {"after": host.store.last_seq(), "rows": False})
    host.submit({}, {})
    service.followers.push()
    service.followers.push()
    assert [set(one) for one in told] == [{"ok", "seq"}, {"seq"}] and told[1]["seq"] == host.store.last_seq() > told[0]["seq"]


def test_who_counts_the_jobs_in_the_store_does_not_make_the_engine_count_them(host, monkeypatch):
    service = Service(host.engine, Loop(), permanent=True)
    assert "counts" in service.hello(None, {})
    monkeypatch.setattr(service.reader, "counts", lambda: pytest.fail("they were counted"))
    assert "pid" in service.hello(None, {"counts": False})


def test_a_database_that_cannot_be_read_costs_a_follower_and_not_the_engine(host, monkeypatch):
    service = Service(host.engine, Loop(), permanent=True)

    def unreadable(**_):
        raise JostleError("cannot be read (disk I/O error)")

    dropped = []
    monkeypatch.setattr(service.followers.reader, "events", unreadable)
    monkeypatch.setattr(service.server, "drop", dropped.append)
    monkeypatch.setattr(service.server, "answer", lambda peer, answer: None)
    peer = SimpleNamespace(following=False, batch=None, seq=0, out=b"")
    service.subscribe(peer, {"after": 0})
    assert dropped == [peer]


def asked(service, *jobs, **more):
    request = {"op": "submit", "jobs": [{"commands": ["true"], "workdir": "/", **job} for job in jobs], **more}
    ((_, answer),) = service.serve_writes([(None, request)])
    return answer


def test_what_can_never_run_here_is_in_the_answer_with_numbers(host):
    service = Service(host.engine, Loop(), permanent=True)
    answer = asked(service, {}, {"gpus": [9, 9]}, {"memory_mib": 48 << 10}, {"gpus": [9, 9]}, {"memory_mib": 24576})
    first = answer["ids"][0]
    nine, large = answer["never"]
    assert (nine["jobs"], nine["count"], nine["reason"]["code"]) == ([first + 1, first + 3], 2, "impossible_count")
    assert said(nine["reason"]).startswith("It can never start with the cards this host has: it needs 9 cards and may use 4.")
    assert large["jobs"] == [first + 2] and "with 48 GiB" in said(large["reason"])
    assert "offers 24 GiB" in said(large["reason"])
    assert host.states()[first + 1] == "queued", "it stays queued in case this changes"
    assert "never" not in asked(service, {"gpus": [4, 4]})


def test_the_rules_of_the_batch_count_and_what_was_done_before_does_not(host):
    service = Service(host.engine, Loop(), permanent=True)
    answer = asked(service, {"gpus": [3, 3]}, batch={"policy": {"gpus": [0, 1]}})
    assert answer["never"][0]["reason"]["params"]["cards"] == 2
    assert "never" not in asked(service, {"gpus": [9, 9], "done_by": [1, 1]})


def test_who_is_strict_gets_an_error_and_nothing_is_queued(host):
    service = Service(host.engine, Loop(), permanent=True)
    before = host.states()
    answer = asked(service, {}, {"name": "wide", "gpus": [9, 9]}, strict=True)
    assert answer["ok"] is False and answer["error"]["code"] == "invalid" and host.states() == before
    told = refused(answer["error"], "en")
    assert "job 2 of these (wide)" in told and "needs 9 cards and may use 4" in told and "stays queued" not in told
    assert asked(service, {"gpus": [4, 4]}, strict=True)["ok"] is True


def test_an_engine_that_has_read_no_card_claims_nothing(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    service = Service(Host(str(home)).engine, Loop(), permanent=True)
    answer = asked(service, {"gpus": [9, 9]}, strict=True)
    assert answer["ok"] is True and "never" not in answer
    jobs = [{"commands": ["true"], "workdir": "/", "gpus": [9, 9]}]
    assert service.check(None, {"jobs": jobs}) == {"checked": False, "never": []}


def test_a_new_engine_lets_the_first_reading_come_before_it_answers_who_asks_for_much(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    made = Host(str(home))
    service = Service(made.engine, Loop(), permanent=True)
    wide = {"op": "submit", "jobs": [{"commands": ["true"], "workdir": "/", "gpus": [9, 9]}]}
    service.request("wide", wide)
    service.request("plain", {"op": "submit", "jobs": [{"commands": ["true"], "workdir": "/"}]})
    assert [peer for peer, _ in service.pending] == ["plain"]
    made.step()
    assert [peer for peer, _ in service.pending] == ["plain", "wide"]
    service.request("wide", wide)
    assert len(service.pending) == 3, "from now on nobody waits"


def test_a_driver_that_takes_long_does_not_keep_a_submit_waiting(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    made = Host(str(home))
    service = Service(made.engine, Loop(), permanent=True)
    service.request("wide", {"op": "submit", "jobs": [{"commands": ["true"], "workdir": "/", "memory_mib": 1}]})
    service.overdue(made.clock.at + 0.9)
    assert service.pending == [] and service.answer_at == made.clock.at + 1.0
    service.overdue(made.clock.at + 1.0)
    assert len(service.pending) == 1


def words_in(value):
    """Where a text is under the key `text`, anywhere in it."""
    if isinstance(value, dict):
        return [*(["text"] if "text" in value else []), *(w for v in value.values() for w in words_in(v))]
    return [w for v in value for w in words_in(v)] if isinstance(value, list | tuple) else []


def test_the_store_and_the_engine_have_codes_and_numbers_and_no_words(host):
    failing, _ = host.submit({"name": "fails"}, {"name": "wide", "gpus": [9, 9]})
    host.disk.durations[failing] = (1.0, 3, "")
    host.disk.strangers = {"GPU-3": 9000}
    host.step()
    host.step(3.0)
    assert host.job(failing)["state"] == "failed"
    kept = json.loads(host.job(failing)["reason"])
    assert kept["code"] == "exit_code" and set(kept) == {"code", "params"}
    events = [json.loads(data) for (data,) in host.store.db.execute("SELECT data FROM event WHERE data LIKE '%reason%'")]
    assert events and words_in(events) == []
    service = Service(host.engine, Loop(), permanent=True)
    answers = [service.why(None, {"id": id}) for id in (1, failing, failing + 1)]
    answers += [service.reasons(None, {}), service.gpus(None, {"again": True})]
    assert answers[2]["reason"]["code"] == "impossible_count" and any(g["refusal"] for g in answers[-1]["gpus"])
    assert words_in(answers) == []
