"""Puts each fault of fault_table.py into a copy of the code and asks its tests: `make seeded`, or with names of faults.

A test that stays green has not seen its promise broken. One that cannot be run at all (a fault that no longer fits, an import
that fails, code that does not work at all) proves nothing either, and is an error, too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from fault_table import FAULTS, Fault

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BROKEN = r"^E +(NameError|SyntaxError|ImportError|ModuleNotFoundError|AttributeError|TypeError): "
COPIED = ("src", "tests", "docs", "examples", "pyproject.toml", "README.md", "LICENSE")


def copy(root: str) -> None:
    for name in COPIED:
        source, target = os.path.join(ROOT, name), os.path.join(root, name)
        if os.path.isdir(source):
            shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "logs"))
        else:
            shutil.copy(source, target)


def put_in(fault: Fault, root: str) -> None:
    path = os.path.join(root, "src", "jostle", fault.file)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if text.count(fault.right) != 1:
        raise SystemExit(f"stale: {fault.file} has {text.count(fault.right)} times what the fault replaces:\n{fault.right}")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace(fault.right, fault.wrong))


def verdict(test: str, root: str) -> str:
    """seen, not seen, or what went wrong."""
    env = {**os.environ, "PYTHONPATH": os.path.join(root, "src")}
    argv = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--timeout=120", test]
    done = subprocess.run(argv, cwd=root, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    last = done.stdout.strip().rpartition("\n")[2]
    if done.returncode == 0:
        return "skipped" if " skipped" in last and " passed" not in last else "not seen"
    broken = re.search(BROKEN, done.stdout, re.MULTILINE)
    if done.returncode == 1 and re.search(r"\d+ failed", last) and not broken:
        return "seen"
    return f"pytest ended with {done.returncode}: {last}\n{done.stdout[-2000:]}{done.stderr[-500:]}"


def hunt(name: str) -> dict[str, str]:
    """By test, whether it sees this fault."""
    fault = FAULTS[name]
    with tempfile.TemporaryDirectory(prefix="jostle-seeded-") as root:
        copy(root)
        os.chmod(root, 0o755)  # other users' tests run from it, too
        put_in(fault, root)
        return {test: verdict(test, root) for test in fault.seen_by}


def main(names: list[str]) -> int:
    unseen = 0
    for name in names or FAULTS:
        began = time.monotonic()
        for test, found in hunt(name).items():
            unseen += found not in ("seen", "skipped")
            print(f"{name:<46} {found:<9} {time.monotonic() - began:5.1f} s  {test}", flush=True)
    print(f"{len(names or FAULTS)} faults, {unseen} that a test did not see")
    return 1 if unseen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
