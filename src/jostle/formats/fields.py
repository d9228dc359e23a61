"""The keys of a job in a file: one reader per key, which writes into the job being made or tells the file what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from jostle import units
from jostle.core.fields import RETRY
from jostle.formats import spec
from jostle.formats.flaws import Findings
from jostle.formats.nodes import Map, Node, Scalar, Seq
from jostle.formats.wording import null, shown

UNI_ID_FILE = "JOSTLE_UNI_ID_FILE"


class File(Protocol):
    """The file that is being read, and is told what is wrong with it."""

    base: str  # where relative paths start
    now: float | None  # what `+10m` counts from; None: the clock
    jobs: list[dict[str, Any]]
    after: list[tuple[int, list[tuple[Scalar, bool]]]]  # by place of the job: the names it comes after

    def wrong(self, line: int, text: str) -> None: ...
    def keys(self, node: Map, known: Sequence[str], where: str = "") -> dict[str, Node]: ...
    def checked(self, key: str, node: Node, check: Callable[[str], Any]) -> Any: ...


Field = Callable[[File, dict[str, Any], str, Node], None]


def _scalar(target: str, check: Callable[[str], Any], absent: Any = None) -> Field:
    """A key with one value; null takes a default back."""

    def read(file: File, job: dict[str, Any], key: str, node: Node) -> None:
        if isinstance(node, Scalar) and node.plain and node.null:
            job[target] = absent
            return
        value = file.checked(key, node, check)
        if value is not None:
            job[target] = value

    return read


def _run(file: File, job: dict[str, Any], key: str, node: Node) -> None:
    items = node.items if isinstance(node, Seq) else [node]
    if isinstance(node, Map) or not items:
        what = "an empty list" if isinstance(node, Seq) else node.shape
        file.wrong(node.line, f"run: {what}; expected a command or a list of commands")
        return
    commands: list[Any] = []
    for item in items:
        if isinstance(item, Seq) and item.items and all(isinstance(word, Scalar) for word in item.items):
            words = [word.text for word in item.items if isinstance(word, Scalar)]
            if any("\0" in word for word in words) or not words[0]:
                file.wrong(item.line, "run: arguments that cannot be executed; expected a program and its arguments")
            commands.append(words)
        elif isinstance(item, Scalar):
            text = file.checked("run", item, spec.command)
            commands += [text] if text is not None else []
        else:
            file.wrong(item.line, f"run: {item.shape}; expected a command")
    job["commands"] = commands


def _gpus(file: File, job: dict[str, Any], key: str, node: Node) -> None:
    value = [1, 1] if null(node) else file.checked(key, node, units.gpu_range)
    if value is not None:
        job["gpus"] = list(value)


def _env(file: File, job: dict[str, Any], key: str, node: Node) -> None:
    if null(node):
        job["env"] = {name: value for name, value in job["env"].items() if name == UNI_ID_FILE}
        return
    if not isinstance(node, Map):
        file.wrong(node.line, f"env: {node.shape}; expected `NAME: value` lines")
        return
    said: dict[str, str] = {}
    for name, value in node.items:
        if name.text in said:
            file.wrong(name.line, f"env: {shown(name.text)} is there twice; expected it once")
        elif not isinstance(value, Scalar):
            file.wrong(value.line, f"env: {shown(name.text)} is {value.shape}; expected a text")
        else:
            try:
                spec.variable(name.text, value.text)
            except ValueError as e:
                file.wrong(name.line, f"env: {shown(name.text)} is not understood; expected {e}")
            said[name.text] = "" if value.null else value.text
    job["env"] = {**job["env"], **said}


def _path(target: str) -> Field:
    def read(file: File, job: dict[str, Any], key: str, node: Node) -> None:
        if null(node):
            job[target] = file.base if target == "workdir" else None
            return
        value = file.checked(key, node, lambda text: spec.path(text, file.base))
        if value is not None:
            job[target] = value

    return read


def _begin(file: File, job: dict[str, Any], key: str, node: Node) -> None:
    _scalar("begin", lambda text: units.instant(text, file.now))(file, job, key, node)


def _after(any_end: bool) -> Field:
    def read(file: File, job: dict[str, Any], key: str, node: Node) -> None:
        if null(node):
            return
        if not isinstance(node, Scalar | Seq):
            file.wrong(node.line, f"{key}: {node.shape}; expected names of jobs in this file, or ids")
            return
        wanted = []
        for item in [node] if isinstance(node, Scalar) else node.items:
            if isinstance(item, Scalar) and not item.null:
                wanted.append((item, any_end))
            else:
                what = "nothing" if null(item) else item.shape
                file.wrong(item.line, f"{key}: {what}; expected the name of a job, or an id")
        job["needs"] = list(job["needs"])  # the default's list is shared
        file.after.append((len(file.jobs), wanted))

    return read


def _retry(file: File, job: dict[str, Any], key: str, node: Node) -> None:
    job["retry"] = None if null(node) else retry(file, key, node)


def retry(file: File | Findings, key: str, node: Node) -> dict[str, Any]:
    """How often and how soon a failed job is tried again."""
    value: dict[str, Any] = {name: field.default for name, field in RETRY.items()}
    if isinstance(node, Map):
        parts = file.keys(node, tuple(value), " in retry")
        if "max" not in parts:
            file.wrong(node.line, "retry without max; expected `max: 3`, or `max: unlimited`")
        value.update({part: file.checked(f"{key}.{part}", parts[part], spec.reader(RETRY[part].kind)) for part in parts})
    else:
        value["max"] = file.checked(key, node, spec.attempts)
    return value


def _uni_id_file(file: File, job: dict[str, Any], key: str, node: Node) -> None:
    """Jobs that take part in the uni_id protocol know the file by a variable; the engine knows them by it."""
    env = {name: value for name, value in job["env"].items() if name != UNI_ID_FILE}
    path = None if null(node) else file.checked(key, node, lambda text: spec.path(text, file.base))
    job["env"] = env if path is None else {**env, UNI_ID_FILE: path}


def _tags(file: File, job: dict[str, Any], key: str, node: Node) -> None:
    if null(node):
        job["tags"] = []
        return
    items = node.items if isinstance(node, Seq) else [node]
    found = [file.checked(key, item, lambda text: spec.label(text, "a tag")) for item in items]
    job["tags"] = [tag for tag in found if tag is not None]


FIELDS: dict[str, Field] = {
    "name": _scalar("name", spec.label, ""),
    "queue": _scalar("queue", lambda text: spec.label(text, "the name of a queue")),
    "run": _run,
    "gpus": _gpus,
    "memory": _scalar("memory_mib", units.size_mib),
    "share": _scalar("share", spec.truth, False),
    "env": _env,
    "uni_id_file": _uni_id_file,
    "workdir": _path("workdir"),
    "log": _path("log"),
    "priority": _scalar("priority", spec.priority, 0),
    "after": _after(False),
    "after_any": _after(True),
    "begin": _begin,
    "time_limit": _scalar("time_limit", spec.time_limit),
    "retry": _retry,
    "tags": _tags,
    "leftovers": _scalar("leftovers", lambda text: spec.one_of(text, ("kill", "wait")), "kill"),
}
