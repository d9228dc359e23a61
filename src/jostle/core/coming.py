"""Which cards of a node can be kept for a big job: those that fit now and those that will, in the order in which they come.

The rules of keeping are reserve's; here they are worked out on a table.
"""

from __future__ import annotations

from dataclasses import replace

from jostle.core import courtesy, fit, reserve
from jostle.core.ledger import Card, offer_mib, without_ours
from jostle.core.model import Job
from jostle.core.reasons import Refusal
from jostle.core.scope import Scope, large_enough
from jostle.core.table import Table


def with_cards(kept: reserve.KeptCards, table: Table) -> reserve.KeptCards | dict[str, int]:
    """The big job with its cards; or why none can be kept for it."""
    job, scope = kept.job, table.scope(kept.job.batch)
    key = table.request(job, scope)
    if key not in table.coming:
        table.coming[key] = _in_turn(table, job, scope)
    coming = table.coming[key][: job.gpus_min]
    if len(coming) < job.gpus_min:
        return {"coming": len(coming)}
    uuids, until = frozenset(uuid for _, uuid in coming), coming[-1][0]
    staying = {c.gpu.uuid for c in table.cards if any(p.uid == c.uid and p.run is None for p in c.promises)} | scope.by_hand
    allowed = _allowed(table, scope)
    if allowed is not None and len(staying | uuids) > allowed:
        return {"allowed": max(0, allowed - len(staying - uuids))}
    return replace(kept, uuids=uuids, until=until)


def _in_turn(table: Table, job: Job, scope: Scope) -> list[tuple[float, str]]:
    pairs = list(zip(table.cards, table.view(job, scope).refusals, strict=True))
    fitting = fit.ranked([c for c, r in pairs if r is None], scope.policy)
    later = [(c, r) for c, r in pairs if r is not None and _comes(table, c, r, job, scope)]
    return reserve.in_turn(table.world.now, fitting, later, table.runs)


def _comes(table: Table, card: Card, refusal: Refusal, job: Job, scope: Scope) -> bool:
    """Whether a card will fit when our own runs have left it, or a while has gone by."""
    if fit.several(card, job.gpus_min):
        return False
    if refusal.code == "idle":
        return True
    if refusal.code == "unknown":  # a card is not read for a moment after each end
        sound = card.gpu.faulty is None and card.gpu.compute_mode != "prohibited"
        others = any(promise.run is None for promise in card.promises)
        return sound and not others and large_enough(offer_mib(card.gpu), job, scope.policy)
    return was_left(table, card, refusal) or fits_when_left(table, card, job, scope)


def was_left(table: Table, card: Card, refusal: Refusal) -> bool:
    """Whether a card is refused only because a run of ours has left it a moment ago."""
    leaves_at = card.gpu.left_at + reserve.LEAVES_WITHIN
    if refusal.code not in (*reserve.LEAVING, "unknown") or table.world.now >= leaves_at:
        return False
    table.wake(leaves_at)
    return True


def fits_when_left(table: Table, card: Card, job: Job, scope: Scope) -> bool:
    """Whether a card that runs of ours hold will fit the job when they have left it."""
    rest = without_ours(card)
    if rest is None or fit.several(card, job.gpus_min):
        return False
    policy = scope.policy
    left = fit.general_refusal(rest, table.terms(job, scope))
    left = left or fit.refusal(rest, policy, job.memory_mib, table.avoid(job, policy, table.general_view(job, scope).refusals))
    return left is None or left.code == "idle"


def _allowed(table: Table, scope: Scope) -> int | None:
    """How many cards the user may hold when our own runs have left theirs, which will be roomy then; None: no limit."""
    least = [bound.cap.most for bound in table.account.bounds(scope.policy)]
    if courtesy.limited(scope.policy):
        held = {c.gpu.uuid for c in table.cards if c.mine is not None} | scope.by_hand
        least.append(courtesy.limit(scope.policy, len(scope.roomy | held)))
    return min(least, default=None)
