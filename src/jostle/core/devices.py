"""Sets of devices as people name them. What this host may have is named here, and read by a class in probes/."""

from __future__ import annotations

REAL = ("nvml",)
"""The first is what is meant where nobody says anything."""

DEFAULT = REAL[0]

SIMULATED = "sim:"

FORMS = f"{', '.join(REAL)}, {SIMULATED}8x24 or {SIMULATED}FILE"

EXPECTED = FORMS.replace("8x24", "8x24 (8 GPUs of 24 GiB)")


def world(spec: str) -> str | None:
    """The world that the simulator is to show; None: not simulated."""
    return spec[len(SIMULATED) :] if spec.startswith(SIMULATED) else None


def known(spec: str) -> bool:
    return spec in REAL or bool(world(spec))
