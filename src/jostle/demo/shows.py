"""Two shows: one that goes on until somebody ends it, and one that ends by itself. Each is a world, and files as people write
them. What the jobs print is made up; the processes are real.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Files = dict[str, str]  # name: content


@dataclass(frozen=True, kw_only=True)
class Show:
    story: str  # a message
    world: dict[str, Any]
    act: Callable[[int], Files]  # the files that are run in the N-th act, from 0
    acts: int | None  # None: no end


def _jobs(name: str, jobs: list[dict[str, Any]]) -> str:
    return json.dumps({"name": name, "jobs": jobs})


# --- the one that ends: queues, sharing, two cards at once, a failure that is tried again

FLAKY = 'sleep 0.6; [ "$JOSTLE_ATTEMPT" -ge 2 ] || { echo "RuntimeError: cuDNN said no"; exit 1; }; sleep 1'


def _short(_: int) -> Files:
    seeds = ((1, 3), (2, 2.5), (3, 4), (4, 3))
    jobs: list[dict[str, Any]] = [
        {"name": f"{queue}-seed{n}", "queue": queue, "run": f"sleep {s}"} for queue in ("cifar", "svhn") for n, s in seeds
    ]
    jobs += [{"name": f"probe-{n}", "memory": "7000MiB", "share": True, "run": "sleep 4"} for n in (1, 2, 3)]
    jobs.append({"name": "ddp", "gpus": 2, "priority": 1, "run": "sleep 4"})
    jobs.append({"name": "flaky", "retry": {"max": 3, "backoff_after": 3, "backoff": "60s"}, "run": FLAKY})
    jobs.append({"name": "report", "after": ["cifar-seed4", "svhn-seed4"], "run": "sleep 0.5"})
    return {"demo.yaml": _jobs("demo", jobs)}


SHORT = Show(
    story="demo_short",
    world={
        "gpus": {"count": 4, "total": "24GiB", "name": "RTX 4090"},
        "runs": {"ramp": 0.8, "use": 0.85, "utilization": 96},
        "strangers": [
            {"user": "alice", "gpu": 1, "from": 0, "to": 5, "used": "18GiB", "utilization": 88},
            {"user": "bob", "gpu": 1, "from": 8, "to": 12, "used": "11GiB", "utilization": 70},
            {"user": "carol", "gpu": 0, "used": "300MiB", "kind": "graphics", "name": "Xorg"},
        ],
    },
    act=_short,
    acts=1,
)


# --- the one without end: eight cards, five people, a sweep over seeds in each act, and what people ask about

TRAIN = """\
epochs=${EPOCHS:-9} best=$((88 + RANDOM % 7))
for epoch in $(seq "$epochs"); do
  sleep 1
  echo "epoch $epoch/$epochs  loss 0.$((95 - 80 * epoch / epochs))  accuracy 0.$((best - 30 + 30 * epoch / epochs))"
done
echo "Test Accuracy: 0.$best"
"""
BROKEN = """\
echo "epoch 1/9  loss 0.93"
sleep 3
echo 'Traceback (most recent call last):'
echo '  File "segment.py", line 61, in <module>'
echo '    loss = criterion(model(image), mask)'
echo 'RuntimeError: Expected all tensors to be on the same device, but found cuda:0 and cpu'
exit 1
"""
LOST = """\
sleep 1
echo 'ConnectionRefusedError: [Errno 111] the replay buffer on port 6379 does not answer'
exit 1
"""
TASKS = """\
# two queues: their tasks run one after another, the queues beside each other
1
bash train.sh --data flowers --seed 1
8

1
bash train.sh --data flowers --seed 2
8

2
bash train.sh --data cars --seed 1
8
"""
RULES = """\
check_time: 5
gpu_left: 1       # cards that stay free for others
min_gpu: 1
max_gpu: 4
work_dir: .
"""
WORKSPACE: Files = {
    "train.sh": TRAIN, "segment.sh": BROKEN, "agent.sh": LOST, "command/command_gpu.txt": TASKS, "config/gpu_manage.yaml": RULES,
}  # fmt: skip


def _sweep(n: int) -> str:
    seeds = [3 * n + k for k in (1, 2, 3)]
    sweep = {
        "name": f"cifar10 {n + 1}", "command": "bash train.sh --lr {lr} --seed {seed}",
        "matrix": {"lr": ["0.1", "0.01"], "seed": seeds}, "job": {"name": "cifar10 lr={lr} seed={seed}", "tags": ["sweep"]},
    }  # fmt: skip
    return json.dumps(sweep)


def _long(n: int) -> Files:
    more: list[dict[str, Any]] = [{"name": f"segment seed={n + 1}", "run": "bash segment.sh"}] if n % 2 == 0 else []
    more += [{"name": f"probe {n + 1}.{k}", "memory": "7GiB", "share": True, "run": "EPOCHS=6 bash train.sh"} for k in (1, 2)]
    if n == 0:
        more += [{"name": f"svhn seed={k}", "queue": "svhn", "run": "EPOCHS=14 bash train.sh"} for k in (1, 2, 3, 4)]
        more.append({"name": "llm 7 cards", "gpus": 7, "run": "EPOCHS=20 bash train.sh"})
        pause = {"max": "unlimited", "backoff_after": 2, "backoff": "45s"}
        more.append({"name": "agent", "memory": "4GiB", "share": True, "retry": pause, "run": "bash agent.sh"})
    return {f"sweep-{n + 1}.yaml": _sweep(n), f"more-{n + 1}.yaml": _jobs(f"more {n + 1}", more)}


LONG = Show(
    story="demo_long",
    world={
        "repeat": 120,
        "gpus": {"count": 8, "total": "24GiB", "name": "RTX 4090"},
        "runs": {"ramp": 2, "use": 0.85, "utilization": 96},
        "strangers": [
            {"user": "alice", "gpu": 1, "from": 0, "to": 45, "used": "18GiB", "utilization": 88},
            {"user": "alice", "gpu": 4, "from": 70, "to": 110, "used": "18GiB", "utilization": 92},
            {"user": "bob", "gpu": [2, 3], "from": 12, "to": 60, "used": "11GiB", "utilization": 70},
            {"user": "carol", "gpu": 0, "used": "300MiB", "kind": "graphics", "name": "Xorg"},
            {"user": "dave", "gpu": 7, "used": "20GiB", "utilization": 0},
            {"user": "erin", "gpu": 5, "from": 25, "to": 90, "used": "22GiB", "utilization": 97},
        ],
        "faults": [{"gpu": 6, "from": 80, "to": 95, "state": "lost"}],
    },
    act=_long,
    acts=None,
)
