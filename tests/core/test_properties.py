"""What holds for every world, however odd."""

from __future__ import annotations

from collections import Counter, defaultdict

from hypothesis import example, given, settings
from hypothesis import strategies as st

from jostle.core import courtesy
from jostle.core.decide import decide
from jostle.core.fit import CHOICES
from jostle.core.health import suspect, usable
from jostle.core.ledger import alive, alone, cards_of
from jostle.core.model import Exit, Gpu, Holder, Job, Lane, Policy, Promise, Retry, Run, World
from jostle.core.plan import Fail, Finish, Plan, Quarantine, Requeue, Start, Stop
from jostle.core.reasons import Reason, plain
from jostle.wording.reasons import text
from tests.core.worlds import ALICE, BOB, ME, ROOT, local, u

MIB = st.sampled_from([0, 100, 511, 512, 1000, 4000, 8000, 12000, 20000, 24576])
ASKED = st.sampled_from([None, 1, 1000, 4000, 8000, 12000, 12600, 24576, 25000, 30000])
PATIENCE = st.sampled_from([0.0, 100.0, 600.0])


@st.composite
def holders(draw: st.DrawFn) -> Holder:
    return Holder(
        pid=draw(st.integers(2, 99)),
        used_mib=draw(st.none() | MIB),
        uid=draw(st.sampled_from([None, ROOT, ME, ALICE, BOB])),
        sid=draw(st.sampled_from([None, 1, 2, 3])),
        name=draw(st.sampled_from(["", "python", "Xorg"])),
        run=draw(st.sampled_from([None, None, (1, 1), (2, 1), (77, 1)])),
    )


@st.composite
def cards(draw: st.DrawFn, index: int) -> Gpu:
    used, total = draw(MIB), draw(st.sampled_from([12288, 24576, 24576, 81920]))
    load = draw(st.none() | st.integers(0, 100))
    return Gpu(
        uuid=u(index), index=index, total_mib=total, used_mib=min(used, total), free_mib=max(0, total - used), utilization=load,
        state=draw(st.sampled_from(["ok"] * 8 + ["lost", "unreadable", "unknown", "mig"])),
        holders=tuple(draw(st.lists(holders(), max_size=2))), mean_used_mib=used, mean_free_mib=max(0, total - used),
        mean_utilization=load, reserved_mib=draw(st.sampled_from([0, 300])),
        idle_for=draw(PATIENCE), excluded=draw(st.integers(0, 9)) == 0,
        quarantine=draw(st.sampled_from([""] * 9 + ["held"])),
        faulty=draw(st.sampled_from([None] * 8 + [Reason("faulty_row"), Reason("faulty_jobs")])),
        new_errors=draw(st.sampled_from([0] * 9 + [1])), remap_failed=draw(st.integers(0, 19)) == 0,
        compute_mode=draw(st.sampled_from(["default"] * 8 + ["prohibited", "exclusive_process"])),
    )  # fmt: skip


policies = st.builds(
    Policy,
    gpus=st.none() | st.lists(st.integers(0, 7), max_size=6).map(tuple),
    gpu_left=st.integers(0, 2),
    min_gpu=st.none() | st.integers(0, 3),
    max_gpu=st.none() | st.integers(0, 5),
    share=st.booleans(),
    min_free_mib=st.sampled_from([0, 0, 8000]),
    max_utilization=st.sampled_from([None, None, 30]),
    idle_for=st.sampled_from([0.0, 0.0, 300.0]),
    strangers=st.sampled_from(["avoid", "share"]),
    own_processes=st.sampled_from(["avoid", "ignore"]),
    choice=st.sampled_from(sorted(CHOICES)),
    order=st.sampled_from(["file", "random", "gpus-desc"]),
    max_concurrent=st.none() | st.integers(0, 3),
    start_interval=st.sampled_from([0.0, 0.0, 60.0]),
    max_wait=st.sampled_from([None, None, 500.0]),
    reserve_after=PATIENCE,
    margin_mib=st.sampled_from([0, 300]),
)


@st.composite
def ends(draw: st.DrawFn) -> Exit:
    tail = draw(st.sampled_from(["", "CUDA out of memory", "RuntimeError", "uncorrectable ECC error"]))
    return Exit(code=draw(st.sampled_from([None, 0, 1])), tail=tail, ran_for=draw(st.sampled_from([None, 1.0, 99.0])))


@st.composite
def runs(draw: st.DrawFn, id: int) -> Run:
    cancel = draw(st.booleans())
    return Run(
        id=(id, 1), batch=draw(st.integers(0, 2)),
        uuids=tuple(u(i) for i in sorted(draw(st.sets(st.integers(0, 4), max_size=2)))),
        state=draw(st.sampled_from(["starting", "running", "stopping"])), cancel=cancel, kill=cancel and draw(st.booleans()),
        memory_mib=draw(ASKED), share=draw(st.booleans()), started_at=draw(st.sampled_from([0.0, 900.0])),
        time_limit=draw(st.sampled_from([None, 200.0, 5000.0])), retry=draw(st.sampled_from([Retry(), Retry(max=None)])),
        peak_mib=draw(MIB), failures=draw(st.integers(0, 4)), ended=draw(st.none() | st.none() | ends()),
        voided=draw(st.integers(0, 9)) == 0,
    )  # fmt: skip


@st.composite
def lanes(draw: st.DrawFn, shape: int) -> Lane:
    low = draw(st.integers(0, 3))
    alike = Job(
        id=0, shape=shape, batch=draw(st.integers(0, 2)), priority=draw(st.sampled_from([0, 0, 5])), gpus_min=low,
        gpus_max=low + draw(st.integers(0, 2)), memory_mib=draw(ASKED), share=draw(st.booleans()),
        avoid=frozenset(draw(st.sets(st.just(u(0))))),
        time_limit=draw(st.sampled_from([None, 50.0, 5000.0])), queue=draw(st.sampled_from([None, "1", "q"])),
    )  # fmt: skip
    count = draw(st.integers(1, 3))
    fields = {f: getattr(alike, f) for f in alike.__dataclass_fields__}
    places = sorted(draw(st.lists(st.integers(0, 50), min_size=count, max_size=count)))
    return tuple(
        Job(
            **{
                **fields,
                "id": 100 * shape + n,
                "place": p,
                "rank": p / 100,
                "ready_at": draw(st.sampled_from([0.0, 450.0, 999.0])),
            }
        )
        for n, p in enumerate(places)
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    made = tuple(draw(runs(id)) for id in range(1, 1 + draw(st.integers(0, 4))))
    ours = tuple(
        Promise(uuid=x, mib=r.memory_mib, uid=ME, run=r.id, sid=r.id[0], used_mib=draw(MIB), used_at_start_mib=draw(MIB))
        for r in made
        for x in r.uuids
    )
    some = tuple(draw(cards(i)) for i in range(draw(st.integers(0, 5))))
    foreign = st.builds(Promise, uuid=st.integers(0, 5).map(u), mib=ASKED, uid=st.sampled_from([ME, ALICE]), used_mib=MIB)
    return World(
        now=1000.0, uid=ME, targets=(local(some, draw(st.sampled_from([""] * 8 + ["driver_mismatch"]))),), runs=made,
        promises=(*ours, *draw(st.lists(foreign, max_size=2))),
        lanes=tuple(draw(lanes(s)) for s in range(1, 1 + draw(st.integers(0, 4)))),
        policies=draw(st.dictionaries(st.integers(0, 2), policies, max_size=1)), policy=draw(policies),
        last_start=draw(st.dictionaries(st.integers(0, 2), st.sampled_from([500.0, 970.0]))), turn=draw(st.integers(0, 3)),
        hold=draw(st.sampled_from([""] * 8 + ["disk_full"])),
    )  # fmt: skip


def started(plan: Plan) -> list[Start]:
    return [d for d in plan.decisions if isinstance(d, Start)]


def policy(world: World, batch: int) -> Policy:
    return world.policies.get(batch, world.policy)


def jobs_of(world: World) -> dict[int, Job]:
    return {j.id: j for lane in world.lanes for j in lane}


@settings(max_examples=150)
@given(worlds())
@example(World(now=1000.0, uid=ME))
def test_no_plan_breaks_the_laws(world: World) -> None:
    plan = decide(world)
    assert plan == decide(world)
    check_cards(world, plan)
    check_limits(world, plan)
    check_answers(world, plan)
    check_runs(world, plan)
    check_kept(world, plan)


def check_kept(world: World, plan: Plan) -> None:
    """Cards are kept only for a job that would have enough of them if all our own runs ended."""
    refused = {r.uuid for reason in plan.waits.values() for r in reason.gpus if r.code == "kept"}
    if not plan.kept_for or not refused:
        assert not refused
        return
    (id,) = plan.kept_for
    big = jobs_of(world)[id]
    rule = policy(world, big.batch)
    able = {g.uuid for g in world.gpus if could_fall_free(world, big, rule, g)} - courtesy.left_for_others(rule, world.gpus)
    assert len(able) >= big.gpus_min
    assert rule.max_gpu is None or big.gpus_min <= rule.max_gpu
    low = [lane for lane in world.lanes if lane[0].priority < big.priority and lane[0].gpus_max]
    assert low or world.now > big.ready_at + rule.reserve_after


def could_fall_free(world: World, job: Job, rule: Policy, gpu: Gpu) -> bool:
    if gpu.state not in ("ok", "unknown") or gpu.excluded or gpu.compute_mode == "prohibited":
        return False
    if gpu.faulty is not None and not suspect(gpu):
        return False
    if rule.gpus is not None and gpu.index not in rule.gpus:
        return False
    foreign = [p for p in world.promises if p.uuid == gpu.uuid and p.run is None]
    if any(p.mib is None for p in foreign) or (job.memory_mib is None and foreign):
        return False
    people = [h for h in gpu.holders if h.run is None and h.uid in (ALICE, BOB) and h.sid not in {p.sid for p in foreign}]
    if rule.strangers == "avoid" and (any(p.uid != ME for p in foreign) or any((h.used_mib or 512) >= 512 for h in people)):
        return False
    if 1.05 * gpu.total_mib >= (job.memory_mib or 0) > gpu.total_mib - gpu.reserved_mib:
        return not foreign
    return gpu.total_mib - sum(p.mib or 0 for p in foreign) >= (job.memory_mib or 0) + rule.margin_mib


def check_cards(world: World, plan: Plan) -> None:
    """Only readable cards in range; none doubled that someone has alone; never more promised than a card has."""
    living = alive(world)
    state = {c.gpu.uuid: c for c in cards_of(world, world.gpus, living)}
    given_to: dict[str, list[Start]] = defaultdict(list)
    aside = {d.uuid for d in plan.decisions if isinstance(d, Quarantine)}
    assert not aside or any(usable(g) for g in world.gpus if g.uuid not in aside)
    for start in started(plan):
        assert len(set(start.uuids)) == len(start.uuids)
        rule = policy(world, jobs_of(world)[start.job].batch)
        for uuid in start.uuids:
            gpu = state[uuid].gpu
            assert gpu.state == "ok" and not gpu.excluded and not gpu.quarantine and gpu.compute_mode != "prohibited"
            assert (gpu.faulty is None or suspect(gpu)) and uuid not in aside
            computing = state[uuid].promises or any(h.kind == "compute" for h in gpu.holders)
            assert gpu.compute_mode == "default" or (not computing and len(given_to[uuid]) == 0)
            assert rule.gpus is None or gpu.index in rule.gpus
            assert uuid not in courtesy.left_for_others(rule, world.gpus)
            given_to[uuid].append(start)
    for uuid, new in given_to.items():
        card = state[uuid]
        whole = [s for s in new if s.mib_on(uuid) is None or not s.share]
        assert len(new) == 1 or not whole
        assert not any(alone(p, living) for p in card.promises)
        assert not (whole and card.mine is not None)
        assert sum(s.mib_on(uuid) or 0 for s in new) <= max(0, card.available_mib)
        assert sum(s.mib_on(uuid) or 0 for s in new) + card.promised_mib <= card.gpu.total_mib
        assert all((s.memory_mib or 0) <= 1.05 * card.gpu.total_mib for s in new)


def check_limits(world: World, plan: Plan) -> None:
    living = alive(world)
    count = Counter(r.batch for r in living.values())
    held = {c.gpu.uuid for c in cards_of(world, world.gpus, living) if c.mine is not None}
    for start in started(plan):
        job = jobs_of(world)[start.job]
        rule = policy(world, job.batch)
        assert job.gpus_min <= len(start.uuids) <= job.gpus_max
        count[job.batch] += 1
        assert rule.max_concurrent is None or count[job.batch] <= rule.max_concurrent
        if not set(start.uuids) <= held and rule.max_gpu is not None:
            held |= set(start.uuids)
            assert len(held) <= rule.max_gpu
        held |= set(start.uuids)
    if world.hold == "disk_full":
        assert not started(plan)
    if world.hold or any(node.hold for _, node in world.nodes) or not any(g.state == "ok" for g in world.gpus):
        assert all(jobs_of(world)[s.job].gpus_max == 0 for s in started(plan))
        assert not any(isinstance(d, Fail) for d in plan.decisions)


def check_answers(world: World, plan: Plan) -> None:
    """Every job starts, gives up, or has a reason; none of them twice; in the order of priorities and of its lane."""
    begun = [s.job for s in started(plan)]
    priorities = [jobs_of(world)[id].priority for id in begun]
    assert priorities == sorted(priorities, reverse=True)
    given_up = [d.job for d in plan.decisions if isinstance(d, Fail)]
    assert len(set(begun + given_up)) == len(begun + given_up)
    for lane in world.lanes:
        ids = [j.id for j in lane]
        mine = [i for i in begun if i in ids]
        assert mine == ids[: len(mine)]
        open_ = len(lane) - len(mine) - sum(i in ids for i in given_up)
        assert (lane[0].shape in plan.waits) == (open_ > 0)
    for reason in plan.waits.values():
        assert text(reason) and text(reason, "zh") and "?" not in text(reason)
        assert plain(reason)["code"] == reason.code
        assert len({r.uuid for r in reason.gpus}) == len(reason.gpus)
    assert plan.wake_at is None or plan.wake_at >= world.now
    assert set(plan.kept_for) <= set(jobs_of(world)) and len(plan.kept_for) <= 1


def check_runs(world: World, plan: Plan) -> None:
    over = [d.run for d in plan.decisions if isinstance(d, Finish | Requeue)]
    assert over == [r.id for r in world.runs if r.ended is not None or r.voided]
    for d in plan.decisions:
        if isinstance(d, Requeue | Finish):
            run = next(r for r in world.runs if r.id == d.run)
            assert not (run.cancel and isinstance(d, Requeue))
            assert d.reason is None or (text(d.reason) and text(d.reason, "zh"))
        if isinstance(d, Stop):
            assert d.run not in over and next(r for r in world.runs if r.id == d.run).cancel
