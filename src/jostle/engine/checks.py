"""What a submit must look like. Files are checked with lines by jostle.formats; this is the last gate, for every client.

Answers with the request in canonical form, or raises Invalid naming the job and the field; nothing is taken then.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from jostle.core.fields import RETRY, RULES
from jostle.core.model import Policy, Retry
from jostle.errors import Invalid
from jostle.store.intents import SETTABLE

MAX_GPUS = 1024
MAX_TEXT = 1 << 20
DEFAULTS: dict[str, Any] = {
    "commands": None, "name": None, "queue": None, "gpus": [1, 1], "memory_mib": None, "share": False, "env": {},
    "workdir": None, "log": None, "priority": 0, "needs": [], "begin": None, "time_limit": None, "retry": None, "tags": [],
    "leftovers": "kill", "intent": "run", "retry_of": None, "params": None, "fingerprint": None, "inputs": None,
    "done_by": None,
}  # fmt: skip


def request(given: Mapping[str, Any]) -> dict[str, Any]:
    jobs = given.get("jobs")
    if not isinstance(jobs, list) or not jobs:
        raise Invalid("a submit needs a list of at least one job")
    head = given.get("batch") or {}
    context = given.get("context") or {}
    if not isinstance(head, dict) or not isinstance(context, dict):
        raise Invalid("`batch` and `context` are objects")
    policy(head.get("policy") or {})
    need(head.get("about") is None or isinstance(head["about"], dict), "the batch", "about must be an object")
    need(head.get("seed") is None or whole(head["seed"], 0, 1 << 62), "the batch", "seed must be a whole number")
    need(head.get("queues") in (None, "own"), "the batch", "queues must be \"own\" or not given")
    for key, value in (("key", head.get("key")), ("name", head.get("name")), ("once", given.get("once"))):
        need(value is None or isinstance(value, str), "the batch", f"{key} must be a text")
    return {
        "batch": head,
        "once": given.get("once"),
        "context": surroundings(context),
        "jobs": [job(j, k, len(jobs)) for k, j in enumerate(jobs)],
    }


def amendment(given: Mapping[str, Any]) -> dict[str, Any]:
    """A change to a batch, in canonical form."""
    batch, owner, order, drop = (given.get(key) for key in ("batch", "owner", "order", "drop"))
    need(whole(batch, 1, 1 << 62), "amend", "batch must be the number of a batch")
    need(owner is None or (isinstance(owner, list) and len(owner) == 2 and all(whole(n, 0, 1 << 62) for n in owner)),
         "amend", "owner must be [pid, start ticks]")  # fmt: skip
    need(drop is None or (isinstance(drop, list) and all(whole(i, 1, 1 << 62) for i in drop)), "amend", "drop must be ids")
    need(given.get("once") is None or isinstance(given["once"], str), "amend", "once must be a text")
    if given.get("policy") is not None:
        policy(given["policy"])
    jobs = given.get("jobs") or []
    need(isinstance(jobs, list), "amend", "jobs must be a list")
    good = isinstance(order, list) and all(isinstance(o, list) and one_need([*o, False], -1, len(jobs)) for o in order)
    need(order is None or good, "amend", "order must list [\"job\", id] and [\"index\", k]")
    into = given.get("into") or []
    good = isinstance(into, list) and all(isinstance(m, list) and len(m) == 2 and whole(m[0], 1, 1 << 62) for m in into)
    need(good and all(isinstance(m[1], str) and m[1] for m in into), "amend", "into must list [id, queue]")
    return {**given, "jobs": [job(j, k, len(jobs)) for k, j in enumerate(jobs)],
            "context": surroundings(given.get("context") or {})}  # fmt: skip


def surroundings(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a submit captured: environment, umask, limits."""
    env, umask, limits = given.get("env") or {}, given.get("umask", 0o022), given.get("limits") or {}
    need(variables(env), "context", "env must map names (without = and NUL) to texts")
    need(whole(umask, 0, 0o777), "context", "umask must be a number from 0 to 0o777")
    good = isinstance(limits, dict) and all(
        isinstance(pair, list) and len(pair) == 2 and all(whole(v, -1, 1 << 63) for v in pair) for pair in limits.values()
    )
    need(good, "context", "limits must map names to [soft, hard]")
    return {"env": env, "umask": umask, "limits": limits}


def job(given: Any, k: int, count: int) -> dict[str, Any]:
    """One job with all its fields. Most of 10,000 jobs differ from the defaults in a few: only those are looked at."""
    if not isinstance(given, dict):
        raise Invalid(f"job {k + 1} is not an object")
    for key, value in given.items():
        field = FIELDS.get(key)
        if field is None:
            raise Invalid(f"{called(given, k)}: there is no field {key}")
        if value is not DEFAULTS.get(key) and not field[0](value):
            raise Invalid(f"{called(given, k)}: {key} must be {field[1]}")
    j = {**DEFAULTS, **given}
    if not j["commands"]:
        raise Invalid(f"{called(given, k)}: commands must be {FIELDS['commands'][1]}")
    if j["workdir"] is None:
        raise Invalid(f"{called(given, k)}: workdir must be {FIELDS['workdir'][1]}")
    if j["name"] is None:
        j["name"] = text(default_name(j["commands"][0]), called(given, k), "name")
    if j["queue"] is not None:
        j["queue"] = text(str(j["queue"]), called(given, k), "queue")
    if j["retry"] is not None:
        j["retry"] = retry(j["retry"], called(given, k))
    if j["needs"]:
        need(all(one_need(n, k, count) for n in j["needs"]), called(given, k), "needs must name other jobs")
    return j


def called(given: Mapping[str, Any], k: int) -> str:
    return f"job {k + 1} ({given['name']})" if given.get("name") else f"job {k + 1}"


def seconds(value: Any) -> bool:
    return value is None or (number(value) and value >= 0)


def texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(t, str) for t in value)


@lru_cache(maxsize=64)
def _path(value: str) -> bool:
    return os.path.isabs(value) and "\0" not in value and utf8(value)


def path(value: Any) -> bool:
    return isinstance(value, str) and _path(value)


def sweep_values(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(t, str) and utf8(t or "-") for pair in value.items() for t in pair)


def done_by(value: Any) -> bool:
    return value is None or (isinstance(value, list) and len(value) == 2 and all(whole(n, 1, 1 << 62) for n in value))


def one_input(value: Any) -> bool:
    """A file that a job is made of: backends/inputs.py."""
    if not (isinstance(value, list) and len(value) == 3 and path(value[0])):
        return False
    digest, known = value[1:]
    if not (digest is None or (isinstance(digest, str) and len(digest) == 64)):
        return False
    return known is None or (isinstance(known, list) and len(known) == 4 and all(whole(n, -(1 << 63), 1 << 64) for n in known))


# field: (whether a value will do, what was expected)
FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "commands": (lambda v: isinstance(v, list) and bool(v) and all(map(command, v)),
                 "a list of at least one command: a text or a list of texts, not empty and without NUL"),
    "name": (lambda v: v is None or printable(v), "1 to 200 printable characters"),
    "queue": (lambda v: v is None or isinstance(v, str | int), "a text"),
    "gpus": (lambda v: two_counts(v), f"[least, most] with 0 ≤ least ≤ most ≤ {MAX_GPUS}"),
    "memory_mib": (lambda v: v is None or whole(v, 1, 1 << 30), "a positive whole number"),
    "share": (lambda v: isinstance(v, bool), "true or false"),
    "priority": (lambda v: whole(v, -(1 << 31), 1 << 31), "a whole number"),
    "begin": (seconds, "a number of seconds"),
    "time_limit": (seconds, "a number of seconds"),
    "leftovers": (lambda v: v in ("kill", "wait"), "kill or wait"),
    "intent": (lambda v: v in ("run", "hold"), "run or hold"),
    "tags": (texts, "a list of texts"),
    "workdir": (path, "an absolute path, in UTF-8: its name cannot be kept as it is otherwise"),
    "log": (lambda v: v is None or path(v), "an absolute path, in UTF-8: its name cannot be kept as it is otherwise"),
    "env": (lambda v: variables(v), "names (without = and NUL) and their texts"),
    "retry": (lambda v: v is None or isinstance(v, dict), "an object with max, backoff_after and backoff only"),
    "needs": (lambda v: isinstance(v, list), "a list of other jobs"),
    "retry_of": (lambda v: v is None or whole(v, 1, 1 << 62), "a job"),
    "params": (lambda v: v is None or sweep_values(v), "names and texts"),
    "fingerprint": (lambda v: v is None or (isinstance(v, str) and 0 < len(v) <= 200), "a text"),
    "inputs": (lambda v: v is None or (isinstance(v, list) and all(map(one_input, v))), "a list of [path, digest, stat]"),
    "done_by": (done_by, "[job, run]"),
}  # fmt: skip


def need(holds: bool, what: str, text: str) -> None:
    if not holds:
        raise Invalid(f"{what}: {text}")


def utf8(path: str) -> bool:
    try:
        return bool(path.encode())
    except UnicodeEncodeError:
        return False


def command(c: Any) -> bool:
    parts = [c] if isinstance(c, str) else c
    if not isinstance(parts, list) or not parts:
        return False
    for p in parts:
        if not isinstance(p, str) or "\0" in p or len(p) > MAX_TEXT:
            return False
    return bool(parts[0].strip())


def default_name(c: Any) -> str:
    """The first words of its command."""
    words = " ".join(c if isinstance(c, list) else c.split())
    return "".join(ch if ch.isprintable() else " " for ch in words)[:40].strip() or "job"


def printable(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 200 and value.isprintable()


def text(value: Any, what: str, key: str) -> str:
    need(printable(value), what, f"{key} must be 1 to 200 printable characters")
    return str(value)


def whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def two_counts(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and whole(value[0], 0, MAX_GPUS) and whole(value[1], value[0], MAX_GPUS)


def one_need(n: Any, k: int, count: int) -> bool:
    if not (isinstance(n, list) and len(n) == 3 and n[0] in ("job", "index") and whole(n[1], 0, 1 << 62)):
        return False
    return n[0] == "job" or bool(n[1] < count and n[1] != k)


def variables(env: Any) -> bool:
    return isinstance(env, dict) and all(
        isinstance(key, str) and isinstance(v, str) and bool(key) and "=" not in key and "\0" not in key and "\0" not in v
        for key, v in env.items()
    )


def retry(value: Any, what: str) -> dict[str, Any] | None:
    if value is None:
        return None
    good = isinstance(value, dict) and set(value) <= set(RETRY)
    need(good, what, "retry must have max, backoff_after and backoff only")
    filled = {**{name: field.default for name, field in RETRY.items()}, "max": None, **value}
    for name, field in RETRY.items():
        need(field.kind.check(filled[name]), what, f"retry.{name} must be {field.kind.expected}")
    return filled


def destination(to: Any) -> Any:
    if to in ("first", "last"):
        return to
    if isinstance(to, dict) and len(to) == 1:
        side, other = next(iter(to.items()))
        if side in ("before", "after") and whole(other, 1, 1 << 62):
            return to
    raise Invalid("a job is moved to first, to last, or before or after another job")


def settable(values: Any) -> dict[str, Any]:
    if not isinstance(values, dict) or not values:
        raise Invalid(f"set takes one or more of {', '.join(SETTABLE)}")
    unknown = sorted(set(values) - set(SETTABLE))
    if unknown:
        raise Invalid(f"cannot set {', '.join(unknown)}: only {', '.join(SETTABLE)}")
    checked = job({"commands": ["true"], "workdir": "/", **values}, 0, 1)
    return {key: checked[key] for key in values}


def policy(given: Any) -> Policy:
    """The rules as a value; raises Invalid for unknown keys and wrong values."""
    if not isinstance(given, Mapping):
        raise Invalid("a policy is an object")
    unknown = sorted(set(given) - set(RULES))
    if unknown:
        raise Invalid(f"a policy has no setting {', '.join(unknown)}")
    values = dict(given)
    for key, value in given.items():
        if key == "retry" and value is not None:
            values[key] = Retry(**(retry(value, "policy") or {}))
        elif not RULES[key].accepts(value):
            if key == "choice":
                raise Invalid(f"choice must be one of {', '.join(RULES[key].kind.words)}, not {value!r}")
            raise Invalid(f"the setting {key} cannot be {value!r}")
    if values.get("gpus") is not None:
        values["gpus"] = tuple(values["gpus"])
    return Policy(**values)
