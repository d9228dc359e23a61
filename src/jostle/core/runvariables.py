"""The variables of the environment by which a run knows itself and its cards; docs/settings.md has a row for each.

Whoever is within a run, or in a shell that was made for an allocation, passes none of them on: what it submits or starts is no
part of that run. Light to import, for every command and every shim does. (`jostle.elastic`, which is for programs and needs
nothing of ours, has those that it reads for itself.)
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

JOB_ID, RUN, ATTEMPT, QUEUE, CPUS = "JOSTLE_JOB_ID", "JOSTLE_RUN", "JOSTLE_ATTEMPT", "JOSTLE_QUEUE", "JOSTLE_CPUS"

UNI_ID = "JOSTLE_UNI_ID"
"""The run's own; the processes of the run are recognised by it."""

UNI_ID_FILE = "JOSTLE_UNI_ID_FILE"
"""It takes part in the uni_id protocol (SPEC A21) by this file: variables in its commands, a word about its end."""

ALLOCATION = "JOSTLE_ALLOC"
"""The allocation that a program or shell was made for, by its job: what it submits runs in there, too."""

TERMINAL = "JOSTLE_TERMINAL"
"""The terminal that somebody shows a program on, by its path; its output goes there and not into the log."""

VISIBLE, DEVICE_ORDER, GPUS = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "JOSTLE_GPUS"
GPUS_FILE, LEG = "JOSTLE_GPUS_FILE", "JOSTLE_LEG"

OF_A_RUN = frozenset((
    JOB_ID, RUN, ATTEMPT, QUEUE, CPUS, UNI_ID, UNI_ID_FILE, ALLOCATION, TERMINAL, VISIBLE, DEVICE_ORDER, GPUS, GPUS_FILE, LEG,
))  # fmt: skip


def within(env: "Mapping[str, str]") -> bool:
    """Whether this is the environment of a run, or of a shell that was made for an allocation."""
    return UNI_ID in env or ALLOCATION in env


def passed_on(env: "Mapping[str, str]") -> dict[str, str]:
    """The environment for what is no part of the run that this may be."""
    return {name: value for name, value in env.items() if name not in OF_A_RUN} if within(env) else dict(env)
