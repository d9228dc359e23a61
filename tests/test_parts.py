"""What runs the checks: that none is left out, and that one that hangs or fails cannot be overlooked."""

import os
import re
import sys
import textwrap
import threading
from pathlib import Path

from tests import parts
from tests.e2e.instance import alive, until

TESTS = Path(__file__).parent


def test_every_test_file_is_in_one_part_and_in_one_only():
    found: dict[str, int] = {str(path.relative_to(TESTS.parent)): 0 for path in sorted(TESTS.rglob("test_*.py"))}
    for command in parts.PARTS.values():
        for word in command:
            for name in found:
                found[name] += name == word or name.startswith(f"{word}/")
    assert {name: n for name, n in found.items() if n != 1} == {}


def part_of(folder, text):
    file = folder / "test_it.py"
    file.write_text(textwrap.dedent(text))
    return parts.Part("it", [*parts.PYTEST, "-c", os.devnull, "--rootdir", str(folder), str(file)])


def test_a_part_that_is_ended_says_where_it_was_and_takes_its_group_along(tmp_path):
    part = part_of(
        tmp_path,
        """
        import pathlib, subprocess, time
        def test_waits_for_what_never_comes():
            child = subprocess.Popen(["sleep", "600"])
            pathlib.Path(__file__).with_name("pid").write_text(str(child.pid))
            time.sleep(600)
        """,
    )
    runs = threading.Thread(target=part.run)
    runs.start()
    pid = tmp_path / "pid"
    child = int(until(lambda: pid.exists() and pid.read_text(), "it hangs"))
    part.end()
    runs.join()
    assert not part.good and "in test_waits_for_what_never_comes" in part.said
    until(lambda: not alive(child), "the end of what it had started")


def test_a_part_that_does_not_end_is_ended_and_has_failed():
    part = parts.Part("endless", [sys.executable, "-c", "import time; time.sleep(600)"], within=0.5)
    part.run()
    assert not part.good and part.counts == {"passed": 0, "failed": 1, "skipped": 0}


def test_what_failed_is_told_at_the_very_end_and_counted(tmp_path, capsys):
    bad = part_of(tmp_path, "def test_bad():\n    assert 1 == 2, 'the reason'\ndef test_good(): pass\n")
    bad.run()
    good = parts.Part("good", [sys.executable, "-c", "print('3 passed, 1 skipped in 0.1s')"])
    parts.run_all([good])
    assert "3 passed" in capsys.readouterr().out
    told = parts.summary([bad, good], 1.0)
    assert "the reason" in told and "these parts failed: it" in told
    assert re.search(r"\n4 passed, 1 failed, 1 skipped$", told)


def test_of_a_failed_part_that_said_much_the_end_is_told_again():
    part = parts.Part("long", [sys.executable, "-c", "print(*range(1000), sep='\\n'); exit(1)"])
    part.run()
    again = part.tell_again().splitlines()
    assert again[0] == "== long failed:" and again[-1] == "999" and len(again) == parts.TOLD_AGAIN + 2


def test_a_runner_that_is_deaf_to_an_interrupt_makes_no_test_deaf(tmp_path):
    """See conftest.py: a pytest that was started with it ignored is interrupted all the same."""
    part = part_of(tmp_path, "import os, signal\ndef test_it():\n    os.kill(os.getpid(), signal.SIGINT)\n")
    part.command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *part.command, "-p", "tests.conftest"]
    part.run()
    assert not part.good and "KeyboardInterrupt" in part.said, part.said


def a_part(name, busy=False):
    return parts.Part(name, [sys.executable, "-c", "pass"], busy=busy)


def test_of_parts_that_keep_a_core_busy_no_more_than_so_many_run_at_once_and_others_pass_them():
    waiting = [a_part("a", busy=True), a_part("b", busy=True), a_part("c", busy=True), a_part("light"), a_part("d", busy=True)]
    line = parts.Line(waiting, busy_at_once=2)
    a, b, passed = line.take(), line.take(), line.take()
    assert [part.name for part in (a, b, passed)] == ["a", "b", "light"]
    line.ended(passed)
    late: list[str] = []
    asks = threading.Thread(target=lambda: late.append(line.take().name))
    asks.start()
    line.ended(a)
    asks.join()
    line.ended(b)
    assert late == ["c"] and line.take().name == "d" and line.take() is None


def test_each_part_is_run_once_however_many_at_once(capsys):
    made = [a_part(f"p{n}", busy=n % 2 == 0) for n in range(9)]
    parts.run_all(made, at_once=4, busy_at_once=1)
    assert all(part.good for part in made)
    assert sorted(re.findall(r"== (p\d): ", capsys.readouterr().out)) == [part.name for part in made]


def test_never_are_there_three_browsers_at_once():
    browsers = {name for name, command in parts.PARTS.items() if any("/browser/" in word for word in command)}
    assert browsers and browsers <= parts.BUSY and set(parts.PARTS) >= parts.BUSY and parts.BUSY_AT_ONCE == 2
