"""`gpu_manager_config.json`, the file of the source's resource manager (SPEC C5).

Rules: every key may be absent and has its default then. Unknown keys are warnings with the nearest known one; so are keys without
effect here. Wrong types are errors with file, line and key, all at once. A text that names cards may use `{gpu_list}`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jostle import units
from jostle.core.fields import LIMITS
from jostle.core.kinds import MAX_GPUS
from jostle.formats import jsonfile, plaintext, spec
from jostle.formats.flaws import BadFiles, Findings
from jostle.formats.nodes import TRUTHS, Flaw, Map, Node, Scalar, Seq
from jostle.formats.wording import closest, shown
from jostle.wording.flaws import flaw

NAME = "gpu_manager_config.json"
NO_EFFECT = ("manual_allocation_enabled", "quick_allocation_timeout", "aggressive_mode", "parallel_submissions")
MIB = 1 << 20
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LIMIT_DEFAULTS = {"max_total_gpus": 8, "max_reserved_gpus": 2, "max_manual_gpus": 6, "max_gpus_per_task": 4}


@dataclass(frozen=True, kw_only=True)
class TaskTemplate:
    """The program that is started in an allocation."""

    command: str = ""
    args: tuple[str, ...] = ()
    env_vars: Mapping[str, str] = field(default_factory=dict)
    retry: int = 0  # a key of ours: how often it is tried again when it fails


@dataclass(frozen=True, kw_only=True)
class Scaling:
    enabled: bool = True
    min_gpus: int = 1
    max_gpus: int = 4
    scale_up_threshold: float = 0.8
    scale_down_threshold: float = 0.3
    resize: str = ""  # a key of ours: how the program takes part, `signal` or `restart`; "": it does not


@dataclass(frozen=True, kw_only=True)
class Notification:
    enabled: bool = False
    email: str = ""
    gpu_available_threshold: int = 1


@dataclass(frozen=True, kw_only=True)
class Logging:
    level: str = "INFO"
    file: str = "gpu_manager.log"
    max_size: int = 10 * 1024 * 1024  # bytes
    backup_count: int = 5


@dataclass(frozen=True, kw_only=True)
class ManagerConfig:
    monitor_interval: float = 5.0
    auto_scale: bool = True
    auto_manage: bool = True
    queue_waiting: bool = True  # False: what cannot be had at once is refused
    min_reserved_gpus: int = 1
    max_reserved_gpus: int = LIMIT_DEFAULTS["max_reserved_gpus"]
    max_total_gpus: int = LIMIT_DEFAULTS["max_total_gpus"]
    max_manual_gpus: int = LIMIT_DEFAULTS["max_manual_gpus"]
    max_gpus_per_task: int = LIMIT_DEFAULTS["max_gpus_per_task"]
    job_prefix: str = "NDFS_"
    managed_job_prefixes: tuple[str, ...] = ()
    program_template: TaskTemplate = TaskTemplate()
    scaling: Scaling = Scaling()
    notification: Notification = Notification()
    logging: Logging = Logging()
    path: str = ""  # of the file; "": there is none
    written: frozenset[str] = frozenset()  # keys that the file has itself

    @property
    def directory(self) -> str:
        """What relative paths of the file start at."""
        return os.path.dirname(self.path) if self.path else os.getcwd()

    def limits(self) -> dict[str, Any] | None:
        """What the engine is told of the file: the limits that it says, those that it leaves to its defaults, and the prefix of
        names. None: there is no file, so there are no limits."""
        if not self.path:
            return None
        values = {name: getattr(self, name) for name in LIMITS if name in self.written}
        defaults = {name: most for name, most in LIMIT_DEFAULTS.items() if name not in values}
        return {"file": self.path, "values": values, "defaults": defaults, "prefix": self.job_prefix}


Check = Callable[[Node], Any]
"""The value of a node; ValueError with what was expected."""


def _truth(node: Node) -> bool:
    if not isinstance(node, Scalar) or not node.plain or node.text not in TRUTHS:
        raise ValueError("true or false")
    return TRUTHS[node.text]


def _number(low: float, high: float, expected: str, *, above: bool = False) -> Check:
    def check(node: Node) -> float:
        if not isinstance(node, Scalar) or not node.plain or node.text in (*TRUTHS, "null"):
            raise ValueError(expected)
        value = float(node.text)
        if not low <= value <= high or (above and value == low):
            raise ValueError(expected)
        return value

    return check


def _count(low: int, high: int = MAX_GPUS) -> Check:
    def check(node: Node) -> int:
        if not isinstance(node, Scalar) or not node.plain:
            raise ValueError(f"a whole number from {low} to {high}")
        return spec.integer(node.text, low, high)

    return check


def _text(expected: str, pattern: str = "[^\\0]*") -> Check:
    def check(node: Node) -> str:
        if not isinstance(node, Scalar) or node.plain or not re.fullmatch(pattern, node.text):
            raise ValueError(expected)
        return node.text

    return check


def _word(*words: str) -> Check:
    def check(node: Node) -> str:
        if not isinstance(node, Scalar) or node.plain or node.text not in words:
            raise ValueError("one of " + ", ".join(words))
        return node.text

    return check


def _texts(expected: str) -> Check:
    def check(node: Node) -> tuple[str, ...]:
        if not isinstance(node, Seq):
            raise ValueError(expected)
        each = [item.text for item in node.items if isinstance(item, Scalar) and not item.null]
        if len(each) < len(node.items) or any("\0" in text for text in each):
            raise ValueError(expected)
        return tuple(each)

    return check


def _variables(node: Node) -> dict[str, str]:
    expected = 'names and texts such as {"CUDA_LAUNCH_BLOCKING": "1"}'
    if not isinstance(node, Map):
        raise ValueError(expected)
    values: dict[str, str] = {}
    for key, value in node.items:
        if not isinstance(value, Scalar) or value.null:
            raise ValueError(f"{expected}; {shown(key.text)} has none")
        spec.variable(key.text, value.text)
        values[key.text] = value.text
    return values


def _bytes(node: Node) -> int:
    expected = 'a size such as "10MB", or a number of bytes, at least 1024'
    try:
        size = units.in_mib(node.text if isinstance(node, Scalar) else "", "B") * MIB
    except ValueError:
        raise ValueError(expected) from None
    if not 1024 <= size <= 1 << 40:
        raise ValueError(expected)
    return int(size)


def _level(node: Node) -> str:
    if not isinstance(node, Scalar) or node.text.upper() not in LEVELS:
        raise ValueError("one of " + ", ".join(LEVELS))
    return node.text.upper()


_CARDS, _SHARE = _count(0), _number(0, 1, "a share from 0 to 1, such as 0.8")
_PREFIX = _text("a prefix of at most 60 letters, digits, _, - and .", r"[\w.-]{0,60}")
KEYS: dict[str, Check] = {
    "monitor_interval": _number(0, 86400, "a number of seconds, more than 0", above=True),
    "auto_scale": _truth,
    "auto_manage": _truth,
    "queue_waiting": _truth,
    "min_reserved_gpus": _CARDS,
    "max_reserved_gpus": _CARDS,
    "max_total_gpus": _CARDS,
    "max_manual_gpus": _CARDS,
    "max_gpus_per_task": _CARDS,
    "job_prefix": _PREFIX,
    "managed_job_prefixes": _texts('a list of prefixes such as ["NDFS_"]'),
}
PARTS: dict[str, tuple[Callable[..., Any], dict[str, Check]]] = {
    "program_template": (TaskTemplate, {
        "command": _text("a command that is not empty", r"[^\0]*\S[^\0]*"),
        "args": _texts('a list of texts such as ["--gpus", "{gpu_list}"]'),
        "env_vars": _variables,
        "retry": _count(0, 1000),
    }),
    "scaling": (Scaling, {
        "enabled": _truth, "min_gpus": _count(1), "max_gpus": _count(1), "scale_up_threshold": _SHARE,
        "scale_down_threshold": _SHARE, "resize": _word("signal", "restart"),
    }),
    "notification": (Notification, {
        "enabled": _truth, "email": _text("an address such as name@example.org", r"[^\s@\0]+@[^\s@\0]+|"),
        "gpu_available_threshold": _count(1),
    }),
    "logging": (Logging, {
        "level": _level, "file": _text("a path", r"[^\0]+"), "max_size": _bytes, "backup_count": _count(0, 1000),
    }),
}  # fmt: skip
LEAST_FIRST = (
    ("", "min_reserved_gpus", "max_reserved_gpus"), ("scaling", "min_gpus", "max_gpus"),
    ("scaling", "scale_down_threshold", "scale_up_threshold"),
)  # fmt: skip


def load(path: str) -> tuple[ManagerConfig, list[str]]:
    """What the file says, and warnings; BadFiles with everything that is wrong."""
    file = _File()
    path = os.path.abspath(path)
    try:
        text, warning = plaintext.read(path, "a file of settings")
        root = jsonfile.parse(text.replace("\r\n", "\n"))
    except Flaw as e:
        raise BadFiles([(path, e.line, e.text)]) from None
    if isinstance(root, Map):
        values = file.read(root)
    else:
        file.wrong(root.line, flaw("holds", shape=_shape(root), expected='an object such as {"monitor_interval": 5}'))
        values = {}
    beside = [(path, warning)] * bool(warning) + [(f"{path}:{line}", text) for line, text in sorted(file.warnings)]
    warnings: list[str] = [flaw("told_at", place=place, text=text) for place, text in beside]
    if file.flaws:
        raise BadFiles([(path, line, text) for line, text in sorted(file.flaws)], warnings)
    return ManagerConfig(**values, path=path, written=frozenset(values)), warnings


class _File(Findings):
    def __init__(self) -> None:
        super().__init__()
        self.warnings: list[tuple[int, str]] = []

    def read(self, root: Map) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, node in self._known(root, (*KEYS, *PARTS), "").items():
            if key in KEYS:
                self._take(values, key, key, node, KEYS[key])
            else:
                values[key] = self._part(key, node)
        self._ordered(root, values)
        return values

    def _part(self, name: str, node: Node) -> Any:
        make, checks = PARTS[name]
        values: dict[str, Any] = {}
        if isinstance(node, Map):
            for key, value in self._known(node, tuple(checks), f" in {name}").items():
                self._take(values, key, f"{name}.{key}", value, checks[key])
        else:
            expected = f"an object with {', '.join(checks)}"
            self.wrong(node.line, flaw("value_shape", key=name, shape=_shape(node), expected=expected))
        return make(**values)

    def _take(self, values: dict[str, Any], key: str, called: str, node: Node, check: Check) -> None:
        try:
            values[key] = check(node)
        except ValueError as e:
            self.wrong(node.line, flaw("value_shape", key=called, shape=_shape(node), expected=str(e)))

    def _known(self, node: Map, expected: tuple[str, ...], where: str) -> dict[str, Node]:
        parts: dict[str, Node] = {}
        for key, value in node.items:
            if key.text in parts:
                self.wrong(key.line, flaw("key_twice", key=shown(key.text), where=where))
            elif key.text in NO_EFFECT and not where:
                self.warnings.append((key.line, flaw("key_without_effect", key=key.text)))
            elif key.text not in expected:
                near = closest(key.text, (*expected, *(() if where else NO_EFFECT)))
                code = "key_ignored_perhaps" if near else "key_ignored"
                self.warnings.append((key.line, flaw(code, key=shown(key.text), where=where, near=near)))
            else:
                parts[key.text] = value
        return parts

    def _ordered(self, root: Map, values: dict[str, Any]) -> None:
        config = ManagerConfig(**values)
        for part, low, high in LEAST_FIRST:
            holder = getattr(config, part) if part else config
            least, most = getattr(holder, low), getattr(holder, high)
            lines = {key.text: key.line for key, _ in _pairs(root, part) if key.text in (low, high)}
            if least > most and (low in lines or part):  # no floor (`max_reserved_gpus: 0`) needs no word about its minimum
                where = f"{part}." if part else ""
                numbers = {"low_key": f"{where}{low}", "low": f"{least:g}", "high_key": high, "high": f"{most:g}"}
                self.wrong(max(lines.values()), flaw("low_over_high", **numbers))


def _pairs(root: Map, part: str) -> list[tuple[Scalar, Node]]:
    node = next((value for key, value in root.items if key.text == part), None) if part else root
    return node.items if isinstance(node, Map) else []


def _shape(node: Node) -> str:
    if isinstance(node, Scalar):
        return node.text if node.plain else f"the text {shown(node.text)}"
    return "an object" if isinstance(node, Map) else node.shape
