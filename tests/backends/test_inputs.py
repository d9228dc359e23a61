"""Before its first command a run sees whether its files are those of its fingerprint: by stat, else by content."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from local_bench import Bench

from jostle.backends.local import inputs
from jostle.backends.local.inputs import OTHER, SAME, UNKNOWN, compared

RUN = (7, 1)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "a.yaml"
    path.write_text("lr: 1\n")
    return path


def known(path: Path) -> list[Any]:
    return [str(path), hashlib.sha256(path.read_bytes()).hexdigest(), inputs.identity(os.stat(path))]


def test_b7_a_file_that_was_touched_or_written_anew_with_the_same_content_is_the_same(config: Path) -> None:
    entry = known(config)
    assert compared([entry]) == SAME
    os.utime(config, (1, 1))
    assert compared([entry]) == SAME
    config.unlink()
    config.write_text("lr: 1\n")
    assert compared([entry]) == SAME, "another inode, as after `git checkout`"
    config.write_text("lr: 2\n")
    assert compared([entry]) == OTHER
    config.unlink()
    assert compared([entry]) == OTHER


def test_b7_what_has_the_same_stat_is_not_read(config: Path) -> None:
    entry = known(config)
    config.chmod(0)
    entry[2] = inputs.identity(os.stat(config))
    entry[1] = "0" * 64
    assert compared([entry]) == SAME
    assert compared([[entry[0], entry[1], None]]) == OTHER, "without a stat the content decides"


def test_b7_a_large_file_that_differs_by_stat_is_unknown(config: Path) -> None:
    entry = known(config)
    os.truncate(config, inputs.LARGEST + 1)
    assert compared([entry]) == UNKNOWN
    assert compared([entry, [str(config) + "x", "0" * 64, None]]) == OTHER, "one that is another decides"
    os.truncate(config, inputs.LARGEST)
    big = hashlib.sha256(config.read_bytes()).hexdigest()
    assert compared([[entry[0], big, entry[2]]]) == SAME


def test_b7_what_could_not_be_read_and_cannot_be_read_is_the_same_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    missing, pipe, folder = str(tmp_path / "none"), str(tmp_path / "pipe"), str(tmp_path)
    os.mkfifo(pipe)
    for path in (missing, pipe, folder):
        assert compared([[path, None, None]]) == SAME
        assert compared([[path, "0" * 64, None]]) == OTHER
    (tmp_path / "none").touch()
    assert compared([[missing, None, None]]) == OTHER, "it was not there at the submit"
    assert compared([["/\0", "0" * 64, None]]) == UNKNOWN


def test_b7_a_run_records_what_it_found_before_its_first_command(bench: Bench, config: Path) -> None:
    entry = known(config)
    assert bench.carry(RUN, f"echo changed > {config}", inputs=[entry]).inputs == SAME, "what it does to them itself comes after"
    assert bench.carry((7, 2), "true", inputs=[entry]).inputs == OTHER
    assert bench.carry((7, 3), "true", inputs=[]).inputs == "", "nothing to look at"
