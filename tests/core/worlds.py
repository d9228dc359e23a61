"""Short words for the values that the tests of the core are made of."""

from __future__ import annotations

from typing import Any

from jostle.core.model import LOCAL, Exit, Gpu, Holder, Job, Lane, Node, Policy, Promise, Run, Target, World
from jostle.core.plan import Plan, Start
from jostle.core.reasons import Hold

ME, ALICE, BOB, ROOT = 1000, 1001, 1002, 0
GIB = 1024
DISK_FULL, NO_DRIVER = Hold("disk_full"), Hold("driver_mismatch", gpus_only=True)


def u(index: int) -> str:
    return f"GPU-{index}"


def gpu(index: int, used: int = 0, total: int = 24 * GIB, **more: Any) -> Gpu:
    fields: dict[str, Any] = {
        "uuid": u(index), "index": index, "total_mib": total, "used_mib": used, "free_mib": total - used, "utilization": 0,
        "mean_used_mib": used, "mean_free_mib": total - used, "mean_utilization": 0, "idle_for": 1e6,
    }  # fmt: skip
    return Gpu(**{**fields, **more})


def gpus(count: int, **more: Any) -> tuple[Gpu, ...]:
    return tuple(gpu(i, **more) for i in range(count))


def holder(uid: int | None, used: int | None, pid: int = 500, **more: Any) -> Holder:
    return Holder(pid=pid, uid=uid, used_mib=used, **more)


def job(id: int, **more: Any) -> Job:
    return Job(**{"id": id, "shape": id, "place": id, **more})


def lane(*jobs: Job) -> Lane:
    return jobs


def run(id: int, *cards: int, **more: Any) -> Run:
    return Run(id=(id, 1), uuids=tuple(u(c) for c in cards), **more)


def promise(id: int, card: int, mib: int | None = None, **more: Any) -> Promise:
    return Promise(**{"uuid": u(card), "mib": mib, "uid": ME, "run": (id, 1), **more})


def foreign(uid: int, card: int, mib: int | None = None, **more: Any) -> Promise:
    return Promise(**{"uuid": u(card), "mib": mib, "uid": uid, "sid": 900 + card, **more})


def local(gpus: tuple[Gpu, ...] = (), hold: Hold | None = None) -> Target:
    """This host, with one node."""
    return Target(name=LOCAL, nodes=(Node(name=LOCAL, gpus=gpus, hold=hold),))


def world(*lanes: Lane | Job, gpus: tuple[Gpu, ...] = (), node_hold: Hold | None = None, **more: Any) -> World:
    made = tuple(lane(x) if isinstance(x, Job) else x for x in lanes)
    return World(**{"now": 1000.0, "uid": ME, "lanes": made, "targets": (local(gpus, node_hold),), **more})


def running(id: int, *cards: int, mib: int | None = None, **more: Any) -> tuple[Run, tuple[Promise, ...]]:
    """A run of ours and its leases."""
    return run(id, *cards, memory_mib=mib, **more), tuple(promise(id, c, mib) for c in cards)


def with_runs(*pairs: tuple[Run, tuple[Promise, ...]]) -> dict[str, Any]:
    return {"runs": tuple(r for r, _ in pairs), "promises": tuple(p for _, ps in pairs for p in ps)}


def ended(id: int, *cards: int, code: int | None = 1, tail: str = "", ran_for: float | None = 100.0, **more: Any) -> Run:
    exit_fields = {k: more.pop(k) for k in ("signal", "timed_out", "stopped", "error", "lost", "said", "said_type") if k in more}
    return run(id, *cards, ended=Exit(code=code, tail=tail, ran_for=ran_for, **exit_fields), **more)


def starts(plan: Plan) -> dict[int, tuple[int, ...]]:
    """job -> indices of its cards."""
    return {d.job: tuple(int(x.split("-")[1]) for x in d.uuids) for d in plan.decisions if isinstance(d, Start)}


def codes(plan: Plan, shape: int) -> dict[int, str]:
    """GPU index -> refusal, for a shape that waits."""
    return {r.index: r.code for r in plan.waits[shape].gpus}


RANGE4 = Policy(gpus=(0, 1, 2, 3))
