"""Runs the checks part by part, says what each took, and ends with what failed and one line that counts everything: `make test`.

Three parts run side by side, on a host of two cores: most of them wait more than they compute (0.4 of a core). Of those that do
keep a core busy (BUSY) no more than two run at once, so that who waits for something finds a core when it comes. Whoever is done
takes the next that may run; the order is such that there are busy ones and others at any time, and that none is left over at the
end.

A part that does not end is ended: its stacks are in what it has said, and it counts as failed. What a failed part said last is
told again at the very end, where also a log that was cut has it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO

AT_ONCE = 3
BUSY_AT_ONCE = 2
WITHIN = 1800.0  # s for a part, several times what it takes; a test of it has 300, so one that hangs ends it sooner
TOLD_AGAIN = 150  # lines of a failed part
HERE = Path(__file__).parent
PYTEST = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "-rs"]
COMPETE = ("compete", "example", "hydra")  # with the rest of tests/e2e in other parts, none is long
SUITES = ("experiments", "limits", "history", "manage", "resources")
OF_SOURCE = ("classic", "attacks")  # and so are these of tests/web
DOOR = ("gate", "instances", "flood", "slow", "traces")


def tests(folder: str, *words: str, but: tuple[str, ...] = ()) -> list[str]:
    """The files of a folder whose names have one of these words (any, if none is given) and none of the others."""
    names = sorted(path.name for path in (HERE / folder).glob("test_*.py"))
    chosen = [name for name in names if (not words or any(w in name for w in words)) and not any(w in name for w in but)]
    return [f"tests/{folder}/{name}" for name in chosen]


PARTS = {
    "faults": [*PYTEST, "tests/faults"],
    "page for everybody": [*PYTEST, *tests("browser", "access")],
    "end to end": [*PYTEST, *tests("e2e", but=(*COMPETE, *SUITES))],
    "core and engine": [*PYTEST, "tests/core", "tests/engine", "tests/store"],
    "page and engine": [*PYTEST, *tests("browser", "link", "neighbour", "weight")],
    "processes": [*PYTEST, "tests/backends"],
    "compete and manage": [*PYTEST, "tests/compete", "tests/manage"],
    "web": [*PYTEST, *tests("web", but=(*DOOR, *OF_SOURCE, "fuzz", "soak"))],
    "jobs in a browser": [*PYTEST, *tests("browser", "jobs", "health", "pages", "hold")],
    "web and its door": [*PYTEST, *tests("web", *DOOR)],
    "suites end to end": [*PYTEST, *tests("e2e", *SUITES, but=COMPETE)],
    "logs in a browser": [*PYTEST, *tests("browser", "log", "look", "hostile")],
    "notifications": [*PYTEST, "tests/notify"],
    "torture": [*PYTEST, *tests("torture", but=("resizes",))],
    "compete end to end": [*PYTEST, *tests("e2e", *COMPETE)],
    "formats and experiments": [*PYTEST, "tests/formats", "tests/experiments"],
    "command line": [*PYTEST, "tests/cli", "tests/wording", "tests/test_docs.py", "tests/test_both_languages.py"],
    "workspace in a browser": [*PYTEST, *tests("browser", "workspace")],
    "users": [*PYTEST, "tests/users"],
    "API fuzz": [*PYTEST, *tests("web", "fuzz")],
    "torture of resizes": [*PYTEST, *tests("torture", "resizes")],
    "page in a browser": [*PYTEST, *tests("browser", "console", "classic", "phone", "first")],
    "web of the source": [*PYTEST, *tests("web", *OF_SOURCE)],
    "experiments in a browser": [*PYTEST, *tests("browser", "experiments")],
    "probes": [*PYTEST, "tests/probes"],
    "streams": [*PYTEST, *tests("web", "soak")],
    "seeded faults": [*PYTEST, "tests/planted"],
    "mypy": [sys.executable, "-m", "mypy"],
    "simulation": [*PYTEST, "tests/simulation"],
    "shape": [*PYTEST, "tests/test_architecture.py", "tests/test_compat.py", "tests/test_fields.py", "tests/test_jobflaws.py",
              "tests/test_parts.py"],
    "ruff": [sys.executable, "-m", "ruff", "check", "."],
}
BUSY = {
    *(name for name in PARTS if any("/browser/" in word for word in PARTS[name])),
    "core and engine", "compete and manage", "formats and experiments", "API fuzz", "torture", "streams", "simulation", "mypy",
}  # fmt: skip


class Part:
    """One of them, as it runs and when it has ended."""

    def __init__(self, name: str, command: list[str], within: float = WITHIN, busy: bool = False) -> None:
        self.name, self.command, self.within, self.busy = name, command, within, busy
        self.child: subprocess.Popen[bytes] | None = None
        self.seconds, self.good, self.said = 0.0, False, ""

    def run(self) -> None:
        began = time.monotonic()
        with tempfile.TemporaryFile() as said:  # not a pipe: whatever a test left running would keep that open
            self.child = subprocess.Popen(
                self.command, stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
            )
            try:
                self.good = self.child.wait(self.within) == 0
            except subprocess.TimeoutExpired:
                self.end()
                said.write(f"\nnot done after {self.within:.0f} s: ended, 1 failed\n".encode())
            self.said = _read(said)
        self.seconds = time.monotonic() - began

    def end(self) -> None:
        """With all of its group; a pytest that is aborted says where each of its threads was."""
        if self.child is None or self.child.poll() is not None:
            return
        self.child.send_signal(signal.SIGABRT)
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # nobody is left in it
        self.child.wait()

    @property
    def counts(self) -> dict[str, int]:
        last = next((line for line in reversed(self.said.splitlines()) if line.strip()), "")
        found = {"passed": 0, "failed": 0, "skipped": 0}
        for number, word in re.findall(r"(\d+) (passed|failed|errors?|skipped)", last):
            found["failed" if word.startswith("err") else word] += int(number)
        return found

    def tell(self) -> str:
        return f"== {self.name}: {self.seconds:.1f} s\n{self.said}"

    def tell_again(self) -> str:
        lines = self.said.splitlines()
        left_out = [f"({len(lines) - TOLD_AGAIN} lines are above)"] if len(lines) > TOLD_AGAIN else []
        return "\n".join([f"== {self.name} failed:", *left_out, *lines[-TOLD_AGAIN:]])


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


class Line:
    """The parts that wait. Whoever asks gets the first that may run now, and waits for one while there are any."""

    def __init__(self, parts: list[Part], busy_at_once: int) -> None:
        self.waiting, self.busy_at_once = list(parts), busy_at_once
        self.busy = 0
        self.changed = threading.Condition()

    def take(self) -> Part | None:
        with self.changed:
            while self.waiting:
                part = next((p for p in self.waiting if not p.busy or self.busy < self.busy_at_once), None)
                if part is not None:
                    self.waiting.remove(part)
                    self.busy += part.busy
                    return part
                self.changed.wait()
            return None

    def ended(self, part: Part) -> None:
        with self.changed:
            self.busy -= part.busy
            self.changed.notify_all()


def run_all(parts: list[Part], at_once: int = AT_ONCE, busy_at_once: int = BUSY_AT_ONCE) -> None:
    """Ends when all have ended; if it is interrupted, with those that run."""
    line = Line(parts, busy_at_once)
    talking = threading.Lock()

    def work() -> None:
        while (part := line.take()) is not None:
            try:
                part.run()
            finally:
                line.ended(part)
            with talking:
                print(part.tell(), flush=True)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(at_once)]
    for worker in workers:
        worker.start()
    try:
        for worker in workers:
            worker.join()
    finally:
        for part in parts:
            part.end()


def summary(parts: list[Part], seconds: float) -> str:
    broken = [part for part in parts if not part.good]
    lines = [part.tell_again() for part in broken]
    lines += [f"{part.name:<24} {part.seconds:6.1f} s" for part in parts]
    lines += [f"{'in all, side by side':<24} {seconds:6.1f} s"]
    if broken:
        lines += [f"these parts failed: {', '.join(part.name for part in broken)}"]
    counts = {word: sum(part.counts[word] for part in parts) for word in ("passed", "failed", "skipped")}
    return "\n".join([*lines, ", ".join(f"{number} {word}" for word, number in counts.items())])


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs is ended too
    began = time.monotonic()
    parts = [Part(name, command, busy=name in BUSY) for name, command in PARTS.items()]
    run_all(parts)
    print(summary(parts, time.monotonic() - began))
    return 0 if all(part.good for part in parts) else 1


if __name__ == "__main__":
    sys.exit(main())
