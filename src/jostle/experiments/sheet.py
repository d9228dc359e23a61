"""The part that sweeps and old job files have in common: rows of values become jobs by templates.

Keys of a file: `command:` (a shell text, or a list: a program and its arguments), `job:` (keys of a job, with templates),
`into_config:`, `config_file:`, `config_copy:`, `inputs:`, `logs:`, `name:`, `policy:`, `own_queues:`.

Rules: what no template changes is read once, not per job. Values are texts as their author wrote them. Nothing is written here: a
job says which copy of a config file it needs (`copy`) and which files are part of what it is (`inputs`).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.experiments import configcopy, leaving
from jostle.experiments.matrix import Combination
from jostle.experiments.template import NoValue, Template, unknown
from jostle.formats import policyfile, shelltext, spec
from jostle.formats.fields import FIELDS, together
from jostle.formats.flaws import BadFiles, Findings
from jostle.formats.nodes import Flaw, Map, Node, Scalar, Seq
from jostle.formats.wording import closest, null, shown
from jostle.wording.flaws import flaw

KEYS = ("command", "config_copy", "config_file", "inputs", "into_config", "job", "logs", "name", "own_queues", "policy")
OF_JOB = tuple(key for key in FIELDS if key not in ("run", "after", "after_any"))
WAYS = ("argument", "config", "both")
ALWAYS = ("index", "name", "suite", "args", "config_file")  # words beside the keys of the sweep
ENOUGH = 200  # flaws, after which no more jobs are looked at


@dataclass(frozen=True, slots=True)
class Row:
    """The values of one job, and what an old job file says of it besides."""

    values: Combination
    line: int
    own: Map | None = None
    extra: tuple[str, ...] = ()  # keys that are given as arguments though the template does not name them


class Sheet(Findings):
    """One file (or one suite of it) being read."""

    def __init__(self, base: str, *, now: float | None = None, places: dict[str, tuple[str, dict[str, str]]]) -> None:
        super().__init__()
        self.base = base
        self.suite = ""
        self.named = True  # the author gave the jobs their names
        self.now = now
        self.jobs: list[dict[str, Any]] = []
        self.after: list[tuple[int, list[tuple[Scalar, bool]]]] = []
        self.name: str | None = None
        self.queues: str | None = None
        self.policy: dict[str, Any] = {}
        self.plain = spec.job(workdir=base)  # what a job is before anything is said of it
        self.copies_in: str | None = None  # where copies go if the file does not say it; None: `temp` beside the config file
        self.ways: dict[str, str] = {}  # of each key that does not go on the command line alone
        self.shared = False  # into_config was said for several suites, of which not each has all the keys
        self.logs: str | None = None
        self._way_lines: dict[str, int] = {}
        self._originals: dict[str, configcopy.Original | None] = {}
        self._places = places  # of the copies of all suites that are read together
        self._reported: set[tuple[int, str]] = set()

    def head(self, parts: Mapping[str, Node]) -> None:
        """What the file says of the batch and of all its jobs."""
        if "name" in parts:
            self.name = self.checked("name", parts["name"], spec.label)
        if "own_queues" in parts and self.checked("own_queues", parts["own_queues"], spec.truth):
            self.queues = "own"
        if "policy" in parts and not null(parts["policy"]):
            self.policy = {**self.policy, **policyfile.read(parts["policy"], self)}
        if "logs" in parts:
            self.logs = self.checked("logs", parts["logs"], lambda text: spec.path(text, self.base))
        if "into_config" in parts:
            self._into_config(parts["into_config"])

    def _into_config(self, node: Node) -> None:
        ways: list[tuple[Node, str]] = []
        if isinstance(node, Map):
            for key, value in node.items:
                way = self.checked(f"into_config: {key.text}", value, lambda text: spec.one_of(text, WAYS))
                ways.append((key, way or "both"))
        elif not null(node):
            ways = [(item, "config") for item in (node.items if isinstance(node, Seq) else [node])]
        else:
            self.ways = {}
        for item, way in ways:
            text = self.checked("into_config", item, lambda text: spec.label(text, "a key"))
            if text is not None:
                self.ways[text] = way
                self._way_lines[text] = item.line

    def wrong(self, line: int, text: str) -> None:
        """The same thing is told once, whatever number of jobs it is true of."""
        if (line, text) not in self._reported:
            self._reported.add((line, text))
            super().wrong(line, text)

    def build(self, parts: Mapping[str, Node], rows: Sequence[Row], command: Node) -> None:
        """Makes the jobs."""
        keys = {key for row in rows for key in row.values}
        words = keys | set(ALWAYS)
        for key, line in self._way_lines.items():
            if key not in keys and not self.shared:
                self.wrong(line, flaw("no_sweep_key", where="into_config", key=shown(key), expected=_list(keys)))
        lines = _Command(self, command, words)
        job = parts.get("job")
        fields = _Fields(self, job, words, self.plain)
        config = _Config(self, parts, keys, words)
        self._unused(rows, keys, lines, fields, config)
        for number, row in enumerate(rows, 1):
            if len(self.flaws) > ENOUGH:
                break
            try:
                self.jobs.append(self._job(number, row, lines, fields, config))
            except NoValue as e:
                values = ", ".join(f"{key} is {value.text}" for key, value in row.values.items())
                self.wrong(row.line, flaw("template_no_value", word=e.word, values=shown(values)))
        self._collisions(rows, fields)

    def _job(self, number: int, row: Row, lines: _Command, fields: _Fields, config: _Config) -> dict[str, Any]:
        params = {key: value.text for key, value in row.values.items()}
        values = {"index": str(number), "suite": self.suite, **params}
        job = fields.job(values, row)
        values.setdefault("name", job["name"])
        config.apply(job, row, values)
        job["commands"] = [lines.filled(values, row, self.ways)]
        if not job["name"]:
            job["name"] = spec.name_of(job["commands"])
        if job["log"] is None and self.logs is not None:
            job["log"] = os.path.join(self.logs, configcopy.fitting(configcopy.safe(job["name"]) + ".log"))
        own = row.own.items if row.own is not None else ()
        together(self, job, row.line, {*fields.lines, *(key.text for key, _ in own)})
        job["params"] = params
        return job

    def _unused(self, rows: Sequence[Row], keys: set[str], lines: _Command, fields: _Fields, config: _Config) -> None:
        """A key that nothing uses makes jobs that do the same: surely a slip."""
        used = lines.words | fields.words | config.words | {key for key, way in self.ways.items() if way != "argument"}
        if ("args" in lines.words and "args" not in keys) or any(row.own is not None for row in rows):
            return
        for key in sorted(keys - used):
            line = next(row.values[key].line for row in rows if key in row.values)
            self.wrong(line, flaw("key_nowhere", shown=shown(key), key=key))

    def _collisions(self, rows: Sequence[Row], fields: _Fields) -> None:
        """Two jobs that write one log, or that nobody can tell apart by their names."""
        logs: dict[str, int] = {}
        names: dict[str, int] = {}
        for k, job in enumerate(self.jobs):
            row = rows[k] if len(self.jobs) == len(rows) else rows[0]
            if job["log"] is not None and logs.setdefault(job["log"], k) != k:
                first = self.jobs[logs[job["log"]]]
                two = {"first": shown(first["name"]), "second": shown(job["name"]), "hint": _differ(first, job)}
                self.wrong(fields.line("log", row), flaw("log_of_two", log=shown(job["log"]), **two))
            if row.own is None and names.setdefault(job["name"], k) != k:
                hint = _differ(self.jobs[names[job["name"]]], job)
                self.wrong(fields.line("name", row), flaw("name_of_two", name=shown(job["name"]), hint=hint))
            if len(self.flaws) > ENOUGH:
                return

    def original(self, path: str, line: int) -> configcopy.Original | None:
        """The config file, read once; None after telling what is wrong with it."""
        if path not in self._originals:
            self._originals[path] = None
            try:
                self._originals[path] = configcopy.Original(path)
            except Flaw as e:
                self.wrong(line, flaw("config_file_bad", path=shown(path), text=e.text))
            except BadFiles as e:
                _, at, text = e.flaws[0]
                self.wrong(line, flaw("config_file_line", path=shown(path), line=at, text=text))
        return self._originals[path]

    def claim(self, place: str, of: str, values: dict[str, str], line: int) -> None:
        """One place holds one copy."""
        if self._places.setdefault(place, (of, values)) != (of, values):
            self.wrong(line, flaw("copy_of_two", place=shown(place)))


def _list(keys: set[str]) -> str:
    return "one of " + ", ".join(sorted(keys)[:20]) if keys else "a key of `matrix:`"


def _differ(first: dict[str, Any], second: dict[str, Any]) -> str:
    keys = [key for key in {**first["params"], **second["params"]} if first["params"].get(key) != second["params"].get(key)]
    return flaw("with_word", key=keys[0]) if keys else ""


def _words(sheet: Sheet, what: str, node: Scalar, words: set[str], strict: bool) -> None:
    """A word in braces that names nothing: a slip, if it is near a known one, or if braces mean nothing else here."""
    for word in unknown(node.text, words):
        near = closest(word, tuple(words))
        if strict or near:
            expected = f"{{{near}}}?" if near else _list(words)
            sheet.wrong(node.line, flaw("no_sweep_key", where=what, key=f"{{{word}}}", expected=expected))


class _Command:
    """The command's template: one shell text, or a program and its arguments."""

    def __init__(self, sheet: Sheet, node: Node, words: set[str]) -> None:
        self.words: set[str] = set()
        self.sheet, self.line = sheet, node.line
        self.shell: Template | None = None
        self.arguments: list[Template] = []
        items = node.items if isinstance(node, Seq) else [node]
        if isinstance(node, Map) or not items or not all(isinstance(item, Scalar) for item in items):
            expected = "a text, or a list: a program and its arguments"
            sheet.wrong(node.line, flaw("expected_only", key="command", expected=expected))
            return
        for item in items:
            assert isinstance(item, Scalar)
            _words(sheet, "command", item, words, strict=False)
        if isinstance(node, Scalar):
            text = (sheet.checked("command", node, spec.command) or "").rstrip()
            try:
                self.shell = Template(text, words, shell=True, raw=("args",))
            except shelltext.Unclear as e:
                self._unclear(str(e))
                self.shell = Template(text, words)  # what else is wrong is told along with it
            self.words = self.shell.words
            self.open_end = shelltext.open_end(text)
            return
        self.arguments = [Template(item.text, words) for item in items if isinstance(item, Scalar)]
        self.words = {word for template in self.arguments for word in template.words}
        if not self.arguments[0].text or any("\0" in template.text for template in self.arguments):
            sheet.wrong(node.line, flaw("command_arguments", key="command"))

    def _unclear(self, what: str) -> None:
        self.sheet.wrong(self.line, flaw("command_unclear", what=what))

    def filled(self, values: dict[str, str], row: Row, ways: Mapping[str, str]) -> str | list[str]:
        """The command of one job. `{args}` is `--key value` for all keys that are named nowhere else."""
        named = "args" in self.words
        extra: list[str] = []
        for key in row.extra if row.own is not None else row.values if named else ():
            if key not in self.words and ways.get(key) != "config":
                option = key if key.startswith("-") else f"--{key}"
                extra += [option] if row.values[key].null else [option, row.values[key].text]
        if self.shell is not None:
            text = shlex.join(extra)
            if named:
                filled = self.shell.filled({"args": text, **values})
                return filled if text else filled.rstrip()
            if text and self.open_end:
                self._unclear(self.open_end)
            return self.shell.filled(values) + (" " + text if text else "")
        arguments: list[str] = []
        for template in self.arguments:
            alone = template.text == "{args}" and "args" not in values
            arguments += extra if alone else [template.filled({"args": shlex.join(extra), **values})]
        return arguments if named else arguments + extra


class _Fields:
    """`job:` of the file: what is alike for all jobs is read once, the rest for each."""

    def __init__(self, sheet: Sheet, node: Node | None, words: set[str], plain: dict[str, Any]) -> None:
        self.sheet = sheet
        self.base = dict(plain)
        self.words: set[str] = set()
        self.lines: dict[str, int] = {}
        self.each: list[tuple[str, Node]] = []
        self._templates: dict[int, Template] = {}
        self._keys = words
        if node is None or null(node):
            return
        if not isinstance(node, Map):
            expected = "keys of a job such as `memory: 8GiB`"
            sheet.wrong(node.line, flaw("value_shape", key="job", shape=node.shape, expected=expected))
            return
        for key, value in sorted(sheet.keys(node, OF_JOB, " in job").items(), key=lambda pair: pair[0] != "name"):
            self.lines[key] = value.line
            if self._prepare(key, value):
                self.each.append((key, value))
            else:
                FIELDS[key](sheet, self.base, key, value)

    def _prepare(self, key: str, node: Node) -> bool:
        """Compiles the templates below a key; whether there are any."""
        if isinstance(node, Scalar):
            _words(self.sheet, key, node, self._keys, strict=key in ("name", "log", "workdir", "memory", "gpus"))
            template = Template(node.text, self._keys)
            self._templates[id(node)] = template
            if self.sheet.named or key != "name":
                self.words |= template.words
            return bool(template.words)
        items = node.items if isinstance(node, Seq) else [value for _, value in node.items]
        templated = [self._prepare(key, item) for item in items]  # all of them, not up to the first
        return any(templated)

    def line(self, key: str, row: Row) -> int:
        return row.line if row.own is not None else self.lines.get(key, row.line)

    def job(self, values: dict[str, str], row: Row) -> dict[str, Any]:
        job = dict(self.base)
        for key, node in self.each:
            FIELDS[key](self.sheet, job, key, self._filled(node, values))
            if key == "name":
                values.setdefault("name", job["name"])
        if row.own is not None:
            for key, node in self.sheet.keys(row.own, OF_JOB).items():
                FIELDS[key](self.sheet, job, key, node)
        return job

    def _filled(self, node: Node, values: dict[str, str]) -> Node:
        if isinstance(node, Scalar):
            return Scalar(node.line, self._templates[id(node)].filled(values), node.plain)
        if isinstance(node, Seq):
            return Seq(node.line, [self._filled(item, values) for item in node.items])
        return Map(node.line, [(key, self._filled(value, values)) for key, value in node.items])


class _Config:
    """The config file of a job: which it is, whether it needs a copy, and where that goes."""

    def __init__(self, sheet: Sheet, parts: Mapping[str, Node], keys: set[str], words: set[str]) -> None:
        self.sheet = sheet
        self.words: set[str] = set()
        self.file = self._template(parts, "config_file", words)
        if self.file is None and "config" in keys:
            self.file = Template("{config}", keys)
        self.place = self._template(parts, "config_copy", words)
        self.inputs: list[Template] = []
        node = parts.get("inputs")
        for item in [] if node is None or null(node) else node.items if isinstance(node, Seq) else [node]:
            template = self._template({"inputs": item}, "inputs", words) if isinstance(item, Scalar) else None
            if template is None:
                sheet.wrong(item.line, flaw("expected_only", key="inputs", expected="paths of files"))
            else:
                self.inputs.append(template)
        written = any(way != "argument" for way in sheet.ways.values())
        if self.file is None and written and "into_config" in parts and not sheet.shared:
            sheet.wrong(parts["into_config"].line, flaw("no_config_file"))

    def _template(self, parts: Mapping[str, Node], key: str, words: set[str]) -> Template | None:
        node = parts.get(key)
        if node is None or null(node):
            return None
        text = self.sheet.checked(key, node, lambda text: spec.path(text, "/") and text)
        if text is None or not isinstance(node, Scalar):
            return None
        _words(self.sheet, key, node, words, strict=True)
        template = Template(text, words)
        self.words |= template.words
        return template

    def apply(self, job: dict[str, Any], row: Row, values: dict[str, str]) -> None:
        """Adds `inputs` and `copy` to the job, and the path of the copy to the values that the command is made of."""
        job["inputs"] = [leaving.as_written(job["workdir"], template.filled(values)) for template in self.inputs]
        job["copy"] = None
        if self.file is None:
            return
        config = self.file.filled(values)
        if not config:
            self.sheet.wrong(row.line, flaw("config_path_empty"))
            return
        path = _path(job, config)
        job["inputs"].insert(0, leaving.as_written(job["workdir"], config))
        ways = self.sheet.ways
        written = {key: value for key, value in row.values.items() if ways.get(key, "argument") != "argument"}
        original = self.sheet.original(path, row.line) if written else None
        if original is None:
            values.setdefault("config_file", config)
            return
        spelled = {key: configcopy.spelled(value, path) for key, value in written.items()}
        try:
            text = original.copy(spelled) if path.endswith(".json") else ""
            original.cut(tuple(written))
        except Flaw as e:
            self.sheet.wrong(row.line, e.text)
            return
        place = self._place(config, written, values, text)
        job["copy"] = {"of": path, "to": _path(job, place), "values": spelled}
        self.sheet.claim(job["copy"]["to"], path, spelled, row.line)
        values["config_file"] = place
        if self.file.text == "{config}":
            values["config"] = place

    def _place(self, config: str, written: dict[str, Scalar], values: dict[str, str], text: str) -> str:
        if self.place is not None:
            return self.place.filled({"config_file": config, **values})
        place = configcopy.default_place(config, written, self.sheet.copies_in)
        return configcopy.told_apart(place, text) if text else place


def _path(job: dict[str, Any], text: str) -> str:
    """Where a path of a command lies: it is relative to where the command runs."""
    return os.path.normpath(os.path.join(job["workdir"], os.path.expanduser(text)))
