"""What a submit must look like. Files are checked with lines by jostle.formats; this is the last gate, for every client.

Answers with the request in canonical form, or raises Invalid naming the job and the field; nothing is taken then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jostle.core.fields import JOB, LIMITS, RETRY, RULES, SETTINGS
from jostle.core.jobflaws import flaws
from jostle.core.kinds import MAX_ID, MAX_NAME, is_integer, path, printable, variables
from jostle.core.model import Policy, Retry
from jostle.errors import Invalid
from jostle.printable import one_line

FIELDS = {name: field for name, field in JOB.items() if not field.into}
SETTABLE = tuple(name for name, field in JOB.items() if field.settable)
DEFAULTS = {name: field.default for name, field in FIELDS.items()}

FLAWS = {
    "not_of_allocation": "{key} means nothing for an allocation (commands is empty)",
    "holds_no_card": "an allocation holds at least one GPU",
    "only_of_allocation": "{key} is for an allocation, which has no commands",
    "not_of_inside": "{key} is not for a job inside an allocation",
    "memory_without_card": "memory_mib means nothing without a card: gpus must be at least 1",
    "shares_without_memory": "share needs memory_mib",
    "resize_needs_card": "resize needs a card: gpus must be at least 1",
    "resize_without_uni_id": "resize and a uni_id file do not go together",
}
"""What fields cannot say together, for whoever comes by none of the doors, which word it themselves."""


def request(asked: Mapping[str, Any]) -> dict[str, Any]:
    jobs = asked.get("jobs")
    if not isinstance(jobs, list) or not jobs:
        raise Invalid("a submit needs a list of at least one job")
    head = asked.get("batch") or {}
    context = asked.get("context") or {}
    if not isinstance(head, dict) or not isinstance(context, dict):
        raise Invalid("`batch` and `context` are objects")
    policy(head.get("policy") or {})
    about = {} if head.get("about") is None else head["about"]
    need(isinstance(about, dict), "the batch", "about must be an object")
    need(about.get("file") is None or path(about["file"]), "the batch", "about.file must be an absolute path")
    need(about.get("suite") is None or isinstance(about["suite"], str), "the batch", "about.suite must be a text")
    need(head.get("seed") is None or is_integer(head["seed"], 0, MAX_ID), "the batch", "seed must be a whole number")
    need(head.get("queues") in (None, "own"), "the batch", "queues must be \"own\" or not given")
    need(is_owner(head.get("owner")), "the batch", OWNER)
    for key, value in (("key", head.get("key")), ("name", head.get("name")), ("once", asked.get("once"))):
        need(value is None or isinstance(value, str), "the batch", f"{key} must be a text")
    return {
        "batch": head,
        "once": asked.get("once"),
        "beside": bool(asked.get("beside", True)),
        "context": surroundings(context),
        "jobs": [job(j, k, len(jobs)) for k, j in enumerate(jobs)],
    }


def amendment(asked: Mapping[str, Any]) -> dict[str, Any]:
    """A change to a batch, in canonical form."""
    batch, owner, order, drop = (asked.get(key) for key in ("batch", "owner", "order", "drop"))
    need(is_integer(batch, 1, MAX_ID), "amend", "batch must be the number of a batch")
    need(is_owner(owner), "amend", OWNER)
    need(drop is None or (isinstance(drop, list) and all(is_integer(i, 1, MAX_ID) for i in drop)), "amend", "drop must be ids")
    need(asked.get("once") is None or isinstance(asked["once"], str), "amend", "once must be a text")
    if asked.get("policy") is not None:
        policy(asked["policy"])
    jobs = asked.get("jobs") or []
    need(isinstance(jobs, list), "amend", "jobs must be a list")
    good = isinstance(order, list) and all(isinstance(o, list) and one_need([*o, False], -1, len(jobs)) for o in order)
    need(order is None or good, "amend", "order must list [\"job\", id] and [\"index\", k]")
    into = asked.get("into") or []
    good = isinstance(into, list) and all(isinstance(m, list) and len(m) == 2 and is_integer(m[0], 1, MAX_ID) for m in into)
    need(good and all(isinstance(m[1], str) and m[1] for m in into), "amend", "into must list [id, queue]")
    return {**asked, "jobs": [job(j, k, len(jobs)) for k, j in enumerate(jobs)],
            "context": surroundings(asked.get("context") or {})}  # fmt: skip


OWNER = "owner must be [pid, start ticks]"


def is_owner(value: Any) -> bool:
    return value is None or (isinstance(value, list) and len(value) == 2 and all(is_integer(n, 0, MAX_ID) for n in value))


def surroundings(context: Mapping[str, Any]) -> dict[str, Any]:
    """What a submit captured: environment, umask, limits."""
    env, umask, limits = context.get("env") or {}, context.get("umask", 0o022), context.get("limits") or {}
    need(variables(env), "context", "env must map names (without = and NUL) to texts")
    need(is_integer(umask, 0, 0o777), "context", "umask must be a number from 0 to 0o777")
    good = isinstance(limits, dict) and all(
        isinstance(pair, list) and len(pair) == 2 and all(is_integer(v, -1, 1 << 63) for v in pair) for pair in limits.values()
    )
    need(good, "context", "limits must map names to [soft, hard]")
    return {"env": env, "umask": umask, "limits": limits}


def job(asked: Any, k: int, count: int) -> dict[str, Any]:
    """One job with all its fields, each as it may be and all of them together."""
    j = fields(asked, k)
    if not j["commands"]:
        if asked.get("commands") != []:
            raise Invalid(f"{called(asked, k)}: commands must be {JOB['commands'].kind.expected}")
        need(count == 1, called(asked, k), "an allocation (commands is empty) is asked for alone")
        need(j["name"] is not None, called(asked, k), "an allocation needs a name")
    elif j["workdir"] is None:
        raise Invalid(f"{called(asked, k)}: workdir must be {JOB['workdir'].kind.expected}")
    for code, params in flaws(j):
        raise Invalid(f"{called(asked, k)}: {FLAWS[code].format(**params)}")
    if j["needs"]:
        need(all(one_need(n, k, count) for n in j["needs"]), called(asked, k), "needs must name other jobs")
    if j["name"] is None:
        j["name"] = text(default_name(j["commands"][0]), called(asked, k), "name")
    return j if j["commands"] else {**j, "workdir": j["workdir"] or "/"}


def fields(asked: Any, k: int) -> dict[str, Any]:
    """All fields of a job. Most of 10,000 jobs differ from the defaults in a few: only those are looked at."""
    if not isinstance(asked, dict):
        raise Invalid(f"job {k + 1} is not an object")
    for key, value in asked.items():
        field = FIELDS.get(key)
        if field is None:
            raise Invalid(f"{called(asked, k)}: there is no field {key}")
        if value is not field.default and not field.check(value) and not (key == "commands" and value == []):
            raise Invalid(f"{called(asked, k)}: {key} must be {field.kind.expected}")
    j = {**DEFAULTS, **asked}
    if j["queue"] is not None:
        j["queue"] = text(str(j["queue"]), called(asked, k), "queue")
    if j["retry"] is not None:
        j["retry"] = retry(j["retry"], called(asked, k))
    return j


def remark(by: Any, key: str) -> str:
    """A part of what an audit says: a text, not long, and on one line."""
    value = by.get(key) if isinstance(by, dict) else None
    need(isinstance(value, str) and len(value) <= MAX_NAME, "by", f"{key} must be a text of at most {MAX_NAME} characters")
    return one_line(str(value))


def called(asked: Mapping[str, Any], k: int) -> str:
    return f"job {k + 1} ({asked['name']})" if asked.get("name") else f"job {k + 1}"


def need(holds: bool, what: str, text: str) -> None:
    if not holds:
        raise Invalid(f"{what}: {text}")


def default_name(c: Any) -> str:
    """The first words of its command."""
    words = " ".join(c if isinstance(c, list) else c.split())
    return one_line(words)[:40].strip() or "job"


def text(value: Any, what: str, key: str) -> str:
    need(printable(value), what, f"{key} must be {JOB['name'].kind.expected}")
    return str(value)


def one_need(n: Any, k: int, count: int) -> bool:
    if not (isinstance(n, list) and len(n) == 3 and n[0] in ("job", "index") and is_integer(n[1], 0, MAX_ID)):
        return False
    return n[0] == "job" or bool(n[1] < count and n[1] != k)


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
        if side in ("before", "after") and is_integer(other, 1, MAX_ID):
            return to
    raise Invalid("a job is moved to first, to last, or before or after another job")


def settable(values: Any) -> dict[str, Any]:
    if not isinstance(values, dict) or not values:
        raise Invalid(f"set takes one or more of {', '.join(SETTABLE)}")
    unknown = sorted(set(values) - set(SETTABLE))
    if unknown:
        raise Invalid(f"cannot set {', '.join(unknown)}: only {', '.join(SETTABLE)}")
    need("name" not in values or values["name"] is not None, "set", f"name must be {JOB['name'].kind.expected}")
    checked = fields(values, 0)
    return {key: checked[key] for key in values}


def policy(rules: Any) -> Policy:
    """The rules as a value; raises Invalid for unknown keys and wrong values."""
    if not isinstance(rules, Mapping):
        raise Invalid("a policy is an object")
    unknown = sorted(set(rules) - set(RULES))
    if unknown:
        raise Invalid(f"a policy has no setting {', '.join(unknown)}")
    values = dict(rules)
    for key, value in rules.items():
        if key == "retry" and value is not None:
            values[key] = Retry(**(retry(value, "policy") or {}))
        elif not RULES[key].accepts(value):
            if key == "choice":
                raise Invalid(f"choice must be one of {', '.join(RULES[key].kind.words)}, not {value!r}")
            raise Invalid(f"the setting {key} cannot be {value!r}")
    if values.get("gpus") is not None:
        values["gpus"] = tuple(values["gpus"])
    return Policy(**values)


def limits(values: Any) -> dict[str, Any]:
    """Limits of the person; raises Invalid for unknown ones and wrong values."""
    if not isinstance(values, Mapping):
        raise Invalid("limits are an object")
    for name, value in values.items():
        if name not in LIMITS:
            raise Invalid(f"there is no limit {name}: only {', '.join(LIMITS)}")
        if not LIMITS[name].accepts(value):
            raise Invalid(f"the limit {name} must be {LIMITS[name].kind.expected}, not {value!r}")
    return dict(values)


def manager_limits(manager: Any) -> dict[str, Any]:
    """What a manager's file says, and what it leaves to its defaults; None: no such file holds any more."""
    if manager is None:
        return {}
    if not isinstance(manager, Mapping) or not isinstance(manager.get("file"), str):
        raise Invalid("the limits of a manager's file need `file`, a path")
    prefix = manager.get("prefix") or ""
    need(isinstance(prefix, str) and len(prefix) <= MAX_NAME, "the manager's file", "prefix must be a short text")
    caps = {key: limits(manager.get(key) or {}) for key in ("values", "defaults")}
    return {"file": manager["file"], **caps, "prefix": prefix}


def settings(values: Mapping[str, Any]) -> Policy:
    """The rules that a settings file sets; raises Invalid for wrong values. What a newer client knows besides is left alone."""
    for key, value in values.items():
        if key != "policy" and key in SETTINGS and not SETTINGS[key].accepts(value):
            raise Invalid(f"the setting {key} must be {SETTINGS[key].kind.expected}, not {value!r}")
    limits(values.get("limits") or {})
    return policy(values.get("policy") or {})
