"""Whether a run has read what its job is made of now, and which unfinished jobs a copy of a config file belongs to.

A fingerprint is taken at the submit, but files are read when the job starts, and may have been edited in between. So the run
compares them right before its first command, and says whether their content was that of the fingerprint: a success counts if it
was. Of a run that did not look (of an older version) a success counts only if nothing it is made of was modified since it began.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from jostle.experiments import configcopy
from jostle.experiments.fingerprint import words_of

if TYPE_CHECKING:
    from jostle.store.reads import LastRun

NEVER = float("-inf")
_TOKEN = re.compile(r"[\w.+=@,-]+")


class Unchanged:
    """Called with a job and the run that succeeded; each file is looked at once, however many jobs use it."""

    def __init__(self) -> None:
        self._modified: dict[str, float] = {}
        self._links: dict[str, float] = {}
        self._holds: dict[tuple[str, str], bool] = {}
        self._originals = configcopy.Originals()

    def __call__(self, job: Mapping[str, Any], run: LastRun) -> bool:
        if run.inputs is not None:
            return run.inputs == "same"
        copy = job.get("copy")
        inputs = job.get("inputs") or ()
        if copy:  # what the job reads is the copy; the original may be touched, as long as the same copy would be made of it
            if not self.holds(copy):
                return False
            inputs = [copy["to"], *(path for path in inputs if path != copy["of"])]
        return all(self.modified(path) < run.began for path in inputs)

    def holds(self, copy: Mapping[str, Any]) -> bool:
        """Whether the copy stands at its place as it would be written now."""
        text = self._originals.copy(copy)
        key = copy["to"], text or ""
        if key not in self._holds:
            self._holds[key] = text is not None and configcopy.taken(copy["to"], text) == ""
        return self._holds[key]

    def modified(self, path: str) -> float:
        """When a file, or a link on the way to it, was last changed in any way; -inf for what is not there."""
        if path not in self._modified:
            own = max((_time(path, follow=False), _time(path, follow=True)))
            self._modified[path] = max(own, self._led(os.path.dirname(path)))
        return self._modified[path]

    def _led(self, folder: str) -> float:
        """The same of the links among the folders."""
        if folder in ("/", ""):
            return NEVER
        if folder not in self._links:
            own = _time(folder, follow=False) if os.path.islink(folder) else NEVER
            self._links[folder] = max(own, self._led(os.path.dirname(folder)))
        return self._links[folder]


def _time(path: str, *, follow: bool) -> float:
    try:
        status = os.stat(path, follow_symlinks=follow)
    except (OSError, ValueError):
        return NEVER
    return max(status.st_mtime, status.st_ctime)


def users(rows: Iterable[Mapping[str, Any]], places: Mapping[str, str]) -> dict[str, int]:
    """Of these places of copies (and the directory of the job that wants each): the job that names one in its commands, by its
    path, or by its name alone in the same directory."""
    paths: dict[str, int] = {}
    names: dict[tuple[str, str], int] = {}
    real: dict[str, str] = {}
    for row in rows:
        if row["workdir"] not in real:
            real[row["workdir"]] = os.path.realpath(row["workdir"])
        for command in row["commands"]:
            for word in words_of(command):
                path = os.path.expanduser(word.rpartition("=")[2])
                paths.setdefault(os.path.normpath(os.path.join(real[row["workdir"]], path)), row["id"])
            for token in _TOKEN.findall(command if isinstance(command, str) else "\n".join(command)):
                for part in (token, *re.split("[=,]", token)):
                    names.setdefault((row["workdir"], part), row["id"])
                    names.setdefault((row["workdir"], os.path.splitext(part)[0]), row["id"])
    users_of = {}
    for place, workdir in places.items():
        stem = os.path.splitext(os.path.basename(place))[0]
        id = paths.get(os.path.realpath(place)) or paths.get(os.path.normpath(place)) or names.get((workdir, stem))
        if id is not None:
            users_of[place] = id
    return users_of
