"""What `jostle` alone prints: the verbs in groups, a line each."""

from __future__ import annotations

from jostle.cli.verbs import GROUPS

HEAD = """jostle runs your experiments on GPUs that others use too.

usage: jostle VERB [options]        jostle VERB --help shows an example
"""

TAIL = """
Ids are written 12, 3-7, 1,4, last or all.
JOSTLE_HOME holds state, socket and settings.
Try it without a GPU: jostle run --gpus sim:4x24 FILE, or jostle demo."""


def overview() -> str:
    lines = [HEAD]
    for group, verbs in GROUPS.items():
        lines.append(f"{group}:")
        lines += [f"  {verb:<11} {line}" for verb, (_, line) in verbs.items()]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n" + TAIL
