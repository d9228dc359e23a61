"""What must hold of a workspace whatever happens to it, kept beside the code under test: it knows of files, begins and ends only.

A task that has begun heads its queue until it ends; the rest follow the file. A file is that which `jostle compete` read last.
Labels are unique: a block that was changed is another label.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Block = tuple[int, str]  # queue, label


@dataclass
class Task:
    queue: int
    state: str = "waiting"  # waiting | running | retrying | done | failed | skipped
    failures: int = 0


@dataclass
class Judge:
    most: int | None = None  # retries; None: without limit
    stops: bool = True  # on_failure: stop
    file: list[Block] = field(default_factory=list)
    tasks: dict[str, Task] = field(default_factory=dict)
    spoiled: set[str] = field(default_factory=set)  # failed for good, or not started for one that did; once
    story: list[str] = field(default_factory=list)

    def read(self, file: list[Block]) -> None:
        """`jostle compete` was started and has read this file."""
        self.story.append(f"read {file}")
        self.file = list(file)
        where = {label: queue for queue, label in file}
        freed = [label for label in self.tasks if self.freed(label)]
        for label, task in list(self.tasks.items()):
            if task.state in ("waiting", "retrying", "skipped") and label not in where:
                del self.tasks[label]
            elif label in freed or (task.state == "failed" and where.get(label, task.queue) != task.queue):
                self.tasks[label] = Task(where[label])
            elif label in where and task.state != "failed":
                task.queue = where[label]
        for label, queue in where.items():
            self.tasks.setdefault(label, Task(queue))

    def freed(self, label: str) -> bool:
        """Whether it was not started for a task that failed, and that is no more in its queue of the file."""
        task = self.tasks[label]
        failed = ((one.queue, name) for name, one in self.tasks.items() if one.state == "failed")
        stuck = any(block in self.file and block[0] == task.queue for block in failed)
        return task.state == "skipped" and not (stuck and (task.queue, label) in self.file)

    def next(self, queue: int) -> set[str]:
        """Which tasks of a queue may begin now."""
        own = {label: task.state for label, task in self.tasks.items() if task.queue == queue}
        if "running" in own.values():
            return set()
        begun = {label for label, state in own.items() if state == "retrying"}
        return begun or set([label for _, label in self.file if own.get(label) == "waiting"][:1])

    def began(self, label: str) -> None:
        self.story.append(f"{label} began")
        task = self.tasks.get(label)
        assert task is not None, self.told(f"{label} is no task of the file")
        assert label in (may := self.next(task.queue)), self.told(f"{label} began in queue {task.queue}, where it was for {may}")
        task.state = "running"

    def ended(self, label: str, good: bool) -> None:
        self.story.append(f"{label} {'succeeded' if good else 'failed'}")
        task = self.tasks[label]
        assert task.state == "running", self.told(f"{label} ended and was {task.state}")
        task.failures += not good
        if good:
            task.state = "done"
        elif self.most is None or task.failures <= self.most:
            task.state = "retrying"
        else:
            task.state = "failed"
            self.spoiled.add(label)
            for other, one in self.tasks.items() if self.stops else ():
                if one.queue == task.queue and one.state == "waiting":
                    one.state = "skipped"
                    self.spoiled.add(other)

    @property
    def over(self) -> bool:
        return all(task.state in ("done", "failed", "skipped") for task in self.tasks.values())

    def told(self, what: str) -> str:
        return "\n".join((what, *self.story))
