"""Two demos that begin and end at once leave each other alone."""

import fcntl
import os
import tempfile

import pytest

from jostle.demo import stage


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("JOSTLE_LEASE_DIR", "JOSTLE_SIM_DIR"):
        monkeypatch.setenv(name, "")  # put back afterwards: a stage takes them away
    return tmp_path


def test_a_demo_that_ends_while_another_looks_for_what_was_left_is_no_error(place, monkeypatch):
    (place / f"{stage.PREFIX}x").mkdir()
    seen = list(os.scandir(place))
    (place / f"{stage.PREFIX}x").rmdir()
    monkeypatch.setattr(os, "scandir", lambda path: seen)
    stage.clear_left_behind()


def test_one_that_has_just_begun_is_not_cleared_before_it_has_its_lock(place, monkeypatch):
    real, begun = fcntl.flock, []

    def flock(fd, how):
        if not begun:
            begun.extend(place.iterdir())
            stage.clear_left_behind()  # another demo, at the worst moment
            assert begun[0].exists()
        real(fd, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr(stage.Stage, "begin", lambda self, console: stage.clear_left_behind())
    with stage.stage(None, console=False) as made:
        assert [str(home) for home in begun] == [made.home] and begun[0].exists()
    assert list(place.iterdir()) == []
