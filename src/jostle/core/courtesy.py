"""Courtesy: how many cards a user may hold, so that others get some too (SPEC A13).

limit = min(max_gpu, max(min_gpu, available − gpu_left)), where available counts the cards of the range with at least 1 GB
free and those this user holds, by any of their jostles or by hand. A config with neither key never uses the last `gpu_left`
cards of its range instead. Sharing a card that is held already takes no further one.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from jostle.core.ledger import Card
from jostle.core.limits import Budget
from jostle.core.model import Gpu, Holder, Policy

DEFAULT_MIN, DEFAULT_MAX = 3, 8
ROOMY_MIB = 1024


def limited(policy: Policy) -> bool:
    return policy.min_gpu is not None or policy.max_gpu is not None


def least_and_most(policy: Policy) -> tuple[int, int]:
    """Of rules that set one of them at least."""
    least = DEFAULT_MIN if policy.min_gpu is None else policy.min_gpu
    return least, DEFAULT_MAX if policy.max_gpu is None else policy.max_gpu


def limit(policy: Policy, available: int) -> int:
    """How many cards the user may hold when so many are available to them."""
    least, most = least_and_most(policy)
    return min(most, max(least, available - policy.gpu_left))


def in_range(policy: Policy, gpus: Iterable[Gpu]) -> list[Gpu]:
    """The cards a policy speaks of, in its own order; parents of MIG slices are none."""
    by_index: dict[int, list[Gpu]] = {}
    for gpu in gpus:
        if gpu.state != "mig":
            by_index.setdefault(gpu.index, []).append(gpu)
    indices: Iterable[int] = sorted(by_index) if policy.gpus is None else dict.fromkeys(policy.gpus)
    return [gpu for index in indices for gpu in by_index.get(index, ())]


def left_for_others(policy: Policy, gpus: Iterable[Gpu]) -> frozenset[str]:
    """The cards an older config never uses."""
    if limited(policy) or policy.gpu_left <= 0:
        return frozenset()
    return frozenset(g.uuid for g in in_range(policy, gpus)[-policy.gpu_left :])


def roomy(policy: Policy, gpus: Iterable[Gpu]) -> frozenset[str]:
    return frozenset(g.uuid for g in in_range(policy, gpus) if g.state == "ok" and g.free_mib >= ROOMY_MIB)


def by_hand(policy: Policy, card: Card) -> list[Holder]:
    """Processes of this user that no jostle started: Python ones (SPEC A17), and what uses more than a desktop does."""
    return [h for h in card.holders("own") if counts(policy, h)] if card.gpu.holders else []


def counts(policy: Policy, holder: Holder) -> bool:
    return holder.used_mib is None or holder.used_mib >= policy.small_mib or is_python(holder.exe, holder.name)


def is_python(exe: str, name: str) -> bool:
    """By what it executes: programs give themselves names (pt_main_thread), so these only tell where nothing better does."""
    return exe.startswith("python") if exe else "python" in name.lower()


def budgets(policy: Policy, available: AbstractSet[str], holding: AbstractSet[str]) -> list[Budget]:
    """How many more cards may be taken now; none: no limit."""
    if not limited(policy):
        return []
    return [Budget(max(0, limit(policy, len(available | holding)) - len(holding)), holding)]
