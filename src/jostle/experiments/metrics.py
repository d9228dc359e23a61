"""Numbers out of logs (SPEC B11): of each metric the last match of its first source that matches anywhere.

Rules: a log is read from its end, in blocks, and only as far back as it must be: to the last match of the first source, for one
that comes later counts only when the whole log has no match of an earlier one. A source sees one line at a time; `\r` ends a
line as `\n` does (progress bars), and so does `\0` (a log that was truncated under its writer). Bytes that are no UTF-8 match
nothing but do no harm. A value that is no finite number is a problem with a name, never an older value in its place; so is one
with a decimal comma or with groups of digits (`91,5`, `1.234,5`, `5 000`): what it means is not certain, and half of it is wrong.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from jostle.errors import Unfit
from jostle.experiments.absence import Absence

NUMBER = r"[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|(?i:nan|inf(?:inity)?)\b)"
MORE = r"(?:(?:,|(?<=\d)\.)\d+|['’\u00a0\u2009\u202f ]\d{3}(?![\w/:]))"  # directly after a number: it goes on
_WHOLE = rf"({NUMBER}{MORE}*)"
_NAME = "The test accuracy of "
SOURCE_PATTERNS = (
    # `.+?` up to the first `: 1`, but never over another beginning: a line of many of them would take quadratic time
    rf"{_NAME}.(?:[^:T\n]|T(?!{_NAME[1:]})|:(?! {NUMBER})){{0,4096}}: {_WHOLE}",
    rf"Test Accuracy: {_WHOLE}",
    rf"Final Accuracy: {_WHOLE}%",
    rf"Accuracy: {_WHOLE}%",
)
# what most programs print; last, so that it counts only in logs that none of the source's patterns matches. `9/10` is no value.
# It begins with a set of letters, and looks back afterwards: `\b` there would cost three times as much
PLAIN_PATTERN = rf"[Aa][Cc][Cc](?<!\w...)(?i:uracy)?[ \t]*[:=][ \t]*{_WHOLE}(?![\w/])"
FIRST, LARGEST = 1 << 14, 1 << 17  # bytes of the first block; later ones double up to the largest
LONGEST = 1 << 20  # bytes of a line; a longer one is looked at in pieces of about this size …
OVERLAP = 1 << 12  # … that overlap, so that a match on the seam is seen
EXTENTS = 10_000  # parts of a file with holes; beyond them holes are read as the zeros they are
_NUMBER = re.compile(rf"\s*({NUMBER})\s*%?\s*")
_MORE = re.compile(MORE + "+")
_UNCERTAIN = re.compile(rf"{NUMBER}{MORE}+")
_COMPLETE = re.compile(r"[-+]?(?:\d{4,}\.\d*|\d*\.(?!\d{3}$)\d*|.*[eE].*)")  # no comma can be a part of this
_ENDS = bytes.maketrans(b"\r\0", b"\n\n")


@dataclass(frozen=True, slots=True)
class Key:
    """A source: the value under this key in lines that hold a JSON object (or a dict as Python prints it); `a.b` goes into a."""

    name: str

    def needles(self) -> tuple[str, ...]:
        """What a line must hold before it is worth a closer look."""
        last = self.name.rpartition(".")[2]
        names = dict.fromkeys((self.name, last))
        return tuple(dict.fromkeys(form for n in names for form in (json.dumps(n), json.dumps(n, ensure_ascii=False), f"'{n}'")))


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    sources: tuple[re.Pattern[str] | Key, ...]


@dataclass(slots=True)
class LogReading:
    """What one log says."""

    values: dict[str, float] = field(default_factory=dict)
    problems: dict[str, Absence] = field(default_factory=dict)  # metric -> why there is no value
    cut: set[str] = field(default_factory=set)  # metrics whose value ends where the file does, in the middle of a line
    bytes_read: int = 0


def default() -> list[Metric]:
    return [Metric("accuracy", tuple(re.compile(p, re.MULTILINE) for p in (*SOURCE_PATTERNS, PLAIN_PATTERN)))]


def parsed(texts: Sequence[str]) -> list[Metric]:
    """Metrics as people write them: `name=regex` or `name` (a key of JSON lines); the same name again is a further source."""
    sources: dict[str, list[re.Pattern[str] | Key]] = {}
    for text in texts:
        name, equals, regex = text.partition("=")
        name = name.strip()
        if not name or (equals and not regex):
            raise Unfit("metric", f"{text!r} is not understood; expected name=regex, or the name of a key in JSON lines")
        try:
            source = re.compile(regex, re.MULTILINE) if equals else Key(name)
        except (re.error, OverflowError, RecursionError) as e:
            raise Unfit("metric", f"{text!r}: {regex!r} is no regular expression: {e}") from None
        sources.setdefault(name, []).append(source)
    return [Metric(name, tuple(of_metric)) for name, of_metric in sources.items()] or default()


# --- one log


def read(path: str, metrics: Sequence[Metric], tail: int | None = None) -> LogReading:
    """The values of a log; `tail`: only its last so many bytes are looked at. OSError where it cannot be read."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would have us wait
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(0, "not a regular file")
        return _read(fd, metrics, tail)
    finally:
        os.close(fd)


def _read(fd: int, metrics: Sequence[Metric], tail: int | None) -> LogReading:
    reading = LogReading()
    open_sources = {metric.name: list(metric.sources) for metric in metrics}  # those that would still overrule what was found
    texts: dict[str, str] = {}
    at_end = True
    for data in pieces(fd, reading, tail):
        text = data.decode("utf-8", "replace")
        for name, sources in open_sources.items():
            for k, source in enumerate(sources):
                hit = last_value(source, text)
                if hit is not None:
                    texts[name], end = hit
                    reading.cut.discard(name)
                    if at_end and end == len(text):
                        reading.cut.add(name)
                    del sources[k:]
                    break
        at_end = False
        if not any(open_sources.values()):
            break
    for metric in metrics:
        _settle(reading, metric, texts.get(metric.name), tail)
    return reading


def _settle(reading: LogReading, metric: Metric, text: str | None, tail: int | None) -> None:
    if text is None:
        keys = [source.name for source in metric.sources if isinstance(source, Key)]
        lack, of_key = ("no_key", {"key": keys[0]}) if len(keys) == len(metric.sources) else ("no_line", {})
        near: dict[str, Any] = {} if tail is None else {"tail": tail}
        reading.problems[metric.name] = Absence(lack + "_near" * bool(near), **of_key, **near)
        return
    value = number(text)
    if value is None and _UNCERTAIN.fullmatch(text):
        reading.problems[metric.name] = Absence("comma", text=text[:40])
    elif value is None:
        reading.problems[metric.name] = Absence("no_number", text=text[:40])
    elif not math.isfinite(value):
        reading.problems[metric.name] = Absence("not_finite", value=str(value))
    else:
        reading.values[metric.name] = value


def number(text: str) -> float | None:
    """`91.2`, `91.2%`, `1e-5`, `nan`; None if it is anything else."""
    match = _NUMBER.fullmatch(text)
    return float(match[1]) if match else None


# --- one piece of a log


def last_value(source: re.Pattern[str] | Key, text: str) -> tuple[str, int] | None:
    """The text of the last value in these lines, and where it ends."""
    if isinstance(source, Key):
        return _last_of_key(source, text)
    match = last_match(source, text)
    if match is None:
        return None
    groups = source.groupindex
    group: str | int = "value" if "value" in groups else 1 if source.groups else 0
    return (_with_rest(match, group) if match[group] else "", match.end(group))


def _with_rest(match: re.Match[str], group: str | int) -> str:
    """The value, with the digits that belong to it beyond a comma where the pattern says nothing of what is there."""
    value, start, end = match[group], match.start(group), match.end(group)
    if number(value) is None or _COMPLETE.fullmatch(value):
        return value
    if end == match.end() and (more := _MORE.match(match.string, end)) is not None:
        value += more[0]
    before = match.string[max(0, start - 2) : start]
    if start == match.start() and before[-1:] == "," and before[:1].isdigit():
        value = before + value
    return value


def last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The last match that lies in one line."""
    last, at = None, 0
    while (match := pattern.search(text, at)) is not None:
        line_end = text.find("\n", match.start())
        if 0 <= line_end < match.end():  # `\s` and the like reach into the next line: once more, within this one
            match = pattern.search(text, match.start(), line_end)
            if match is None:
                at = line_end + 1
                continue
        last = match
        at = match.end() + (match.end() == match.start())
        if at > len(text):
            break
    return last


def _last_of_key(key: Key, text: str) -> tuple[str, int] | None:
    end = len(text)
    needles = key.needles()
    while (at := max(text.rfind(needle, 0, end) for needle in needles)) >= 0:
        start = text.rfind("\n", 0, at) + 1
        stop = text.find("\n", at)
        value = _in_line(text[start : stop if stop >= 0 else len(text)], key.name)
        if value is not None:
            return value, -1  # an object that can be read is complete
        end = start
    return None


def _in_line(line: str, name: str) -> str | None:
    """The value of the key in the object that this line holds, perhaps after other words (`INFO {"loss": 1}`)."""
    start = line.find("{")
    if start < 0:
        return None
    try:
        value_of_line, _ = json.JSONDecoder().raw_decode(line, start)
    except (ValueError, RecursionError):
        value_of_line = _as_python(line[start : line.rfind("}") + 1])
    value = _under(value_of_line, name)
    return None if value is None or isinstance(value, (bool, dict, list)) else str(value)


def _as_python(text: str) -> Any:
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def _under(mapping: Any, name: str) -> Any:
    if not isinstance(mapping, dict):
        return None
    if name in mapping:
        return mapping[name]
    for k, c in enumerate(name):
        if c == "." and name[:k] in mapping and (value := _under(mapping[name[:k]], name[k + 1 :])) is not None:
            return value
    return None


# --- bytes from the end


def pieces(fd: int, reading: LogReading, tail: int | None = None) -> Iterator[bytes]:
    """Whole lines of the file, from its end to its beginning, with `\n` as the only line end."""
    size = os.fstat(fd).st_size
    floor = 0 if tail is None else max(0, size - tail)
    for start, end in reversed(_extents(fd, size)):
        if end > floor:
            yield from _backwards(fd, max(start, floor), end, reading, broken=start < floor)


def _backwards(fd: int, start: int, end: int, reading: LogReading, *, broken: bool) -> Iterator[bytes]:
    """`broken`: the first line may have begun before `start`, and does not count."""
    at, step, carry = end, FIRST, b""
    while at > start:
        step_now = min(step, at - start)
        block = os.pread(fd, step_now, at - step_now)
        reading.bytes_read += len(block)
        data = (block.translate(_ENDS) if b"\r" in block or b"\0" in block else block) + carry
        at, step = at - step_now, min(2 * step, LARGEST)
        if at == start and not broken:
            yield data
            return
        line_end = data.find(b"\n")
        if line_end >= 0:
            yield data[line_end + 1 :]
            carry = data[:line_end]
        elif len(data) > LONGEST:
            yield data
            carry = data[:OVERLAP]
        else:
            carry = data


def _extents(fd: int, size: int) -> list[tuple[int, int]]:
    """The parts of the file that hold data: a hole may be larger than any disk."""
    if os.fstat(fd).st_blocks * 512 >= size:
        return [(0, size)]
    extents: list[tuple[int, int]] = []
    at = 0
    try:
        while at < size and len(extents) < EXTENTS:
            start = os.lseek(fd, at, os.SEEK_DATA)
            at = os.lseek(fd, start, os.SEEK_HOLE)
            extents.append((start, min(at, size)))
    except OSError as e:
        import errno

        if e.errno != errno.ENXIO:  # no more data; anything else: a file system that knows no holes
            return [(0, size)]
        return extents
    return extents if at >= size else [(0, size)]
