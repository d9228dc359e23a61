"""A summary as a table: cells for the terminal, Markdown, LaTeX (booktabs), CSV, and the JSON of docs/json.md. Pure.

Rules: names come from anybody, so each format escapes them. What is missing is told in every format; CSV, which has no place for
it, leaves that to the caller. Numbers of tables are rounded, those of CSV and JSON are not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jostle.experiments.grouping import Cell, Group, Missing, Summary
from jostle.printable import one_line

ARROWS = {"max": "↑", "min": "↓"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """How numbers and names are shown."""

    decimals: int = 2
    rename: Mapping[str, str] = field(default_factory=dict)

    def name(self, text: str) -> str:
        return self.rename.get(text, text)

    def value(self, value: float) -> str:
        text = f"{value:.{self.decimals}f}"
        return text if len(text) < 20 else f"{value:.{self.decimals}e}"  # 1e300 has no use for 300 digits


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A metric, of all groups of a row or of the one with this value of `across`."""

    metric: str
    value: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    params: Mapping[str, str]
    groups: Sequence[Group]
    cells: Sequence[Cell | None]  # one for each column


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    keys: Sequence[str]
    columns: Sequence[Column]
    lines: Sequence[Line]


def layout(summary: Summary) -> Layout:
    """One line for each group; with `across`, one for all groups that differ in that key only."""
    key = summary.across
    if key is None:
        columns = [Column(metric=name) for name in summary.metrics]
        rows = [[group] for group in summary.groups]
    else:
        values = dict.fromkeys(group.params.get(key, "") for group in summary.groups)
        columns = [Column(metric=name, value=value) for value in values for name in summary.metrics]
        gathered: dict[tuple[tuple[str, str], ...], list[Group]] = {}
        for group in summary.groups:
            rest = tuple((name, value) for name, value in group.params.items() if name != key)
            gathered.setdefault(rest, []).append(group)
        rows = list(gathered.values())
    keys = [name for name in summary.keys if name != key]
    lines = [
        Line(params={k: v for k, v in row[0].params.items() if k != key}, groups=row, cells=[_cell(row, c, key) for c in columns])
        for row in rows
    ]
    return Layout(keys=keys, columns=columns, lines=lines)


def _cell(row: Sequence[Group], column: Column, key: str | None) -> Cell | None:
    for group in row:
        if key is None or group.params.get(key, "") == column.value:
            return group.cells.get(column.metric)
    return None


def _title(column: Column, summary: Summary, look: Look) -> str:
    metric = f"{look.name(column.metric)} {ARROWS[summary.metrics[column.metric]]}"
    if column.value is None:
        return metric
    return look.name(column.value) + (f" {metric}" if len(summary.metrics) > 1 else "")


def count(group: Group, metrics: Sequence[str]) -> str:
    """`3`; `2/3` where a value is missing."""
    numbers = [len(group.cells[name].values) if name in group.cells else 0 for name in metrics]
    return str(group.runs) if min(numbers) == group.runs else f"{min(numbers)}/{group.runs}"


def counts(line: Line, metrics: Sequence[str]) -> str:
    return " ".join(dict.fromkeys(count(group, metrics) for group in line.groups))


def values(line: Line, summary: Summary, look: Look) -> str:
    """The individual values, in the order of the runs."""
    parts = []
    for group in line.groups:
        for name, cell in group.cells.items():
            before = [look.name(group.params.get(summary.across, ""))] if summary.across else []
            before += [look.name(name)] if len(summary.metrics) > 1 else []
            parts.append("".join(f"{word}: " for word in [" ".join(before)] if word) + " ".join(map(look.value, cell.values)))
    return "; ".join(parts)


def why(missing: Missing, language: str = "en") -> str:
    """`job 12 (x): failed: exit code 1`."""
    colon = "：" if language == "zh" else ": "
    return f"{missing.trial.label}{colon}{missing.metric + colon if missing.metric else ''}{missing.why.worded(language)}"


# --- formats


def text_cells(summary: Summary, look: Look) -> tuple[list[str], list[list[str]]]:
    """Head and rows for the terminal; the best has a star."""
    plan = layout(summary)
    head = [*map(look.name, plan.keys), *(_title(column, summary, look) for column in plan.columns), "n", "values"]
    rows = []
    for line in plan.lines:
        shown = ["-" if cell is None else _plain(cell, look) + (" *" if cell.best else "  ") for cell in line.cells]
        names = [look.name(line.params[key]) if key in line.params else "-" for key in plan.keys]
        rows.append([*names, *shown, counts(line, list(summary.metrics)), values(line, summary, look)])
    return head, rows


def _plain(cell: Cell, look: Look) -> str:
    return f"{look.value(cell.mean)} ± {look.value(cell.std)}"


def markdown(summary: Summary, look: Look) -> str:
    plan = layout(summary)
    say = markdown_escaped
    head = [*(say(look.name(key)) for key in plan.keys), *(say(_title(c, summary, look)) for c in plan.columns), "n", "values"]
    rules = [*("---" for _ in plan.keys), *("---:" for _ in plan.columns), "---:", "---"]
    lines = [head, rules]
    for line in plan.lines:
        shown = ["–" if cell is None else f"**{_plain(cell, look)}**" if cell.best else _plain(cell, look) for cell in line.cells]
        names = [say(look.name(line.params[key])) if key in line.params else "–" for key in plan.keys]
        lines.append([*names, *shown, counts(line, list(summary.metrics)), say(values(line, summary, look))])
    text = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    lines_missing = [f"- {say(why(missing))}" for missing in summary.missing]
    return text + ("\n\nNot counted:\n\n" + "\n".join(lines_missing) if lines_missing else "")


def markdown_escaped(text: str) -> str:
    text = re.sub(r"\s+", " ", one_line(text))
    text = re.sub(r"([\\|*`<\[\]])", r"\\\1", text)
    return re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", text)  # those inside of words mean nothing


def latex(summary: Summary, look: Look) -> str:
    plan = layout(summary)
    say = latex_escaped
    head = [*(say(look.name(key)) for key in plan.keys), *(say(_title(c, summary, look)) for c in plan.columns), "$n$"]
    lines = ["% \\usepackage{booktabs}", f"\\begin{{tabular}}{{{'l' * len(plan.keys)}{'r' * len(plan.columns)}r}}", "\\toprule"]
    lines += [" & ".join(head) + r" \\", "\\midrule"]
    for line in plan.lines:
        names = [say(look.name(line.params[key])) if key in line.params else "--" for key in plan.keys]
        cells = [*names, *(_latex(cell, look) for cell in line.cells), say(counts(line, list(summary.metrics)))]
        lines.append(" & ".join(cells) + r" \\")
    lines += ["\\bottomrule", "\\end{tabular}"]
    # one line each, whatever a name holds: the rest of a comment would be text
    lines += [f"% not counted: {' '.join(one_line(why(missing)).split())}" for missing in summary.missing]
    return "\n".join(lines)


def _latex(cell: Cell | None, look: Look) -> str:
    if cell is None:
        return "--"
    text = f"{_latex_number(look.value(cell.mean))} \\pm {_latex_number(look.value(cell.std))}"
    return f"$\\mathbf{{{text}}}$" if cell.best else f"${text}$"


def _latex_number(text: str) -> str:
    if text == "inf":
        return r"\infty"
    digits, e, power = text.partition("e")
    return digits + (rf" \cdot 10^{{{int(power)}}}" if e else "")


LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    '"': r"\textquotedbl{}", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "→": r"$\to$", "±": r"$\pm$", "×": r"$\times$",
    "≤": r"$\leq$", "≥": r"$\geq$", "∞": r"$\infty$", "ε": r"$\varepsilon$", "…": r"\dots{}", "–": "--", "—": "---",
}  # fmt: skip
ROMAN = {"ALPHA": "A", "BETA": "B", "EPSILON": "E", "ZETA": "Z", "ETA": "H", "IOTA": "I", "KAPPA": "K", "MU": "M", "NU": "N",
         "OMICRON": "O", "RHO": "P", "TAU": "T", "CHI": "X"}  # fmt: skip


def latex_escaped(text: str) -> str:
    """As text of any LaTeX; Greek letters as mathematics, for the older engines know no others."""
    escaped = "".join(LATEX.get(c) or (c if c.isascii() else _greek(c)) for c in one_line(text))
    return re.sub(r"^\[", "{[}", escaped)  # after \\ a bracket would be an argument


def _greek(c: str) -> str:
    from unicodedata import name

    match = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (ALPHA|BETA|GAMMA|DELTA|EPSILON|ZETA|ETA|THETA|IOTA|KAPPA|LAMDA|MU|NU|XI|"
                         r"OMICRON|PI|RHO|SIGMA|TAU|UPSILON|PHI|CHI|PSI|OMEGA)", name(c, ""))  # fmt: skip
    if match is None:
        return c
    letter = match[2].replace("LAMDA", "LAMBDA")
    if match[1] == "CAPITAL":
        return ROMAN.get(match[2]) or rf"$\{letter.capitalize()}$"
    return "o" if letter == "OMICRON" else rf"$\{letter.lower()}$"


def csv(summary: Summary, look: Look) -> str:
    """A row for each group and metric, always in this long form: programs read it."""
    import csv as module
    import io

    out = io.StringIO()
    writer = module.writer(out, lineterminator="\n")
    writer.writerow([*(guarded(look.name(key)) for key in summary.keys), "metric", "n", "runs", "mean", "std", "best", "values"])
    for group in summary.groups:
        names = [guarded(look.name(group.params.get(key, ""))) for key in summary.keys]
        for name in summary.metrics:
            cell = group.cells.get(name)
            columns = [0, group.runs, "", "", "", ""] if cell is None else [
                len(cell.values), group.runs, repr(cell.mean), repr(cell.std), int(cell.best), " ".join(map(repr, cell.values))
            ]  # fmt: skip
            writer.writerow([*names, guarded(look.name(name)), *columns])
    return out.getvalue().rstrip("\n")


def guarded(text: str) -> str:
    """A text that a spreadsheet would take for a formula, as a text; numbers stay numbers."""
    if not text.startswith(("=", "+", "-", "@", "\t", "\r")):
        return text
    try:
        float(text)
    except ValueError:
        return "'" + text
    return text


def as_json(summary: Summary, look: Look, language: str = "en") -> dict[str, Any]:
    return {
        "schema": 1,
        "keys": list(summary.keys),
        "seed_keys": list(summary.seed_keys),
        "metrics": [{"name": name, "best": way} for name, way in summary.metrics.items()],
        "groups": [
            {
                "params": dict(group.params),
                "shown": {key: look.name(value) for key, value in group.params.items()},
                "runs": group.runs,
                "metrics": {name: _json_cell(name, cell, summary) for name, cell in group.cells.items()},
            }
            for group in summary.groups
        ],
        "missing": [
            {"label": missing.trial.label, "params": dict(missing.trial.params), "job": missing.trial.job,
             "run": missing.trial.run, "state": missing.trial.state, "log": missing.trial.log, "metric": missing.metric,
             "why": missing.why.worded(language), "reason": missing.why.plain()}
            for missing in summary.missing
        ],
        "notes": [note.worded(language) for note in summary.notes],
    }  # fmt: skip


def _json_cell(name: str, cell: Cell, summary: Summary) -> dict[str, Any]:
    import math

    runs = [
        {"value": value, "params": dict(trial.params), "job": trial.job, "run": trial.run, "log": trial.log,
         "code": trial.code or None}
        for trial, value in zip(cell.trials, cell.values, strict=True)
    ]
    return {"n": len(cell.values), "mean": cell.mean, "std": cell.std if math.isfinite(cell.std) else None, "best": cell.best,
            "values": list(cell.values), "runs": runs}  # fmt: skip


def beside(summary: Summary, form: str, language: str) -> list[tuple[str, dict[str, Any]]]:
    """What is told beside a table of this format: messages, with their values."""
    notes: list[tuple[str, dict[str, Any]]] = []
    if form == "csv":
        notes = [("results_not_counted", {"why": why(missing, language)}) for missing in summary.missing]
    elif summary.missing and form != "table":
        notes = [("results_listed_below", {"n": len(summary.missing)})]
    return [*notes, *(("note", {"text": note.worded(language)}) for note in summary.notes)]


FORMATS: dict[str, Callable[[Summary, Look], str]] = {"markdown": markdown, "latex": latex, "csv": csv}
