"""A job that is paused when somebody comes, for whoever kills engines and shims meanwhile (elastic.py): nobody is to stand still
without a record that says so."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from typing import Any

import evidence
from harness import FAIR, HERE, Engine, Torture, until

from jostle import proc
from jostle.client import Client, Lost

CARDS = 5
CONFIG = "grace: 0.3\npolicy: {resize_interval: 0.05s, yield_after: 0.05s, own_processes: ignore}\n"
"""Nobody minds a small process of our own on a card: only claims keep others away."""
SHIM = "json_extract(r.handle, '$.pid') AS shim, json_extract(r.handle, '$.ticks') AS ticks"
POLITE = "SELECT id, state, attempt FROM job WHERE ended_at IS NULL AND when_stranger = 'pause'"
PAUSED = "r.ended_at IS NULL AND json_extract(r.paused, '$.now')"
OFTEN = "r.ended_at IS NULL AND json_extract(r.paused, '$.times')"
MOST_PAUSES = 3  # of one job: each is twice as long as the one before
WITHIN = 20.0  # s in which a resize that is to be interrupted must come about


class PausingTorture(Torture):
    midst: Counter[str]  # kills while a resize or a pause was under way, by whom they hit
    serial: int

    def engines(self, bug: str | None) -> tuple[Engine, Engine]:
        self.scenario = f"{self.root}/world.yaml"
        self.strangers()
        spec = f"sim:{self.scenario}"
        return Engine(f"{self.root}/home", bug, spec, CONFIG), Engine(f"{self.root}/near", None, spec, CONFIG)

    def strangers(self, *cards: int) -> None:
        """Bob is on these cards now, and on no others."""
        there = "".join(f"  - {{user: bob, gpu: {card}, used: 9GiB}}\n" for card in cards)
        with open(f"{self.scenario}.new", "w") as f:
            f.write(f"gpus: {{count: {CARDS}, total: 24GiB}}\n" + (f"strangers:\n{there}" if there else ""))
        os.rename(f"{self.scenario}.new", self.scenario)

    def _send(self, to: Client, job: dict[str, Any]) -> None:
        context = {"env": {"PATH": os.environ["PATH"], "TORTURE": self.token}, "umask": 0o022, "limits": {}}
        to.call("submit", once=f"{job['name']}-{self.serial}", jobs=[job], batch={"name": job["name"]}, context=context)

    def _rows(self, sql: str) -> list[dict[str, Any]]:
        store = evidence.Store(self.engine.home)
        try:
            return store.rows(sql)
        finally:
            store.close()

    def _shims(self, job: int) -> list[tuple[int, int]]:
        pid, ticks = "json_extract(handle, '$.pid') AS pid", "json_extract(handle, '$.ticks') AS ticks"
        rows = self._rows(f"SELECT {pid}, {ticks} FROM run WHERE job = {job} AND ended_at IS NULL")
        return [(row["pid"], row["ticks"]) for row in rows]

    def keep_polite(self, to: Client) -> None:
        """One that is paused when somebody comes; he comes and goes."""
        polite = self._rows(POLITE)
        for row in self._rows(f"SELECT r.job FROM run r WHERE {OFTEN} > {MOST_PAUSES}"):
            to.call("intent", ids=[row["job"]], do="cancel")
        if not polite:
            self.serial += 1
            argv = [sys.executable, "-I", "-S", f"{HERE}/elastic_program.py", self.evidence, f"{self.root}/sim"]
            self._send(to, {"name": f"e-{self.serial}", "commands": [argv], "when_stranger": "pause", "workdir": "/"})
        else:
            self.strangers(*([] if self.paused() else self.cards_of(polite[0]["id"])))

    def cards_of(self, job: int) -> list[int]:
        return [row["idx"] for row in self._rows(f"SELECT l.idx FROM lease l JOIN run r USING (job, n) WHERE l.job = {job}")]

    def paused(self) -> list[dict[str, Any]]:
        """Runs that are paused, by the record."""
        return self._rows(f"SELECT r.job, r.uni_id, {SHIM} FROM run r WHERE {PAUSED}")

    def stopped(self) -> list[int]:
        """Processes of ours that stand still though it is not recorded of their run."""
        recorded = {row["uni_id"] for row in self.paused()}
        stats = [proc.stat(pid) for pid, _ in self.left()]
        return [s.pid for s in stats if s is not None and s.state == "T" and proc.mark(s.pid) not in recorded]

    def _dies_in_a_pause(self, to: Client, name: str) -> None:
        """A run of this engine is paused and continued until it, or its shim, comes to the place where it dies."""
        end = time.monotonic() + WITHIN
        try:
            for row in self._rows(POLITE):
                to.call("intent", ids=[row["id"]], do="cancel")
            until(lambda: not self._rows(POLITE), FAIR)
            self.strangers()
            self.keep_polite(to)
            while time.monotonic() < end and not self.engine.gone():
                rows = self._rows(POLITE)
                shims = self._shims(rows[0]["id"]) if rows and rows[0]["state"] == "running" else []
                if name.startswith("halt.") and any(not proc.alive(*shim) for shim in shims):
                    self.kills[name] += 1
                    self.midst["shim"] += 1
                    return
                if rows:
                    self.keep_polite(to)
                time.sleep(0.05)
            if not self.engine.gone():
                self.missed[name] += 1
        except (Lost, ValueError):
            if name.startswith("halt."):
                self.missed[name] += 1
