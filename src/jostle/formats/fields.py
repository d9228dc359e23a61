"""The keys of a job in a file: one reader per key, which writes into the job being made or tells the file what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

from jostle import units
from jostle.core import kinds
from jostle.core.fields import JOB, RETRY, Field
from jostle.core.jobflaws import flaws
from jostle.core.variables import UNI_ID_FILE
from jostle.formats import spec
from jostle.formats.flaws import Findings
from jostle.formats.nodes import Map, Node, Scalar, Seq
from jostle.formats.wording import null, shown
from jostle.wording.flaws import flaw


class FieldsFile(Protocol):
    """The file that is being read, and is told what is wrong with it."""

    base: str  # where relative paths start
    now: float | None  # what `+10m` counts from; None: the clock
    jobs: list[dict[str, Any]]
    after: list[tuple[int, list[tuple[Scalar, bool]]]]  # by place of the job: the names it comes after

    def wrong(self, line: int, text: str) -> None: ...
    def keys(self, node: Map, known: Sequence[str], where: str = "") -> dict[str, Node]: ...
    def checked(self, key: str, node: Node, check: Callable[[str], Any]) -> Any: ...


Read = Callable[[FieldsFile, dict[str, Any], str, Node], None]


def _scalar(field: Field) -> Read:
    """A key with one value; null takes a default back."""
    check = spec.reader(field.kind)

    def read(file: FieldsFile, job: dict[str, Any], key: str, node: Node) -> None:
        value = _plain(field) if null(node) else file.checked(key, node, check)
        if value is not None or null(node):
            job[field.name] = value

    return read


def _plain(field: Field) -> Any:
    return "" if field.kind is kinds.NAME else field.fresh()


def _run(file: FieldsFile, job: dict[str, Any], key: str, node: Node) -> None:
    items = node.items if isinstance(node, Seq) else [node]
    if isinstance(node, Map) or not items:
        what = "an empty list" if isinstance(node, Seq) else node.shape
        file.wrong(node.line, flaw("value_shape", key="run", shape=what, expected="a command or a list of commands"))
        return
    commands: list[Any] = []
    for item in items:
        if isinstance(item, Seq) and item.items and all(isinstance(word, Scalar) for word in item.items):
            words = [word.text for word in item.items if isinstance(word, Scalar)]
            if any("\0" in word for word in words) or not words[0]:
                file.wrong(item.line, flaw("command_arguments", key="run"))
            commands.append(words)
        elif isinstance(item, Scalar):
            text = file.checked("run", item, spec.command)
            commands += [text] if text is not None else []
        else:
            file.wrong(item.line, flaw("value_shape", key="run", shape=item.shape, expected="a command"))
    job["commands"] = commands


def _env(file: FieldsFile, job: dict[str, Any], key: str, node: Node) -> None:
    if null(node):
        job["env"] = {name: value for name, value in job["env"].items() if name == UNI_ID_FILE}
        return
    if not isinstance(node, Map):
        file.wrong(node.line, flaw("value_shape", key="env", shape=node.shape, expected="`NAME: value` lines"))
        return
    variables: dict[str, str] = {}
    for name, value in node.items:
        if name.text in variables:
            file.wrong(name.line, flaw("value_twice", key="env", value=shown(name.text)))
        elif not isinstance(value, Scalar):
            file.wrong(value.line, flaw("value_is", key="env", value=shown(name.text), shape=value.shape, expected="a text"))
        else:
            try:
                spec.variable(name.text, value.text)
            except ValueError as e:
                file.wrong(name.line, flaw("value_odd", key="env", value=shown(name.text), expected=str(e)))
            variables[name.text] = "" if value.null else value.text
    job["env"] = {**job["env"], **variables}


def _path(field: Field) -> Read:
    if field.into:
        return _uni_id_file

    def read(file: FieldsFile, job: dict[str, Any], key: str, node: Node) -> None:
        if null(node):
            job[field.name] = file.base if field.name == "workdir" else None
            return
        value = file.checked(key, node, lambda text: spec.path(text, file.base))
        if value is not None:
            job[field.name] = value

    return read


def _begin(file: FieldsFile, job: dict[str, Any], key: str, node: Node) -> None:
    value = None if null(node) else file.checked(key, node, lambda text: units.instant(text, file.now))
    if value is not None or null(node):
        job["begin"] = value


def _after(field: Field) -> Read:
    any_end = field.name == "after_any"

    def read(file: FieldsFile, job: dict[str, Any], key: str, node: Node) -> None:
        if null(node):
            return
        if not isinstance(node, Scalar | Seq):
            file.wrong(node.line, flaw("value_shape", key=key, shape=node.shape, expected="names of jobs in this file, or ids"))
            return
        predecessors = []
        for item in [node] if isinstance(node, Scalar) else node.items:
            if isinstance(item, Scalar) and not item.null:
                predecessors.append((item, any_end))
            else:
                what = "nothing" if null(item) else item.shape
                file.wrong(item.line, flaw("value_shape", key=key, shape=what, expected="the name of a job, or an id"))
        job["needs"] = list(job["needs"])  # the default's list is shared
        file.after.append((len(file.jobs), predecessors))

    return read


def _retry(file: FieldsFile, job: dict[str, Any], key: str, node: Node) -> None:
    job["retry"] = None if null(node) else retry(file, key, node)


def retry(file: FieldsFile | Findings, key: str, node: Node) -> dict[str, Any]:
    """How often and how soon a failed job is tried again."""
    value: dict[str, Any] = {name: field.default for name, field in RETRY.items()}
    if isinstance(node, Map):
        parts = file.keys(node, tuple(value), " in retry")
        if "max" not in parts:
            file.wrong(node.line, flaw("retry_no_max"))
        value.update({part: file.checked(f"{key}.{part}", parts[part], spec.reader(RETRY[part].kind)) for part in parts})
    else:
        value["max"] = file.checked(key, node, spec.attempts)
    return value


def _uni_id_file(file: FieldsFile, job: dict[str, Any], key: str, node: Node) -> None:
    """Jobs that take part in the uni_id protocol know the file by a variable; the engine knows them by it."""
    env = {name: value for name, value in job["env"].items() if name != UNI_ID_FILE}
    path = None if null(node) else file.checked(key, node, lambda text: spec.path(text, file.base))
    job["env"] = env if path is None else {**env, UNI_ID_FILE: path}


def _tags(file: FieldsFile, job: dict[str, Any], key: str, node: Node) -> None:
    if null(node):
        job["tags"] = []
        return
    items = node.items if isinstance(node, Seq) else [node]
    tags = [file.checked(key, item, lambda text: spec.label(text, "a tag")) for item in items]
    job["tags"] = [tag for tag in tags if tag is not None]


def _targets(file: FieldsFile, job: dict[str, Any], key: str, node: Node) -> None:
    if null(node):
        job["on"] = JOB["on"].fresh()
        return
    items = node.items if isinstance(node, Seq) else [node]
    if not items:
        file.wrong(node.line, flaw("targets_none", key=key))
    names = [file.checked(key, item, spec.target) for item in items]
    job["on"] = list(dict.fromkeys(name for name in names if name is not None))


def _counters(field: Field) -> Read:
    def read(file: FieldsFile, job: dict[str, Any], key: str, node: Node) -> None:
        job[field.name] = {} if null(node) else counters(file, key, node, field.kind)

    return read


def counters(file: FieldsFile | Findings, key: str, node: Node, kind: kinds.Kind) -> dict[str, int]:
    """`{licence: 1}`, or `licence=1` as in an option."""
    if not isinstance(node, Map):
        return file.checked(key, node, spec.reader(kind)) or {}
    amounts: dict[str, int] = {}
    for name, value in node.items:
        if name.text in amounts:
            file.wrong(name.line, flaw("value_twice", key=key, value=shown(name.text)))
        elif not kinds.target(name.text):
            expected = "a name of letters, digits, _, - and ."
            file.wrong(name.line, flaw("value_odd", key=key, value=shown(name.text), expected=expected))
        else:
            amounts[name.text] = file.checked(f"{key}.{name.text}", value, lambda text: spec.integer(text, kind.low))
    if None not in amounts.values() and not kind.check(amounts):
        file.wrong(node.line, flaw("names_many", key=key, n=len(amounts), expected=kind.expected))
    return amounts


# kind of a field: how its key is read; all others are one value, read by formats.spec
OF_KIND: dict[str, Callable[[Field], Read]] = {
    "commands": lambda field: _run,
    "env": lambda field: _env,
    "path": _path,
    "needs": _after,
    "instant": lambda field: _begin,
    "retry": lambda field: _retry,
    "labels": lambda field: _tags,
    "targets": lambda field: _targets,
    "counters": _counters,
}
FIELDS: dict[str, Read] = {field.key: OF_KIND.get(field.kind.name, _scalar)(field) for field in JOB.values() if field.key}


def together(file: Findings, job: dict[str, Any], line: int, own: Collection[str]) -> None:
    """What a job's keys say together, when all are read; `own`: those that it says itself. Of a memory that comes from defaults
    nothing is left where there is no card."""
    if job["gpus"][1] == 0 and "memory" not in own:
        job["memory_mib"] = None
    for code, params in flaws(job):
        file.wrong(line, flaw(code, **params))
