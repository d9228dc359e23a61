"""What who may only look gets instead of commands and paths (RELIABILITY S55): numbers, codes and base names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from jostle.printable import one_line

JOB: dict[str, Any] = {"commands": [], "workdir": "", "log": None, "params": {}}
SAID = ("error", "why")  # of a reason: the words of a system or a program, which name files
NAMES = ("who", "did", "uuid", "error_type")  # of an event: texts that are no command, path or output
SOMETHING = "…"


def base(path: str | None) -> str:
    return os.path.basename((path or "").rstrip("/"))


def name(id: int, called: str, commands: list[Any]) -> str:
    """What the job is called, unless that is the beginning of its command."""
    first = commands[0] if commands else ""
    command = one_line(" ".join(first if isinstance(first, list) else first.split()))
    return f"job {id}" if command.startswith(called) else called


def job(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row, before its reason has words."""
    return {**row, **JOB, "name": name(row["id"], row["name"], row["commands"]), "reason": reason(row["reason"])}


def reason(told: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A reason, or what is said against one card, before it has words."""
    if told is None:
        return None
    params = {key: SOMETHING if key in SAID and value else value for key, value in (told.get("params") or {}).items()}
    refusals = {"gpus": [reason(one) for one in told["gpus"]]} if told.get("gpus") else {}
    return {**told, "text": told["code"], "params": params, **refusals}


def event(row: Mapping[str, Any]) -> dict[str, Any]:
    """An event, before its reason has words: of its other texts those that can only be names of ours."""
    data = {key: value for key, value in row["data"].items() if key in NAMES or _numbers(value)}
    return {**row, "data": {**data, "reason": reason(row["data"]["reason"])} if row["data"].get("reason") else data}


def _numbers(value: Any) -> bool:
    return all(_numbers(one) for one in value) if isinstance(value, list) else value is None or isinstance(value, int | float)


def status(engine: Mapping[str, Any]) -> dict[str, Any]:
    """Without places, consoles among them: their sockets and workspaces."""
    return {**engine, "paths": dict.fromkeys(engine["paths"], ""), "consoles": []}
