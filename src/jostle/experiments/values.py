"""The values of a sweep: numbers and texts as their author wrote them, that can be given to a command."""

from __future__ import annotations

from jostle.experiments import spans
from jostle.formats.flaws import Findings
from jostle.formats.nodes import Map, Node, Scalar, Seq
from jostle.formats.wording import shown
from jostle.wording.flaws import flaw

RESERVED = ("args", "config_file")


def value(sheet: Findings, what: str, node: Node) -> Scalar | None:
    if not isinstance(node, Scalar):
        sheet.wrong(node.line, flaw("as_value", key=what, shape=node.shape))
        return None
    if "\0" in node.text or not _utf8(node.text):
        sheet.wrong(node.line, flaw("value_ungiven", key=what, value=shown(node.text)))
        return None
    return node


def _utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def values(sheet: Findings, what: str, node: Node) -> tuple[Scalar, ...]:
    """A list of values, each once; one value is a list of one."""
    if isinstance(node, Map):
        return spans.values(sheet, what, node)
    items = node.items if isinstance(node, Seq) else [node]
    if not items:
        sheet.wrong(node.line, flaw("value_shape", key=what, shape="an empty list", expected="a list of values"))
        return ()
    return tuple(scalar for scalar in (value(sheet, what, item) for item in items) if scalar is not None)


def axis_values(sheet: Findings, what: str, node: Node) -> tuple[Scalar, ...]:
    """The values of a key of a sweep, where `0-9` would be one of them."""
    return tuple(scalar for scalar in values(sheet, what, node) if not spans.refuse_dashed(sheet, what, scalar))


def key_good(sheet: Findings, where: str, key: Scalar) -> bool:
    good = bool(key.text) and key.text.isprintable() and not any(c in " {}\0" for c in key.text) and len(key.text) <= 100
    if not good:
        sheet.wrong(key.line, flaw("axis_key", where=where, key=shown(key.text)))
    elif key.text in RESERVED:
        sheet.wrong(key.line, flaw("axis_reserved", where=where, key=key.text))
        return False
    return good
