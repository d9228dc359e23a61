"""Values of a sweep that are said by their ends: `{range: [0, 10]}`, `{linspace: [0, 1, 5]}`, `{logspace: [-5, -1, 5]}`.

They mean what Python and numpy mean: the end of a range is not part of it, those of the others are, and those of a logspace are
powers of ten. Each value is spelled as a person would: 0.3, and never 0.30000000000000004.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from jostle.formats.flaws import Findings
from jostle.formats.jobfile import MAX_JOBS
from jostle.formats.nodes import Map, Node, Scalar, Seq
from jostle.formats.wording import shown
from jostle.wording.flaws import flaw

EXAMPLES = {"range": "[0, 10] or [0, 10, 2]", "linspace": "[0, 1, 5]", "logspace": "[-5, -1, 5]"}
_DASHED = re.compile(r"(\d{1,9})\s*(?:-|\.\.\.?)\s*(\d{1,9})\Z", re.ASCII)
_LONGEST = 30  # characters of a number: 1e999999999 would be computed with all its digits


def values(sheet: Findings, what: str, node: Map) -> tuple[Scalar, ...]:
    """What such a mapping stands for; flaws go to the sheet."""
    kind, arguments = (node.items[0][0].text, node.items[0][1]) if len(node.items) == 1 else ("", node)
    if kind not in EXAMPLES:
        sheet.wrong(node.line, flaw("span_shape", key=what, shape=node.shape))
        return ()
    numbers = _numbers(arguments)
    try:
        if kind == "logspace" and numbers and any("e" in text.lower() for text in _texts(arguments)):
            raise ValueError("takes exponents of ten: from 1e-5 to 1e-1 is [-5, -1, 5]")
        texts = {"range": _range, "linspace": _linspace, "logspace": _logspace}[kind](numbers)
    except ValueError as e:
        sheet.wrong(arguments.line, flaw("span_odd", key=what, kind=kind, problem=str(e), such=EXAMPLES[kind]))
        return ()
    return tuple(Scalar(arguments.line, text, True) for text in texts)


def refuse_dashed(sheet: Findings, what: str, node: Scalar) -> bool:
    """`0-9` is one text, and hardly meant so."""
    match = _DASHED.match(node.text) if node.plain else None
    if match is None or int(match[1]) >= int(match[2]):
        return False
    meant = f"{{range: [{int(match[1])}, {int(match[2]) + 1}]}}"
    sheet.wrong(node.line, flaw("span_text", key=what, value=shown(node.text), meant=meant))
    return True


def _texts(node: Node) -> list[str]:
    return [item.text for item in node.items if isinstance(item, Scalar)] if isinstance(node, Seq) else []


def _numbers(node: Node) -> list[Fraction]:
    items = node.items if isinstance(node, Seq) else []
    numbers = []
    for item in items:
        try:
            if isinstance(item, Scalar) and item.plain and len(item.text) <= _LONGEST:
                number = Decimal(item.text.replace("_", ""))
                if number.is_finite() and abs(number.adjusted()) <= 300:
                    numbers.append(Fraction(number))
        except InvalidOperation:
            pass
    return numbers if len(numbers) == len(items) else []


def _counted(n: Fraction | int) -> int:
    if Fraction(n).denominator != 1 or not 1 <= n <= MAX_JOBS:
        raise ValueError(f"of {_spelled(Fraction(n))} values, and at least 1 and at most {MAX_JOBS:,} are possible")
    return int(n)


def _range(numbers: list[Fraction]) -> list[str]:
    if len(numbers) not in (2, 3):
        raise ValueError("is not understood")
    start, end, step = (*numbers, Fraction(1))[:3]
    if not step:
        raise ValueError("in steps of 0 does not end")
    n = _counted(max(0, math.ceil((end - start) / step)))
    return [_spelled(start + k * step) for k in range(n)]


def _linspace(numbers: list[Fraction]) -> list[str]:
    start, end, n = _ends(numbers)
    return [_spelled(start + (end - start) * k / max(1, n - 1)) for k in range(n)]


def _logspace(numbers: list[Fraction]) -> list[str]:
    start, end, n = _ends(numbers)
    if max(abs(start), abs(end)) > 300:
        raise ValueError("has ends that no power of ten reaches: they are exponents")
    return [_power(start + (end - start) * k / max(1, n - 1)) for k in range(n)]


def _ends(numbers: list[Fraction]) -> tuple[Fraction, Fraction, int]:
    if len(numbers) != 3:
        raise ValueError("is not understood")
    return numbers[0], numbers[1], _counted(numbers[2])


def _power(exponent: Fraction) -> str:
    if exponent.denominator == 1:
        return _spelled(Fraction(10) ** int(exponent))
    return _tidy(f"{10.0 ** float(exponent):.6g}")


def _spelled(number: Fraction) -> str:
    if number.denominator == 1 and abs(number) < 10**15:
        return str(int(number))
    return _tidy(f"{float(number):.12g}")


def _tidy(text: str) -> str:
    """`1e-05` is 1e-5 to people."""
    return re.sub(r"e([+-])0*(\d)", lambda m: f"e{'-' if m[1] == '-' else ''}{m[2]}", text)
