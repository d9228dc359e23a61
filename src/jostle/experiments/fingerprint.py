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
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

VERSION = 1  # of what is hashed: another number makes everything run again
BLOCK = 1 << 20
LARGEST = 16 << 20  # a larger file that a command names is data, not a setting
NOBODYS = "0" * 64  # the digest of no file
SETTLED = 2.0  # s; as coarse as the times of any file system


class Contents:
    """Digests of files, each read once however many jobs use it."""

    def __init__(self) -> None:
        self._looks: dict[str, tuple[str | None, list[int] | None]] = {}

    def digest(self, path: str) -> str | None:
        """None for what cannot be read: it may not be there yet."""
        return self._look(path)[0]

    def entry(self, path: str, read: str | None = None) -> list[Any]:
        """What a run compares before its first command (backends/local/inputs.py): the file whose content is part of the
        fingerprint, or the copy of it that the job will `read`."""
        digest = self.digest(path)
        content, identity = self._look(read or path)
        return [read or path, digest, identity if content == digest else None]

    def _look(self, path: str) -> tuple[str | None, list[int] | None]:
        if path not in self._looks:
            self._looks[path] = _look(path)
        return self._looks[path]


def _look(path: str) -> tuple[str | None, list[int] | None]:
    """The digest, and by what the file can be known to be the same. A file that was written just now could be written again
    without a trace of it in its times."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb", opener=_opened) as f:
            before = os.fstat(f.fileno())
            while block := f.read(BLOCK):
                digest.update(block)
            same = identity(os.fstat(f.fileno())) == identity(before)
    except OSError:
        return None, None
    settled = time.time() - max(before.st_mtime, before.st_ctime) > SETTLED
    return digest.hexdigest(), identity(before) if same and settled else None


def identity(status: os.stat_result) -> list[int]:
    """As backends/local/inputs.py has it."""
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


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


def fingerprinted(batch: Mapping[str, Any]) -> Contents:
    """Gives each job of a batch, as it was loaded, its fingerprint. Plain jobs do not say what they are made of."""
    contents = Contents()
    for job in batch["jobs"]:
        if batch["kind"] not in ("sweep", "old"):
            job["inputs"] = named_files(job["commands"], job["workdir"])
        job["fingerprint"] = fingerprint(job, contents)
    return contents


def compared(
    job: Mapping[str, Any], contents: Contents, now: Contents, place: Callable[[str], str] = str
) -> list[list[Any]]:  # fmt: skip
    """The files that a run of this job is to compare with its fingerprint. Of a config file with values of its own the copy
    counts, as it stands `now`, if it was made of what has the fingerprint. `place` says where a file lies for a frozen job."""
    copy = job.get("copy")
    files = [path for path in job.get("inputs") or () if not copy or path != copy["of"]]
    entries = [contents.entry(path, place(path)) for path in files]
    if copy:
        entry = now.entry(place(copy["to"]))
        entries.append(entry if now.digest(copy["of"]) == contents.digest(copy["of"]) else [entry[0], NOBODYS, None])
    return entries


def _canonical(job: Mapping[str, Any], contents: Contents) -> str:
    canonical = {
        "version": VERSION,
        "commands": job["commands"],
        "params": job.get("params") or {},
        "inputs": [contents.digest(path) for path in job.get("inputs") or ()],
        "env": job.get("env") or {},
        "workdir": os.path.realpath(job["workdir"]),
    }
    return json.dumps(canonical, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def named_files(commands: Sequence[str | Sequence[str]], workdir: str) -> list[str]:
    """The files that the words of commands name, also as `--config=a.yaml`: for jobs that do not say what they are made of."""
    files: dict[str, None] = {}
    for command in commands:
        for word in words_of(command):
            path = os.path.join(workdir, word.rpartition("=")[2])
            if path not in files and _is_setting(path):
                files[path] = None
    return list(files)


def words_of(command: str | Sequence[str]) -> Sequence[str]:
    if not isinstance(command, str):
        return command
    try:
        return shlex.split(command, comments=True)
    except ValueError:  # quotes of a kind that only the shell understands
        return command.split()


def _is_setting(path: str) -> bool:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST
