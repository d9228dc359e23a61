"""Random histories of a workspace in virtual time: begun, killed, resumed, edited, with tasks that fail, in any order.

The client is the real one as far as it decides anything (compete.resume, compete.edits); of it, only the socket is left out.
By hand: `python -m tests.compete.histories 5000`.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from jostle.compete.board import Board
from jostle.compete.edits import edits
from jostle.compete.resume import CompeteOptions, Resume
from jostle.compete.scheduler import TaskProgress
from jostle.engine import checks
from jostle.errors import NoEngine
from jostle.formats import taskfile, taskjobs, workspace
from jostle.store import jobs as stored
from jostle.store.amend import amend
from jostle.store.reads import Reader
from tests.compete.judge import Judge
from tests.engine.fakes import Disk, Host

DEAD = "[999999999, 1]"  # an owner that does not live
BEGUN = ("running", "retrying")
NEXT = {"done": "succeeded", "failed": "failed", "skipped": "skipped"}


class Wire:
    """What the socket does between client and engine."""

    def __init__(self, host: Host) -> None:
        self.host, self.home = host, host.home

    def close(self) -> None: ...

    def call(self, op: str, **fields: Any) -> dict[str, Any]:
        host, at = self.host, self.host.clock.now()
        now = {"at": host.clock.wall(), "now": at, "rank": random.Random(at).random}  # each time alike
        if op == "submit":
            request = checks.request(fields)
            answer: dict[str, Any] = host.request(lambda: stored.submit(host.store, request, **now))
        else:
            change = checks.amendment(fields)
            answer = host.request(lambda: amend(host.store, change, **now))
            host.engine.rules_changed(change["batch"])
        return answer


class Session:
    language = "en"

    def __init__(self, host: Host) -> None:
        self.host, self.home, self.reader = host, host.home, Reader(host.home)

    def client(self, *, start: bool = True, gpus: str | None = None) -> Any:
        if not start:
            raise NoEngine("the cards are not asked for here")
        return Wire(self.host)


class Told:
    def tell(self, text: str, level: str = "INFO") -> None: ...


class Scripts(dict[int, tuple[float, int, str]]):
    """How long a run takes and how it ends; asked at each start, which the judge hears of here."""

    def __init__(self) -> None:
        super().__init__()
        self.now: History | None = None

    def get(self, job: int, default: Any = None) -> Any:
        assert self.now is not None
        return self.now.starts(job)


class History:
    def __init__(self, host: Host, root: Path, seed: int) -> None:
        self.host, self.root, self.chance = host, root, random.Random(seed)
        most, stops = self.chance.choice([(None, True), (None, True), (1, True), (1, False)])
        self.judge = Judge(most=most, stops=stops)
        self.queues = self.chance.randint(1, 3)
        self.bad = self.chance.choice([0.0, 0.4, 0.8])
        self.labels = 0
        self.file = [self.fresh() for _ in range(self.chance.randint(2, 6))]
        self.gone: list[str] = []
        self.batch: int | None = None
        self.attached = False
        self.without: frozenset[int] = frozenset()
        self.runs: dict[tuple[int, int], str] = {}  # those that are not over: their labels
        self.tries: Counter[str] = Counter()
        self.won: Counter[str] = Counter()
        (root / "command").mkdir(parents=True)
        (root / "config").mkdir()
        settings = f"retry_config: {{max_retry_before_backoff: 2, backoff_duration: 40, max_retries: {most or 'unlimited'}, "
        (root / "config" / "gpu_manage.yaml").write_text(settings + f"on_failure: {'stop' if stops else 'continue'}}}\n")

    # --- what is seen of the host

    def starts(self, job: int) -> tuple[float, int, str]:
        self.hear()
        db = self.host.store.db
        label = db.execute("SELECT commands FROM job WHERE id = ?", (job,)).fetchone()[0].split()[-1].strip('"]')
        n = db.execute("SELECT attempt FROM job WHERE id = ?", (job,)).fetchone()[0]
        self.judge.began(label)
        self.runs[job, n] = label
        self.tries[label] += 1
        fails = self.chance.random() < self.bad and (self.judge.most is not None or self.tries[label] < 5)
        return self.chance.choice([2.0, 12.0, 30.0]), int(fails), ""

    def hear(self) -> None:
        """The ends of runs, in the order of time."""
        disk: Disk = self.host.disk
        over = [run for run in self.runs if run in disk.processes and disk.processes[run].ends <= self.host.clock.at]
        for run in sorted(over, key=lambda run: disk.processes[run].ends):
            label, code = self.runs.pop(run), disk.processes[run].code
            self.won[label] += code == 0
            self.judge.ended(label, code == 0)

    # --- what happens

    def fresh(self) -> tuple[int, str]:
        self.labels += 1
        return self.chance.randint(1, self.queues), f"t{self.labels}"

    def edit(self) -> None:
        """One change of the file, as people make them."""
        file, chance = self.file, self.chance
        begun = [k for k, (_, label) in enumerate(file) if label in self.judge.tasks and self.judge.tasks[label].state in BEGUN]
        k = chance.choice(begun if begun and chance.random() < 0.5 else range(len(file))) if file else 0
        what = chance.choice(("insert", "remove", "change", "move", "renumber", "restore"))
        if what == "insert" or not file:
            file.insert(chance.randint(0, len(file)), self.fresh())
        elif what == "remove":
            self.gone.append(file.pop(k)[1])
        elif what == "change":
            file[k] = file[k][0], self.fresh()[1]
        elif what == "move":
            file.insert(chance.randrange(len(file)), file.pop(k))
        elif what == "renumber" and file[k][1] not in self.judge.spoiled:
            file[k] = chance.randint(1, self.queues), file[k][1]
        elif what == "restore" and (back := [label for label in self.gone if label not in self.judge.spoiled]):
            label = chance.choice(back)
            self.gone.remove(label)
            file.insert(chance.randint(0, len(file)), (chance.randint(1, self.queues), label))
        self.judge.story.append(f"{what}: {file}")

    def start(self) -> None:
        """`jostle compete`, which first of all has an engine that knows how things stand."""
        self.host.step(0.01)
        self.hear()
        (self.root / "command" / "command_gpu.txt").write_text(
            "".join(f"{queue}\nrun {label}\n1\n\n" for queue, label in self.file)
        )
        space = workspace.find(str(self.root), mode="single")
        blocks, _ = taskfile.load(space.command_file, space.mode)
        wanted = taskjobs.batch(space, blocks, None)
        resume: Any = Resume(CompeteOptions(), Session(self.host), space, Told(), Wire(self.host), None)  # type: ignore[arg-type]
        self.judge.read(self.file)
        self.batch, self.without = resume.batch(wanted)
        self.wanted = wanted
        self.attached = True

    def kill(self, *, everything: bool) -> None:
        self.judge.story.append("killed everything" if everything else "killed the client")
        self.attached = False
        with self.host.store.transaction() as db:
            db.execute("UPDATE batch SET owner = ? WHERE id = ?", (DEAD, self.batch))
        if not everything:
            return
        self.host.crash()
        died = [p for p in self.host.disk.alive(self.host.clock.at) if self.chance.random() < 0.5]
        for process in died:
            process.ends, process.code = self.host.clock.at, 137
        self.host.clock.at += self.chance.choice((0.0, 5.0, 60.0))
        self.host.boot()

    def happen(self) -> None:
        self.start()
        for _ in range(self.chance.randint(3, 14)):
            what = self.chance.choice(("time", "time", "edit", "edit", "client", "everything", "resume"))
            if what == "time":
                for _ in range(self.chance.randint(1, 3)):
                    self.host.step(self.chance.choice((1.0, 4.0, 13.0)))
            elif what == "edit":
                self.edit()
            elif what in ("client", "everything"):
                self.kill(everything=what == "everything")
            elif not self.attached:
                self.start()
            self.hear()
            if self.attached and self.judge.over:
                break  # it has told the end: another `compete` would begin anew
        if not self.attached:
            self.start()
        self.settle()
        self.check()

    def settle(self) -> None:
        until = self.host.clock.at + 5000
        while stored.unfinished(self.host.store, self.batch):
            assert self.host.clock.at < until, self.judge.told(f"it does not end: {self.host.states()}")
            self.host.step(13.0)
        self.hear()

    # --- how it came out

    def check(self) -> None:
        judge = self.judge
        assert judge.over, judge.told("the engine thinks that it is over")
        assert not self.host.disk.doubled and not self.host.disk.overlaps
        assert self.won == Counter({label: 1 for label, task in judge.tasks.items() if task.state == "done"}), judge.told("won")
        rows = {row["id"]: row for row in Reader(self.host.home).jobs(batch=self.batch)}
        found = edits(self.wanted["jobs"], rows.values(), self.wanted["texts"])
        freed = tuple(k for k, (_, label) in enumerate(judge.file) if judge.freed(label))
        assert (found.new, found.drop, found.into) == (freed, (), ()), judge.told(f"another resume would change more: {found}")
        for (queue, label), id in zip(judge.file, found.tasks, strict=True):
            if id is None:
                continue
            task, row = judge.tasks[label], rows[id]
            assert (row["state"], row["queue"]) == (NEXT[task.state], f"{self.batch}/{queue}"), judge.told(label)
            if task.state == "done":
                assert row["retries"] == task.failures, judge.told(f"{label} was tried again {row['retries']} times")
        board = Board(rows.values(), self.without)
        for queue, view in board.queues().items():
            labels = [one["commands"][-1].split()[-1] for one in view["processes"]]
            wanted = [label for number, label in judge.file if str(number) == queue]
            assert [label for label in labels if label in wanted] == wanted, judge.told(f"queue {queue} is shown as {labels}")
        states = Counter(task.state for task in judge.tasks.values())
        assert board.counts()["completed_tasks"] == states["done"], judge.told("completed")
        good = not states["failed"] and not states["skipped"]
        assert TaskProgress(board.rows.values()).succeeded or not good, judge.told("it is not told as a success")


MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # no power is cut here, so nothing need wait for a disk
EACH = 25  # histories on one host: a new one costs as much as a history


def run(seeds: range, directory: Path) -> None:
    for seed in seeds:
        if seed == seeds.start or not seed % EACH:
            home = directory / f"home{seed}"
            home.mkdir(mode=0o700)
            scripts = Scripts()
            host = Host(str(home), gpus=2, durations=scripts)
        scripts.now = History(host, directory / f"space{seed}", seed)
        try:
            scripts.now.happen()
        except Exception as e:
            raise AssertionError(f"history {seed}") from e
        if seed == seeds.stop - 1 or not (seed + 1) % EACH:
            host.crash()


if __name__ == "__main__":
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="jostle-histories-", dir=MEMORY) as made:
        run(range(int(sys.argv[1])), Path(made))
    print(f"{sys.argv[1]} histories in {time.monotonic() - began:.0f} s")
