"""Runs the checks part by part, says what each took, and ends with one line that counts everything: what `make test` does.

Two lanes side by side: one that computes, and one whose processes mostly wait.
"""

import re
import subprocess
import sys
import threading
import time

PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
SHAPE = ["tests/test_architecture.py", "tests/test_compat.py"]
LANES = [
    {
        "ruff": [sys.executable, "-m", "ruff", "check", "."],
        "mypy": [sys.executable, "-m", "mypy"],
        "core and engine": [*PYTEST, "tests/core", "tests/engine", "tests/store", *SHAPE],
        "formats": [*PYTEST, "-rs", "tests/formats", "tests/compete", "tests/experiments"],
        "command line": [*PYTEST, "-rs", "tests/cli", "tests/test_docs.py"],
        "probes": [*PYTEST, "-rs", "tests/probes"],
    },
    {
        "processes": [*PYTEST, "-rs", "tests/backends", "tests/faults", "tests/e2e"],
        "users": [*PYTEST, "-rs", "tests/users"],
        "torture": [*PYTEST, "-rs", "tests/torture"],
    },
]

counts = {"passed": 0, "failed": 0, "skipped": 0}
took: dict[str, float] = {}
broken: list[str] = []
talking = threading.Lock()


def run(lane: dict[str, list[str]]) -> None:
    for name, argv in lane.items():
        began = time.monotonic()
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
        with talking:
            took[name] = time.monotonic() - began
            print(f"== {name}\n{done.stdout}", flush=True)
            if done.returncode != 0:
                broken.append(name)
            last = next((line for line in reversed(done.stdout.splitlines()) if line.strip()), "")
            for number, word in re.findall(r"(\d+) (passed|failed|errors?|skipped)", last):
                counts["failed" if word.startswith("err") else word] += int(number)


def main() -> int:
    began = time.monotonic()
    lanes = [threading.Thread(target=run, args=(lane,)) for lane in LANES]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    print("\n".join(f"{name:<24} {seconds:6.1f} s" for name, seconds in took.items()))
    print(f"{'in all, side by side':<24} {time.monotonic() - began:6.1f} s")
    if broken:
        print(f"these parts failed: {', '.join(broken)}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
