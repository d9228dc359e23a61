"""Limits of a person as files say them: the `limits:` of config.yaml, and the lab's file, which has nothing else.

The lab's file is read by engines, which have no YAML: it is `key: value` lines with `#` comments, so that YAML readers and ours
see the same in it.
"""

from __future__ import annotations

from jostle.core.fields import LIMITS
from jostle.formats import spec, yamlfile
from jostle.formats.flaws import BadFiles, Findings
from jostle.formats.nodes import Flaw, Map, Node, Scalar
from jostle.formats.wording import null, shown
from jostle.wording.flaws import flaw

SUCH = "such as `max_total_gpus: 4`"


def load(path: str) -> dict[str, int]:
    """What the lab's file sets; everything that is wrong with it is told at once."""
    findings = Findings()
    try:
        values = read(_lines(yamlfile.text_of(path, "a file of limits"), findings), findings, "")
    except Flaw as e:
        raise BadFiles([(path, e.line, e.text)]) from None
    if findings.flaws:
        raise BadFiles([(path, line, text) for line, text in sorted(findings.flaws)])
    return values


def read(node: Node, findings: Findings, where: str = " in limits") -> dict[str, int]:
    """The limits that a file sets; nothing stands for what it does not say."""
    if not isinstance(node, Map):
        findings.wrong(node.line, flaw("value_shape", key="limits", shape=node.shape, expected=f"limits {SUCH}"))
        return {}
    parts = {key: value for key, value in findings.keys(node, tuple(LIMITS), where).items() if not null(value)}
    return {key: findings.checked(key, value, spec.reader(LIMITS[key].kind)) for key, value in parts.items()}


def _lines(text: str, findings: Findings) -> Map:
    items: list[tuple[Scalar, Node]] = []
    for number, line in enumerate(text.split("\n"), 1):
        content = line.partition(" #")[0].strip()
        if content in ("", "---") or content.startswith("#"):
            continue
        key, colon, value = content.partition(":")
        if not colon or line[0].isspace() or (value and not value[0].isspace()):
            findings.wrong(number, flaw("block_odd", text=shown(content), expected=f"a limit {SUCH}"))
        else:
            items.append((Scalar(number, key.strip(), True), Scalar(number, value.strip(), True)))
    return Map(1, items)
