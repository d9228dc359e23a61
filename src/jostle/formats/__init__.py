"""The files that people write, read and written. Importing this costs nothing: each name is fetched when it is first used.

from jostle.formats import parse_command_file, ProcessYAML
"""

from __future__ import annotations

TYPE_CHECKING = False  # not from typing, which costs more to import than all the rest
if TYPE_CHECKING:
    from jostle.formats.processyaml import ProcessYAML
    from jostle.formats.sourceapi import RetryConfig, parse_command_file, parse_gpu_command_file, parse_gpus_command_file

__all__ = ["ProcessYAML", "RetryConfig", "parse_command_file", "parse_gpu_command_file", "parse_gpus_command_file"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("jostle.formats.processyaml" if name == "ProcessYAML" else "jostle.formats.sourceapi"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
