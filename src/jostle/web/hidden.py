"""What who may only look gets instead of commands and paths (RELIABILITY S55): numbers, codes and base names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from jostle.formats.taskjobs import TASK

JOB: dict[str, Any] = {"commands": [], "workdir": "", "log": None, "params": {}}
SAID = ("error", "why")  # of a reason: the words of a system or a program, which name files
TOLD = ("hold",)  # of a reason: our words, with the path that they are about
NAMES = ("who", "did", "uuid", "error_type")  # of an event: texts that are no command, path or output
SOMETHING = "…"


def base(path: str | None) -> str:
    return os.path.basename((path or "").rstrip("/"))


def words(text: str) -> str:
    """What is said, up to the first path: that may have spaces, and only who named it knows where it ends."""
    before, slash, _ = text.partition("/")
    return before + SOMETHING if slash else text


def name(row: Mapping[str, Any]) -> str:
    """What the job is called, unless that is the beginning of its command or holds a value of a sweep; of a task of a workspace,
    its place."""
    id, called, commands = row["id"], row["name"], row["commands"]
    if task := TASK.match(called):
        return task[1]
    first = commands[0] if commands else ""
    command = _letters(" ".join(first) if isinstance(first, list) else first)
    clue = command.startswith(_letters(called.removesuffix("…"))) or any(_holds(called, one) for one in row["params"].values())
    return f"job {id}" if clue else called


def _holds(called: str, value: Any) -> bool:
    """Also what a template takes of a path: its folder, or its name, of which the stem is the least."""
    folder, last = os.path.split(str(value))
    parts = (_letters(folder), _letters(os.path.splitext(last)[0]))
    return any(part and part in _letters(called) for part in parts)


def _letters(text: str) -> str:
    """Without what differs by how a command is written or cut: spaces, quotes and what cannot be shown."""
    return "".join(letter for letter in text if letter.isprintable() and letter not in " '\"\\")


def job(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row, before its reason has words."""
    return {**row, **JOB, "name": name(row), "reason": reason(row["reason"])}


def reason(entry: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A reason, or what is said against one card, before it has words."""
    if entry is None:
        return None
    params = {key: _param(key, value) for key, value in (entry.get("params") or {}).items()}
    refusals = {"gpus": [reason(one) for one in entry["gpus"]]} if entry.get("gpus") else {}
    return {**entry, "text": entry["code"], "params": params, **refusals}


def _param(key: str, value: Any) -> Any:
    if key in SAID and value:
        return SOMETHING
    if key in TOLD:
        return words(str(value))
    if isinstance(value, list):  # of several places, each with a reason of its own
        return [reason(one) if isinstance(one, dict) and "params" in one else one for one in value]
    return value


def event(row: Mapping[str, Any]) -> dict[str, Any]:
    """An event, before its reason has words: of its other texts those that can only be names of ours."""
    data = {key: value for key, value in row["data"].items() if key in NAMES or _numbers(value)}
    return {**row, "data": {**data, "reason": reason(row["data"]["reason"])} if row["data"].get("reason") else data}


def _numbers(value: Any) -> bool:
    return all(_numbers(one) for one in value) if isinstance(value, list) else value is None or isinstance(value, int | float)


def status(engine: Mapping[str, Any]) -> dict[str, Any]:
    """Without places, consoles among them: their sockets and workspaces."""
    texts = {key: words(engine[key] or "") for key in ("hold", "probe", "gpus_spec")}
    return {**engine, **texts, "paths": dict.fromkeys(engine["paths"], ""), "consoles": []}


def allocation(seen: Mapping[str, Any], rows: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """Before its reason has words. `rows`: its job and the programs inside, whose names may be their commands."""
    programs = [{**program, "name": name(rows[program["id"]])} for program in seen["programs"] if program["id"] in rows]
    return {**seen, "programs": programs, "reason": reason(seen["reason"])}


def cards(seen: Mapping[str, Any]) -> dict[str, Any]:
    """With words, and without where programs lie: those of strangers, too."""
    gpus = [
        {**gpu, "error": words(gpu["error"] or ""), "holders": [{**one, "exe": ""} for one in gpu["holders"]]}
        for gpu in seen["gpus"]
    ]  # fmt: skip
    return {**seen, "gpus": gpus, "spec": words(seen["spec"] or ""), "error": words(seen["error"] or "")}
