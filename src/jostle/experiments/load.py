"""Files of every YAML format as batches: sweeps, old job files (B1), suites (B9), and plain job files.

Rules: all files are read before anything is said of any, and all that is wrong is told at once. Each sweep, old job file or suite
is a batch of its own, in the order of the files; plain job files that stand side by side are one batch, as ever. Nothing is
written: configcopy.write() does that, right before the submit.
"""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jostle.core.kinds import MAX_NAME
from jostle.experiments import configcopy, oldjobs, suites, sweep
from jostle.experiments.sheet import Sheet
from jostle.formats import jobfile, spec, yamlfile
from jostle.formats.flaws import BadFiles, Findings
from jostle.formats.nodes import Flaw, Map, Node, Scalar
from jostle.formats.wording import shown
from jostle.wording.flaws import flaw

_SWEEPS = re.compile(r"\b(?:matrix|zip|include|suites|command|config|algorithm|log_path|extra_args)[\"']?\s*:")


def load(
    files: Sequence[str], suites: Sequence[str] = (), *, base: str | None = None, min_memory: int | None = None,
    now: float | None = None, texts: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """The batches, in order: {"name", "policy", "queues", "jobs", "about": {"file", "suite", "source"}, "kind"}.

    `kind` is sweep, old or jobs; `about.source` is there if the suite stands in a file of its own.

    Each job is a spec.job(…) and has "params" {key: text}, "inputs" [paths of files that are part of what it is] and "copy"
    {"of", "to", "values"} (the copy of a config file it needs) or None; take PRIVATE away before a submit. `base`: where relative
    paths start, instead of the file's directory. `min_memory` (MiB): the gate and promise of old job files. BadFiles; Usage if
    there is no such suite. `texts`: what a file is to hold, instead of what it holds.
    """
    collecting = gc.isenabled()
    gc.disable()  # a big sweep makes a million small objects that all live
    try:
        return _Files(base, min_memory, now, texts or {}).load(files, suites)
    finally:
        if collecting:
            gc.enable()


def kind_of(root: Node | None) -> str:
    """sweep | old | suites | jobs, by the keys of the file."""
    if not isinstance(root, Map):
        return "jobs"
    keys = {key.text: value for key, value in root.items}
    if "suites" in keys:
        return "suites"
    if "jobs" in keys:
        return "old" if oldjobs.looks_old(keys["jobs"], "command" in keys) else "jobs"
    return "sweep" if keys.keys() & {"command", *sweep.AXES} else "jobs"


class _Entry:
    """What will be one batch: a plain job file, or a mapping that is a sweep or an old job file."""

    def __init__(self, file: str, kind: str, node: Node | None, text: str) -> None:
        self.file, self.kind, self.node, self.text = file, kind, node, text
        self.named_file = file  # the file that the person gave
        self.suite: str | None = None
        self.logs: Scalar | None = None
        self.shared = False

    @property
    def names(self) -> set[str]:
        stem = os.path.splitext(os.path.basename(self.file))[0]
        return {self.suite} if self.suite is not None else {stem, stem.removeprefix("jobs_")}


class _Files:
    def __init__(self, base: str | None, min_memory: int | None, now: float | None, texts: Mapping[str, str]) -> None:
        self.base, self.min_memory, self.now, self.texts = base, min_memory, now, texts
        self.flaws: list[tuple[str, int, str]] = []
        self.places: dict[str, tuple[str, dict[str, str]]] = {}  # of copies, of all suites

    def load(self, files: Sequence[str], suite_names: Sequence[str]) -> list[dict[str, Any]]:
        entries = [entry for file in files for entry in self._entries(file)]
        if suite_names and not self.flaws:
            entries = _chosen(entries, suite_names)
        batches: list[dict[str, Any]] = []
        together: list[_Entry] = []
        for entry in entries:
            if entry.kind == "jobs" and entry.suite is None:
                together.append(entry)
                continue
            batches += self._plain(together)
            together = []
            batches += self._plain([entry]) if entry.kind == "jobs" else [self._sheet(entry)]
        batches += self._plain(together)
        if self.flaws:
            raise BadFiles(self.flaws)
        return batches

    def _entries(self, file: str, nested: bool = False) -> list[_Entry]:
        try:
            text = self.texts[file] if file in self.texts else yamlfile.text_of(file)
            root = yamlfile.parse(text) if _SWEEPS.search(text) else None
        except Flaw as e:
            self.flaws.append((file, e.line, e.text))
            return []
        kind = kind_of(root)
        if kind != "suites":
            return [_Entry(file, kind, root, text)]
        if nested:
            self.flaws.append((file, 0, flaw("suite_nested")))
            return []
        assert isinstance(root, Map)
        return self._suites(file, root)

    def _suites(self, file: str, root: Map) -> list[_Entry]:
        findings = Findings()
        entries: list[_Entry] = []
        for suite in suites.read(findings, root):
            if suite.node is not None:
                kind = kind_of(suite.node)
                if kind == "jobs":
                    findings.wrong(suite.line, flaw("suite_no_sweep", name=suite.name))
                    continue
                of_suite = [_Entry(file, kind, suite.node, "")]
            else:
                folder = self.base if self.base is not None else os.path.dirname(file)
                of_suite = self._entries(os.path.join(folder, os.path.expanduser(suite.path)), nested=True)
            for entry in of_suite:
                entry.named_file, entry.suite, entry.logs, entry.shared = file, suite.name, suite.logs, suite.shared
            entries += of_suite
        self.flaws += [(file, line, text) for line, text in sorted(findings.flaws)]
        return entries

    def _folder(self, file: str) -> str:
        if self.base is None and file.startswith(("/dev/fd/", "/dev/stdin", "/proc/")):  # of the person's shell
            return os.getcwd()
        return os.path.abspath(self.base) if self.base is not None else os.path.dirname(os.path.abspath(file))

    def _about(self, entry: _Entry) -> dict[str, Any]:
        about = {"file": os.path.realpath(entry.named_file), "suite": entry.suite}
        return about if entry.file == entry.named_file else {**about, "source": os.path.realpath(entry.file)}

    def _sheet(self, entry: _Entry) -> dict[str, Any]:
        sheet = Sheet(self._folder(entry.file), now=self.now, places=self.places)
        sheet.shared = entry.shared
        sheet.suite = entry.suite or os.path.splitext(os.path.basename(entry.file))[0][: MAX_NAME]
        assert isinstance(entry.node, Map)
        if entry.logs is not None:
            sheet.logs = sheet.checked("logs", entry.logs, lambda text: spec.path(text, self._folder(entry.named_file)))
        if entry.kind == "old":
            oldjobs.read(sheet, entry.node, self.min_memory)
        else:
            sweep.read(sheet, entry.node)
        _logs_fit(sheet, entry.node.line)
        self.flaws += [(entry.file, line, text) for line, text in sorted(sheet.flaws)]
        return {
            "name": sheet.name or sheet.suite, "policy": sheet.policy, "queues": sheet.queues, "jobs": sheet.jobs,
            "about": self._about(entry), "kind": entry.kind,
        }  # fmt: skip

    def _plain(self, entries: list[_Entry]) -> list[dict[str, Any]]:
        if not entries:
            return []
        base = self.base if self.base is not None or len(entries) > 1 else self._folder(entries[0].file)
        try:
            batch = jobfile.load([e.file for e in entries], now=self.now, texts={e.file: e.text for e in entries}, base=base)
        except BadFiles as e:
            self.flaws += e.flaws
            return []
        for job in batch["jobs"]:
            job["params"], job["inputs"], job["copy"] = {}, [], None
        if entries[0].suite is not None:
            batch["name"] = entries[0].suite
        return [{**batch, "about": self._about(entries[0]), "kind": "jobs"}]


def _logs_fit(sheet: Sheet, line: int) -> None:
    """A log that no file system takes would fail its job at the start."""
    for job in sheet.jobs:
        if job["log"] is not None and configcopy.too_long(job["log"]):
            sheet.wrong(line, flaw("log_long", log=shown(job["log"]), most=configcopy.LONGEST))
            return


def _chosen(entries: list[_Entry], suite_names: Sequence[str]) -> list[_Entry]:
    names = [min(entry.names, key=len) for entry in entries]
    full = {name: min(entry.names, key=len) for entry in entries for name in entry.names}
    picked = suites.chosen(names, [full.get(name, name) for name in suite_names])
    return [entry for name in picked for entry, own in zip(entries, names, strict=True) if own == name]
