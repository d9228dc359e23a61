"""What is to be submitted, and how, as a value: every door (terminal, Python, page) makes one of what it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jostle.errors import Unfit
from jostle.experiments.skip import Rule


@dataclass(frozen=True, kw_only=True)
class Options:
    files: tuple[str, ...]
    texts: Mapping[str, str] = field(default_factory=dict)  # what a file is to hold, instead of what it holds
    suites: tuple[str, ...] = ()  # only these of the files; none: all
    mode: str | None = None  # of a task file: single or multi; None: by its name
    devices: str | None = None  # of an engine that has to be started: nvml, sim:8x24, sim:FILE
    rules: Mapping[str, Any] = field(default_factory=dict)  # over what the files say; names of core.fields.RULES
    skip: Rule = field(default_factory=Rule)
    skip_done: bool = False  # for plain job files, too
    freeze: bool = False
    strict: bool = False  # what this host can never run is refused, instead of a warning

    def __post_init__(self) -> None:
        if len(ways := self._ways()) > 1:
            raise Unfit(ways[0], f"does not go with {ways[1]}: expected one of them", other=ways[1])

    def _ways(self) -> list[str]:
        """What is to be done with what was done before, if anything is said of it."""
        flags = {
            "redo": self.skip.redo, "redo_changed": self.skip.redo_changed, "skip_done": self.skip_done,
            "only_failed": self.skip.only_failed, "trust_logs": self.skip.trust_logs,
        }  # fmt: skip
        return [name for name, on in flags.items() if on]

    def for_new_batches(self) -> list[str]:
        """Those that are set and say which jobs a batch has, and of what."""
        return [*self._ways(), *(["freeze"] if self.freeze else [])]
