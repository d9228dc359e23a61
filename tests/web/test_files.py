"""Files of a workspace that several consoles of a user save at once, whatever their homes."""

import os
import threading
import time

import pytest

from jostle.errors import Forbidden
from jostle.web import files
from jostle.web.answers import Changed, etag

LOCK = f".jostle-{os.getuid()}.lock"


def test_of_several_who_save_over_the_same_one_does_and_the_others_are_told(tmp_path, monkeypatch):
    (tmp_path / "x").write_text("old")
    present, outcomes = files._present, []

    def looked(*args):
        found = present(*args)
        time.sleep(0.02)  # room for another, if nothing keeps him out
        return found

    def save(k):
        try:
            files.save(str(tmp_path), "x", f"new {k}".encode(), seen=etag(b"old"), backup="x.backup")
            outcomes.append(f"new {k}")
        except Changed:
            outcomes.append(None)

    monkeypatch.setattr(files, "_present", looked)
    threads = [threading.Thread(target=save, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    (saved,) = [one for one in outcomes if one is not None]
    assert len(outcomes) == 8 and (tmp_path / "x").read_text() == saved and (tmp_path / "x.backup").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["x", "x.backup"]


def test_a_lock_that_a_killed_console_left_is_used_and_one_that_others_can_open_is_not(tmp_path):
    lock = tmp_path / LOCK
    lock.touch(0o600)
    lock.chmod(0o600)
    files.save(str(tmp_path), "x", b"1")
    assert os.listdir(tmp_path) == ["x"]
    lock.touch()
    lock.chmod(0o644)
    with pytest.raises(Forbidden, match=LOCK):
        files.save(str(tmp_path), "x", b"2")
    assert (tmp_path / "x").read_text() == "1"
