"""Puts peers into bench/.peers, without root and without touching the machine. What was fetched once is kept."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys

from peers.base import Missing
from tasks import HERE

PEERS = os.path.join(HERE, ".peers")
FETCH_FOR = 180.0


def in_venv(place: str, requirement: str, program: str) -> str:
    """A program of a Python package, in a virtual environment of its own."""
    path = os.path.join(PEERS, place, "bin", program)
    if not os.path.exists(path):
        _fetch([sys.executable, "-m", "venv", os.path.join(PEERS, place)])
        _fetch([os.path.join(PEERS, place, "bin", "pip"), "install", "--quiet", requirement])
    if not os.path.exists(path):
        raise Missing(f"{requirement} brought no {program}")
    return path


def from_debian(package: str, program: str) -> str:
    """A program of a Debian package, only unpacked, never installed."""
    here = shutil.which(program) or os.path.join(PEERS, package, "usr", "bin", program)
    if os.path.exists(here):
        return here
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        raise Missing(f"{program} is not installed, and without apt-get the package {package} cannot be fetched")
    downloads = os.path.join(PEERS, "deb")
    os.makedirs(downloads, exist_ok=True)
    _fetch(["apt-get", "download", package], cwd=downloads)
    archives = glob.glob(os.path.join(downloads, f"{package}_*.deb"))
    if not archives:
        raise Missing(f"apt-get brought no {package}")
    _fetch(["dpkg", "-x", archives[0], os.path.join(PEERS, package)])
    return here


def _fetch(argv: list[str], cwd: str | None = None) -> None:
    try:
        done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=FETCH_FOR)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Missing(f"{os.path.basename(argv[0])}: {e}") from e
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Missing(f"{os.path.basename(argv[0])} {argv[1]}: {last}"[:200])
