"""Jobs, runs and batches as rows of a table: the texts of their cells, under the heads of labels."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from jostle import units
from jostle.wording.history import foreseen
from jostle.wording.sentences import beside, states
from jostle.wording.text import gpus, listed, message, plain

Row = Mapping[str, Any]


def job(row: Row, now: float, language: str) -> tuple[str, ...]:
    why = beside(row["reason"]) or foreseen(row, language)
    if row["state"] == "failed" and not why:
        why = row["error_type"] or (f"exit code {row['exit_code']}" if row["exit_code"] is not None else "")
    state = "held" if row["state"] == "queued" and row["intent"] == "hold" else row["state"]
    return (
        str(row["id"]), row["name"], row["queue"] or "-", state, gpus(row["gpus"]) if _holds(row) else _asked(row),
        _tried(row, language), units.show_duration(_elapsed(row, now)), why,
    )  # fmt: skip


PLANNED = {
    "run": ("run", "运行"), "done": ("done before", "此前已完成"), "log": ("its log exists", "日志已存在"),
    "not_failed": ("did not fail", "没有失败"),
}  # fmt: skip
BY = (" by job {}", "（任务 {}）")
OTHER_CODE = (" with other code ({} → {})", "，所用代码不同（{} → {}）")


def planned(job: Row, language: str) -> tuple[str, ...]:
    """A job of a dry run, and what would be done with it."""
    zh = language == "zh"
    by = BY[zh].format(job["by"][0]) if job["by"] else ""
    code = OTHER_CODE[zh].format(*job["other_code"]) if job["other_code"] else ""
    return job["name"], PLANNED[job["do"]][zh] + by + code, " && ".join(job["commands"])


def _tried(row: Row, language: str) -> str:
    """`2`; of a run whose cards have changed also how often: `2, leg 3`."""
    leg = row.get("leg") or 1
    more = [message("leg", language, n=leg)] if leg > 1 and row["attempt"] else []
    return listed([str(row["attempt"] or "-"), *more], language)


def _holds(row: Row) -> bool:
    return bool(row["gpus"]) and row["state"] != "queued"


def _asked(row: Row) -> str:
    """What a job without cards wants: `×2`, `×1-4`."""
    low, high = row["gpu_request"]
    return "-" if row["ended_at"] is not None or not high else f"×{low}" if low == high else f"×{low}-{high}"


def _elapsed(row: Row, now: float) -> float | None:
    """How long it ran, runs, or waits."""
    if row["state"] == "queued":
        return now - float(row["submitted_at"])
    if row["started_at"] is None:
        return None
    return now - float(row["started_at"]) if row["ended_at"] is None else row["ran_s"]


def run(run: Row, now: float) -> tuple[str, ...]:
    took = units.show_duration(now - run["started_at"] if run["ended_at"] is None else run["ran_s"])
    code = "-" if run["exit_code"] is None else str(run["exit_code"])
    return (
        str(run["n"]), run["outcome"] or run["state"], gpus(run["gpus"]), units.show_instant(run["started_at"]), took, code,
        units.show_size(run["peak_mib"]), run["error_type"] or "", run["log"],
    )  # fmt: skip


def process(row: Row) -> tuple[str, ...]:
    percent = "-" if row["cpu_percent"] is None else f"{row['cpu_percent']:.0f}%"
    return (
        str(row["pid"]), percent, units.show_size(row["rss_mib"]), gpus(row["gpus"]), units.show_size(row["gpu_mib"]),
        units.show_size(row["gpu_peak_mib"]), units.show_duration(row["ran_s"]), row["command"] or "-",
    )  # fmt: skip


UNI_ID = ("uni_id", "state", "pid", "alive", "retry_count", "error_type")


def uni_id(entry: Row) -> list[str]:
    """An entry of a uni_id file."""
    return [_shown(entry[name]) for name in UNI_ID]


def _shown(value: Any) -> str:
    return "-" if value is None or value == "" else ("no", "yes")[value] if isinstance(value, bool) else str(value)


def uni_id_line(entry: Row) -> str:
    """`abnormal_exit pid=4711 retry_count=2 error_type=oom`: the state is the first word, for scripts."""
    parts = [entry["state"] or "unknown", f"pid={entry['pid']}", f"retry_count={entry['retry_count']}"]
    parts += [f"error_type={entry['error_type']}"] if entry["error_type"] else []
    parts += ["(this process is gone)"] if entry["alive"] is False else []
    return plain(" ".join(parts))


def batch(row: Row, now: float, language: str) -> tuple[str, ...]:
    """`12, multi_seed, suites.yaml, 24, 2h06m, 22 succeeded, 1 running, about 25m left`."""
    took = None if row["started_at"] is None else (row["ended_at"] or now) - row["started_at"]
    counts = {**row["counts"], "skipped": row["counts"].get("skipped", 0) - row["done_before"]}
    parts = states(counts, language)
    parts += [message("done_before", language, n=row["done_before"])] if row["done_before"] else []
    parts += [message("progress_left", language, time=units.show_duration(row["left_s"]))] if row["left_s"] else []
    file = os.path.basename(row["file"] or "") or "-"
    return str(row["id"]), row["name"] or "-", file, f"{row['jobs']:,}", units.show_duration(took), listed(parts, language)
