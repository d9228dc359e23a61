"""What can be told before anything runs: what the settings ask for and this host does not give. Pure but for `unwritable`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jostle import units
from jostle.core import courtesy, survey
from jostle.core.model import LOCAL, Gpu, Node, Policy, Target, World
from jostle.core.reasons import Reason
from jostle.formats.gpumanage import Settings
from jostle.uniid.entries import was_ours
from jostle.uniid.file import look, make_directory
from jostle.wording.reasons import text

SHOWN = 5  # tasks


def missing_cards(settings: Settings, gpus: Sequence[Mapping[str, Any]]) -> str:
    """compete_gpus that this host does not have; nothing if there are none, or no card is known."""
    present = {gpu["index"] for gpu in gpus}
    missing = sorted(set(settings.compete_gpus) - present)
    if settings.use_all_gpus or not present or not missing:
        return ""
    return f"compete_gpus names {', '.join(map(str, missing))}; this host has {units.ranges(present)}"


def never(
    rows: Iterable[Mapping[str, Any]], gpus: Sequence[Mapping[str, Any]], policy: Mapping[str, Any], language: str = "en"
) -> list[str]:
    """A line for each task that has not begun and that no rearrangement of these cards could ever start, as the engine would say
    it; then how many more. It is asked here because the engine looks at a task only when its queue has come to it.
    """
    rows = [row for row in rows if not row["attempt"] and row["state"] in ("queued", "cancelled", "failed")]
    if not gpus or not rows:
        return []
    cards = tuple(
        Gpu(uuid=gpu["uuid"], index=gpu["index"], state=gpu["state"], total_mib=gpu["total_mib"],
            reserved_mib=gpu.get("reserved_mib") or 0)
        for gpu in gpus
    )  # fmt: skip
    here = Target(name=LOCAL, nodes=(Node(name=LOCAL, gpus=cards),))
    world = World(now=0.0, uid=0, targets=(here,), policy=_courtesy(policy))
    asked = [(row, survey.Asked(row["gpu_request"][0], row["memory_mib"], (LOCAL,))) for row in rows]
    reasons = survey.never(world, {shape for _, shape in asked})
    lines = [f"{row['id']} {row['name']}: {_sentence(row, reasons[shape], language)}" for row, shape in asked if shape in reasons]
    more = len(lines) - SHOWN
    return [*lines[:SHOWN], f"and {more} more {'task' if more == 1 else 'tasks'} that can never start"] if more > 0 else lines


def _sentence(row: Mapping[str, Any], reason: Reason, language: str) -> str:
    """Of a task that has ended nobody hopes that the cards change."""
    ended = row["state"] != "queued"
    return text(reason._replace(params={**reason.params, "refused_at_once": True}) if ended else reason, language)


def usable(policy: Mapping[str, Any], detected: Iterable[int]) -> list[int]:
    """The indices that a batch's rules let it use, of those that are there."""
    rules, cards = _courtesy(policy), [Gpu(uuid=str(index), index=index) for index in detected]
    left = courtesy.left_for_others(rules, cards)
    return sorted(gpu.index for gpu in courtesy.in_range(rules, cards) if gpu.uuid not in left)


def _courtesy(policy: Mapping[str, Any]) -> Policy:
    """What stored rules say about range and number of cards, as the engine reads it."""
    indices = policy.get("gpus")
    return Policy(
        gpus=None if indices is None else tuple(indices), gpu_left=policy.get("gpu_left") or 0, min_gpu=policy.get("min_gpu"),
        max_gpu=policy.get("max_gpu"),
    )  # fmt: skip


def unwritable(path: str) -> str:
    """Why a file cannot be replaced there; nothing if it can. Its directory is made, as whoever writes it would."""
    path = os.path.realpath(path)  # a link is written through
    if os.path.isdir(path):
        return "it is a directory"
    if _foreign(path):
        return "it holds something that is no JSON object, and is not replaced"
    probe = f"{path}.{os.getpid()}.try"
    try:
        make_directory(os.path.dirname(path))
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        os.unlink(probe)
    except OSError as e:
        return e.strerror or str(e)
    return ""


def _foreign(path: str) -> bool:
    """Whether there is a file that is not ours to replace."""
    try:
        content = look(path)
    except OSError:
        return False  # whoever tries to write it tells why
    if content.fd >= 0:
        os.close(content.fd)
    return content.data is None and not was_ours(content.text)
