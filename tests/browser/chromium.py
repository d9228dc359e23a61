"""A real browser for tests: Debian's chromium, driven by playwright; with a font for Chinese, else it shows as boxes."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess

PACKAGES = ("chromium", "fonts-wqy-microhei")
INSTALL = "apt-get install -y --no-install-recommends " + " ".join(PACKAGES)
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
WITHIN = 120  # s


def path() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


def install() -> str | None:
    """Where chromium is, after an attempt to get it if it is missing; None if it cannot be had.

    Of those that ask side by side one installs it, and the others do not take what is half unpacked.
    """
    with open(__file__) as here:
        fcntl.flock(here, fcntl.LOCK_EX)
        if path() is None and os.geteuid() == 0 and shutil.which("apt-get"):
            for command in (["apt-get", "update", "-q"], INSTALL.split()):
                try:
                    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=WITHIN, check=True,
                                   env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})  # fmt: skip
                except (subprocess.SubprocessError, OSError):
                    return None
        return path()
