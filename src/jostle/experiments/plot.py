"""A summary as a picture: bars with error bars, or a line over a numeric key, on a logarithmic axis where it spans decades.

Rules: matplotlib is imported only here and only when a plot is wanted; nobody's display is needed. Names come from anybody:
`$` starts no formula. What is planned (`drawing`) is pure, so that it can be tested without a picture.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.errors import JostleError, Usage
from jostle.experiments.grouping import Cell, Group, Summary
from jostle.experiments.tables import ARROWS, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = (".png", ".svg", ".pdf")
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#222222")  # told apart by most eyes
MARKERS = "osD^vP*X"
FONTS = ("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "SimHei",
         "Droid Sans Fallback")  # fmt: skip
DECADES = 100.0  # a key that spans more than this is drawn on a logarithmic axis
MOST = 300  # bars or points of one picture
LABELLED = 16  # bars; with more of them the numbers above would touch


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    name: str
    cells: Sequence[Cell | None]  # one for each place on the x axis


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawing:
    """One metric."""

    metric: str
    y: str
    x: str
    places: Sequence[str]
    numbers: Sequence[float] | None  # the places as numbers, rising: a line; None: bars
    scale: str  # linear | log | symlog
    series: Sequence[Series]


def drawings(found: Summary, look: Look, x: str | None = None) -> list[Drawing]:
    """`x`: the key along the axis; numbers make a line. Without it: bars, over the first key that differs."""
    if x is not None and x not in found.keys:
        raise Usage(f"--x {x}: the runs are not grouped by it, but by {', '.join(found.keys) or 'nothing'}")
    if not any(group.cells for group in found.groups):
        raise JostleError("there is nothing to plot: no run has a value")
    varying = [key for key in found.keys if len({group.params.get(key) for group in found.groups}) > 1]
    along = x or (varying[0] if varying else found.keys[0] if found.keys else None)
    rest = [key for key in varying if key != along]
    places = list(dict.fromkeys(_at(group, along) for group in found.groups))
    if len(found.groups) > MOST:
        raise Usage(f"--plot: {len(found.groups):,} groups are too many for a picture (at most {MOST}); --by KEYS makes fewer")
    numbers = _numbers(places) if x is not None else None
    if numbers is not None:
        places = sorted(places, key=float)
        numbers = sorted(numbers)
    scale = scale_of(numbers) if numbers is not None else "linear"
    return [
        Drawing(
            metric=metric, y=f"{look.name(metric)} {ARROWS[way]}", x=look.name(along or ""), numbers=numbers, scale=scale,
            places=[look.name(place) for place in places], series=_series(found, look, metric, along, rest, places),
        )
        for metric, way in found.metrics.items()
    ]  # fmt: skip


def _series(
    found: Summary, look: Look, metric: str, along: str | None, rest: Sequence[str], places: Sequence[str]
) -> list[Series]:  # fmt: skip
    gathered: dict[tuple[str, ...], dict[str, Cell | None]] = {}
    for group in found.groups:
        others = tuple(_at(group, key) for key in rest)
        gathered.setdefault(others, {})[_at(group, along)] = group.cells.get(metric)
    return [
        Series(name=", ".join(look.name(name) for name in others), cells=[cells.get(place) for place in places])
        for others, cells in gathered.items()
    ]


def _at(group: Group, key: str | None) -> str:
    return group.params.get(key, "-") if key is not None else "all"


def _numbers(places: Sequence[str]) -> list[float] | None:
    try:
        found = [float(place) for place in places]
    except ValueError:
        return None
    return found if all(map(math.isfinite, found)) and len(set(found)) == len(found) else None


def scale_of(numbers: Sequence[float]) -> str:
    """Logarithmic where the numbers span decades; with zero among them linear up to the smallest."""
    sizes = [abs(number) for number in numbers if number]
    if len(sizes) < 2 or max(sizes) < DECADES * min(sizes):
        return "linear"
    return "log" if min(numbers) > 0 else "symlog"


# --- the picture


def save(path: str, found: Summary, look: Look, x: str | None = None) -> list[str]:
    """Writes the picture; what the reader should know about it."""
    kind = os.path.splitext(path)[1].lower()
    if kind not in KINDS:
        raise Usage(f"--plot {path!r}: a plot is {', '.join(KINDS)}")
    planned = drawings(found, look, x)
    try:
        import matplotlib
        from matplotlib import font_manager
        from matplotlib.figure import Figure
    except ImportError as e:
        raise JostleError(f"a plot needs matplotlib ({e}): `pip install 'jostle[plot]'` installs it") from e
    import io
    import warnings

    known = {font.name for font in font_manager.fontManager.ttflist}
    fonts = ["DejaVu Sans", *(name for name in FONTS if name in known)]
    settings = {"font.family": fonts, "svg.hashsalt": "jostle", "svg.fonttype": "path", "font.size": 10}
    picture = io.BytesIO()
    with matplotlib.rc_context(settings), warnings.catch_warnings(record=True) as caught:  # type: ignore[arg-type]
        warnings.simplefilter("always")
        figure = Figure(figsize=(_width(planned), 3.6 * len(planned)), layout="constrained", dpi=150)
        axes = figure.subplots(len(planned), 1, squeeze=False)
        for drawing, (ax,) in zip(planned, axes, strict=True):
            draw(ax, drawing, look)
        figure.savefig(picture, format=kind[1:], metadata=_dateless(kind))
    _write(path, picture.getvalue())
    lacking = any("missing from" in str(warning.message) for warning in caught)
    return ["no font at hand has all the characters of these names: install Noto Sans CJK"] if lacking else []


def _dateless(kind: str) -> dict[str, Any]:
    """The same numbers make the same file."""
    return {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(kind, {})


def _write(path: str, data: bytes) -> None:
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "wb") as f:
            f.write(data)
        os.replace(part, path)
    except OSError as e:
        raise JostleError(f"the plot {path} cannot be written: {e.strerror}") from e
    finally:
        if os.path.lexists(part):
            os.unlink(part)


def _width(planned: Sequence[Drawing]) -> float:
    first = planned[0]
    bars = len(first.places) * (1 if first.numbers is not None else len(first.series))
    return min(16.0, max(5.5, 2.0 + 0.55 * bars))


def draw(ax: Axes, drawing: Drawing, look: Look) -> None:
    if drawing.numbers is not None:
        _lines(ax, drawing, drawing.numbers)
    else:
        _bars(ax, drawing, look)
    ax.set_xlabel(literal(drawing.x))
    ax.set_ylabel(literal(drawing.y))
    ax.grid(axis="y", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if len(drawing.series) > 1:
        ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def literal(text: str) -> str:
    """No formula, whatever it holds, and one line."""
    return "".join(c if c.isprintable() else " " for c in text).replace("$", r"\$")


def _lines(ax: Axes, drawing: Drawing, numbers: Sequence[float]) -> None:
    for k, series in enumerate(drawing.series):
        there = [(number, cell) for number, cell in zip(numbers, series.cells, strict=True) if cell is not None]
        ax.errorbar(
            [number for number, _ in there], [cell.mean for _, cell in there], yerr=[_spread(cell) for _, cell in there],
            color=COLOURS[k % len(COLOURS)], marker=MARKERS[k % len(MARKERS)], markersize=5, linewidth=1.4, capsize=3,
            linestyle="-" if k < len(COLOURS) else "--", label=literal(series.name) or None,
        )  # fmt: skip
    if drawing.scale == "symlog":
        least = min(abs(number) for number in numbers if number)
        ax.set_xscale("symlog", linthresh=least, linscale=0.6)
    elif drawing.scale == "log":
        ax.set_xscale("log")
    if len(numbers) <= 12:  # the places that were measured, spelled as their author did
        ax.set_xticks(list(numbers), [literal(place) for place in drawing.places])
        ax.minorticks_off()


def _bars(ax: Axes, drawing: Drawing, look: Look) -> None:
    width = 0.8 / len(drawing.series)
    for k, series in enumerate(drawing.series):
        there = [(place, cell) for place, cell in enumerate(series.cells) if cell is not None]
        if not there:
            continue
        shift = (k - (len(drawing.series) - 1) / 2) * width
        bars = ax.bar(
            [place + shift for place, _ in there], [cell.mean for _, cell in there], width * 0.92,
            yerr=[_spread(cell) for _, cell in there], color=COLOURS[k % len(COLOURS)], hatch="//" if k >= len(COLOURS) else None,
            capsize=3, error_kw={"linewidth": 1.0}, label=literal(series.name) or None,
        )  # fmt: skip
        if len(drawing.places) * len(drawing.series) <= LABELLED:
            ax.bar_label(bars, [look.value(cell.mean) for _, cell in there], fontsize=7, padding=2)
    long = sum(map(len, drawing.places)) > 60
    ax.set_xticks(range(len(drawing.places)), [literal(place) for place in drawing.places], rotation=30 if long else 0,
                  ha="right" if long else "center")  # fmt: skip
    ax.axhline(0, color="#222222", linewidth=0.8)


def _spread(cell: Cell) -> float:
    return cell.std if math.isfinite(cell.std) else 0.0
