"""What holds for every world, however odd."""

from __future__ import annotations

import gc
import math
from collections import Counter, defaultdict
from dataclasses import replace
from random import Random

from hypothesis import given, settings

from jostle.core import courtesy
from jostle.core.decide import decide
from jostle.core.health import suspect, usable
from jostle.core.ledger import alive, alone, cards_of
from jostle.core.model import UNLIMITED, Gpu, Job, Node, Policy, World
from jostle.core.plan import Continue, Decision, Doubt, Fail, Finish, Pause, Plan, Quarantine, Requeue, Resize, Start, Stop, Yield
from jostle.core.reasons import plain
from jostle.wording.reasons import text
from tests.core import odd
from tests.core.worlds import ALICE, BOB, ME


def started(plan: Plan) -> list[Start]:
    return [d for d in plan.decisions if isinstance(d, Start)]


def policy(world: World, batch: int) -> Policy:
    return world.policies.get(batch, world.policy)


def jobs_of(world: World) -> dict[int, Job]:
    return {j.id: j for lane in world.lanes for j in lane}


def test_what_a_plan_was_made_of_goes_with_it():
    """The engine collects no garbage while a card may wait, so a decision leaves none: no circle of tables and what they ask."""
    worlds = [odd.world(Random(seed)) for seed in range(60)]
    gc.collect()
    gc.disable()
    try:
        for world in worlds:
            decide(world)
        left = gc.collect()
    finally:
        gc.enable()
    assert left == 0


@settings(max_examples=100)
@given(odd.CHANCE)
def test_no_plan_breaks_the_laws(chance: Random) -> None:
    check_laws(odd.world(chance))


def test_an_empty_world_breaks_none_either() -> None:
    check_laws(World(now=1000.0, uid=ME))


@settings(max_examples=200)
@given(odd.CHANCE)
def test_no_plan_breaks_them_where_runs_grow_and_shrink(chance: Random) -> None:
    """C7, C8: only who agreed is touched, never below its least; nobody gets a card that another has, or beyond limits."""
    world = odd.stretched(chance, odd.world(chance, several=chance.random() < 0.3))
    check_laws(world)
    check_resizes(world, decide(world))


@settings(max_examples=100)
@given(odd.CHANCE)
def test_cards_of_several_hosts_are_never_mixed(chance: Random) -> None:
    """Nor overfilled, nor given to a job that may not go there, nor more handed over than there is room for."""
    check_laws(odd.world(chance, several=True))


@settings(max_examples=100)
@given(odd.CHANCE)
def test_what_happens_on_one_host_does_not_depend_on_another(chance: Random) -> None:
    check_independence(chance)


def check_independence(chance: Random) -> None:
    world = replace(odd.world(chance), limits=UNLIMITED)  # these count over all hosts, as they should
    alone, beside_it = decide(world), decide(odd.beside(chance, world))
    ours, theirs = jobs_of(world), {g.uuid for g in world.gpus}
    mine = [d for d in beside_it.decisions if about(d, ours, theirs)]
    assert mine == list(alone.decisions)
    assert {shape: reason for shape, reason in beside_it.waits.items() if shape < 20} == alone.waits
    assert [id for id in beside_it.kept_for if id in ours] == list(alone.kept_for)


def about(d: Decision, jobs: dict[int, Job], uuids: set[str]) -> bool:
    """Whether a decision is of one of these jobs, a run of the first host, or one of its cards."""
    if isinstance(d, Start | Fail):
        return d.job in jobs
    return d.uuid in uuids if isinstance(d, Quarantine | Doubt) else d.run[0] < 50


def check_laws(world: World) -> None:
    plan = decide(world)
    assert plan == decide(world)
    check_places(world, plan)
    check_limits(world, plan)
    check_person(world, plan)
    check_answers(world, plan)
    check_runs(world, plan)
    for target, node in world.nodes:
        here = [s for s in started(plan) if (s.target, s.node) == (target, node.name)]
        check_cards(world, node, here, plan)
        check_kept(world, target, node, plan)
        check_host(world, target, node, here)
    check_counters(world, plan)


def check_places(world: World, plan: Plan) -> None:
    """Each start is at a place that the job names, on cards of one node of it; a cluster gets no more than it takes."""
    nodes = {(target, node.name): node for target, node in world.nodes}
    room = {t.name: math.inf if t.room is None else t.room for t in world.targets if not t.places}
    holds = {(t.name, n.name): (t.hold, n.hold) for t in world.targets for n in t.nodes} | {
        (t.name, ""): (t.hold,) for t in world.targets if not t.places
    }
    for start in started(plan):
        job = jobs_of(world)[start.job]
        assert start.target in job.on
        assert all(h is None or (h.gpus_only and job.gpus_max == 0) for h in holds[start.target, start.node])
        if start.target in room:
            room[start.target] -= 1
            assert room[start.target] >= 0 and (start.uuids, start.node) == ((), "")
            continue
        node = nodes[start.target, start.node]
        assert set(start.uuids) <= {g.uuid for g in node.gpus}
        assert not start.uuids or any(g.state == "ok" for g in node.gpus)


def check_kept(world: World, target: str, node: Node, plan: Plan) -> None:
    """Cards of a node are kept only for a job that would have enough of them there if all our own runs ended."""
    uuids = {g.uuid for g in node.gpus}
    refused = [r for reason in plan.waits.values() for r in reason.gpus if r.code == "kept" and r.uuid in uuids]
    if not refused:
        return
    (id,) = {r.params["job"] for r in refused}
    assert id in plan.kept_for or id in [s.job for s in started(plan)]
    big = jobs_of(world)[id]
    rule = policy(world, big.batch)
    able = {g.uuid for g in node.gpus if could_fall_free(world, big, rule, g)} - courtesy.left_for_others(rule, node.gpus)
    assert len(able) >= big.gpus_min and target in big.on
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


def check_cards(world: World, node: Node, here: list[Start], plan: Plan) -> None:
    """Only readable cards in range; none doubled that someone has alone; never more promised than a card has."""
    living = alive(world)
    state = {c.gpu.uuid: c for c in cards_of(world, node.gpus, living)}
    given_to: dict[str, list[Start]] = defaultdict(list)
    aside = {d.uuid for d in plan.decisions if isinstance(d, Quarantine) and d.uuid in state}
    assert not aside or any(usable(g) for g in node.gpus if g.uuid not in aside)
    for start in here:
        assert len(set(start.uuids)) == len(start.uuids)
        rule = policy(world, jobs_of(world)[start.job].batch)
        for uuid in start.uuids:
            gpu = state[uuid].gpu
            assert gpu.state == "ok" and not gpu.excluded and not gpu.quarantine and gpu.compute_mode != "prohibited"
            assert (gpu.faulty is None or suspect(gpu)) and uuid not in aside
            computing = state[uuid].promises or any(h.kind == "compute" for h in gpu.holders)
            assert gpu.compute_mode == "default" or (not computing and len(given_to[uuid]) == 0)
            assert rule.gpus is None or gpu.index in rule.gpus
            assert uuid not in courtesy.left_for_others(rule, node.gpus)
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


def check_host(world: World, target: str, node: Node, here: list[Start]) -> None:
    """C13: of cores and memory of a host no more is handed out than there is; where more was, nothing."""
    jobs = [jobs_of(world)[start.job] for start in here]
    held = [r for r in alive(world).values() if (r.target, r.node) == (target, node.name)]
    for name, total in (("cpus", node.cpus), ("host_memory_mib", node.host_memory_mib)):
        new = sum(getattr(job, name) or 0 for job in jobs)
        assert not new or new + sum(getattr(run, name) or 0 for run in held) <= total


def check_counters(world: World, plan: Plan) -> None:
    """C13: the same of counters, wherever runs go."""
    begun = [jobs_of(world)[start.job] for start in started(plan)]
    new, held = (sum((Counter(dict(one.counters)) for one in some), Counter()) for some in (begun, alive(world).values()))
    for name, count in new.items():
        assert count + held[name] <= world.counters.get(name, 0)


def check_limits(world: World, plan: Plan) -> None:
    living = alive(world)
    count, begun = Counter(r.batch for r in living.values()), set()
    nodes = {(target, node.name): node.gpus for target, node in world.nodes}
    cards = {at: cards_of(world, gpus, living) for at, gpus in nodes.items()}
    held_at = {at: {c.gpu.uuid for c in some if c.mine is not None} for at, some in cards.items()}
    for start in started(plan):
        job = jobs_of(world)[start.job]
        rule = policy(world, job.batch)
        at = (start.target, start.node)  # courtesy counts on each node by itself
        held = held_at.get(at, set()) | {c.gpu.uuid for c in cards.get(at, ()) if courtesy.by_hand(rule, c)}
        assert not start.node or job.gpus_min <= len(start.uuids) <= job.gpus_max
        assert rule.start_interval == 0 or (job.batch not in begun and world.now - world.last_start.get(job.batch, 0) >= 60)
        begun.add(job.batch)
        count[job.batch] += 1
        assert rule.max_concurrent is None or count[job.batch] <= rule.max_concurrent
        grows = any(jobs_of(world)[other.job].elastic for other in started(plan))  # by other rules, after all starts
        if not set(start.uuids) <= held and rule.max_gpu is not None and not grows:
            assert len(held | set(start.uuids)) <= rule.max_gpu
        held_at.setdefault(at, set()).update(start.uuids)
    if world.hold:
        assert not started(plan)
    if world.hold or all(node.hold or not any(g.state == "ok" for g in node.gpus) for _, node in world.nodes):
        assert not any(isinstance(d, Fail) for d in plan.decisions)


def check_person(world: World, plan: Plan) -> None:
    """SPEC C3: no start goes above a limit of the person, whatever homes and hosts their cards are of."""
    runs = alive(world)
    dead = {r.id for r in world.runs} - set(runs)
    held: dict[bool, set[str]] = {False: set(), True: set()}
    for p in world.promises:
        if p.uid == world.uid and p.run not in dead:
            held[p.automatic if p.run not in runs else policy(world, runs[p.run].batch).automatic].add(p.uuid)
    limits = world.limits
    for start in started(plan):
        automatic = policy(world, jobs_of(world)[start.job].batch).automatic
        before = len(held[automatic]), len(held[False] | held[True])
        held[automatic] |= set(start.uuids)
        after = len(held[automatic]), len(held[False] | held[True])
        alike = limits.max_reserved_gpus if automatic else limits.max_manual_gpus
        for cap, was, now in zip((alike, limits.max_total_gpus), before, after, strict=True):
            assert cap is None or now == was or now <= cap.most
        assert limits.max_gpus_per_task is None or len(start.uuids) <= limits.max_gpus_per_task.most


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
    assert set(plan.kept_for) <= set(jobs_of(world)) and len(plan.kept_for) <= 2 * len(list(world.nodes))
    assert len(set(plan.kept_for)) == len(plan.kept_for), "a job keeps what it keeps on one node"


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


def check_resizes(world: World, plan: Plan) -> None:
    living, cards = alive(world), {g.uuid: g for g in world.gpus}
    given: Counter[str] = Counter(uuid for start in started(plan) for uuid in start.uuids)
    resizes = [d for d in plan.decisions if isinstance(d, Resize)]
    assert len({d.run for d in resizes}) == len(resizes) and not (resizes and world.hold)
    for d in resizes:
        run = living[d.run]
        its = run.elastic
        assert its is not None and its.busy is None and its.not_before <= world.now
        assert run.state == "running" and not run.cancel and set(d.uuids) != set(its.listed)
        assert len(set(d.uuids)) == len(d.uuids) >= max(1, min(its.least, len(its.listed)))
        assert len(d.uuids) <= max(its.most, len(its.listed))
        new = [uuid for uuid in d.uuids if uuid not in run.uuids]
        assert set(d.uuids) - set(new) <= set(its.listed)
        host = {node.name for _, node in world.nodes for gpu in node.gpus if gpu.uuid in (*run.uuids, *new)}
        assert not new or len(host) == 1, "its cards lie on one node"
        for uuid in new:
            gpu, rule = cards[uuid], policy(world, run.batch)
            assert gpu.state == "ok" and not gpu.excluded and not gpu.mig_slice and (gpu.faulty is None or suspect(gpu))
            assert rule.gpus is None or gpu.index in rule.gpus
            others = [p for p in world.promises if p.uuid == uuid and (p.run is None or p.run in living)]
            assert not any(alone(p, living) for p in others)
            assert run.share or rule.share or (not any(p.uid == ME for p in others) and not given[uuid])
            given[uuid] += 1
    for reason in plan.keeps.values():
        assert text(reason) and text(reason, "zh")
    for d in plan.decisions:
        if isinstance(d, Yield):
            assert living[d.run].yields and living[d.run].intruded and not living[d.run].yielding
            assert d.run not in {r.run for r in resizes if not set(r.uuids) & set(living[d.run].intruded)}
        if isinstance(d, Pause | Continue):
            run = living[d.run]
            its = run.pausing
            assert its is not None and run.state == "running" and not run.cancel, "who is to end is told only that"
            assert text(d.reason) and text(d.reason, "zh")
        if isinstance(d, Pause):
            assert not its.now and its.supervised and run.intruded and d.times >= 1
            assert d.run not in {r.run for r in resizes if not set(r.uuids) & set(run.intruded)}
        if isinstance(d, Continue):
            assert its.now and (not its.supervised or its.quiet_s is not None), "what is not known continues nobody"
    still = {run.id for run in living.values() if run.paused}
    assert not still & {r.run for r in resizes}, "one that stands still hears of no other cards"
    alone = [run for run in living.values() if run.paused and run.state == "running" and not run.cancel]
    continued = {d.run for d in plan.decisions if isinstance(d, Continue)}
    assert all(run.id in continued for run in alone if run.pausing and not run.pausing.supervised), "nobody for ever"
