"""What people want of jobs, as every door reads it: which jobs the words of a verb mean, and what `set` sets."""

from __future__ import annotations

from jostle.core import kinds
from jostle.core.fields import JOB
from jostle.core.states import CANCELLED, SUCCEEDED, UNFINISHED
from jostle.errors import Usage
from jostle.formats import spec
from jostle.intake import ids
from jostle.intake.checking import warn_never_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from jostle.session import Session

MEANT: dict[str, tuple[tuple[str, ...], str | None]] = {
    "cancel": (UNFINISHED, None), "hold": (("queued",), None), "unhold": (("queued",), "hold"), "set": (("queued",), None),
}  # fmt: skip
"""What `all` means: the jobs in these states, and with this intent; `set` of gpus alone: also what runs and may resize."""

SETTINGS = {field.key: field for field in JOB.values() if field.settable}


def chosen(verb: str, words: Sequence[str], session: Session, values: Collection[str] = ()) -> list[int]:
    """The ids of the jobs that are meant, in the order given; of a name, queue, tag or batch those that `all` would mean, too.
    `values`: what is to be set."""

    def every() -> list[int]:
        from jostle.store import memberreads

        if verb == "retry":
            return memberreads.not_retried(session.reader)
        resized = memberreads.resizable(session.reader) if [*values] == ["gpus"] else []
        return [*session.reader.ids(*MEANT[verb]), *resized]

    def able(members: ids.Members) -> list[int]:
        meant = members.states.keys() & every()
        if not meant:
            by_number = verb == "retry" and not {CANCELLED, SUCCEEDED}.isdisjoint(members.states.values())
            raise members.unable(verb, "id_by_number" if by_number else "")
        return sorted(meant)

    return ids.jobs(words, lambda: session.reader, every, able)


def sent(session: Session, meant: Sequence[int], **intent: Any) -> dict[str, Any]:
    """What has become of it: jobs of which it is done, those of which it is refused and why, and the new ones of a retry."""
    if not meant:
        return {"done": [], "refused": [], "new": {}}
    client = session.client()
    try:
        return client.call("intent", ids=meant, batch=None, **intent)
    finally:
        client.close()


def wanted(session: Session, verb: str, words: Sequence[str], **fields: Any) -> dict[str, Any] | None:
    """What has become of what a verb wants of the jobs that the words mean; None: they mean none."""
    meant = chosen(verb, words, session, fields.get("values", ()))
    if not meant:
        return None
    answer = sent(session, meant, do=verb, **fields)
    if verb == "cancel" and answer["refused"]:  # one that was meant because it had not ended, and has since, is no mistake
        numbered = ids.numbered(words, lambda: session.reader)
        answer["refused"] = [one for one in answer["refused"] if one[0] in numbered or one[1]["code"] != "ended_already"]
    if verb == "set":
        warn_never_of(answer["done"], session)
    return answer


def setting(key: str, text: str) -> tuple[str, Any]:
    """The field and its value; `none` takes a value back."""
    if key not in SETTINGS:
        from difflib import get_close_matches

        from jostle.wording.flaws import flaw

        near = get_close_matches(key, SETTINGS, 1, 0.75)
        raise Usage(flaw("no_setting", key=repr(key), expected=near[0] if near else "one of " + ", ".join(SETTINGS)))
    field = SETTINGS[key]
    if text == "none" and field.kind is not kinds.NAME:  # a job can be called so
        return field.name, field.fresh()
    try:
        return field.name, _truth(text) if field.kind is kinds.TRUTH else spec.reader(field.kind)(text)
    except ValueError as e:
        from jostle.wording.flaws import flaw

        raise Usage(flaw("value_odd", key=key, value=repr(text), expected=str(e))) from None


def _truth(text: str) -> bool:
    return spec.one_of(text, ("true", "false")) == "true"
