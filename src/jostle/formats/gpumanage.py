"""`gpu_manage.yaml` (older: `config.yaml`) of a workspace, and what it means for a batch (SPEC A9, A10, A12, A13).

Rules: every key may be absent or null and has the default of the source system then. Unknown keys are warnings with the nearest
known key; wrong types and keys that are there twice are errors with file, line and key, all at once. Nothing is guessed from a
wrong value. Paths are kept as written; jostle.formats.workspace resolves them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jostle import units
from jostle.core.fields import RETRY as RETRIES
from jostle.core.fields import RULES
from jostle.core.kinds import MAX_GPUS
from jostle.errors import Invalid
from jostle.formats import plaintext, spec, yamlfile
from jostle.formats.flaws import BadFiles, Findings
from jostle.formats.nodes import Flaw, Map, Node, Scalar, Seq
from jostle.formats.wording import closest, null, shown
from jostle.wording.flaws import flaw


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The keys of the file, by their own names; those of `retry_config` without it."""

    check_time: float = 5.0
    maximize_resource_utilization: bool = False
    memory_save_mode: bool = True
    compete_gpus: tuple[int, ...] = tuple(range(10))
    use_all_gpus: bool = True
    gpu_left: int = 0
    min_gpu: int | None = None
    max_gpu: int | None = None
    max_retry_before_backoff: int = 3
    backoff_duration: float = 600.0
    max_retries: int | None = None  # None: without limit
    on_failure: str = "stop"  # stop | continue: the rest of a queue whose task failed for good
    work_dir: str | None = None
    gpu_command_file: str | None = None
    gpus_command_file: str | None = None
    log_dir: str = "./logs"
    process_json_path: str | None = None
    commands_path: str | None = None
    start_interval: float = 0.0
    time_limit: float | None = None  # of one command
    max_wait: float | None = None  # of a task that could start, for a card
    strangers: str = "share"  # share | avoid: cards that other people use
    gpu_choice: str | None = None  # a `choice` of core.fields; None: as memory_save_mode says


_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def _truth(text: str) -> bool:
    if text.lower() not in _TRUTHS:
        raise ValueError("true or false")
    return _TRUTHS[text.lower()]


def _positive(text: str) -> float:
    try:
        value = units.seconds(text)
    except ValueError:
        value = 0.0
    if value <= 0:
        raise ValueError("a number of seconds, more than 0")
    return value


def _limit(text: str) -> float | None:
    return units.seconds(text) or None


def _indices(text: str) -> list[int]:
    try:
        indices = units.numbers(text)
    except ValueError:
        indices = []
    if not indices or max(indices) > MAX_GPUS:
        raise ValueError("indices of GPUs such as [0, 1, 2] or 0-3")
    return indices


def _path(text: str) -> str | None:
    if "\0" in text:
        raise ValueError("a path")
    return text.strip() or None


KEYS: dict[str, Callable[[str], Any]] = {
    "check_time": _positive,
    "maximize_resource_utilization": _truth,
    "memory_save_mode": _truth,
    "compete_gpus": _indices,
    "use_all_gpus": _truth,
    "gpu_left": spec.reader(RULES["gpu_left"].kind),
    "min_gpu": spec.reader(RULES["min_gpu"].kind),
    "max_gpu": spec.reader(RULES["max_gpu"].kind),
    "retry_config.max_retry_before_backoff": spec.reader(RETRIES["backoff_after"].kind),
    "retry_config.backoff_duration": spec.reader(RETRIES["backoff"].kind),
    "retry_config.max_retries": spec.reader(RETRIES["max"].kind),
    "retry_config.on_failure": lambda text: spec.one_of(text, ("stop", "continue")),
    "work_dir": _path,
    "gpu_command_file": _path,
    "gpus_command_file": _path,
    "log_dir": _path,
    "process_json_path": _path,
    "commands_path": _path,
    "start_interval": units.seconds,
    "launch_delay": units.seconds,
    "time_limit": _limit,
    "max_wait": _limit,
    "strangers": lambda text: spec.one_of(text, ("share", "avoid")),
    "gpu_choice": spec.reader(RULES["choice"].kind),
}
PLACES = tuple(key for key, reader in KEYS.items() if reader is _path)
"""Where things are: a running scheduler's tasks and files are there already, and no browser moves them."""
RETRY = "retry_config"
RETRIES_BELOW = "keys such as `max_retry_before_backoff: 3` below it"
TOP = (*(key for key in KEYS if "." not in key), RETRY)


def load(path: str) -> tuple[Settings, list[str]]:
    """The settings and warnings; BadFiles with everything that is wrong."""
    settings, warnings, flaws = read(path)
    if flaws:
        raise BadFiles(flaws, warnings)
    return settings, warnings


def read(path: str, text: str | None = None) -> tuple[Settings, list[str], list[tuple[str, int, str]]]:
    """The settings as far as they are understood, warnings, and what is wrong; `text`: as if the file held that."""
    file, warning = _File(), ""
    try:
        if text is None:
            text, warning = plaintext.read(path, "a file of settings")
        root = yamlfile.parse(text.replace("\r\n", "\n"))
    except Flaw as e:
        return Settings(), [], [(path, e.line, e.text)]
    if isinstance(root, Map):
        file.read(root)
    elif root is not None:
        file.wrong(root.line, flaw("holds", shape=root.shape, expected="`key: value` lines"))
    warnings: list[str] = [flaw("told_at", place=path, text=warning)] if warning else []
    warnings += (flaw("told_at", place=f"{path}:{line}", text=text) for line, text in sorted(file.warnings))
    return Settings(**file.values), warnings, [(path, line, text) for line, text in sorted(file.flaws)]


def line_of(path: str, key: str) -> int:
    """Where a file that was read before says this key; 0: nowhere, any more."""
    try:
        root = yamlfile.parse(plaintext.read(path, "a file of settings")[0].replace("\r\n", "\n"))
    except Flaw:
        return 0
    return next((word.line for word, _ in root.items if word.text == key), 0) if isinstance(root, Map) else 0


class _File(Findings):
    """One file being read."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, Any] = {}
        self.warnings: list[tuple[int, str]] = []
        self.lines: dict[str, int] = {}

    def read(self, root: Map) -> None:
        self._map(root, "")
        delay = self.values.pop("launch_delay", None)
        if delay is not None and self.values.setdefault("start_interval", delay) != delay:
            self.warnings.append((self.lines["launch_delay"], flaw("delay_twice")))
        if self.values.get("use_all_gpus") is False and self.values.get("compete_gpus") == ():
            self.wrong(self.lines["compete_gpus"], flaw("no_cards"))
        low, high = self.values.get("min_gpu"), self.values.get("max_gpu")
        if low is not None and high is not None and low > high:
            self.warnings.append((self.lines["min_gpu"], flaw("min_over_max", low=low, high=high)))

    def _map(self, node: Map, prefix: str) -> None:
        """The entries of the file, or of retry_config with its name as prefix."""
        names: set[str] = set()
        for key, value in node.items:
            name = prefix + key.text
            if name in names:
                self.wrong(key.line, flaw("key_twice", key=shown(name), where=""))
            elif name == RETRY:
                self._retry(value)
            elif name in KEYS and (prefix or "." not in name):
                self._value(name, key.line, value)
            else:
                near = closest(name, [n for n in (*KEYS, RETRY) if n != name])
                code = "key_unused_perhaps" if near else "key_unused"
                self.warnings.append((key.line, flaw(code, key=shown(name), near=near, known=", ".join(sorted(TOP)))))
            names.add(name)

    def _retry(self, node: Node) -> None:
        if isinstance(node, Map):
            self._map(node, RETRY + ".")
        elif not null(node):
            self.wrong(node.line, flaw("value_shape", key=RETRY, shape=node.shape, expected=RETRIES_BELOW))

    def _value(self, name: str, line: int, node: Node) -> None:
        self.lines[name] = line
        if null(node):
            return
        if KEYS[name] is _path and isinstance(node, Scalar) and not isinstance(yamlfile.value_of(node), str):
            self.wrong(node.line, flaw("path_number", key=name, value=shown(node.text)))
            return
        value = self._devices(name, node) if name == "compete_gpus" else self.checked(name, node, KEYS[name])
        if value is not None:
            self.values[name.removeprefix(RETRY + ".")] = value

    def _devices(self, name: str, node: Node) -> tuple[int, ...] | None:
        items = node.items if isinstance(node, Seq) else [node]
        if len(items) > MAX_GPUS:
            self.wrong(node.line, flaw("entries_many", key=name, n=f"{len(items):,}", most=f"{MAX_GPUS:,}"))
            return None
        indices: dict[int, None] = {}
        for item in items:
            indices.update(dict.fromkeys(self.checked(name, item, _indices) or ()))
        return tuple(indices)


def policy(settings: Settings, mode: str, visible: str | None) -> dict[str, Any]:
    """The rules of the batch: every one that the file governs, so that none of the engine's own shines through."""
    low, high = settings.min_gpu, settings.max_gpu
    return {
        "gpus": inherited(visible) if settings.use_all_gpus else sorted(set(settings.compete_gpus)),
        "gpu_left": settings.gpu_left,
        "min_gpu": min(low, high) if low is not None and high is not None else low,  # the formula's own answer
        "max_gpu": high,
        "share": settings.maximize_resource_utilization,
        "strangers": settings.strangers,
        "own_processes": "ignore" if settings.maximize_resource_utilization else "avoid",
        "choice": settings.gpu_choice or ("best-fit" if settings.memory_save_mode else "least-used"),
        "order": "gpus-desc" if mode == "multi" else "random",
        "start_interval": settings.start_interval,
        "retry": {
            "max": settings.max_retries,
            "backoff_after": settings.max_retry_before_backoff,
            "backoff": settings.backoff_duration,
        },
        "on_failure": settings.on_failure,
        "command_limit": settings.time_limit,
        "max_wait": settings.max_wait,
    }  # fmt: skip


def inherited(visible: str | None) -> list[int] | None:
    """The indices of an inherited CUDA_VISIBLE_DEVICES; None: it is not set, all are meant."""
    if visible is None:
        return None
    words = [word.strip() for word in visible.split(",")]
    if not visible.strip() or words[0] == "-1":
        raise Invalid("CUDA_VISIBLE_DEVICES hides all GPUs; unset it, or set it to indices such as 0,1")
    if not all(units.is_gpu_index(word) for word in words):
        raise Invalid(
            f"CUDA_VISIBLE_DEVICES={shown(visible)[1:-1]} does not consist of indices such as 0,1; set it to indices, or unset "
            "it and name the GPUs in the settings (use_all_gpus: false, compete_gpus: [0, 1])"
        )
    return sorted({int(word) for word in words})
