"""`config.yaml` of a home, read into the plain values that the engine takes.

Rules: taken whole or not at all; all errors are found at once, each with file, line and what was expected. `policy:` is written
as in a job file and comes out with the names inside.
"""

from __future__ import annotations

import os
from typing import Any

from jostle.core import kinds
from jostle.core.fields import SETTINGS, Field
from jostle.formats import limitsfile, notifyfile, policyfile, spec, yamlfile
from jostle.formats.fields import counters
from jostle.formats.flaws import BadFiles, Findings
from jostle.formats.nodes import Flaw, Map, Node
from jostle.formats.wording import null
from jostle.wording.flaws import flaw


def load(path: str) -> dict[str, Any]:
    """What the file sets; nothing stands for what it does not say. FileNotFoundError is for the caller."""
    findings = Findings()
    values: dict[str, Any] = {}
    try:
        root = yamlfile.parse(yamlfile.text_of(path, "a file of settings"))
    except Flaw as e:
        raise BadFiles([(path, e.line, e.text)]) from None
    if isinstance(root, Map):
        values = _values(root, findings, os.path.dirname(os.path.abspath(path)))
    elif root is not None:
        findings.wrong(root.line, flaw("holds", shape=root.shape, expected="`key: value` lines"))
    if findings.flaws:
        raise BadFiles([(path, line, text) for line, text in sorted(findings.flaws)])
    return values


def _values(root: Map, findings: Findings, base: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, node in findings.keys(root, tuple(SETTINGS)).items():
        if not null(node):
            values[key] = _value(SETTINGS[key], node, findings, base)
    return values


def _value(field: Field, node: Node, findings: Findings, base: str) -> Any:
    if field.kind is kinds.POLICY:
        return policyfile.read(node, findings)
    if field.kind is kinds.LIMITS:
        return limitsfile.read(node, findings)
    if field.kind is kinds.COUNTED:
        return counters(findings, field.key, node, field.kind)
    if field.kind is kinds.NOTIFY:
        return notifyfile.read(node, findings, base)
    return findings.checked(field.key, node, spec.reader(field.kind))
