"""What makes a job the same job as one that was done before (SPEC B7).

Rules: the same commands, in the same directory, with the same values, the same chosen environment and the same content of the
files that are part of it. Where a file lies does not count beyond what the command says, nor does what the job asks of GPUs,
its name, its log, or the rest of the environment. The directory counts, because `python test.py` elsewhere is another program.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from typing import Any

VERSION = 1  # of what is hashed: another number makes everything run again
BLOCK = 1 << 20
LARGEST = 16 << 20  # a larger file that a command names is data, not a setting


class Contents:
    """Digests of files, each read once however many jobs use it."""

    def __init__(self) -> None:
        self._known: dict[str, str | None] = {}

    def digest(self, path: str) -> str | None:
        """None for what cannot be read: it may not be there yet."""
        if path not in self._known:
            self._known[path] = _digest(path)
        return self._known[path]


def _digest(path: str) -> str | None:
    found = hashlib.sha256()
    try:
        with open(path, "rb", opener=_opened) as f:
            while block := f.read(BLOCK):
                found.update(block)
    except OSError:
        return None
    return found.hexdigest()


def _opened(path: str, flags: int) -> int:
    """A pipe in place of a file is not waited for."""
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(f"{path} is not a file")
    return fd


def fingerprint(job: Mapping[str, Any], contents: Contents) -> str:
    """Of a job as it was loaded; `inputs` are the files whose content is part of it."""
    return hashlib.sha256(_canonical(job, contents).encode("utf-8", "surrogatepass")).hexdigest()


def fingerprinted(batch: Mapping[str, Any]) -> None:
    """Gives each job of a batch, as it was loaded, its fingerprint. Plain jobs do not say what they are made of."""
    contents = Contents()
    for job in batch["jobs"]:
        if batch["kind"] not in ("sweep", "old"):
            job["inputs"] = named_files(job["commands"], job["workdir"])
        job["fingerprint"] = fingerprint(job, contents)


def _canonical(job: Mapping[str, Any], contents: Contents) -> str:
    said = {
        "version": VERSION,
        "commands": job["commands"],
        "params": job.get("params") or {},
        "inputs": [contents.digest(path) for path in job.get("inputs") or ()],
        "env": job.get("env") or {},
        "workdir": os.path.realpath(job["workdir"]),
    }
    return json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def named_files(commands: Sequence[str | Sequence[str]], workdir: str) -> list[str]:
    """The files that the words of commands name, also as `--config=a.yaml`: for jobs that do not say what they are made of."""
    found: dict[str, None] = {}
    for command in commands:
        for word in words_of(command):
            path = os.path.join(workdir, word.rpartition("=")[2])
            if path not in found and _is_setting(path):
                found[path] = None
    return list(found)


def words_of(command: str | Sequence[str]) -> Sequence[str]:
    if not isinstance(command, str):
        return command
    try:
        return shlex.split(command, comments=True)
    except ValueError:  # quotes of a kind that only the shell understands
        return command.split()


def _is_setting(path: str) -> bool:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST
