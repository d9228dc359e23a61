"""What a run is given, whoever carries it: environment and specification. Pure, from the job's row and the cards chosen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from jostle.core import runvariables
from jostle.core.fields import SETTINGS
from jostle.core.model import Gpu, Policy, RunId
from jostle.core.variables import filled


def visible(gpus: Sequence[Gpu], all_gpus: Sequence[Gpu], by_uuid: bool) -> str:
    """CUDA_VISIBLE_DEVICES: indices, as people's scripts expect; UUIDs where an index could mean another card."""
    unsure = any(g.mig_slice for g in gpus) or any(g.state in ("lost", "mig") or g.no_handle for g in all_gpus)
    return ",".join(g.uuid if by_uuid or unsure else str(g.index) for g in gpus)


def environment(captured: Mapping[str, str], job: Mapping[str, Any], run: RunId, uni_id: str) -> dict[str, str]:
    env = {**captured, "PYTHONUNBUFFERED": "1"}
    env.update(json.loads(job["env"]))
    env.update({
        runvariables.DEVICE_ORDER: "PCI_BUS_ID",
        runvariables.JOB_ID: str(run[0]),
        runvariables.RUN: f"{run[0]}.{run[1]}",
        runvariables.ATTEMPT: str(run[1]),
        runvariables.UNI_ID: uni_id,
        runvariables.QUEUE: (job["queue"] or "").removeprefix(f"{job['batch']}/"),
    })
    if job["cpus"] is not None:
        env[runvariables.CPUS] = str(job["cpus"])
    if job["inside"] is not None:
        env[runvariables.ALLOCATION] = str(job["inside"])
    return env


def card_variables(cards: str, gpus: Sequence[Gpu]) -> dict[str, str]:
    """Which cards a run may see. One that is handed over is told that by whoever chooses them."""
    return {runvariables.VISIBLE: cards, runvariables.GPUS: ",".join(str(g.index) for g in gpus)}


def spec(
    job: Mapping[str, Any], context: Mapping[str, Any], run: RunId, uni_id: str, log: str,
    gpus: Sequence[Gpu], all_gpus: Sequence[Gpu], settings: Mapping[str, Any], policy: Policy, *, grace: float, placed: bool,
    resize: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    cards = visible(gpus, all_gpus, settings.get("cuda_ids") == "uuid")
    commands, uni_id_file = json.loads(job["commands"]), None
    if runvariables.UNI_ID_FILE in job["env"]:
        uni_id_file = json.loads(job["env"]).get(runvariables.UNI_ID_FILE)
        values = {"uni_id": uni_id, "available_gpu": cards, "gpu_list": cards}
        commands = [filled(c, values) if isinstance(c, str) else [filled(word, values) for word in c] for c in commands]
    return {
        "run": f"{run[0]}.{run[1]}",
        "uni_id": uni_id,
        "commands": commands,
        "command_limit": policy.command_limit,
        "uni_id_file": uni_id_file,
        "failures": job["retries"],
        "env": {**environment(context["env"], job, run, uni_id), **(card_variables(cards, gpus) if placed else {})},
        "asks": {"gpus": [job["gpus_min"], job["gpus_max"]], "memory_mib": job["memory_mib"], "cpus": job["cpus"],
                 "host_memory_mib": job["host_memory_mib"]},
        "nice": job["nice"],
        "workdir": job["workdir"],
        "umask": context["umask"],
        "limits": context["limits"],
        "log": log,
        "log_cap_mib": settings.get("log_cap_mib", SETTINGS["log_cap_mib"].default),
        "time_limit": job["time_limit"],
        "grace": grace,
        "leftovers": job["leftovers"],
        "resize": resize,
        "pauses": job["when_stranger"] == "pause",
        "inputs": json.loads(job["inputs"]) if job["inputs"] else None,
        "inside": job["inside"],
        "tied_to": json.loads(job["tied_to"]) if job["tied_to"] else None,
    }
