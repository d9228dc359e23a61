"""A batch as a job file of our own (docs/jobfile.md), for people who leave another format behind. Pure.

Rules: what is written reads back, with jostle.formats.jobfile, as the same jobs and the same policy. What all jobs share stands
in `defaults:`. Comments come along as comments. Paths are absolute, so that the file means the same wherever it is kept.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from jostle.core import kinds
from jostle.core.fields import RULES
from jostle.core.variables import UNI_ID_FILE
from jostle.errors import Invalid, JostleError
from jostle.formats import spec
from jostle.formats.taskblocks import bare, comment, lines_of, paragraphs
from jostle.formats.yamledit import quoted, shown
from jostle.printable import one_line

SHARED = ("workdir", "leftovers", "uni_id_file")


def text_of(batch: Mapping[str, Any], *, head: Sequence[str] = (), notes: Sequence[Sequence[str]] = ()) -> str:
    """The file; `head` are comments above it, `notes` comments above each job, and after the last one if there is one more."""
    jobs = [_entries(job) for job in batch["jobs"]]
    shared = {key: jobs[0][key] for key in SHARED if all(job.get(key) == jobs[0].get(key) is not None for job in jobs)}
    lines = [*(_note(text) for text in head), f"name: {shown(batch['name'])}"]
    lines += ["own_queues: true"] if batch.get("queues") == "own" else []
    if batch["policy"]:
        lines += ["", "policy:", *(f"  {line}" for line in _policy(batch["policy"]))]
    if shared:
        lines += ["", "defaults:", *(f"  {key}: {value}" for key, value in shared.items())]
    lines += ["", "jobs:"]
    for k, job in enumerate(jobs):
        lines += [f"  {_note(text)}" for text in (notes[k] if k < len(notes) else ())]
        entries = [_entry(key, value) for key, value in job.items() if key not in shared]
        lines += [f"  - {entries[0]}", *(f"    {line}" for line in entries[1:])]
        lines.append("")
    lines += [_note(text) for extra in notes[len(jobs) :] for text in extra]
    return "\n".join(lines).rstrip("\n") + "\n"


def _entry(key: str, value: str) -> str:
    return f"{key}:{value}" if value.startswith("\n") else f"{key}: {value}"


def _entries(job: Mapping[str, Any]) -> dict[str, str]:
    """The keys of a job that differ from what an empty one would have, as YAML."""
    plain = spec.job()
    env = dict(job["env"])
    ids = env.pop(UNI_ID_FILE, None)
    unknown = [key for key in ("needs", "begin", "retry") if job[key] != plain[key]]
    if unknown or not all(isinstance(command, str) for command in job["commands"]):
        raise Invalid(f"job {job['name']}: {', '.join(unknown) or 'a command of words'} cannot be written into a job file yet")
    low, high = job["gpus"]
    entries: dict[str, str | None] = {
        "name": _text(job["name"]) if job["name"] else None,
        "queue": quoted(job["queue"]) if job["queue"] is not None else None,
        "run": _run(job["commands"]),
        "gpus": str(low) if low == high else f"{low}-{high}",
        "memory": _size(job["memory_mib"]) if job["memory_mib"] is not None else None,
        "share": "true" if job["share"] else None,
        "cpus": str(job["cpus"]) if job["cpus"] is not None else None,
        "host_memory": _size(job["host_memory_mib"]) if job["host_memory_mib"] is not None else None,
        "counters": shown(job["counters"]) if job["counters"] else None,
        "nice": str(job["nice"]) if job["nice"] else None,
        "on": shown(job["on"]) if job["on"] != plain["on"] else None,
        "env": shown(env) if env else None,
        "uni_id_file": _text(ids) if ids is not None else None,
        "workdir": _text(job["workdir"]),
        "log": _text(job["log"]) if job["log"] is not None else None,
        "priority": str(job["priority"]) if job["priority"] else None,
        "time_limit": number(job["time_limit"]) if job["time_limit"] is not None else None,
        "tags": shown(job["tags"]) if job["tags"] else None,
        "resize": job["resize"],
        "when_stranger": job["when_stranger"] if job["when_stranger"] != plain["when_stranger"] else None,
        "grace": number(job["grace"]) if job["grace"] is not None else None,
        "leftovers": job["leftovers"] if job["leftovers"] != plain["leftovers"] else None,
    }
    return {key: value for key, value in entries.items() if value is not None}


def _run(commands: Sequence[str]) -> str:
    return "".join(f"\n      - {_text(command)}" for command in commands)


def _text(text: str) -> str:
    """A text of one line; single quotes leave commands readable."""
    plain = shown(text)
    return plain if plain[0] != '"' or not text.isprintable() or "'" in text else f"'{text}'"


def _size(mib: int) -> str:
    return f"{mib // 1024}GiB" if mib % 1024 == 0 else f"{mib}MiB"


def number(value: float) -> str:
    """Without an exponent: durations are written as people do."""
    return str(int(value)) if value == int(value) else format(Decimal(repr(float(value))), "f")


def _policy(policy: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, value in policy.items():
        rule = RULES[name]
        if rule.kind is kinds.RETRY and value is not None:
            parts = (f"{part}: {'unlimited' if limit is None else number(limit)}" for part, limit in value.items())
            lines.append(f"{rule.key}: {{{', '.join(parts)}}}")
        elif isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
            lines.append(f"{rule.key}: {number(value)}" + ("MiB" if rule.kind.unit == "MiB" and value else ""))
        else:
            lines.append(f"{rule.key}: {shown(value)}")
    return lines


def _note(text: str) -> str:
    return ("# " + one_line(text)).rstrip()


def notes_of(text: str, mode: str) -> list[list[str]]:
    """The comments that stand in or above each good block of a task file, and last those after all of them."""
    lines = lines_of(text)
    notes: list[list[str]] = []
    at = 0
    for paragraph in paragraphs(lines, mode):
        if paragraph.block is not None:
            notes.append(_comments(lines[at : paragraph.last + 1]))
        at = paragraph.last + 1
    return [*notes, _comments(lines[at:])]


def _comments(lines: Sequence[str]) -> list[str]:
    return [re.sub(r"^[#＃]+\s?", "", bare(line)) for line in lines if comment(bare(line))]


def write(path: str, text: str, *, force: bool) -> None:
    """A new file; an old one only by force, and then it is replaced in one step."""
    made = f"{path}.jostle-{os.getpid()}" if force else path
    try:
        with open(made, "x", encoding="utf-8") as f:
            f.write(text)
        if force:
            os.replace(made, path)
    except FileExistsError:
        raise Invalid(f"{path} exists; --force writes over it, or choose another name with -o") from None
    except (OSError, UnicodeError) as e:
        raise JostleError(
            f"cannot write {path}: {e.strerror if isinstance(e, OSError) else 'a name in it is not UTF-8'}"
        ) from None
