"""A pretended NVIDIA driver for peers that want one: the C stand-in which the project's own tests use."""

from __future__ import annotations

import os

from peers.base import Missing
from tasks import HERE, NoCompiler, compiled

SOURCE = os.path.join(os.path.dirname(HERE), "tests", "fakenvml", "fakenvml.c")
LIBRARY = os.path.join(HERE, "c", "bin", "nvml", "libnvidia-ml.so.1")


def library_dir() -> str:
    if not os.path.exists(SOURCE):
        raise Missing("it needs an NVML library, and tests/fakenvml is not there")
    try:
        compiled(SOURCE, LIBRARY, "-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden", "-DPROCESS_VERSION=3")
    except NoCompiler as e:
        raise Missing(str(e)) from e
    return os.path.dirname(LIBRARY)


def environment(state: str) -> dict[str, str]:
    return {"LD_LIBRARY_PATH": library_dir(), "FAKE_NVML_STATE": state}


def write_cards(state: str, count: int, busy: bool) -> None:
    """Cards of 80 GiB; busy ones carry another user's process."""
    lines = ["driver 570.86.15"]
    for card in range(count):
        lines.append(f"gpu GPU-be9c0000-0000-0000-0000-{card:012x} 81920 {40_000 if busy else 0} 0 Pretended 80 GiB")
        lines += ["proc 1 40000 C"] if busy else []
    with open(f"{state}.new", "w") as f:
        f.write("\n".join(lines) + "\n")
    os.replace(f"{state}.new", state)
