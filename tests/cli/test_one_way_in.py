"""What `run` does can be done without a terminal and without argparse: the same request, the same end."""

import pytest

import jostle as package
from jostle.experiments.skip import Rule
from jostle.follow.feed import Feed
from jostle.follow.followed import Followed
from jostle.follow.listener import Listener
from jostle.follow.progress import Progress
from jostle.intake.batches import loaded
from jostle.intake.options import Options
from jostle.intake.selection import selected
from jostle.intake.submitting import submitted
from jostle.session import Session
from tests.cli.conftest import event

JOBS = "policy: {max_gpu: 2}\njobs:\n  - {name: a, run: x, memory: 1GiB}\n  - {name: b, run: y}\n"
SWEEP = "command: echo {lr}\nmatrix: {lr: [1, 2]}\n"


class Page(Session):
    """A session that is no terminal: what is said stands in a list."""

    def __init__(self):
        super().__init__()
        self.heard = []

    def say(self, text):
        self.heard.append(text)


@pytest.fixture
def page(home):
    made = Page()
    yield made
    made.close()


def stripped(request):
    """What is asked for, without what differs each time."""
    left = {key: value for key, value in request.items() if key not in ("once", "context", "id")}
    left["batch"] = {key: value for key, value in request["batch"].items() if key != "owner"}
    return left


@pytest.mark.parametrize(
    ("text", "words", "options"),
    [
        (JOBS, [], {}),
        (JOBS, ["--share", "--max-concurrent", "1", "--strict"], {"rules": {"share": True, "max_concurrent": 1}, "strict": True}),
        (JOBS, ["--min-memory", "500", "--max-util", "10"], {"rules": {"min_free_mib": 500, "max_utilization": 10}}),
        (SWEEP, ["--redo"], {"skip": Rule(redo=True)}),
    ],
)
def test_options_as_a_value_make_the_request_of_the_command_line(home, engine, jostle, page, tmp_path, text, words, options):
    file = tmp_path / "jobs.yaml"
    file.write_text(text)
    engine.answers["submit"] = {"batch": 1, "ids": [1, 2], "count": 2}
    assert jostle("run", "--detach", *words, file)[0] == 0
    asked = Options(files=(str(file),), **options)
    (batch,) = loaded(asked, page)
    selection = selected(batch, asked, page)
    number, rows = submitted(batch, selection, selection.taken(), asked, page, owner=None)
    ours, theirs = map(stripped, engine.asked("submit"))
    assert ours == theirs and (number, [row["id"] for row in rows]) == (1, [1, 2])


def test_python_sends_the_request_of_a_job_file(home, engine, jostle, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.yaml").write_text(JOBS)
    engine.answers["submit"] = {"batch": 1, "ids": [1, 2], "count": 2}
    assert jostle("run", "--detach", "jobs.yaml")[0] == 0
    package.submit([{"name": "a", "run": "x", "memory": "1GiB"}, {"name": "b", "run": "y"}], policy={"max_gpu": 2})
    ours, theirs = engine.asked("submit")
    assert ours["batch"]["policy"] == theirs["batch"]["policy"] and ours.keys() == theirs.keys()
    assert [{**job, "params": {}} for job in ours["jobs"]] == theirs["jobs"]


def test_a_batch_is_followed_to_its_end_without_a_terminal(home, engine, page, capfd):
    class Heard(Listener):
        def event(self, event, line):
            lines.append(line)

    lines = []
    engine.events = [event(1, "starting", 1, gpus=[0]), event(2, "failed", 1, error_type="oom", ran_s=2.0)]
    progress = Progress([{"id": 1, "name": "a", "state": "queued", "gpus": [], "started_at": None}])
    feed = Feed(page.client, after=0, batch=1)
    feed.start()
    assert not Followed(page, 1, progress, feed, Heard(page)).to_the_end()
    assert lines == ["started    1 a on GPU 0", "failed     1 a after 2.0s: oom"]
    assert progress.over and not progress.succeeded and capfd.readouterr() == ("", "")
