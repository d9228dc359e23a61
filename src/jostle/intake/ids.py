"""Jobs as people write them: `12 3-7 1,4 last all`, a name, `queue:Q`, `tag:T`, `batch:N`.

Rules. What of a list is none of the others is a name. `name:`, `queue:` and `tag:` take all that is left of their word, commas
too, so `name:` reaches every name. A bare name has no comma and no colon, and is not made of digits, dots and dashes alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from jostle.core.states import UNFINISHED
from jostle.errors import NotFound, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from jostle.store.reads import Reader


class Members(NamedTuple):
    """Jobs that are called together."""

    kind: str
    text: str
    states: dict[int, str]  # of its jobs, the oldest first; there is one

    @property
    def called(self) -> str:
        return _flaw(f"of_{self.kind}", text=_shown(self.text))

    def unable(self, verb: str, hint: str = "") -> NotFound:
        """Nothing can be done with them: what there is."""
        states = list(self.states.values())
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        hint = hint and _flaw(hint)
        return NotFound(_flaw("id_unable", verb=verb, called=self.called, counts=counts, newest=max(self.states), hint=hint))


CALLED = ("name", "queue", "tag", "batch")
NUMBERS = "ids such as 12, 3-7, 1,4, last or all"
NAMES = ", a name, queue:Q, tag:T or batch:N"
WRITTEN = "ids such as 12, 3-7, 1,4, last, all" + NAMES
WRITTEN_EACH = "ids such as 12, 3-7, 1,4, last" + NAMES
WRITTEN_ONE = "an id such as 12, last or a name"
_ID = re.compile(r"(\d{1,15})(?:-(\d{1,15}))?\Z", re.ASCII)
_NUMERIC = re.compile(r"[\d.-]+\Z")
MAX_RANGE = 1_000_000

Pick = Callable[[Members], list[int]]


def jobs(
    words: Sequence[str], reader: Callable[[], Reader], every: Callable[[], list[int]] | None = None, pick: Pick | None = None
) -> list[int]:
    """The ids in the order given, each once. `every` says what `all` means, `pick` which jobs of a name, queue, tag or batch are
    meant; without it nothing is called so. The store is read only for words that need it."""
    ids: dict[int, None] = {}
    for kind, text in _parts(words):
        if kind == "last":
            ids[_last(reader())] = None
        elif kind == "all" and every is not None:
            ids.update(dict.fromkeys(every()))
        elif kind in CALLED and pick is not None:
            ids.update(dict.fromkeys(pick(_members(kind, text, reader()))))
        elif kind == "number" and (match := _ID.match(text)) is not None:
            ids.update(dict.fromkeys(_range(match, reader)))
        elif pick is None:
            raise Usage(_flaw("id_none", word=repr(text), expected=NUMBERS, hint=""))
        else:
            expected = WRITTEN if every is not None else WRITTEN_EACH
            hint = _flaw("id_of_name", written=_typed("name", text)) if text else ""
            raise Usage(_flaw("id_none", word=repr(text), expected=expected, hint=hint))
    return list(ids)


def unfinished_of(members: Members) -> list[int]:
    """Where none is left, the newest: how it ended is the answer."""
    return [id for id, state in members.states.items() if state in UNFINISHED] or [max(members.states)]


def newest_of(members: Members) -> list[int]:
    """The newest that has not ended, else the newest."""
    return unfinished_of(members)[-1:]


def unfinished(words: Sequence[str], reader: Callable[[], Reader], pick: Pick = unfinished_of) -> list[int]:
    """`all` means whatever has not ended."""
    return jobs(words, reader, lambda: reader().ids(UNFINISHED), pick)


def single(word: str, reader: Callable[[], Reader]) -> int:
    ids = jobs([word], reader, pick=newest_of) if word != "all" else []
    if len(ids) != 1:
        raise Usage(f"{word!r} is not one job; expected {WRITTEN_ONE}")
    return ids[0]


def numbered(words: Sequence[str], reader: Callable[[], Reader]) -> frozenset[int]:
    """Those that are meant by themselves, not for what they are called."""
    return frozenset(jobs([text for kind, text in _parts(words) if kind in ("number", "last")], reader))


def means_one(words: Sequence[str]) -> bool:
    """Whether that is how one job is named, however many there are."""
    parts = list(_parts(words))
    return len(parts) == 1 and any(kind in ("last", "name") or (kind == "number" and text.isdecimal()) for kind, text in parts)


def as_name(word: str, reader: Reader) -> str:
    """Of what was taken for something else: how it is written to mean the job of that name, if there is one."""
    from jostle.store import memberreads

    there = word.isprintable() and memberreads.states(reader, "name", word)
    return f"; the job of that name is {_shown(f'name:{word}')}" if there else ""


def _parts(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What each part is, and its text: number, last, all, or by what its jobs are called."""
    for word in words:
        if not word.strip(","):  # no number either, and a mistake: a variable of a script that is not set
            yield "number", word
        while word:
            kind, colon, text = word.partition(":")
            if colon and kind in CALLED:
                yield kind, text
                break
            part, _, word = word.partition(",")
            if part in ("last", "all"):
                yield part, part
            elif part:
                yield "number" if ":" in part or _NUMERIC.match(part) else "name", part


def _members(kind: str, text: str, reader: Reader) -> Members:
    if not text or (kind == "batch" and not (text.isascii() and text.isdecimal() and len(text) < 16)):
        raise Usage(_flaw("value_odd", key=kind, value=repr(text), expected="a number" if kind == "batch" else "a text"))
    from jostle.store import memberreads

    text = text.encode(errors="surrogatepass").decode(errors="replace")  # bytes that are no text are no job's either
    members = Members(kind, text, memberreads.states(reader, kind, text))
    if members.states:
        return members
    from jostle.formats.wording import closest

    others = memberreads.words(reader, kind, text) if kind in memberreads.WORDS else []
    near = closest(text, [word for word in others if word.isprintable()])
    hint = _flaw("id_perhaps", written=_typed(kind, near)) if near else ""
    raise NotFound(_flaw("id_nobody", called=members.called, hint=hint))


def _typed(kind: str, text: str) -> str:
    """As it is written in a shell."""
    bare = kind == "name" and [*_parts([text])] == [(kind, text)]
    return _shown(text if bare else f"{kind}:{text}")


def _shown(text: str) -> str:
    import shlex

    from jostle.wording.flaws import Written

    return Written(shlex.quote(text) if text.isprintable() else repr(text))


def _flaw(code: str, **params: Any) -> str:
    from jostle.wording.flaws import flaw  # with all words there are: only what is wrong needs them

    return flaw(code, **params)


def _last(reader: Reader) -> int:
    last = reader.last_id()
    if last is None:
        raise NotFound(_flaw("id_no_last"))
    return last


def _range(match: re.Match[str], reader: Callable[[], Reader]) -> range:
    low, high = int(match[1]), int(match[2] or match[1])
    if low > high:
        raise Usage(_flaw("id_backwards", word=repr(match[0])))
    if match[2]:
        high = min(high, reader().last_id() or 0)  # 5-99999 means what there is of it
        if low > high:
            raise NotFound(_flaw("log_job", id=match[0]))
    if high - low > MAX_RANGE:
        raise Usage(_flaw("id_many", word=repr(match[0]), most=MAX_RANGE))
    return range(low, high + 1)
