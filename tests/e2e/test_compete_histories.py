"""Ten histories of a workspace with real processes: `jostle compete`, engine and tasks are killed, it is resumed and edited.

Every task waits at a gate until the history lets it end, so what may begin next is known at each moment, and waited for.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress

import pytest

from jostle import proc
from tests.compete.judge import Judge
from tests.e2e.instance import Instance, alive, until
from tests.e2e.space import Space, ended

TASK = """\
echo "$1 began" >> story
n=$(grep -c "^$1 began$" story)
until [ -s gate/$1.$n ]; do sleep 0.02; done
exit $(cat gate/$1.$n)
"""
SETTINGS = "retry_config: {max_retry_before_backoff: 1, backoff_duration: 0.05}\n"  # each failure waits so long
QUEUES = (1, 2)


class History:
    def __init__(self, jostle: Instance, seed: int) -> None:
        self.jostle, self.chance, self.judge = jostle, random.Random(seed), Judge()
        self.space = Space(jostle, "history", "", SETTINGS)
        (self.space.work / "task.sh").write_text(TASK)
        (self.space.work / "gate").mkdir()
        self.labels = 0
        self.file = [self.fresh() for _ in range(4)]
        self.client: subprocess.Popen[str] | None = None
        self.heard = 0

    def fresh(self) -> tuple[int, str]:
        self.labels += 1
        return self.chance.choice(QUEUES), f"t{self.labels}"

    # --- what is seen

    def began(self) -> list[str]:
        return [line.split()[0] for line in self.space.lines("story")]

    def catch_up(self) -> None:
        """Until each queue has begun what it should; the judge hears of each begin, in the order of the story."""
        while waiting := [queue for queue in QUEUES if self.judge.next(queue)]:
            told = self.judge.told(f"nothing began in {waiting}")
            until(lambda: len(self.began()) > self.heard, told)
            self.hear()

    def hear(self) -> None:
        for label in self.began()[self.heard :]:
            self.heard += 1
            self.judge.began(label)

    def running(self) -> list[str]:
        return [label for label, task in self.judge.tasks.items() if task.state == "running"]

    # --- what happens

    def start(self) -> None:
        self.space.commands("".join(f"{queue}\nbash task.sh {label}\n1\n\n" for queue, label in self.file))
        self.client = self.space.start("--gpus", "sim:4x24")
        pid = self.client.pid
        until(lambda: any(state["pid"] == pid for state in self.space.states()), "a state file of its own")
        self.judge.read(self.file)

    def end_one(self) -> None:
        label = self.chance.choice(self.running())
        good = self.chance.random() < 0.6 or self.judge.tasks[label].failures > 1
        self.judge.ended(label, good)
        (self.space.work / "gate" / f"{label}.{self.began().count(label)}").write_text("0" if good else "3")
        until(lambda: self.noted(label), self.judge.told(f"nobody noted the end of {label}"))

    def noted(self, label: str) -> bool:
        """Whether the engine has its last end: what comes now does not change it."""
        rows = [row for row in self.jostle.jobs().values() if row["commands"][-1] == f"bash task.sh {label}"]
        done = self.judge.tasks[label].state == "done"
        return any(row["state"] == "succeeded" if done else row["retries"] == self.judge.tasks[label].failures for row in rows)

    def edit(self, *more: str) -> None:
        """What has begun keeps its block and queue: if it was killed, its next try may begin before the file is read or after."""
        k = self.chance.randrange(len(self.file))
        what = self.chance.choice(("insert", "move", *more))
        free = self.judge.tasks.get(self.file[k][1]) is None or self.judge.tasks[self.file[k][1]].state == "waiting"
        if what == "insert":
            self.file.insert(self.chance.randint(0, len(self.file)), self.fresh())
        elif what == "change" and free:
            self.file[k] = self.file[k][0], self.fresh()[1]
        elif what == "move":
            self.file.insert(self.chance.randrange(len(self.file)), self.file.pop(k))
        elif what == "renumber" and free:
            self.file[k] = self.chance.choice(QUEUES), self.file[k][1]
        self.judge.story.append(f"{what}: {self.file}")

    def kill(self, what: str) -> None:
        self.judge.story.append(f"killed {what}")
        assert self.client is not None
        pids = {"client": [self.client.pid], "client and engine": [self.client.pid, self.jostle.engine]}.get(what)
        slain = pids if pids is not None else self.jostle.processes()
        shot = [(pid, stat.ticks) for pid in slain if (stat := proc.stat(pid)) is not None]
        for pid, _ in shot:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.client.communicate()
        until(lambda: not any(proc.alive(*one) and alive(one[0]) for one in shot), "the end of what was killed")
        if what == "everything":
            for label in self.running():
                self.judge.ended(label, good=False)

    def happen(self) -> None:
        self.start()
        self.catch_up()
        for _ in range(3):
            for what in self.chance.choices(("edit", "edit", "end"), k=4):
                if what == "edit":
                    self.edit()
                elif self.running():
                    self.end_one()
                    self.catch_up()
            if self.judge.over:
                break
            self.kill(self.chance.choice(("client", "client and engine", "everything")))
            self.edit("change", "renumber", "renumber")  # nothing new begins now before it is read
            self.start()
            self.catch_up()
        while self.running():
            self.end_one()
            self.catch_up()
        assert self.client is not None
        assert ended(self.client)[0] == 0, self.judge.told("it did not end well")
        self.hear()
        assert all(task.state == "done" for task in self.judge.tasks.values()), self.judge.told("not all are done")
        tries = {label: task.failures + 1 for label, task in self.judge.tasks.items()}
        assert {label: self.began().count(label) for label in tries} == tries, self.judge.told("tries")


@pytest.mark.parametrize("seed", range(10))
def test_a33_what_has_begun_heads_its_queue_through_real_kills_resumes_edits_and_failures(
    make_instance: Callable[..., Instance], seed: int
) -> None:
    History(make_instance("i"), seed).happen()
