"""`config.yaml` of a home, read into the plain values that the engine takes.

Rules: taken whole or not at all; all errors are found at once, each with file, line and what was expected. `policy:` is written
as in a job file and comes out with the field names of core.model.Policy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jostle import units
from jostle.formats import policyfile, spec, yamlfile
from jostle.formats.flaws import BadFiles, Findings
from jostle.formats.nodes import Flaw, Map, Node
from jostle.formats.wording import null


def _devices(text: str) -> str:
    if text != "nvml" and not (text.startswith("sim:") and text != "sim:"):
        raise ValueError("nvml, sim:8x24 (8 GPUs of 24 GiB) or sim:FILE")
    return text


def _mib(text: str) -> int:
    """The key says MiB, so a bare number is MiB here; with a unit it is any size."""
    try:
        return units.size_mib(text + "MiB" if text.strip()[-1:].isdigit() else text)
    except ValueError:
        raise ValueError("a size such as 1GiB, or a number of MiB") from None


KEYS: dict[str, Callable[[str], Any]] = {
    "gpus": _devices,
    "grace": units.seconds,
    "log_cap_mib": _mib,
    "cuda_ids": lambda text: spec.one_of(text, ("index", "uuid")),
}


def load(path: str) -> dict[str, Any]:
    """What the file sets; nothing stands for what it does not say. FileNotFoundError is for the caller."""
    findings = Findings()
    values: dict[str, Any] = {}
    try:
        root = yamlfile.parse(yamlfile.text_of(path, "a file of settings"))
    except Flaw as e:
        raise BadFiles([(path, e.line, e.text)]) from None
    if isinstance(root, Map):
        values = _values(root, findings)
    elif root is not None:
        findings.wrong(root.line, f"{root.shape}; expected `key: value` lines")
    if findings.flaws:
        raise BadFiles([(path, line, text) for line, text in sorted(findings.flaws)])
    return values


def _values(root: Map, findings: Findings) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, node in findings.keys(root, (*KEYS, "policy")).items():
        if not null(node):
            values[key] = _value(key, node, findings)
    return values


def _value(key: str, node: Node, findings: Findings) -> Any:
    return policyfile.read(node, findings) if key == "policy" else findings.checked(key, node, KEYS[key])
