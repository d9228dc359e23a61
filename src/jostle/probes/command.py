"""The probe process as a command, for the engine and for whoever looks once. Standard library only: the engine imports this."""

from __future__ import annotations

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def command(devices: str) -> list[str]:
    """It finds what `python` finds, wherever it is started, and this very jostle before that. Not -I: NVML's binding may be among
    the packages that a person installed for themselves."""
    code = f"import sys; sys.path[0] = {ROOT!r}; from jostle.probes.serve import main; sys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-E", "-c", code, devices]
