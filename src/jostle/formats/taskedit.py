"""Writing blocks into a task file that a person keeps: see jostle.formats.taskfile, the door to this.

Rules: a block that stays is not touched, a block that moves takes its comments along, a block that changes keeps its comments and
every line that still holds. What is written is read back before it is used, so that no block can come out as another.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from jostle.errors import Invalid
from jostle.formats import difference, spec
from jostle.formats.taskblocks import Block, BlockEntry, Number, Paragraph, bare, command, comment, lines_of, numbers, paragraphs
from jostle.formats.wording import shown
from jostle.wording.flaws import flaw

_LINE = re.compile(r"[^\r\n]*(?:\r?\r?\n|\r|\Z)")
_BLANK_START = re.compile(r"(?:[^\S\r\n]*(?:\r?\r?\n|\r))*")


def written(block: Block, mode: str, *, pair: bool = False, quoted: bool = False) -> list[str]:
    """The lines of a new block. Invalid if they would not read back as this block."""
    commands = [_line(text, quoted) for text in block.commands]
    queue, memory = str(block.queue), _shown(block.memory_gb)
    if pair and block.gpus == 1:
        lines = [*commands, f"{queue},{memory}"]
    else:
        lines = [queue, *commands, *([str(block.gpus)] if mode == "multi" else []), memory]
    if read_back(lines, mode) != block:
        raise Invalid(flaw("task_unwritable", queue=queue, n=len(commands), gpus=block.gpus, memory=memory, mode=mode))
    return lines


def read_back(lines: Sequence[str], mode: str) -> Block | None:
    paragraphs_of = list(paragraphs(lines_of("\n".join(lines)), mode))
    return paragraphs_of[0].block if len(paragraphs_of) == 1 else None


def _line(text: str, quoted: bool) -> str:
    """A command as a line, in double quotes where it needs or likes them."""
    plain, wrapped = text, f'"{text}"'
    for line in (wrapped, plain) if quoted else (plain, wrapped):
        if _means(line, text):
            return line
    raise Invalid(flaw("command_unwritable", text=shown(text)))


def _means(line: str, text: str) -> bool:
    content = bare(line)
    if not content or comment(content) or numbers(content) or content.endswith("\\") or len(lines_of(line)) > 1:
        return False
    try:
        return spec.command(command(content)) == text
    except ValueError:
        return False


def _shown(gb: float) -> str:
    return str(int(gb)) if gb == gb and abs(gb) < 1e15 and gb == int(gb) else repr(gb)


class Edit:
    """A text that is to get other blocks."""

    def __init__(self, old: str, mode: str) -> None:
        self.old, self.mode = old, mode
        self.lines = lines_of(old)
        self.eol = "\r" if old.endswith("\r") else next((eol for eol in ("\r\n", "\n", "\r") if eol in old), "\n")
        self.paragraphs = [paragraph for paragraph in paragraphs(self.lines, mode) if paragraph.block is not None]
        entries = [entry for paragraph in self.paragraphs for entry in _commands(paragraph, mode)]
        self.quoted = sum(command(entry.text) != entry.text for entry in entries) * 2 > len(entries)
        self.pair = sum(len(paragraph.entries[-1].numbers) == 2 for paragraph in self.paragraphs) * 2 > len(self.paragraphs)

    def text(self, blocks: Sequence[Block]) -> str:
        gaps, old_texts = self._pieces()
        if not self.paragraphs:
            return self._appended(blocks)
        places = self._places(blocks, old_texts)
        return self._joined(gaps, places)

    def _pieces(self) -> tuple[list[str], list[str]]:
        """The old text as gap, paragraph, gap, …, gap; a paragraph's last line end belongs to the gap after it."""
        starts = [0]
        for line in _LINE.finditer(self.old):
            starts.append(line.end())
        gaps, old_texts, at = [], [], 0
        for paragraph in self.paragraphs:
            start, end = starts[paragraph.first], starts[paragraph.last] + len(self.lines[paragraph.last])
            gaps.append(self.old[at:start])
            old_texts.append(self.old[start:end])
            at = end
        return [*gaps, self.old[at:]], old_texts

    def _places(self, blocks: Sequence[Block], old_texts: list[str]) -> list[list[str]]:
        """For each old paragraph what stands in its place: itself, others before or after it, or nothing."""
        old = [paragraph.block for paragraph in self.paragraphs]
        places: list[list[str]] = [[] for _ in old]
        steps = difference.steps(old, list(blocks))
        moved: dict[Block | None, list[str]] = defaultdict(list)
        for kind, i1, i2, _, _ in steps:
            for k in range(i1, i2) if kind != "equal" else ():
                moved[old[k]].append(old_texts[k])
        for kind, i1, i2, j1, j2 in steps:
            if kind == "equal":
                for k in range(i1, i2):
                    places[k].append(old_texts[k])
            elif kind == "insert":
                new = [self._new(block, None, moved) for block in blocks[j1:j2]]
                if i1:
                    places[i1 - 1] += new
                else:
                    places[0] = new
            else:
                for n, block in enumerate(blocks[j1:j2]):
                    place = i1 + n if i1 + n < i2 else None
                    places[min(i1 + n, i2 - 1)].append(self._new(block, place, moved))
        return places

    def _new(self, block: Block, place: int | None, moved: dict[Block | None, list[str]]) -> str:
        """The text of a block that is not in its old place: moved, changed there, or new."""
        if moved.get(block):
            return moved[block].pop(0)
        if place is not None:
            return self.eol.join(self._changed(self.paragraphs[place], block))
        return self.eol.join(written(block, self.mode, pair=self.pair, quoted=self.quoted))

    def _joined(self, gaps: list[str], places: list[list[str]]) -> str:
        parts = []
        gap = gaps[0]
        for k, place in enumerate(places):
            after = gaps[k + 1]
            if place:
                parts += [gap, (self.eol * 2).join(place)]
                gap = after
            else:
                gap += after[_BLANK_START.match(after).end() :]  # type: ignore[union-attr]  # it matches nothing at least
        if parts and not places[-1] and not gap.strip():
            gap = self.eol if gaps[-1] else ""
        return "".join(parts) + gap

    def _appended(self, blocks: Sequence[Block]) -> str:
        """A text without good blocks gets them at its end."""
        if not blocks:
            return self.old
        texts = [self.eol.join(written(block, self.mode)) for block in blocks]
        new = (self.eol * 2).join(texts) + self.eol
        if not bare(self.old):
            return self.old + new if not self.lines[-1] else self.old + self.eol + new
        return self.old + (self.eol if not bare(self.lines[-1]) else self.eol * 2) + new

    def _changed(self, paragraph: Paragraph, block: Block) -> list[str]:
        """The paragraph's lines with this block's values; comments stay where they are."""
        lines = [self.lines[k] for k in range(paragraph.first, paragraph.last + 1)]
        try:
            new_lines = _Lines(paragraph, lines, self.mode).with_values(block)
        except Invalid:
            new_lines = []
        if new_lines and read_back(new_lines, self.mode) == block:
            return new_lines
        pair = len(paragraph.entries[-1].numbers) == 2
        return [*(line for line in lines if comment(bare(line))), *written(block, self.mode, pair=pair, quoted=self.quoted)]


class _Lines:
    """The lines of one paragraph while a few of them change."""

    def __init__(self, paragraph: Paragraph, lines: list[str], mode: str) -> None:
        self.paragraph, self.mode = paragraph, mode
        self.now: list[list[str]] = [[line] for line in lines]  # what stands in the place of each old line
        self.commands = _commands(paragraph, mode)

    def with_values(self, block: Block) -> list[str]:
        old, entries = self.paragraph.block, self.paragraph.entries
        assert old is not None
        last = entries[-1]
        if block.memory_gb != old.memory_gb:  # first: it stands behind the queue on the same line
            self._number(last, last.numbers[-1], _shown(block.memory_gb))
        if block.queue != old.queue:
            at = last if len(last.numbers) == 2 else entries[0]
            self._number(at, at.numbers[0], str(block.queue))
        if block.gpus != old.gpus and self.mode == "multi" and len(last.numbers) == 1:
            self._number(entries[-2], entries[-2].numbers[0], str(block.gpus))
        self._write_commands(old.commands, block.commands)
        return [line for place in self.now for line in place]

    def _number(self, entry: BlockEntry, number: Number, value: str) -> None:
        place = self.now[entry.first - self.paragraph.first]
        start = place[0].index(entry.text[: entry.numbers[0].end]) + number.start
        end = start + (len(number.text) if number.unit in ("", "G") else number.end - number.start)
        place[0] = place[0][:start] + value + place[0][end:]

    def _write_commands(self, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        quoted = any(command(entry.text) != entry.text for entry in self.commands)
        for kind, i1, i2, j1, j2 in reversed(difference.steps(old, new)):
            if kind == "equal":
                continue
            lines = [_line(text, quoted) for text in new[j1:j2]]
            for k in range(i1, i2):
                self._replace(self.commands[k], lines[k - i1 : k - i1 + 1] if k < i2 - 1 else lines[k - i1 :])
            if kind == "insert":
                self._insert(i1, lines)

    def _replace(self, entry: BlockEntry, lines: list[str]) -> None:
        places = self.now[entry.first - self.paragraph.first : entry.last - self.paragraph.first + 1]
        indent = places[0][0][: len(places[0][0]) - len(places[0][0].lstrip())]
        for place in places[1:]:
            if not comment(bare(place[0])):
                place.clear()
        places[0][:] = [indent + line for line in lines]

    def _insert(self, at: int, lines: list[str]) -> None:
        """After the command before, or before the first one."""
        if at:
            self.now[self.commands[at - 1].last - self.paragraph.first] += lines
        else:
            place = self.now[self.commands[0].first - self.paragraph.first]
            place[:0] = lines


def _commands(paragraph: Paragraph, mode: str) -> list[BlockEntry]:
    if len(paragraph.entries[-1].numbers) == 2:
        return paragraph.entries[:-1]
    return paragraph.entries[1 : -2 if mode == "multi" else -1]
