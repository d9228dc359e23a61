"""C11: what is told of each kind of event, in words, to people and programs. Names are hostile."""

import json
import pathlib
import re
import string

import pytest

from jostle.core.kinds import NOTICES
from jostle.notify import happenings
from jostle.store.reads import Reader
from jostle.wording import notices
from tests.notify.scene import AT

ALL = tuple(NOTICES)


def told(home, about=ALL, language="en"):
    reader = Reader(home.path)
    found = happenings.entries(reader, reader.events(limit=10_000), about)
    reader.close()
    return happenings.message(found, host="lab-1", at=AT, language=language) if found else None


def test_c11_a_failed_job_is_told_with_its_reason(home):
    home.submit("train")
    with home.store.transaction():
        home.store.db.execute("UPDATE job SET exit_code = 1, error_type = 'oom', attempt = 3")
    home.happens("failed", batch=1, job=1, run=3)
    message = told(home)
    assert message.title == "[jostle lab-1] job 1 (train) failed: oom" and message.about == ("failed",)
    (item,) = message.items
    assert (item["job"], item["name"], item["exit_code"], item["error_type"], item["tries"]) == (1, "train", 1, "oom", 3)
    assert told(home, language="zh").title == "[jostle lab-1] 任务 1（train） 失败：oom"


def test_c11_a_batch_is_told_with_its_counts_and_what_failed(home):
    home.submit("a", "b", batch={"name": "sweep", "key": "run:x"})
    home.happens("batch_ended", batch=1)
    message = told(home)
    assert message.title == "[jostle lab-1] batch 1 (sweep) has ended: 2 queued"
    assert message.items[0]["counts"] == {"queued": 2} and message.items[0]["jobs"] == 2


def test_c11_a_batch_that_ends_twice_is_told_once_and_the_standing_one_never(home):
    home.submit("a", "b", batch={"name": "sweep", "key": "run:x"})
    home.submit("c", "d", batch={"name": "add", "key": "add"})
    for batch in (1, 2, 1, 2):
        home.happens("batch_ended", batch=batch)
    assert [item["batch"] for item in told(home).items] == [1]


def test_c11_gpus_and_sizes_and_idle_holders_are_told(home):
    home.submit("train")
    home.happens("quarantined", gpu=3, uuid="GPU-3", reason={"code": "faulty_memory", "params": {"errors": 3}})
    home.happens("grown", batch=1, job=1, run=1, gpus=[0, 1, 2])
    home.happens("shrunk", batch=1, job=1, run=1, gpus=[0])
    home.happens("idle", batch=1, job=1, run=1, gpus=[0], idle_s=3600.0)
    message = told(home)
    assert message.about == ("gpu", "resized", "idle")
    assert "GPU 3: set aside as faulty: its memory has had 3 more uncorrectable errors" in message.text
    assert "job 1 (train) has grown to 3 GPUs (0-2)" in message.text and "has shrunk to 1 GPU (0)" in message.text
    assert "job 1 (train) holds GPU 0 and does not use it for 1h" in message.text
    assert "任务 1（train） 占用 GPU 0 但没有使用" in told(home, language="zh").text


HOSTILE = [
    "a\r\nBcc: x", "\x1b[2J\x07\x00", "\u202egnp.exe", "<script>alert(1)</script>", "x" * 5000, "字" * 5000, "{job} %s {0.x}",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("language", ["en", "zh"])
def test_c11_s47_hostile_names_are_one_short_line_shown_literally(home, name, language):
    home.submit("a")
    with home.store.transaction():
        home.store.db.execute("UPDATE job SET name = ?, error_type = ?", (name, name))
    home.happens("failed", batch=1, job=1, run=1)
    message = told(home, language=language)
    assert message.title.isprintable() and len(message.title) <= 400
    assert all(line.isprintable() for line in message.text.split("\n")) and len(message.text.split("\n")) == 3
    if name.startswith(("{job}", "<script>")):
        assert name in message.text
    assert len(json.dumps(message.items)) < 20_000


def test_c11_very_many_are_counted_and_the_first_are_shown(home):
    home.submit(*(f"job-{k}" for k in range(300)))
    for job in range(1, 301):
        home.happens("failed", batch=1, job=job, run=1)
    message = told(home)
    assert message.title == "[jostle lab-1] 300 jobs failed" and len(message.items) == 100
    assert "job 30 (job-29) failed" in message.text and "job 31 (" not in message.text and "… and 270 more" in message.text


def test_s43_no_command_environment_or_path_is_in_a_message(home):
    home.submit("a")
    with home.store.transaction():
        home.store.db.execute("""UPDATE job SET commands = '["run SECRET"]', env = '{"K": "SECRET"}', workdir = '/SECRET'""")
    home.happens("failed", batch=1, job=1, run=1)
    assert "SECRET" not in json.dumps(told(home).plain())


@pytest.mark.parametrize("code", notices.TROUBLES)
def test_c11_each_trouble_is_worded_in_both_languages_with_the_same_values(code):
    english, chinese = ({name for _, name, _, _ in string.Formatter().parse(words) if name} for words in notices.TROUBLES[code])
    assert english == chinese


def test_c11_each_kind_of_notice_has_events_or_a_watch_and_its_words():
    assert {*happenings.TOLD.values(), "free"} == set(NOTICES) == set(happenings.ORDER) - {"test"}
    assert set(happenings.TOLD) <= set(notices.LINES) and set(NOTICES) <= set(notices.HEADS)
    sources = [path.read_text("utf-8") for path in pathlib.Path(happenings.__file__).parent.glob("*.py")]
    used = {code for source in sources for code in re.findall(r'Undelivered\(\s*"(\w+)"', source)}
    assert len(used) > 20 and used <= set(notices.TROUBLES)
