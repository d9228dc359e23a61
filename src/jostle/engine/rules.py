"""What a person's settings say, as the engine holds it: settings, the rules of batches, and the limits above them.

Limits come from four sides (core.limits). What the person says and what a manager's file said is in the store; config.yaml comes
with the settings. The lab's file is looked at here, for nobody tells of a change to it: while it cannot be understood, what it
said last goes on, and if it never said anything, nothing with a GPU starts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jostle import config
from jostle.core.fields import LIMITS, SETTINGS
from jostle.core.limits import MANAGER, OWN, strictest
from jostle.core.model import Limits, Policy
from jostle.core.reasons import Hold, as_text
from jostle.engine import checks
from jostle.errors import Invalid
from jostle.store import jobs
from jostle.store.store import Store

LOOK_EVERY = 2.0  # s, at the lab's file


class Rules:
    def __init__(self, *, store: Store, settings: dict[str, Any]) -> None:
        self._store = store
        self.settings = settings
        self.default: Policy = checks.policy(settings.get("policy") or {})
        self.of_batch: dict[int, Policy] = {}
        self.hold: Hold | None = None  # why nothing with a GPU may start
        self.sources: dict[str, Mapping[str, Any]] = {"lab": {}}  # of limits, by source
        self.manager: Mapping[str, Any] = {}  # its file, what it says and what it leaves to its defaults
        self._mark: object = None  # of the lab's file, as it was read
        self._look_at = 0.0
        self.limits = Limits()
        self.look(0.0)
        self.limits_changed()

    def grace_of(self, own: float | None) -> float:
        """Of a job; `own`: what it says about it itself."""
        return float(self.settings.get("grace", SETTINGS["grace"].default)) if own is None else own

    def of(self, batch: int) -> Policy:
        return self.of_batch.get(batch, self.default)

    def all(self) -> Iterable[Policy]:
        return (self.default, *self.of_batch.values())

    def of_values(self, values: Mapping[str, Any]) -> Policy:
        """Of a batch that says these: where it is silent, the defaults of the settings hold."""
        return checks.policy({**(self.settings.get("policy") or {}), **values})

    def by_uuid(self) -> bool:
        """Whether programs are told the UUIDs of their cards."""
        return bool(self.settings.get("cuda_ids") == "uuid")

    def reload(self, settings: dict[str, Any], policy: Policy) -> None:
        self.settings, self.default = settings, policy
        self.of_batch.clear()
        self.limits_changed()

    def forget(self, batch: int) -> None:
        """They are others now."""
        self.of_batch.pop(batch, None)

    def learn(self, batches: set[int]) -> set[int]:
        """Which of these were not known until now."""
        missing = batches - self.of_batch.keys()
        if missing:
            rules = {policy: policy for policy in self.of_batch.values()}  # equal ones are one object: decide knows them by it
            for batch, values in jobs.policies(self._store, missing).items():
                policy = self.of_values(values)
                self.of_batch[batch] = rules.setdefault(policy, policy)
        return missing

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """What is learned inside is forgotten."""
        of_batch = dict(self.of_batch)
        try:
            yield
        finally:
            self.of_batch = of_batch

    # --- limits

    def limits_answer(self) -> dict[str, Any]:
        """What holds, who says so, and what each says."""
        caps = {name: getattr(self.limits, name) for name in LIMITS}
        return {
            "limits": {name: None if cap is None else {"most": cap.most, "source": cap.source} for name, cap in caps.items()},
            "said": {source: dict(values) for source, values in self.sources.items()},
            "lab_file": config.lab_file(), "manager": dict(self.manager), "hold": as_text(self.hold),
        }  # fmt: skip

    def limits_changed(self) -> None:
        """The store or the settings say something else."""
        self.manager = manager = self._store.get(MANAGER, {})
        self.sources |= {
            "own": self._store.get(OWN, {}),
            "config": self.settings.get("limits") or {},
            "manager": manager.get("values", {}),
        }
        self.limits = strictest(self.sources.items(), ("manager_default", manager.get("defaults", {})))

    def look(self, now: float) -> bool:
        """At the lab's file, now and then; whether it says something else."""
        if now < self._look_at:
            return False
        self._look_at = now + LOOK_EVERY
        mark = config.lab_mark()
        if mark == self._mark:
            return False
        first, self._mark = self._mark is None, mark
        try:
            self.sources["lab"] = config.lab_limits()
        except Invalid as e:
            print(f"{e}", file=sys.stderr, flush=True)
            if first or self.hold:
                self.hold = Hold("gpu_limits_unread", f"{e}", gpus_only=True)
            return self.hold is not None
        self.hold = None
        self.limits_changed()
        return True
