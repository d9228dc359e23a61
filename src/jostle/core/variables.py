"""The variables of commands (SPEC A5): `{work_dir}`, `{uni_id}`, `{available_gpu}`, `{gpu_list}`; and those of the environment by
which a program knows what it belongs to.

Rules of the former: inserted as they are; never after a `$` (that is the shell's own `${…}`); any other brace is somebody else's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

UNI_ID_FILE = "JOSTLE_UNI_ID_FILE"
"""In a job's environment: it takes part in the uni_id protocol (SPEC A21) by this file: variables in its commands, a word about
its end. (uniid/, which scripts use alone, has the name for itself.)"""

ALLOCATION = "JOSTLE_ALLOC"
"""In a program's or shell's environment: the allocation that it was made for; what it submits runs in there, too."""

NAMES = ("work_dir", "uni_id", "available_gpu", "gpu_list")
_VARIABLE = re.compile(r"(?<!\$)\{(" + "|".join(NAMES) + r")\}")


def places(text: str, name: str) -> list[tuple[int, int]]:
    """Where this variable stands, from and to."""
    return [match.span() for match in _VARIABLE.finditer(text) if match[1] == name]


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with the variables whose values are given; the others stay for whoever knows them."""
    return _VARIABLE.sub(lambda match: values.get(match[1], match[0]), text)
