"""Whether a work_dir may be put into a command: `{work_dir}` is filled in raw, so bash reads it as part of the text (SPEC A5).

Rules: characters by which a path becomes another command are refused whatever quotes are around the place, for an inner shell
(`bash -c "cd {work_dir}"`) may read it once more. What only splits or expands (a space, `*`) is refused outside of quotes, and
where nobody can tell. Letters of any language are plain; so are bytes that are none.
"""

from __future__ import annotations

from collections.abc import Sequence

from jostle.core.variables import places
from jostle.formats import shelltext
from jostle.formats.taskfile import Block
from jostle.formats.wording import shown
from jostle.wording.flaws import flaw

ACTING = frozenset("$`\\\"'|&;<>(){}")
SPLITTING = frozenset("*?[]")


def flaws(work_dir: str, blocks: Sequence[Block], file: str) -> list[tuple[str, int, str]]:
    """What is wrong with the blocks whose commands use it, as (file, line, text)."""
    always = {c for c in work_dir if c in ACTING or not (c.isprintable() or c.isspace() or "\udc80" <= c <= "\udcff")}
    unquoted = {c for c in work_dir if c in SPLITTING or c.isspace()}
    if not always and not unquoted:
        return []
    listed: list[tuple[str, int, str]] = []
    for block in blocks:
        acting = next((used for command in block.commands if (used := _acting(command, always, unquoted))), None)
        if acting:
            hint = "" if always else ', or quotes around it as in "{work_dir}/data"'
            listed.append((
                file, block.line, flaw("work_dir", text=shown(work_dir), acting=_listed(acting), hint=hint),
            ))  # fmt: skip
    return listed


def _acting(command: str, always: set[str], unquoted: set[str]) -> set[str]:
    """The characters that would act in this command."""
    spots = places(command, "work_dir")
    if not spots or always:
        return always if spots else set()
    try:
        around = shelltext.quotes(command, [(start, end, False) for start, end in spots])
    except shelltext.Unclear:
        return unquoted
    return unquoted if any(quote not in ("'", '"') for quote in around) else set()


def _listed(characters: set[str]) -> str:
    return " ".join("a space" if c == " " else shown(c) for c in sorted(characters))
