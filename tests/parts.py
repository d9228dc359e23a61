"""Runs the checks part by part, says what each took, and ends with one line that counts everything: what `make test` does.

Two parts run side by side, for most of them wait more than they compute; whoever is done takes the next. The long ones come
first, so that none is left over at the end. Three side by side would be done a third sooner on a host of two cores; but there
programs wait for a core so often that tests fail by chance which do not wait for all they assert.
"""

import queue
import re
import subprocess
import sys
import threading
import time

AT_ONCE = 2
PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs"]
COMPETE = "compete or example or hydra"  # with the rest of tests/e2e in another part, each is half as long
CLASSIC = "test_classic or test_attacks"  # and so are these of tests/web
SOAK = "test_soak"
PARTS = {
    "ruff": [sys.executable, "-m", "ruff", "check", "."],
    "torture": [*PYTEST, "tests/torture"],
    "end to end": [*PYTEST, "tests/e2e", "-k", f"not ({COMPETE})"],
    "mypy": [sys.executable, "-m", "mypy"],
    "faults": [*PYTEST, "tests/faults"],
    "compete end to end": [*PYTEST, "tests/e2e", "-k", COMPETE],
    "formats": [*PYTEST, "tests/formats", "tests/compete", "tests/experiments"],
    "processes": [*PYTEST, "tests/backends"],
    "API fuzz": [*PYTEST, "tests/web/test_fuzz.py"],
    "web": [*PYTEST, "tests/web", "-k", f"not ({CLASSIC} or test_fuzz or {SOAK})"],
    "web of the source": [*PYTEST, "tests/web", "-k", CLASSIC],
    "streams": [*PYTEST, "tests/web", "-k", SOAK],
    "page in a browser": [*PYTEST, "tests/browser/test_console.py"],
    "page and engine": [*PYTEST, "tests/browser/test_link.py", "tests/browser/test_neighbour.py", "tests/browser/test_weight.py"],
    "workspace in a browser": [*PYTEST, "tests/browser/test_workspace.py"],
    "page for everybody": [*PYTEST, "tests/browser/test_access.py"],
    "jobs in a browser": [*PYTEST, "tests/browser/test_jobs.py", "tests/browser/test_health.py", "tests/browser/test_pages.py"],
    "logs in a browser": [*PYTEST, "tests/browser/test_log.py", "tests/browser/test_look.py"],
    "experiments in a browser": [*PYTEST, "tests/browser/test_experiments.py"],
    "users": [*PYTEST, "tests/users"],
    "core and engine": [*PYTEST, "tests/core", "tests/engine", "tests/store"],
    "simulation": [*PYTEST, "tests/simulation"],
    "probes": [*PYTEST, "tests/probes"],
    "command line": [*PYTEST, "tests/cli", "tests/test_docs.py"],
    "seeded faults": [*PYTEST, "tests/planted"],
    "shape": [*PYTEST, "tests/test_architecture.py", "tests/test_compat.py"],
}

counts = {"passed": 0, "failed": 0, "skipped": 0}
took: dict[str, float] = {}
broken: list[str] = []
talking = threading.Lock()
waiting: queue.SimpleQueue[str] = queue.SimpleQueue()


def work() -> None:
    while True:
        try:
            name = waiting.get_nowait()
        except queue.Empty:
            return
        began = time.monotonic()
        done = subprocess.run(PARTS[name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
        with talking:
            took[name] = time.monotonic() - began
            tell(name, done)


def tell(name: str, done: "subprocess.CompletedProcess[str]") -> None:
    print(f"== {name}\n{done.stdout}", flush=True)
    if done.returncode != 0:
        broken.append(name)
    last = next((line for line in reversed(done.stdout.splitlines()) if line.strip()), "")
    for number, word in re.findall(r"(\d+) (passed|failed|errors?|skipped)", last):
        counts["failed" if word.startswith("err") else word] += int(number)


def main() -> int:
    began = time.monotonic()
    for name in PARTS:
        waiting.put(name)
    workers = [threading.Thread(target=work) for _ in range(AT_ONCE)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print("\n".join(f"{name:<24} {seconds:6.1f} s" for name, seconds in took.items()))
    print(f"{'in all, side by side':<24} {time.monotonic() - began:6.1f} s")
    if broken:
        print(f"these parts failed: {', '.join(broken)}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
