"""One command, as a person says it, into a job of the standing batch that single commands lie in.

Light to import, for `jostle add` starts with it. Texts are as they were typed where only the surroundings tell what they mean:
paths start at the present directory, a variable without a value is taken as it is here.
"""

from __future__ import annotations

import os

from jostle.core.fields import RETRY
from jostle.core.jobflaws import flaws
from jostle.errors import Unfit
from jostle.formats import spec
from jostle.intake import ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from jostle.session import Session

    T = TypeVar("T")

NO_CARD_HAS = 1 << 20  # MiB: who asks for so much of a card has meant MiB by a number that counts GB
SHELL = frozenset(" \t\n;&|<>()$`\\\"'*?[]{}~#!")
BATCH = "add"
"""The key of the batch that single commands lie in."""


def requested(
    session: Session, values: Mapping[str, Any], *, command: Sequence[str], retry: int | None = 0, env: Sequence[str] = (),
    workdir: str | None = None, log: str | None = None, after: str = "", after_any: str = "", hold: bool = False,
    once: str | None = None, strict: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """What is asked of the engine. `values`: fields of a job as they are; `after`, `after_any`: ids as people write them. Unfit
    names a field, or the code of what fields cannot say together (core.jobflaws)."""
    from jostle.intake.request import inside, request

    if (values["memory_mib"] or 0) >= NO_CARD_HAS:
        session.tell("much_memory", gib=values["memory_mib"] // 1024)
    cwd, words = os.getcwd(), _command(list(command))
    job = spec.job(
        **{**values, "name": values["name"] or spec.name_of([words])}, commands=[words], env=dict(map(_variable, env)),
        workdir=_directory(workdir, cwd), log=_log(log, cwd) if log else None, needs=_needs(session, after, after_any),
        retry={**{name: field.default for name, field in RETRY.items()}, "max": retry} if retry != 0 else None,
        inside=inside(),
    )  # fmt: skip
    for code, params in flaws(job):
        raise Unfit(code, **params)
    head = {"key": BATCH, "name": BATCH, "join": True, "policy": _rules(session, job)}
    return {**request(head, [{**job, "intent": "hold"} if hold else job], once=once), "strict": strict}


def queued(session: Session, asked: dict[str, Any]) -> dict[str, Any]:
    """The engine's answer."""
    from jostle.intake.request import sent

    return sent(session, asked, again=f"`--once {asked['once']}` with the same command asks again and takes it once only")


def preview(session: Session, asked: dict[str, Any]) -> list[str]:
    """What would become of it now, in words; nothing is queued, and no engine is started."""
    from jostle.intake.previewing import previewed

    client = session.engine_if_any()
    if client is None:
        return [session.message("would_need_engine")]
    try:
        outcome = previewed(client, asked["batch"], asked["jobs"], session.language)
    finally:
        client.close()
    return [outcome["jobs"][0]["text"], *([outcome["holds"]] if outcome["holds"] else [])]


def _rules(session: Session, job: Mapping[str, Any]) -> dict[str, Any]:
    if "CUDA_VISIBLE_DEVICES" not in os.environ or job["gpus"][1] == 0:
        return {}
    from jostle.intake import visible

    return visible.rules(session)


def _needs(session: Session, after: str, after_any: str) -> list[list[Any]]:
    words = ((after, False), (after_any, True))
    return [
        ["job", id, any_end]
        for word, any_end in words
        if word
        for id in ids.jobs([word], lambda: session.reader, pick=ids.unfinished_of)
    ]


def _command(words: list[str]) -> str | list[str]:
    """Arguments are executed as they are; one text that only a shell understands is given to bash."""
    if len(words) == 1 and any(c in SHELL for c in words[0]):
        return _read("commands", words[0], spec.command)
    if not words[0]:
        raise Unfit("commands", "is empty; expected a program and its arguments")
    return words


def _log(text: str, base: str) -> str:
    path = _read("log", text, lambda t: spec.path(t, base))
    if os.path.isdir(path):
        raise Unfit("log", f"{path} is a directory; expected a file to write to, which need not exist yet")
    return path


def _directory(text: str | None, base: str) -> str:
    if text is None:
        return base
    path = _read("workdir", text, lambda t: spec.path(t, base))
    if not os.path.isdir(path):
        raise Unfit("workdir", f"{path} is no directory; expected one that exists")
    return path


def _variable(text: str) -> tuple[str, str]:
    """`NAME=VALUE`, or `NAME` for the value it has here."""
    name, equals, value = text.partition("=")
    if not equals and name and name not in os.environ:
        raise Unfit("env", f"{name}: it is not set here; expected NAME=VALUE, or a variable that is set")
    return _read("env", text, lambda _: spec.variable(name, value if equals else os.environ.get(name, "")))


def _read(field: str, text: str, reader: Callable[[str], T]) -> T:
    try:
        return reader(text)
    except ValueError as e:
        raise Unfit(field, f"{text!r} is not understood; expected {e}") from None
