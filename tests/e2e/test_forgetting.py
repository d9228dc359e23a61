"""What a submit captured of its surroundings is gone, to the last byte, once nobody needs it any more."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from jostle.store.store import Store
from tests.e2e.instance import Instance, until


def holding(instance: Instance, secret: str) -> list[str]:
    """Files of the home that hold this text; its processes make and remove some meanwhile."""
    found = []
    for folder, _, names in os.walk(instance.home):
        for name in names:
            path = Path(folder, name)
            with contextlib.suppress(FileNotFoundError):
                found += [name] if path.is_file() and secret.encode() in path.read_bytes() else []
    return found


def test_an_environment_is_deleted_with_its_last_job_and_no_byte_of_it_is_left(instance: Instance) -> None:
    instance.up("sim:2x24")
    bulk = {f"FILLER_{k}": "x" * 500 for k in range(9)}  # as long as environments are; some are short
    fillers = [bulk, {}] * 6
    kept = instance.add("--hold", "--", "true", env={**bulk, "TOKEN": "hunter-kept-hunter"})
    mine = {**bulk, "TOKEN": "hunter-both-hunter"}
    both = [instance.add("-g", "0", *hold, "--", "true", env=mine) for hold in ([], ["--hold"])]
    ended = [
        instance.add("-g", "0", "--", "true", env={**filler, "TOKEN": f"hunter-{k}-hunter"}) for k, filler in enumerate(fillers)
    ]
    assert set(instance.end(*ended, both[0])) == {"succeeded"}
    assert holding(instance, "hunter-3-hunter"), "this test looks where it is"
    dry = instance.run("clean", "--older-than", "0s", "--dry-run")[2]
    assert "12 captured environments" in dry and holding(instance, "hunter-3-hunter")
    assert "12 captured environments" in instance.run("clean", "--older-than", "0s")[2]
    until(lambda: not holding(instance, "hunter-5-hunter"), "the journal is emptied")
    assert [holding(instance, f"hunter-{k}-hunter") for k in range(12)] == [[]] * 12
    assert holding(instance, "hunter-kept-hunter") and holding(instance, "hunter-both-hunter")
    code, _, err = instance.run("retry", str(ended[0]))
    assert (code, "was removed by `jostle clean`: submit it anew" in err) == (1, True)
    instance.ok("unhold", str(kept), str(both[1]))
    new = instance.add("-g", "0", "--", "echo token=$TOKEN", env={**bulk, "TOKEN": "hunter-new"})
    assert instance.end(kept, both[1], new) == ["succeeded"] * 3
    assert instance.output(new) == "token=hunter-new\n", "a number that is given again is not an old environment"
    again = int(instance.ok("retry", str(kept)))
    assert instance.end(again) == ["succeeded"]


def test_copies_from_before_an_upgrade_go_the_same_way(instance: Instance) -> None:
    instance.home.mkdir(mode=0o700)
    Store(str(instance.home)).close()
    old, young = instance.home / "jostle.db.schema2-1700000000", instance.home / "jostle.db.schema3-1700000001"
    for path in (old, young):
        sqlite3.connect(path).close()
        path.touch()
    os.utime(old, (1, 1))
    assert "1 copy of an older database" in instance.run("clean")[2]
    assert (old.exists(), young.exists()) == (False, True)
