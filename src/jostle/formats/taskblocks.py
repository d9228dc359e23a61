"""How the blocks of a task file are recognised (SPEC A1–A4); jostle.formats.taskfile is the door to this.

Rules. Lines that hold nothing visible separate blocks; lines that begin with `#` are comments, also between the lines of a block,
and end nothing. What remains of a block is recognised by its first and last lines:

- the last line is `queue,memory` (also `1, 20` or `1，20`): the lines before it are commands (A1); 1 GPU;
- the first line is a number and the last one too: queue, commands, memory (A2); in multi mode queue, commands, count, memory
  (A3).

A *number line* begins with a number; a comment may follow: `1 #queue`, `20 // x`, `2张卡`, `20 memory`. Memory may say its unit:
`20GB`. `7z x a`, `2>&1 make` and `1-2` are no number lines. Since no command is a number, a number line anywhere else is an
error (a blank line was forgotten), as is an A3 block in single mode and an A2 block in multi mode; nothing is guessed there.
Where a number line must stand, and the block would be an error without one, a label may stand before the number: `队列 3`,
`显存 5 GB`, `queue 3`. Anywhere else such a line is a command: no label takes a command from a block that is good without it.

A command loses a pair of double quotes that wraps it as a whole (and a comment behind that), and nothing else; `"a b" c "d"` is
no such pair. What stands in quotes is never taken for a number or comment. A line that ends with a backslash goes on in the next
line of its block, as in a shell, but never in the last line, which must be a number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from jostle.core.kinds import MAX_GPUS, MAX_MIB
from jostle.formats import spec
from jostle.formats.wording import shown
from jostle.wording.flaws import flaw

MAX_QUEUE = 10**12
MAX_GB = MAX_MIB // 1024
MAX_DIGITS = 40  # of a number that is looked at; longer ones are too large in any case

_BREAK = re.compile(r"\r?\r?\n|\r")  # bounded, so that no run of \r takes long
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?|[-+]?(?:infinity|inf|nan)(?!\w)", re.IGNORECASE)
_UNIT = re.compile(r"\s*([MGT])i?B?(?![A-Za-z0-9_+])", re.IGNORECASE)
_COMMA = re.compile(r"\s*[,，、]\s*")
_WORD = r"(?:queue|memory|mem|gpu|(?=[^\W\d_]{0,40}[^\x00-\x7f])[^\W\d_]{1,40}(?:\([^()]{0,40}\)|（[^（）]{0,40}）)?)"
_LABEL = re.compile(rf"{_WORD}(?:\s+{_WORD}){{0,5}}(?:\s*[:：]\s*|\s+|(?<=[^\x00-\x7f])(?=\d))", re.IGNORECASE)
_TUPLE = re.compile(r"[\d.]{1,40}\s*[,，]")  # a whole line `1,`: the number of a list of some programming language
_OPENS_AFTER = " \t='([{,:;|&>"  # before a double quote that begins a text inside another
_IN_GB = {"M": 1 / 1024, "G": 1, "T": 1024}


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """One task: what it runs and what it needs."""

    queue: int
    commands: tuple[str, ...]
    memory_gb: float  # an int where the file has one
    gpus: int = 1
    line: int = field(default=0, compare=False)  # of its first line, from 1


@dataclass(frozen=True, slots=True)
class Number:
    text: str
    unit: str  # "", M, G or T
    start: int  # its place in the line, sign to unit
    end: int


@dataclass(slots=True)
class BlockEntry:
    """A line of a block that is no comment, with those that continue it."""

    first: int  # physical lines, from 0, both inclusive
    last: int
    text: str  # without space around it
    numbers: tuple[Number, ...]  # of a number line: one, or two with a comma between (or more)


@dataclass(slots=True)
class Paragraph:
    """Lines between blank ones that hold more than comments."""

    first: int  # physical lines, from 0, both inclusive; comments included
    last: int
    entries: list[BlockEntry]
    block: Block | None = None
    flaws: list[tuple[int, str]] = field(default_factory=list)


def queue_of(paragraph: Paragraph) -> int | None:
    """The queue that a block which is not understood seems to belong to: `2,twelve`, or a number on its first line."""
    first, last = paragraph.entries[0], paragraph.entries[-1]
    if _COMMA.search(last.text) and (number := _NUMBER.match(last.text)) and _COMMA.match(last.text, number.end()):
        text = number[0]
    elif len(first.numbers) == 1:
        text = first.numbers[0].text
    else:
        return None
    return int(text) if text.isdecimal() and len(text) <= len(str(MAX_QUEUE)) and int(text) <= MAX_QUEUE else None


def lines_of(text: str) -> list[str]:
    return _BREAK.split(text)


def bare(line: str) -> str:
    """The line without what cannot be seen around it."""
    return line.strip().strip("\ufeff\u200b").strip()


def comment(text: str) -> bool:
    return text[:1] in ("#", "＃")


def paragraphs(lines: list[str], mode: str) -> Iterator[Paragraph]:
    """The blocks of a file, each read or with its flaws."""
    first = None
    for k, line in enumerate([*lines, ""]):
        if bare(line):
            first = k if first is None else first
        elif first is not None:
            entries = _entries(lines, first, k - 1)
            if entries:
                paragraph = Paragraph(first, k - 1, entries)
                _recognise(paragraph, mode)
                yield paragraph
            first = None


def _entries(lines: list[str], first: int, last: int) -> list[BlockEntry]:
    texts = [(k, text) for k in range(first, last + 1) if not comment(text := bare(lines[k]))]
    entries: list[BlockEntry] = []
    at = 0
    while at < len(texts):
        start = at
        parts = []
        while _continues(texts[at][1]):
            parts.append(texts[at][1][:-1])
            if at + 1 >= len(texts) or (at + 2 == len(texts) and (numbers(texts[at + 1][1]) or labelled(texts[at + 1][1]))):
                break
            at += 1
            if lines[texts[at][0]][:1].isspace() and not parts[-1][-1:].isspace():
                parts.append(" ")
        else:
            parts.append(texts[at][1])
        text = "".join(parts).strip()
        entries.append(BlockEntry(texts[start][0], texts[at][0], text, numbers(text) if start == at else ()))
        at += 1
    return entries


def _continues(text: str) -> bool:
    return text.endswith("\\") and (len(text) - len(text.rstrip("\\"))) % 2 == 1


def numbers(text: str) -> tuple[Number, ...]:
    """The numbers of a number line; none if it is another line."""
    numbers_of_line: list[Number] = []
    at = 0
    while number := _NUMBER.match(text, at):
        unit = _UNIT.match(text, number.end())
        at = unit.end() if unit else number.end()
        numbers_of_line.append(Number(number[0], unit[1].upper() if unit else "", number.start(), at))
        comma = _COMMA.match(text, at)
        if comma is None:
            return tuple(numbers_of_line) if _ends(text[at : at + 200]) else ()
        at = comma.end()
    return ()


def labelled(text: str) -> Number | None:
    """The number of a line such as `显存 5 GB`, where a number line must stand; None if it is another line."""
    label = _LABEL.match(text)
    after = numbers(text[label.end() :]) if label else ()
    if label is None or len(after) != 1:
        return None
    number = Number(after[0].text, after[0].unit, after[0].start + label.end(), after[0].end + label.end())
    rest = text[number.end :].lstrip()
    return None if rest[:1].isascii() and rest[:1].isalpha() else number  # `mem 20 x` is a command


def _stands(entry: BlockEntry) -> tuple[Number, ...]:
    """The number of a line where one must stand; none if it has none."""
    if entry.numbers or entry.first != entry.last:
        return entry.numbers if len(entry.numbers) == 1 else ()
    number = labelled(entry.text)
    return (number,) if number is not None else ()


def _ends(rest: str) -> bool:
    """Whether what follows a number is nothing or a comment."""
    after = rest.lstrip()
    if not after or comment(after) or after.startswith(("//", "(", "（")):
        return True
    return after[0].isalpha() and (rest[0].isspace() or not after[0].isascii())


def command(text: str) -> str:
    """The command without the double quotes that wrap it, and without a comment behind those."""
    if text[:1] == "“" and text.find("”") == len(text) - 1:  # an input method wrote them
        return text[1:-1]
    end = text.rfind('"') + 1
    behind = text[end:]
    if behind and not (behind[0].isspace() and comment(behind.lstrip())):
        return text
    return text[1 : end - 1] if _wrapped(text[:end]) else text


def _wrapped(text: str) -> bool:
    """Whether the first double quote is closed by the last character. Quotes may stand inside: `"run "a b" now"`."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return False
    inside = False  # in a text within the quotes
    k = 1
    while k < len(text) - 1:
        if text[k] == "\\":
            k += 1
        elif text[k] == '"':
            if inside:
                inside = False
            elif text[k - 1] in _OPENS_AFTER or (k == 1 and not text[2].isspace()):
                inside = True
            else:
                return False
        k += 1
    return k == len(text) - 1 and not inside  # beyond it: the last quote is escaped


def _recognise(paragraph: Paragraph, mode: str) -> None:
    first, last = paragraph.entries[0], paragraph.entries[-1]
    if len(last.numbers) == 2 and not (first is not last and first.numbers):
        queue, memory = last.numbers
        _read(paragraph, queue, last, paragraph.entries[:-1], None, memory, last)
    elif first is not last and (queue_at := _stands(first)) and (memory_at := _stands(last)):
        first.numbers, last.numbers = queue_at, memory_at
        _queue_first(paragraph, mode)
    else:
        paragraph.flaws.append(_shapeless(paragraph, mode))


def _queue_first(paragraph: Paragraph, mode: str) -> None:
    first, last, middle = paragraph.entries[0], paragraph.entries[-1], paragraph.entries[1:-1]
    if all(entry.numbers for entry in middle):
        paragraph.flaws.append((first.first + 1, flaw("block_empty")))
        return
    if mode == "multi" and len(middle) > 1 and not middle[-1].numbers:
        middle[-1].numbers = _stands(middle[-1])
    counted = len(middle[-1].numbers) == 1
    if mode == "multi" and counted:
        _read(paragraph, first.numbers[0], first, middle[:-1], middle[-1], last.numbers[0], last)
    elif mode == "multi":
        paragraph.flaws.append((last.first + 1, flaw("block_no_count")))
    elif counted and not any(entry.numbers for entry in middle[:-1]):
        paragraph.flaws.append((middle[-1].first + 1, flaw("block_count", text=shown(middle[-1].text))))
    else:
        _read(paragraph, first.numbers[0], first, middle, None, last.numbers[0], last)


def _shapeless(paragraph: Paragraph, mode: str) -> tuple[int, str]:
    """What is wrong with a block whose first and last lines make no format."""
    first, last = paragraph.entries[0], paragraph.entries[-1]
    ends = "the count of GPUs and the memory on the last two lines" if mode == "multi" else "the memory in GB on the last line"
    if any(_TUPLE.fullmatch(entry.text) for entry in paragraph.entries[:-1]):
        way = flaw("block_way", ends=ends) if mode == "multi" else "the commands, then queue and memory as `1,20`"
        return first.first + 1, flaw("block_list", way=way)
    if first is last and first.numbers:
        return first.first + 1, flaw("block_no_commands", ends=ends)
    if len(last.numbers) == 2:
        return first.first + 1, flaw("block_two_ends", first=shown(first.text), last=shown(last.text), ends=ends)
    if len(last.numbers) > 2:
        return last.first + 1, flaw("block_numbers", text=shown(last.text))
    if len(last.numbers) == 1:
        return first.first + 1, flaw("block_no_queue")
    if len(first.numbers) == 2:
        return first.first + 1, flaw("block_before", text=shown(first.text))
    if first.numbers:
        return last.first + 1, flaw("block_end", text=shown(last.text), ends=ends)
    return last.first + 1, flaw("block_end_other", text=shown(last.text), ends=ends)


def _read(
    paragraph: Paragraph, queue: Number, queue_at: BlockEntry, commands: list[BlockEntry], count: BlockEntry | None,
    memory: Number, memory_at: BlockEntry,
) -> None:  # fmt: skip
    """The values of a block whose lines are known for what they are."""
    flaws = paragraph.flaws
    texts = list(_commands(commands, flaws))
    if not commands or (not texts and not flaws):
        flaws.append((paragraph.entries[0].first + 1, flaw("block_empty")))
    gpus = 1
    if count is not None:
        gpus = _integer(count.numbers[0], count, f"a count of GPUs from 1 to {MAX_GPUS}", 1, MAX_GPUS, flaws)
    id = _integer(queue, queue_at, "the number of a queue, a whole number of at least 0", 0, MAX_QUEUE, flaws)
    size = _size(memory, memory_at, flaws)
    if not flaws:
        paragraph.block = Block(queue=id, commands=tuple(texts), memory_gb=size, gpus=gpus, line=paragraph.entries[0].first + 1)


def _commands(entries: list[BlockEntry], flaws: list[tuple[int, str]]) -> Iterator[str]:
    stray = next((entry for entry in entries if entry.numbers), None)  # the first tells it all
    if stray is not None:
        flaws.append((stray.first + 1, flaw("block_stray", text=shown(stray.text))))
    for entry in entries if stray is None else ():
        try:
            yield spec.command(command(entry.text))
        except ValueError as e:
            flaws.append((entry.first + 1, flaw("block_command", text=shown(entry.text), expected=str(e))))


def _integer(number: Number, at: BlockEntry, expected: str, low: int, high: int, flaws: list[tuple[int, str]]) -> int:
    value = _value(number)
    if number.unit or value != value or not low <= value <= high or value != int(value):
        flaws.append((at.first + 1, flaw("block_odd", text=shown(at.text), expected=expected)))
        return low
    return int(value)


def _size(number: Number, at: BlockEntry, flaws: list[tuple[int, str]]) -> float:
    value = _value(number) * _IN_GB[number.unit or "G"]
    if not 0 <= value <= MAX_GB:
        what = "is less than nothing" if value < 0 else "is not understood"
        flaws.append((at.first + 1, flaw("block_memory", text=shown(at.text), what=what, most=MAX_GB)))
        return 0
    return value


def _value(number: Number) -> float:
    """Whole numbers stay whole; what is too long to be meant is infinite."""
    if len(number.text) > MAX_DIGITS:
        return math.inf
    try:
        return int(number.text)
    except ValueError:
        return float(number.text)
