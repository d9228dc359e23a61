"""The job file of our own: `defaults:`, `policy:` and `jobs:` as YAML, read into a submit request.

Rules: a file is taken whole or not at all. All its errors are found at once, each with file, line, what was wrong and what was
expected. A string under `run:` is one bash script; a list is commands that run one after another, each in a shell of its own.
Relative paths are relative to the file.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping, Sequence
from typing import Any

from jostle.core.kinds import MAX_NAME
from jostle.formats import policyfile, spec, yamlfile
from jostle.formats.fields import FIELDS, together
from jostle.formats.flaws import BadFiles, Findings
from jostle.formats.nodes import Flaw, Map, Node, Scalar, Seq, of
from jostle.formats.order import circle
from jostle.formats.wording import closest, null, shown, unknown
from jostle.wording.flaws import flaw

TOP = ("defaults", "jobs", "name", "own_queues", "policy")
MAX_JOBS = 200_000


def load(
    files: Sequence[str], *, now: float | None = None, texts: Mapping[str, str] | None = None, base: str | None = None
) -> dict[str, Any]:
    """{"name", "policy", "queues", "jobs"} of one batch made of all the files, in their order.

    `texts`: what was read of a file already (a pipe can be read only once); `base`: where relative paths start instead.
    """
    # a big file makes a million small objects that all live: the collector would only walk them again and again
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _load(files, now, texts or {}, base)
    finally:
        if collecting:
            gc.enable()


def of_values(values: dict[str, Any], base: str, called: str = "") -> dict[str, Any]:
    """The same from values of a program, in the words of a job file; relative paths start at `base`. `called`: what stands before
    each flaw, in the place of a file."""
    reader = _File(called, first=0, now=None)
    reader.base = base
    reader.take(of(values))
    if reader.flaws:
        raise BadFiles([(reader.file, 0, text) for _, text in reader.flaws])
    own = "own" if reader.own_queues else None
    return {"name": reader.name, "policy": reader.policy, "queues": own, "jobs": reader.jobs}


def _load(files: Sequence[str], now: float | None, texts: Mapping[str, str], base: str | None) -> dict[str, Any]:
    jobs: list[dict[str, Any]] = []
    flaws: list[tuple[str, int, str]] = []
    policy: dict[str, Any] = {}
    name, own = None, False
    for file in files:
        reader = _File(file, first=len(jobs), now=now)
        reader.base = os.path.abspath(base) if base is not None else reader.base
        reader.read(texts.get(file))
        flaws += [(file, line, text) for line, text in sorted(reader.flaws)]
        if reader.policy and policy and reader.policy != policy:
            flaws.append((file, reader.policy_line, flaw("policy_twice")))
        policy = policy or reader.policy
        name = name or reader.name
        own = own or reader.own_queues
        jobs += reader.jobs
    if flaws:
        raise BadFiles(flaws)
    stems = [os.path.splitext(os.path.basename(file))[0] for file in files]
    return {"name": name or ", ".join(stems)[: MAX_NAME], "policy": policy, "queues": "own" if own else None, "jobs": jobs}


class _File(Findings):
    """One file being read."""

    def __init__(self, file: str, *, first: int, now: float | None) -> None:
        super().__init__()
        self.file = file
        self.base = os.path.dirname(os.path.abspath(file)) if file != "-" else os.getcwd()
        self.first = first  # how many jobs other files put before ours
        self.now = now
        self.jobs: list[dict[str, Any]] = []
        self.policy: dict[str, Any] = {}
        self.policy_line = 0
        self.name: str | None = None
        self.own_queues = False
        self.after: list[tuple[int, list[tuple[Scalar, bool]]]] = []  # by job: the names it comes after
        self.lines: list[int] = []

    def read(self, text: str | None = None) -> None:
        try:
            root = yamlfile.parse(yamlfile.text_of(self.file) if text is None else text)
        except Flaw as e:
            self.wrong(e.line, e.text)
            return
        self.take(root)

    def take(self, root: Node | None) -> None:
        if not isinstance(root, Map):
            what = "is empty" if root is None else f"holds {root.shape}"
            self.wrong(root.line if root else 0, flaw("no_jobs", what=what))
            return
        parts = self.keys(root, TOP)
        if "name" in parts:
            self.name = self.checked("name", parts["name"], spec.label)
        if "own_queues" in parts:
            self.own_queues = bool(self.checked("own_queues", parts["own_queues"], spec.truth))
        if "policy" in parts and not null(parts["policy"]):
            self.policy_line = parts["policy"].line
            self.policy = policyfile.read(parts["policy"], self)
        defaults = self.defaults(parts.get("defaults"))
        self.all_jobs(parts.get("jobs"), root.line, defaults)
        self.resolve()

    def defaults(self, node: Node | None) -> dict[str, Any]:
        plain = spec.job(workdir=self.base)
        if node is None or null(node):
            return plain
        if not isinstance(node, Map):
            expected = "keys of a job such as `gpus: 1`"
            self.wrong(node.line, flaw("value_shape", key="defaults", shape=node.shape, expected=expected))
            return plain
        for key in [k for k, _ in node.items if k.text in ("name", "after", "after_any")]:
            self.wrong(key.line, flaw("not_in_defaults", key=key.text))
        allowed = Map(node.line, [(k, v) for k, v in node.items if k.text not in ("name", "after", "after_any")])
        return self.fields(allowed, plain, " in defaults")

    def all_jobs(self, node: Node | None, line: int, defaults: dict[str, Any]) -> None:
        if node is None or null(node):
            self.wrong(node.line if node else line, flaw("no_jobs", what="no jobs"))
        elif not isinstance(node, Seq):
            expected = "a list, each job beginning with `- `"
            self.wrong(node.line, flaw("value_shape", key="jobs", shape=node.shape, expected=expected))
        elif not node.items:
            self.wrong(node.line, flaw("value_shape", key="jobs", shape="an empty list", expected="at least one job"))
        elif len(node.items) > MAX_JOBS:
            self.wrong(node.line, flaw("jobs_many", n=len(node.items), most=MAX_JOBS))
        else:
            for item in node.items:
                self.one_job(item, defaults)

    def one_job(self, node: Node, defaults: dict[str, Any]) -> None:
        self.lines.append(node.line)
        if not isinstance(node, Map):
            self.wrong(node.line, flaw("job_shape", shape=node.shape))
            self.jobs.append(dict(defaults))
            return
        before = len(self.flaws)
        job = self.fields(node, defaults, "")
        if not job["commands"] and not any(key.text == "run" for key, _ in node.items):
            self.wrong(node.line, flaw("job_no_run"))
        elif not job["name"] and job["commands"]:
            job["name"] = spec.name_of(job["commands"])
        if len(self.flaws) == before and job["commands"]:
            together(self, job, node.line, [key.text for key, _ in node.items])
        self.jobs.append(job)

    def fields(self, node: Map, start: dict[str, Any], where: str) -> dict[str, Any]:
        """A copy of `start` with what the mapping says."""
        job = dict(start)
        keys: set[str] = set()
        for key, value in node.items:
            text = key.text
            read = FIELDS.get(text)
            if text in keys:
                self.wrong(key.line, flaw("key_twice", key=shown(text), where=where))
            elif read is None:
                self.wrong(key.line, unknown(text, tuple(FIELDS), where))
            else:
                read(self, job, text, value)
            keys.add(text)
        return job

    def resolve(self) -> None:
        """Names under `after` become places in the batch."""
        if not self.after:
            return
        places: dict[str, list[int]] = {}
        for place, job in enumerate(self.jobs):
            places.setdefault(job["name"], []).append(place)
        edges: dict[int, list[int]] = {}
        for place, predecessors in self.after:
            for node, any_end in predecessors:
                candidates = places.get(node.text, [])
                if len(candidates) == 1:
                    edges.setdefault(place, []).append(candidates[0])
                    self.jobs[place]["needs"].append(["index", self.first + candidates[0], any_end])
                elif candidates:
                    lines = ", ".join(str(self.lines[k]) for k in candidates[:5])
                    self.wrong(node.line, flaw("after_several", name=shown(node.text), n=len(candidates), lines=lines))
                elif node.text.isascii() and node.text.isdigit() and len(node.text) < 16 and int(node.text) > 0:
                    self.jobs[place]["needs"].append(["job", int(node.text), any_end])
                else:
                    near = closest(node.text, tuple(places))
                    hint = flaw("perhaps", near=near) if near else ""
                    self.wrong(node.line, flaw("after_nobody", name=shown(node.text), hint=hint))
        self.no_circle(edges)

    def no_circle(self, edges: dict[int, list[int]]) -> None:
        places = circle(edges, [job["queue"] for job in self.jobs])
        if places:
            queues = {self.jobs[k]["queue"] or k for k in places}
            story = " → ".join(f"{shown(self.jobs[k]['name'])} (line {self.lines[k]})" for k in [*places, places[0]])
            hint = " (jobs of one queue run in the order of the file)" if len(queues) < len(places) else ""
            self.wrong(self.lines[places[0]], flaw("after_circle", story=story, hint=hint))
