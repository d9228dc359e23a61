"""Runs the checks part by part, says what each took, and ends with one line that counts everything: what `make test` does."""

import re
import subprocess
import sys
import time

PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
PARTS = {
    "ruff": [sys.executable, "-m", "ruff", "check", "."],
    "mypy": [sys.executable, "-m", "mypy"],
    "core and engine": [*PYTEST, "tests/core", "tests/engine", "tests/store", "tests/test_architecture.py"],
    "files and command line": [*PYTEST, "tests/formats", "tests/cli", "tests/test_docs.py"],
    "probes": [*PYTEST, "tests/probes"],
    "processes": [*PYTEST, "tests/backends", "tests/faults", "tests/e2e"],
    "users": [*PYTEST, "-rs", "tests/users"],
    "torture": [*PYTEST, "-rs", "tests/torture"],
}


def main() -> int:
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    took, broken = {}, []
    for name, argv in PARTS.items():
        print(f"== {name}", flush=True)
        began = time.monotonic()
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert child.stdout is not None
        tail = ""
        for line in child.stdout:
            print(line, end="", flush=True)
            tail = line if line.strip() else tail
        if child.wait() != 0:
            broken.append(name)
        took[name] = time.monotonic() - began
        for number, word in re.findall(r"(\d+) (passed|failed|errors?|skipped)", tail):
            counts["failed" if word.startswith("err") else word] += int(number)
    print("\n" + "\n".join(f"{name:<24} {seconds:6.1f} s" for name, seconds in took.items()))
    print(f"{'in all':<24} {sum(took.values()):6.1f} s")
    if broken:
        print(f"these parts failed: {', '.join(broken)}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
