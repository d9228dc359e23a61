"""Metrics in the text format of Prometheus: what each counts, and how its samples are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Sample = tuple[str, float, Mapping[str, str]]
KIND = "text/plain; version=0.0.4; charset=utf-8"
PARTS = ("_bucket", "_sum", "_count")  # of a histogram

METRICS: dict[str, tuple[str, str]] = {
    "jostle_info": ("gauge", "1; its version is a label"),
    "jostle_engine_up": ("gauge", "1: an engine runs and answers"),
    "jostle_engine_uptime_seconds": ("gauge", "How long the engine has run; its counters began with it"),
    "jostle_engine_hold": ("gauge", "1: something keeps jobs from starting, as `jostle status` says"),
    "jostle_jobs": ("gauge", "Jobs by state"),
    "jostle_jobs_waiting": ("gauge", "Jobs that wait, by the code of the reason"),
    "jostle_jobs_paused": ("gauge", "Running jobs that are paused for somebody else"),
    "jostle_allocations": ("gauge", "Allocations that have not ended, by state"),
    "jostle_user_gpus": ("gauge", "Cards that this user holds, over all homes, by what counts them: total, manual or automatic"),
    "jostle_user_gpus_limit": ("gauge", "How many of them the user may hold, where a limit is set"),
    "jostle_runs_started_total": ("counter", "Runs that the engine has started"),
    "jostle_runs_ended_total": ("counter", "Runs whose end it has recorded, by outcome"),
    "jostle_tick_seconds": ("histogram", "How long the engine took to observe, decide, record and act"),
    "jostle_gpu_reading_age_seconds": ("gauge", "How old the last reading of the cards is"),
    "jostle_gpu_info": ("gauge", "1; the model of a card is a label"),
    "jostle_gpu_readable": ("gauge", "1: the driver can read the card"),
    "jostle_gpu_free": ("gauge", "1: a job could get some of it now"),
    "jostle_gpu_excluded": ("gauge", "1: taken out by hand"),
    "jostle_gpu_set_aside": ("gauge", "1: set aside as faulty, or because something that ended is still on it"),
    "jostle_gpu_runs": ("gauge", "Runs of ours on the card"),
    "jostle_gpu_strangers": ("gauge", "Processes on the card that are not ours"),
    "jostle_gpu_memory_total_bytes": ("gauge", "Memory of the card"),
    "jostle_gpu_memory_used_bytes": ("gauge", "Memory in use, by anybody"),
    "jostle_gpu_memory_available_bytes": ("gauge", "Memory that a job could get now: not in use, and promised to nobody"),
    "jostle_gpu_utilization_ratio": ("gauge", "Load of the card, 0 to 1"),
    "jostle_gpu_temperature_celsius": ("gauge", "Temperature of the card"),
    "jostle_gpu_power_watts": ("gauge", "Power that the card draws"),
    "jostle_console_streams": ("gauge", "Streams and waiting calls that are open at the console"),
}


def family(name: str) -> str:
    """The metric that a sample belongs to."""
    if name in METRICS:
        return name
    return next(name.removesuffix(part) for part in PARTS if name.endswith(part) and name.removesuffix(part) in METRICS)


def exposition(samples: Iterable[Sample]) -> str:
    by_family: dict[str, list[str]] = {name: [] for name in METRICS}
    for sample in samples:
        by_family[family(sample[0])].append(_line(*sample))
    return "".join(
        f"# HELP {name} {METRICS[name][1]}\n# TYPE {name} {METRICS[name][0]}\n{''.join(lines)}"
        for name, lines in by_family.items()
        if lines
    )


def _line(name: str, value: float, labels: Mapping[str, str]) -> str:
    marks = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{marks}}} {value}\n" if marks else f"{name} {value}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
