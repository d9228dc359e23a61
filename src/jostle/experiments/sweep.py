"""A sweep of our own format (SPEC B10): `command:`, `matrix:`, `zip:`, `include:`, `exclude:`, and the keys of sheet.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jostle.experiments import matrix
from jostle.experiments.matrix import Axis, Combination
from jostle.experiments.sheet import KEYS, Row, Sheet
from jostle.experiments.values import axis_values, key_good, value, values
from jostle.formats.jobfile import MAX_JOBS
from jostle.formats.nodes import Map, Node, Scalar, Seq
from jostle.formats.wording import closest, null, shown
from jostle.wording.flaws import flaw

AXES = ("matrix", "zip", "include", "exclude")
TOP = (*KEYS, *AXES)


def read(sheet: Sheet, node: Map) -> None:
    """The jobs of a sweep, into the sheet."""
    parts = sheet.keys(node, TOP)
    sheet.head(parts)
    axes = [*_matrix(sheet, parts.get("matrix")), *_zips(sheet, parts.get("zip"))]
    _once(sheet, axes, node.line)
    exclude = _exclude(sheet, parts.get("exclude"), axes)
    include = [combination for combination in _maps(sheet, "include", parts.get("include")) if combination]
    if not axes and not include and not sheet.flaws:
        sheet.wrong(node.line, flaw("sweep_nothing"))
    command = parts.get("command")
    if command is None or null(command):
        line = command.line if command else node.line
        sheet.wrong(line, flaw("sweep_no_command"))
        return
    total = matrix.size(axes)
    if total > MAX_JOBS:
        line = next((parts[key].line for key in ("matrix", "zip") if key in parts), node.line)
        sheet.wrong(line, flaw("sweep_many", n=f"{total:,}", most=f"{MAX_JOBS:,}"))
        return
    rows = matrix.expanded(axes, exclude, include)
    if (axes or include) and not rows and not sheet.flaws:
        sheet.wrong(node.line, flaw("sweep_all_excluded"))
    if not sheet.flaws or len(rows) <= 1000:  # what is wrong with templates is told along with the rest
        _default_name(sheet, parts, rows)
        first = parts.get("matrix") or parts.get("zip") or node
        sheet.build(parts, [Row(row, next((v.line for v in row.values()), first.line)) for row in rows], command)


def _default_name(sheet: Sheet, parts: dict[str, Node], rows: Sequence[Combination]) -> None:
    """Jobs without a name are called after the values in which they differ."""
    job = parts.get("job")
    if job is not None and not isinstance(job, Map):
        return
    items = job.items if isinstance(job, Map) else []
    if any(key.text == "name" for key, _ in items):
        return
    keys = matrix.varying(rows) or (list(rows[0]) if rows else [])
    common = [key for key in keys if all(key in row for row in rows)]
    name = " ".join(f"{key}={{{key}.name}}" if _paths(rows, key) else f"{key}={{{key}}}" for key in common)
    longest = sum(len(key) + 2 + max(len(row[key].text) for row in rows) for key in common)
    unnamed = not name or longest > 180 or not all(row[key].text.isprintable() for row in rows for key in common)
    if unnamed or len(common) < len(keys):
        name = "job {index}" if unnamed else name + " ({index})"
    sheet.named = False
    line = job.line if job is not None else 0
    parts["job"] = Map(line, [(Scalar(line, "name", True), Scalar(line, name, True)), *items])


def _paths(rows: Sequence[Combination], key: str) -> bool:
    """Whether the last parts of paths are enough to tell the values of a key apart."""
    texts = {row[key].text for row in rows}
    return any("/" in text for text in texts) and len({text.rsplit("/", 1)[-1] for text in texts} - {""}) == len(texts)


def _matrix(sheet: Sheet, node: Node | None) -> list[Axis]:
    if node is None or null(node):
        return []
    if not isinstance(node, Map):
        expected = "keys with lists of values, such as `seed: [1, 2, 3]`"
        sheet.wrong(node.line, flaw("value_shape", key="matrix", shape=node.shape, expected=expected))
        return []
    axes = []
    for key, node_of in node.items:
        scalars = axis_values(sheet, f"matrix: {key.text}", node_of) if key_good(sheet, "matrix", key) else ()
        texts: set[str] = set()
        for scalar in scalars:
            if scalar.text in texts:
                sheet.wrong(scalar.line, flaw("axis_value_twice", key=key.text, value=shown(scalar.text)))
            texts.add(scalar.text)
        if scalars:
            axes.append(Axis(keys=(key.text,), values=tuple((scalar,) for scalar in scalars)))
    return axes


def _zips(sheet: Sheet, node: Node | None) -> list[Axis]:
    """Each mapping is one axis, whose keys advance together."""
    if node is None or null(node):
        return []
    axes = []
    for item in node.items if isinstance(node, Seq) else [node]:
        if not isinstance(item, Map) or not item.items:
            sheet.wrong(item.line, flaw("zip_shape"))
            continue
        good = [(key.text, list_of) for key, list_of in item.items if key_good(sheet, "zip", key)]
        columns = {key: axis_values(sheet, f"zip: {key}", list_of) for key, list_of in good}
        lengths = {key: len(column) for key, column in columns.items()}
        if len(columns) != len(item.items):
            sheet.wrong(item.line, flaw("zip_twice"))
        elif len(set(lengths.values())) > 1:
            counts = ", ".join(f"{key} has {n}" for key, n in lengths.items())
            sheet.wrong(item.line, flaw("zip_lengths", counts=counts))
        elif all(lengths.values()):
            axes.append(Axis(keys=tuple(columns), values=tuple(zip(*columns.values(), strict=True))))
    return axes


def _once(sheet: Sheet, axes: Sequence[Axis], line: int) -> None:
    keys: set[str] = set()
    for axis in axes:
        for key, scalar in zip(axis.keys, axis.values[0], strict=True):
            if key in keys:
                sheet.wrong(scalar.line or line, flaw("key_in_both", key=shown(key)))
            keys.add(key)


def _mappings(sheet: Sheet, where: str, node: Node | None, such: str) -> Iterator[Map]:
    for item in () if node is None or null(node) else node.items if isinstance(node, Seq) else [node]:
        if isinstance(item, Map) and item.items:
            yield item
        else:
            sheet.wrong(item.line, flaw("value_shape", key=where, shape=item.shape, expected=f"mappings such as `- {such}`"))


def _maps(sheet: Sheet, where: str, node: Node | None) -> list[Combination]:
    """`include:`: mappings of keys and values."""
    maps: list[Combination] = []
    for item in _mappings(sheet, where, node, "{seed: 7, lr: 0.1}"):
        combination: Combination = {}
        for key, part in item.items:
            if key.text in combination:
                sheet.wrong(key.line, flaw("key_twice_in", where=where, key=shown(key.text)))
            read = value(sheet, f"{where}: {key.text}", part) if key_good(sheet, where, key) else None
            if read is not None:
                combination[key.text] = read
        maps.append(combination)
    return maps


def _exclude(sheet: Sheet, node: Node | None, axes: Sequence[Axis]) -> list[dict[str, list[str]]]:
    """Mappings of keys to a value or to several; each must be one of the sweep's, or the exclusion would do nothing."""
    axis_texts = {key: {row[k].text for row in axis.values} for axis in axes for k, key in enumerate(axis.keys)}
    exclusions: list[dict[str, list[str]]] = []
    for item in _mappings(sheet, "exclude", node, "{algorithm: FedAvg, seed: 42}"):
        exclusion: dict[str, list[str]] = {}
        for key, part in item.items:
            exclusion[key.text] = texts = [read.text for read in values(sheet, f"exclude: {key.text}", part)]
            if key.text not in axis_texts:
                near = closest(key.text, tuple(axis_texts))
                hint = f"perhaps {near}" if near else "a key of matrix or zip"
                sheet.wrong(key.line, flaw("no_sweep_key", where="exclude", key=shown(key.text), expected=hint))
                continue
            for text in texts:
                if text not in axis_texts[key.text]:
                    existing = ", ".join(sorted(axis_texts[key.text])[:10])
                    sheet.wrong(part.line, flaw("no_axis_value", key=key.text, value=shown(text), known=existing))
        if all(key in axis_texts for key in exclusion):
            exclusions.append(exclusion)
    return exclusions
