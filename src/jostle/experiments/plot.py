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
from jostle.printable import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = (".png", ".svg", ".pdf")
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#222222")  # told apart by most eyes
MARKERS = "osD^vP*X"
HATCHES = (None, "//", "..", "xx", "++")  # of bars, when the colours begin again …
DASHES = ("-", "--", "-.", ":")  # … and of lines
FONTS = ("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "SimHei",
         "Droid Sans Fallback")  # fmt: skip
DECADES = 100.0  # a key that spans more than this is drawn on a logarithmic axis
MOST = 300  # bars or points of one picture
LABELLED = 16  # bars; with more of them the numbers above would touch
NAMED = 18  # series in a legend: what fits beside a picture; the last line says how many more there are
LONGEST = 48  # characters of a name in a legend


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


def drawings(summary: Summary, look: Look, x: str | None = None) -> list[Drawing]:
    """`x`: the key along the axis; numbers make a line. Without it: the only key with numbers that differs, else bars over the
    first key that differs."""
    if x is not None and x not in summary.keys:
        raise Usage(f"--x {x}: the runs are not grouped by it, but by {', '.join(summary.keys) or 'nothing'}")
    if not any(group.cells for group in summary.groups):
        raise JostleError("there is nothing to plot: no run has a value")
    varying = [key for key in summary.keys if len({group.params.get(key) for group in summary.groups}) > 1]
    if x is None:
        numeric = [key for key in varying if _numbers(list({_at(group, key) for group in summary.groups})) is not None]
        x = numeric[0] if len(numeric) == 1 else None
    along = x or (varying[0] if varying else summary.keys[0] if summary.keys else None)
    rest = [key for key in varying if key != along]
    places = list(dict.fromkeys(_at(group, along) for group in summary.groups))
    if len(summary.groups) > MOST:
        raise Usage(f"--plot: {len(summary.groups):,} groups are too many for a picture (at most {MOST}); --by KEYS makes fewer")
    numbers = _numbers(places) if x is not None else None
    if numbers is not None:
        places = sorted(places, key=float)
        numbers = sorted(numbers)
    scale = scale_of(numbers) if numbers is not None else "linear"
    return [
        Drawing(
            metric=metric, y=f"{look.name(metric)} {ARROWS[way]}", x=look.name(along or ""), numbers=numbers, scale=scale,
            places=[look.name(place) for place in places], series=_series(summary, look, metric, along, rest, places),
        )
        for metric, way in summary.metrics.items()
    ]  # fmt: skip


def _series(
    summary: Summary, look: Look, metric: str, along: str | None, rest: Sequence[str], places: Sequence[str]
) -> list[Series]:  # fmt: skip
    partly = {key for key in rest if any(key not in group.params for group in summary.groups)}  # named: suites differ in it
    gathered: dict[tuple[tuple[str, str], ...], dict[str, Cell | None]] = {}
    for group in summary.groups:
        others = tuple((key, group.params[key]) for key in rest if key in group.params)
        gathered.setdefault(others, {})[_at(group, along)] = group.cells.get(metric)

    def named(key: str, value: str) -> str:
        return f"{look.name(key)}={look.name(value)}" if key in partly else look.name(value)

    return [
        Series(name=", ".join(named(*pair) for pair in others) or "-", cells=[cells.get(place) for place in places])
        for others, cells in gathered.items()
    ]


def _at(group: Group, key: str | None) -> str:
    return group.params.get(key, "-") if key is not None else "all"


def _numbers(places: Sequence[str]) -> list[float] | None:
    try:
        numbers = [float(place) for place in places]
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) and len(set(numbers)) == len(numbers) else None


def scale_of(numbers: Sequence[float]) -> str:
    """Logarithmic where the numbers span decades; with zero among them linear up to the smallest."""
    sizes = [abs(number) for number in numbers if number]
    if len(sizes) < 2 or max(sizes) < DECADES * min(sizes):
        return "linear"
    return "log" if min(numbers) > 0 else "symlog"


# --- the picture


def save(path: str, summary: Summary, look: Look, x: str | None = None) -> list[str]:
    """Writes the picture; what the reader should know about it."""
    kind = os.path.splitext(path)[1].lower()
    if kind not in KINDS:
        raise Usage(f"--plot {path!r}: a plot is {', '.join(KINDS)}")
    planned = drawings(summary, look, x)
    try:
        import matplotlib
        from matplotlib import font_manager
        from matplotlib.figure import Figure
    except ImportError as e:
        raise JostleError(f"a plot needs matplotlib ({e}): `pip install 'jostle[plot]'` installs it") from e
    import io
    import warnings

    installed = {font.name for font in font_manager.fontManager.ttflist}
    fonts = ["DejaVu Sans", *(name for name in FONTS if name in installed)]
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
    bars = len(first.places) * (1 if first.numbers is not None else _widest(first))
    return min(16.0, max(5.5, 2.0 + 0.55 * bars))


def _widest(drawing: Drawing) -> int:
    """How many bars stand side by side at most."""
    places = zip(*(series.cells for series in drawing.series), strict=True)
    return max((sum(cell is not None for cell in cells) for cells in places), default=0)


def draw(ax: Axes, drawing: Drawing, look: Look) -> None:
    handles = _lines(ax, drawing, drawing.numbers) if drawing.numbers is not None else _bars(ax, drawing, look)
    ax.set_xlabel(literal(drawing.x))
    ax.set_ylabel(literal(drawing.y))
    ax.grid(axis="y", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if len(drawing.series) > 1:
        shown, names = legend(handles)
        ax.legend(shown, names, frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def legend(named: Sequence[tuple[str, Any]]) -> tuple[list[Any], list[str]]:
    """What is drawn and its names, as many as fit; a last line says how many do not."""
    from matplotlib.patches import Patch

    drawn = named if len(named) <= NAMED else named[: NAMED - 1]
    names = [name if len(name) <= LONGEST else name[: LONGEST - 1] + "…" for name, _ in drawn]
    handles = [handle for _, handle in drawn]
    if len(drawn) < len(named):
        handles.append(Patch(visible=False))
        names.append(f"… and {len(named) - len(drawn)} more")
    return handles, [literal(f" {name}" if name.startswith("_") else name) for name in names]  # matplotlib leaves out `_name`


def literal(text: str) -> str:
    """No formula, whatever it holds, and one line."""
    return one_line(text).replace("$", r"\$")


def _lines(ax: Axes, drawing: Drawing, numbers: Sequence[float]) -> list[tuple[str, Any]]:
    drawn: list[tuple[str, Any]] = []
    for k, series in enumerate(drawing.series):
        points = [(number, cell) for number, cell in zip(numbers, series.cells, strict=True) if cell is not None]
        if not points:
            continue
        line = ax.errorbar(
            [number for number, _ in points], [cell.mean for _, cell in points], yerr=[_spread(cell) for _, cell in points],
            color=COLOURS[k % len(COLOURS)], marker=MARKERS[k % len(MARKERS)], markersize=5, linewidth=1.4, capsize=3,
            linestyle=DASHES[k // len(COLOURS) % len(DASHES)],
        )  # fmt: skip
        drawn.append((series.name, line))
    if drawing.scale == "symlog":
        least = min(abs(number) for number in numbers if number)
        ax.set_xscale("symlog", linthresh=least, linscale=0.6)
    elif drawing.scale == "log":
        ax.set_xscale("log")
    if len(numbers) <= 12:  # the places that were measured, spelled as their author did
        ax.set_xticks(list(numbers), [literal(place) for place in drawing.places])
        ax.minorticks_off()
    return drawn


def _bars(ax: Axes, drawing: Drawing, look: Look) -> list[tuple[str, Any]]:
    drawn: list[tuple[str, Any]] = []
    width = 0.8 / max(1, _widest(drawing))
    shifts = [offsets([line.cells[place] is not None for line in drawing.series]) for place in range(len(drawing.places))]
    for k, series in enumerate(drawing.series):
        bars_at = [(place, cell) for place, cell in enumerate(series.cells) if cell is not None]
        if not bars_at:
            continue
        bars = ax.bar(
            [place + shifts[place][k] * width for place, _ in bars_at], [cell.mean for _, cell in bars_at], width * 0.92,
            yerr=[_spread(cell) for _, cell in bars_at], color=COLOURS[k % len(COLOURS)],
            hatch=HATCHES[k // len(COLOURS) % len(HATCHES)], capsize=3, error_kw={"linewidth": 1.0},
        )  # fmt: skip
        drawn.append((series.name, bars))
        if len(drawing.places) * _widest(drawing) <= LABELLED:
            ax.bar_label(bars, [look.value(cell.mean) for _, cell in bars_at], fontsize=7, padding=2)
    long = sum(map(len, drawing.places)) > 60
    ax.set_xticks(range(len(drawing.places)), [literal(place) for place in drawing.places], rotation=30 if long else 0,
                  ha="right" if long else "center")  # fmt: skip
    ax.axhline(0, color="#222222", linewidth=0.8)
    return drawn


def offsets(present: Sequence[bool]) -> list[float]:
    """For each series where its bar stands around a tick, in widths of a bar: those that are there side by side, the tick in
    their middle."""
    middle = (sum(present) - 1) / 2
    return [sum(present[:k]) - middle for k in range(len(present))]


def _spread(cell: Cell) -> float:
    return cell.std if math.isfinite(cell.std) else 0.0
