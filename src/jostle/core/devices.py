"""Sets of devices as people name them. What this host may have is named here, and read by a class in probes/."""

from __future__ import annotations

REAL = ("nvml",)
"""The first is what is meant where nobody says anything."""

DEFAULT = REAL[0]

SIMULATED = "sim:"

FORMS = f"{', '.join(REAL)}, {SIMULATED}8x24 or {SIMULATED}FILE"

EXPECTED = FORMS.replace("8x24", "8x24 (8 GPUs of 24 GiB)")

# probe and engine must wait alike
SILENT = 12.0  # s after which who does not answer cannot be read; busy drivers have been seen to answer after 5
STARTING, LEAST_STARTING = 15.0, 60.0  # s per card, and in all, that a driver which has to start may take for its first answers


def world(devices: str) -> str | None:
    """The world that the simulator is to show; None: not simulated."""
    return devices[len(SIMULATED) :] if devices.startswith(SIMULATED) else None


def known(devices: str) -> bool:
    return devices in REAL or bool(world(devices))
