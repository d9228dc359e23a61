"""The variables of commands (SPEC A5): `{work_dir}`, `{uni_id}`, `{available_gpu}`, `{gpu_list}`.

Rules: inserted as they are; never after a `$` (that is the shell's own `${…}`); any other brace is somebody else's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

NAMES = ("work_dir", "uni_id", "available_gpu", "gpu_list")
_VARIABLE = re.compile(r"(?<!\$)\{(" + "|".join(NAMES) + r")\}")


def places(text: str, name: str) -> list[tuple[int, int]]:
    """Where this variable stands, from and to."""
    return [match.span() for match in _VARIABLE.finditer(text) if match[1] == name]


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with the variables whose values are given; the others stay for whoever knows them."""
    return _VARIABLE.sub(lambda match: values.get(match[1], match[0]), text)
