"""Jobs that are added to the file of a batch while it runs: they join it, or it is said why not; nothing is dropped silently."""

from __future__ import annotations

from typing import Any

from tests.e2e.instance import PATIENCE, Instance, until

LONG = "{name: long, run: 'touch began; until [ -e go ]; do sleep 0.02; done', gpus: 0, queue: q}"


def begun(jostle: Instance, text: str, *words: str) -> tuple[str, Any]:
    """A batch whose first job runs, and the client that follows it."""
    for name in ("began", "go", "story"):
        (jostle.work / name).unlink(missing_ok=True)
    file = jostle.file(text)
    client = jostle.start("run", file, *words)
    until((jostle.work / "began").exists, "a job that runs")
    return file, client


def ended(jostle: Instance, *clients: Any) -> list[tuple[int, str]]:
    (jostle.work / "go").touch()
    done = []
    for client in clients:
        out, err = client.communicate(timeout=PATIENCE)
        done.append((client.returncode, out + err))
    return done


def rows(jostle: Instance, batch: int) -> list[dict[str, Any]]:
    return [row for row in jostle.newest(20) if row["batch"] == batch]


def note(name: str, **more: str) -> str:
    extra = "".join(f", {key}: {value}" for key, value in more.items())
    return f"{{name: {name}, run: 'echo {name} >> story', gpus: 0{extra}}}"


def test_jobs_added_to_the_file_of_a_running_batch_join_it_in_the_order_of_the_file(shared: Instance) -> None:
    file, first = begun(shared, f"jobs: [{LONG}, {note('last', queue='q')}]\n")
    new = note("after", after="[last, middle]")
    shared.file(f"jobs: [{LONG}, {note('middle', queue='q')}, {note('last', queue='q')}, {new}]\n")
    second = shared.start("run", file)
    until(lambda: len(rows(shared, shared.newest(1)[0]["batch"])) == 4, "the jobs that join")
    (one, told), (two, said) = ended(shared, first, second)
    assert (one, two) == (0, 0) and "2 jobs (" in said and "of the file joined batch" in said
    assert "4 succeeded" in told and "4 succeeded" in said, "whoever followed the batch before follows the new jobs, too"
    assert (shared.work / "story").read_text().split() == ["middle", "last", "after"]
    assert shared.run("run", file)[0] == 0, "the batch is over: all of it runs anew"


def test_what_is_new_is_added_once_however_often_it_is_run(shared: Instance) -> None:
    file, first = begun(shared, f"jobs: [{LONG}]\n")
    shared.file(f"jobs: [{LONG}, {note('new')}, {note('new')}]\n")
    others = [shared.start("run", "--detach", file) for _ in range(3)]
    assert {client.wait(PATIENCE) for client in others} == {0}
    assert shared.run("run", "--detach", file)[0] == 0
    assert len(rows(shared, shared.newest(1)[0]["batch"])) == 3
    assert ended(shared, first)[0][0] == 0 and (shared.work / "story").read_text().split() == ["new", "new"]


def test_a_file_that_lost_jobs_too_changes_nothing_and_that_is_said(shared: Instance) -> None:
    file, first = begun(shared, f"jobs: [{LONG}, {note('old', queue='q')}]\n")
    shared.file(f"jobs: [{LONG}, {note('new', queue='q')}]\n")
    code, _, said = shared.run("run", "--detach", file)
    assert code == 0 and "1 job of the batch is not in it any more and goes on, 1 job of it is not part of the batch" in said
    assert "run it again when this batch has ended" in said
    assert ended(shared, first)[0][0] == 0
    assert (shared.work / "story").read_text().split() == ["old"]


def test_a_batch_of_some_jobs_of_the_file_is_not_filled_up(shared: Instance) -> None:
    bad = "{name: bad, run: '[ -e again ] || exit 1; touch began; until [ -e go ]; do sleep 0.02; done', gpus: 0}"
    text = f"jobs: [{bad}, {note('good')}]\n"
    assert shared.run("run", shared.file(text))[0] == 1
    (shared.work / "again").touch()
    file, first = begun(shared, text, "--only-failed")
    code, _, said = shared.run("run", "--detach", file)
    assert code == 0 and "1 job of it is not part of the batch: run it again when this batch has ended" in said
    code, _, said = shared.run("run", "--detach", "--only-failed", file)
    assert code == 0 and "has changed" not in said, "it is what was asked for"
    assert len(rows(shared, shared.newest(1)[0]["batch"])) == 1
    assert ended(shared, first)[0][0] == 0


def test_frozen_code_takes_no_jobs_of_other_code(shared: Instance) -> None:
    go = shared.root / "thaw"  # no part of what is frozen
    long = f"{{name: long, run: 'until [ -e {go} ]; do sleep 0.02; done', gpus: 0}}"
    file = shared.file(f"jobs: [{long}]\n")
    assert shared.run("run", "--detach", "--freeze", file)[0] == 0
    shared.file(f"jobs: [{long}, {note('new')}]\n")
    code, _, said = shared.run("run", "--detach", file)
    assert code == 0 and "1 job of it is not part of the batch, whose code is frozen: run it again when this batch" in said
    go.touch()
    until(lambda: shared.newest(1)[0]["ended_at"], "the end of the batch")
    assert shared.newest(1)[0]["name"] == "long"
