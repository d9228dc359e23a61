"""`suites:` (SPEC B9): several sweeps or job files by name in one file, and which of them are wanted.

A suite is the path of a file (any job file), or a mapping like a sweep's or an old job file's, or `{file: PATH, logs: FOLDER}`.
What the file says beside `suites:` holds for every suite that is a mapping, unless it says otherwise; `job:` and `policy:` are
joined key by key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jostle.errors import Usage
from jostle.experiments.sheet import KEYS
from jostle.formats import spec
from jostle.formats.flaws import Findings
from jostle.formats.nodes import Map, Node, Scalar
from jostle.formats.wording import null, shown
from jostle.wording.flaws import flaw

JOINED = ("job", "policy")


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    line: int
    node: Map | None = None  # None: it stands in a file of its own
    path: str = ""
    logs: Scalar | None = None
    shared: bool = False  # into_config comes from beside `suites:`


def read(findings: Findings, root: Map) -> list[Suite]:
    """The suites of a file, in its order."""
    parts = findings.keys(root, (*KEYS, "suites"))
    node = parts.pop("suites")
    if not isinstance(node, Map) or not node.items:
        findings.wrong(node.line, flaw("expected_only", key="suites", expected="names, each with a sweep or the path of a file"))
        return []
    suites: dict[str, Suite] = {}
    for key, value in node.items:
        name = findings.checked("suites", key, lambda text: spec.label(text, "the name of a suite"))
        if key.text in suites:
            findings.wrong(key.line, flaw("value_twice", key="suites", value=shown(key.text)))
        elif name is not None:
            suite = _suite(findings, key, value, parts)
            if suite is not None:
                suites[name] = suite
    return list(suites.values())


def _suite(findings: Findings, key: Scalar, value: Node, shared: Mapping[str, Node]) -> Suite | None:
    if isinstance(value, Scalar) and not value.null:
        return Suite(key.text, key.line, path=value.text)
    if not isinstance(value, Map):
        what = "nothing" if null(value) else value.shape
        expected = "a sweep, or the path of a file"
        findings.wrong(value.line, flaw("value_is", key="suites", value=shown(key.text), shape=what, expected=expected))
        return None
    words = {name.text for name, _ in value.items}
    if "suites" in words:
        findings.wrong(value.line, flaw("suite_of_suites", name=shown(key.text)))
        return None
    if "file" in words:
        parts = findings.keys(value, ("file", "logs"), f" in the suite {key.text}")
        path = findings.checked("file", parts["file"], lambda text: spec.path(text, "/") and text)
        logs = parts.get("logs")
        if path is not None:
            return Suite(key.text, key.line, path=path, logs=logs if isinstance(logs, Scalar) else None)
        return None
    return Suite(key.text, key.line, node=joined(value, shared), shared="into_config" in shared and "into_config" not in words)


def joined(suite: Map, shared: Mapping[str, Node]) -> Map:
    """The suite with what holds for all."""
    own_keys = {key.text: value for key, value in suite.items}
    items = []
    for key, value in suite.items:
        outer = shared.get(key.text)
        if key.text in JOINED and isinstance(outer, Map) and isinstance(value, Map):
            own = {name.text for name, _ in value.items}
            value = Map(value.line, [*(pair for pair in outer.items if pair[0].text not in own), *value.items])
        items.append((key, value))
    items += [(Scalar(value.line, key, True), value) for key, value in shared.items() if key not in own_keys and key != "name"]
    return Map(suite.line, items)


def chosen(names: Sequence[str], asked_for: Sequence[str]) -> list[str]:
    """The suites that are wanted, as they were asked for; none said, or `all`: all of them. Usage if there is no such."""
    picked: dict[str, None] = {}
    for name in asked_for or ("all",):
        if name in names:
            picked[name] = None
        elif name == "all":
            picked.update(dict.fromkeys(names))
        else:
            existing = ", ".join(dict.fromkeys(names)) or "none: the files have no suites"
            raise Usage(f"there is no suite {name!r}; there are {existing}" + (" (or all)" if names else ""))
    return list(picked)
