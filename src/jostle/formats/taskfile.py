"""Task files (`command_gpu.txt`, `command_gpus.txt`, `command.txt`): read, written, and edited as a person would.

Rules: how blocks are recognised stands in jostle.formats.taskblocks. A file is taken whole or not at all, and all its errors are
told at once; `lenient` skips bad blocks with a warning instead. Editing touches only the lines that must change: comments, order,
quotes, line ends and blocks that are not understood stay. What cannot be written is refused, never bent.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from jostle.formats import plaintext
from jostle.formats.flaws import BadFiles
from jostle.formats.nodes import Flaw
from jostle.formats.taskblocks import Block, lines_of, paragraphs, queue_of
from jostle.wording.flaws import flaw

__all__ = ["Block", "Broken", "broken", "edited", "load", "parse", "text_of"]

MAX_BLOCKS = 200_000


def parse(text: str, mode: str, file: str = "-") -> tuple[list[Block], list[tuple[int, str]]]:
    """The good blocks, and what is wrong with the others as (line, text)."""
    blocks: list[Block] = []
    flaws: list[tuple[int, str]] = []
    for paragraph in paragraphs(lines_of(text), mode):
        if len(blocks) >= MAX_BLOCKS:
            flaws.append((paragraph.first + 1, flaw("blocks_many", most=MAX_BLOCKS, file=file)))
            break
        blocks += [paragraph.block] if paragraph.block is not None else []
        flaws += sorted(paragraph.flaws)
    return blocks, flaws


@dataclass(frozen=True, kw_only=True, slots=True)
class Broken:
    """A block that is not understood."""

    line: int  # its first and its last line, from 1; comments included
    last: int
    text: str
    queue: int | None  # where it seems to belong
    flaws: tuple[tuple[int, str], ...]


def broken(text: str, mode: str) -> list[Broken]:
    """The blocks that `parse` leaves out, as they stand there: for an editor."""
    lines = lines_of(text)
    return [
        Broken(
            line=p.first + 1, last=p.last + 1, text="\n".join(lines[p.first : p.last + 1]), queue=queue_of(p),
            flaws=tuple(sorted(p.flaws)),
        )
        for p in itertools.islice(paragraphs(lines, mode), MAX_BLOCKS) if p.block is None
    ]  # fmt: skip


def load(path: str, mode: str, *, lenient: bool = False) -> tuple[list[Block], list[str]]:
    """The blocks of a file, and warnings. BadFiles with everything that is wrong."""
    blocks, warnings, flaws = read(path, mode, lenient=lenient)
    if flaws:
        raise BadFiles(flaws, warnings)
    return blocks, warnings


def read(path: str, mode: str, *, lenient: bool = False) -> tuple[list[Block], list[str], list[tuple[str, int, str]]]:
    """The good blocks, warnings, and what is wrong; with `lenient`, bad blocks are warnings."""
    try:
        text, warning = plaintext.read(path, "a task file")
    except Flaw as e:
        return [], [], [(path, e.line, e.text)]
    blocks, flaws = parse(text, mode, path)
    warnings: list[str] = [flaw("told_at", place=path, text=warning)] if warning else []
    if lenient:
        return blocks, [*warnings, *(f"{path}:{line}: {what}; the block is skipped" for line, what in flaws)], []
    return blocks, warnings, [(path, line, what) for line, what in flaws]


def text_of(blocks: Sequence[Block], mode: str) -> str:
    """A new file, the queue first in each block. Invalid if a block cannot be written so that it reads back the same."""
    from jostle.formats.taskedit import written

    return "\n".join("".join(line + "\n" for line in written(block, mode)) for block in blocks)


def edited(old: str, blocks: Sequence[Block], mode: str) -> str:
    """The old text with these blocks in this order. Invalid if a block cannot be written."""
    from jostle.formats.taskedit import Edit

    return Edit(old, mode).text(blocks)
