"""The job files of the source's experiment scheduler (SPEC B1), read as they are.

`jobs: [{name, config, algorithm, log_path, extra_args: {k: v}}]`. The command is made of a template, which the file may give
(`command:`), and `--k v` for each extra argument that the template does not name. `seed` is written into a copy of the config
file (B2), unless `into_config:` says otherwise. The gates of B3 are the batch's policy; a job promises the memory of the gate
(or its own `memory`) and has the card alone.
"""

from __future__ import annotations

from jostle.experiments.matrix import Combination
from jostle.experiments.sheet import KEYS, OF_JOB, Row, Sheet
from jostle.experiments.sweep import AXES
from jostle.experiments.values import key_good, value
from jostle.formats.jobfile import MAX_JOBS
from jostle.formats.nodes import Map, Node, Scalar, Seq
from jostle.formats.wording import null
from jostle.wording.flaws import flaw

COMMAND = "python test.py --cfp {config} --algo {algorithm}"
COPIES = "configs/temp"
MIN_FREE_MIB = 8000
MAX_UTILIZATION = 30
OWN = ("config", "algorithm", "log_path", "extra_args")
TOP = (*KEYS, "defaults", "jobs")


def looks_old(jobs: Node | None, template: bool = False) -> bool:
    """Whether a list of jobs has this shape: a job without `run`, but with one of its keys, or beside a template."""
    for item in jobs.items if isinstance(jobs, Seq) else ():
        if isinstance(item, Map):
            keys = {key.text for key, _ in item.items}
            if "run" not in keys and (template or keys & set(OWN)):
                return True
    return False


def read(sheet: Sheet, node: Map, min_memory: int | None = None) -> None:
    """The jobs of such a file, into the sheet. `min_memory` (MiB) is said by the command line and goes over the file."""
    both = [key.line for key, _ in node.items if key.text in AXES]
    if both:
        sheet.wrong(both[0], flaw("matrix_beside_jobs"))
        node = Map(node.line, [(key, part) for key, part in node.items if key.text not in AXES])
    parts = sheet.keys(node, TOP)
    # a card qualifies if its gates hold (B3), whoever else is on it: memory and load say what room there is
    sheet.policy = {"min_free_mib": MIN_FREE_MIB, "max_utilization": MAX_UTILIZATION, "strangers": "share"}
    sheet.ways = {"seed": "config"}
    sheet.copies_in = COPIES
    sheet.head(parts)
    if min_memory is not None:
        sheet.policy["min_free_mib"] = min_memory
    sheet.plain["memory_mib"] = sheet.policy["min_free_mib"] or None
    if "defaults" in parts:
        parts.setdefault("job", parts["defaults"])
    jobs = parts["jobs"]
    rows = [_row(sheet, item) for item in jobs.items[:MAX_JOBS]] if isinstance(jobs, Seq) else []
    if isinstance(jobs, Seq) and len(jobs.items) > MAX_JOBS:
        sheet.wrong(jobs.line, flaw("jobs_many", n=len(jobs.items), most=MAX_JOBS))
    command = parts.get("command")
    if command is None or null(command):
        command = Scalar(node.line, COMMAND, True)
        for row in rows:
            for key in ("config", "algorithm"):
                if row is not None and key not in row.values:
                    sheet.wrong(row.line, flaw("old_without", key=key, command=COMMAND))
    sheet.build(parts, [row for row in rows if row is not None], command)


def _row(sheet: Sheet, node: Node) -> Row | None:
    if not isinstance(node, Map):
        sheet.wrong(node.line, flaw("old_shape", shape=node.shape))
        return None
    parts = sheet.keys(node, (*OWN, *OF_JOB))
    values: Combination = {}
    for key in ("config", "algorithm"):
        part = value(sheet, key, parts[key]) if key in parts and not null(parts[key]) else None
        if part is not None:
            values[key] = part
    extra = _extra(sheet, parts.get("extra_args"))
    own = [(Scalar(node.line, key, True), part) for key, part in parts.items() if key in OF_JOB]
    if "log_path" in parts and not null(parts["log_path"]):
        if "log" in parts:
            sheet.wrong(parts["log"].line, flaw("log_twice"))
        own.append((Scalar(node.line, "log", True), parts["log_path"]))
    for key in extra:
        if key in values:
            sheet.wrong(extra[key].line, flaw("extra_twice", key=key))
    return Row({**values, **extra}, node.line, Map(node.line, own), tuple(extra))


def _extra(sheet: Sheet, node: Node | None) -> Combination:
    if node is None or null(node):
        return {}
    if not isinstance(node, Map):
        sheet.wrong(node.line, flaw("value_shape", key="extra_args", shape=node.shape, expected="`key: value` lines"))
        return {}
    extra: Combination = {}
    for key, part in node.items:
        if key.text in extra:
            sheet.wrong(key.line, flaw("value_twice", key="extra_args", value=key.text))
        read = value(sheet, f"extra_args: {key.text}", part) if key_good(sheet, "extra_args", key) else None
        if read is not None:
            extra[key.text] = read
    return extra
