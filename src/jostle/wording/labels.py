"""The heads of tables, and what is said of one job: labels and texts, English and Chinese.

States, error types and kinds of events stay as they are called everywhere: they are what one searches and filters by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jostle import units
from jostle.core.reasons import UNREADABLE, hold_of
from jostle.core.states import READ
from jostle.wording.history import foreseen, freed, used
from jostle.wording.sentences import beside, states
from jostle.wording.text import gpus, listed, message, plain

Row = Mapping[str, Any]
IDLE_SAID_AFTER = 60.0  # s, as the engine does: who has just got cards need not be told

# table: (English, Chinese)
HEADS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "ps": (
        ("ID", "NAME", "QUEUE", "STATE", "GPUS", "TRY", "TIME", "WHY"),
        ("编号", "名称", "队列", "状态", "GPU", "次数", "时间", "原因"),
    ),
    "batches": (("BATCH", "NAME", "FILE", "JOBS", "TIME", "STATES"), ("批次", "名称", "文件", "任务", "时间", "状态")),
    "gpus": (
        ("GPU", "NAME", "USED", "TOTAL", "FREE FOR YOU", "LOAD", "°C", "W", "HELD BY", "MAY BE TAKEN"),
        ("GPU", "型号", "已用", "总量", "可供您用", "负载", "°C", "W", "占用者", "能否占用"),
    ),
    "gpus_without_engine": (
        ("GPU", "NAME", "USED", "TOTAL", "FREE", "LOAD", "°C", "W", "HELD BY", "STATE"),
        ("GPU", "型号", "已用", "总量", "空闲", "负载", "°C", "W", "占用者", "状态"),
    ),
    "runs": (
        ("RUN", "STATE", "GPUS", "STARTED", "TIME", "EXIT", "PEAK", "ERROR", "LOG"),
        ("运行", "状态", "GPU", "开始", "时间", "退出码", "峰值", "错误", "日志"),
    ),
    "limits": (("LIMIT", "MOST", "HELD", "BY"), ("限额", "上限", "占用", "由谁设定")),
    "processes": (
        ("PID", "CPU", "MEMORY", "GPUS", "GPU MEMORY", "PEAK", "TIME", "COMMAND"),
        ("PID", "CPU", "内存", "GPU", "显存", "峰值", "时间", "命令"),
    ),
    "doctor": (("CHECK", "VERDICT", "FOUND"), ("检查项", "结论", "发现")),
    "notify": (
        ("CHANNEL", "KIND", "TO", "SENT", "LAST", "WAITING", "DROPPED", "TELLS OF"),
        ("通道", "种类", "发往", "已发", "最近", "等待", "丢弃", "通知内容"),
    ),
    "dry_run": (("NAME", "WHAT", "COMMAND"), ("名称", "做什么", "命令")),
    "expanded": (("#", "NAME", "ASKS", "COMMAND"), ("#", "名称", "要求", "命令")),
    "uni_id": (("UNI_ID", "STATE", "PID", "ALIVE", "RETRIES", "ERROR"), ("UNI_ID", "状态", "PID", "存活", "重试", "错误")),
}

# fact of a job: (English, Chinese)
LABELS: dict[str, tuple[str, str]] = {
    "job": ("job", "任务"), "state": ("state", "状态"), "batch": ("batch, queue", "批次、队列"), "asks": ("asks for", "要求"),
    "on": ("may run on", "可运行于"), "inside": ("on the cards of", "所用占卡"),
    "after": ("comes after", "依赖"), "repeats": ("repeats", "重试自"), "gpus": ("GPUs", "GPU"),
    "submitted": ("submitted", "提交"), "begin": ("begin", "定时"), "started": ("started", "开始"),
    "ended": ("ended", "结束"), "expected": ("expected", "预计"), "exit_code": ("exit code", "退出码"),
    "error": ("error", "错误"), "tries": ("tries", "次数"), "retry": ("retry", "重试"), "priority": ("priority", "优先级"),
    "resize": ("resize", "换卡"),
    "nice": ("nice", "nice 值"),
    "time_limit": ("time limit", "时限"), "grace": ("grace", "结束宽限"),
    "directory": ("directory", "目录"), "log": ("log", "日志"), "code": ("code", "代码"),
    "files": ("its files", "其文件"), "use": ("GPU use", "GPU 使用"), "tags": ("tags", "标签"),
    "environment": ("environment", "环境变量"), "command": ("command", "命令"),
}  # fmt: skip

FILES = {"other": "files_changed", "unknown": "files_unknown"}
"""Whether the files that a job is made of were those of its submit when it began."""

CARD_KEYS = ("gpu", "uuid", "gpus", "uuids")


def heads(table: str, language: str) -> tuple[str, ...]:
    return HEADS[table][language == "zh"]


def label(fact: str, language: str) -> str:
    return LABELS[fact][language == "zh"]


def facts(
    job: Row, needs: Sequence[Row], code: Row | None, run: Row | None, now: float, language: str
) -> list[tuple[str, str]]:  # fmt: skip
    """What is known of a job and its last run, by the fact's name; a fact that there is nothing to say of is left out."""
    from jostle.core.fields import JOB  # tables do without, and every command that shows one feels it

    inputs = run["inputs"] if run else None
    pairs = [
        ("job", f"{job['id']}  {plain(job['name'])}"),
        ("state", f"{job['state']}  {plain(beside(job['reason']))}".rstrip()),
        ("batch", listed([str(job["batch"]), plain(job["queue"] or message("no_queue", language))], language)),
        ("asks", request(job, language)),
        ("on", "" if job["on"] == JOB["on"].default else listed(job["on"], language)),
        ("inside", message("job_number", language, id=job["inside"]) if job.get("inside") else ""),
        ("after", listed([need(row, language) for row in needs], language)),
        ("repeats", message("job_number", language, id=job["retry_of"]) if job.get("retry_of") else ""),
        ("gpus", gpus(job["gpus"])),
        ("resize", resized(job, language)),
        ("submitted", units.show_instant(job["submitted_at"], now)),
        ("begin", units.show_instant(job.get("begin_at"), now)),
        ("started", units.show_instant(job["started_at"], now)),
        ("expected", foreseen(job, language, whole=True)),
        ("ended", units.show_instant(job["ended_at"], now)),
        ("exit_code", "" if job["exit_code"] is None else str(job["exit_code"])),
        ("error", plain(job["error_type"] or "")),
        ("tries", str(job["attempt"] or "")),
        ("retry", again(job.get("retry"), language)),
        ("priority", str(job.get("priority", 0))),
        ("nice", str(job["nice"] or "")),
        ("time_limit", units.show_duration(job.get("time_limit"))),
        ("grace", units.show_duration(job.get("grace"))),
        ("directory", plain(job.get("workdir") or "")),
        ("log", plain(job.get("log") or "")),
        ("code", _code(code, language) if code else ""),
        ("use", used(run, language) if run else ""),
        ("files", message(FILES[inputs], language) if inputs in FILES else ""),
        ("tags", plain(", ".join(job.get("tags") or ()))),
    ]
    return [(fact, text) for fact, text in pairs if text not in ("", "-")]


def resized(job: Row, language: str) -> str:
    """`restart, leg 3`, and what it does when somebody else comes."""
    leg = message("leg", language, n=job["leg"]) if (job.get("leg") or 1) > 1 else ""
    away = {"requeue": "gives_way", "pause": "is_paused"}.get(job.get("when_stranger") or "")
    return listed([part for part in (job.get("resize") or "", leg, message(away, language) if away else "") if part], language)


def _code(code: Row, language: str) -> str:
    """`a1b2c3d with changes`."""
    commit = code["commit"][:7] if code["commit"] else message("no_commit", language)
    return commit + (message("with_changes", language) if code["dirty"] else "")


def need(row: Row, language: str) -> str:
    """`12 prepare (running)`, `13 train (queued, however it ends)`."""
    return message("need_any" if row["any"] else "need", language, id=row["id"], name=row["name"], now=row["state"])


def again(retry: Row | None, language: str) -> str:
    """`at most 3 times; a pause of 10m after every 3 failures`."""
    if not retry or retry["max"] == 0:
        return ""
    most = message("retry_unlimited", language) if retry["max"] is None else message("retry_most", language, n=retry["max"])
    pause, first = retry.get("backoff"), retry.get("backoff_after")
    if not pause or not first or (retry["max"] is not None and first > retry["max"]):
        return most  # there is none, or it would never come: after the last failure nothing is waited for
    return most + message("retry_pause", language, time=units.show_duration(pause), n=first)


def request(job: Row, language: str) -> str:
    """`1 GPU, the whole card`, `2 GPUs with 20 GiB each, 8 CPU cores, 64 GiB of host memory, licence 1`."""
    memory = job["host_memory_mib"]
    parts = [_cards_asked(job, language), message("asks_cpus", language, n=job["cpus"]) if job["cpus"] else ""]
    parts.append(message("asks_host_memory", language, size=units.show_size(memory)) if memory else "")
    parts += [f"{plain(name)} {amount}" for name, amount in job["counters"].items()]
    return listed([part for part in parts if part], language)


def _cards_asked(job: Row, language: str) -> str:
    """`1-4 GPUs, whole cards`."""
    low, high = job["gpu_request"]
    if not high:
        return message("asks_no_gpu", language)
    cards = message("asks_gpus", language, n=low) if low == high else message("asks_up_to", language, low=low, high=high)
    if not job["memory_mib"]:
        return cards + message("asks_whole_card" if high == 1 else "asks_whole_cards", language)
    size = units.show_size(job["memory_mib"])
    shared = message("asks_shared", language) if job.get("share") else ""
    return cards + message("asks_memory" if high == 1 else "asks_memory_each", language, size=size) + shared


def job_request(job: Row) -> str:
    """`1 × 8000 MiB, 4 cores`: what a job of a file asks for."""
    low, high = job["gpus"]
    memory = "whole" if job["memory_mib"] is None else f"{job['memory_mib']} MiB"
    cards = f"{low if low == high else f'{low}-{high}'} × {memory}" + (" shared" if job["share"] else "") if high else "no GPU"
    more = [f"{job['cpus']} cores"] if job["cpus"] else []
    more += [f"{job['host_memory_mib']} MiB host"] if job["host_memory_mib"] else []
    return ", ".join([cards, *more, *(f"{name} {amount}" for name, amount in job["counters"].items())])


def event(event: Row, language: str) -> str:
    """An event in a line: its kind, the cards it is about, and its reason, or else what it carries."""
    data, cards = event["data"], _cards(event["data"])
    values = {key: value for key, value in data.items() if not isinstance(value, dict) and value not in (None, [])}
    rest = ", ".join(f"{key} {value}" for key, value in values.items() if not (cards and key in CARD_KEYS))
    about = ": ".join(part for part in (cards, beside(data.get("reason")) or rest) if part)
    run = message("run_number", language, n=event["run"]) if event["run"] else ""
    return plain(f"{event['kind']}{run}" + (message("because", language, why=about) if about else ""))


def _cards(data: Row) -> str:
    """The cards that an event is about: `GPU 0 (GPU-8f1c…), 1 (GPU-77ab…)`; "": none, or they were told by index alone."""
    indices, uuids = (data["gpus"], data["uuids"]) if "uuids" in data else ([data.get("gpu")], [data.get("uuid")])
    named = [f"{index} ({uuid})" for index, uuid in zip(indices, uuids, strict=False) if uuid and index is not None]
    return f"GPU {', '.join(named)}" if named else ""


def card_cells(gpu: Row, engine: bool, language: str) -> tuple[str, ...]:
    """A row of the cards. The last cell: with an engine whether the card may be taken, without one only how it is."""
    refusal = gpu["refusal"]
    good = message("card_yes", language) if engine else "ok"
    verdict = refusal["text"] if refusal else good if gpu["state"] == "ok" else gpu["error"] or gpu["state"]
    verdict = listed([part for part in (verdict, freed(gpu, language)) if part], language)
    used = units.show_size(gpu["used_mib"]) if gpu["used_mib"] or gpu["state"] in READ else "-"
    return (
        str(gpu["index"]), gpu["name"], used, units.show_size(gpu["total_mib"]),
        units.show_size(gpu["available_mib"]), _number(gpu["utilization"], "%"), _number(gpu["temperature"]),
        _number(gpu["power_w"]), holders(gpu, language), verdict,
    )  # fmt: skip


def _number(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value:.0f}{unit}"


def holders(gpu: Row, language: str) -> str:
    """`job 17 (12 GiB, asked for 8 GiB, paused), bob (4 GiB), no load for 2h`: our runs by number, others by name."""
    jobs: dict[int, int | None] = {}
    others: dict[str, int | None] = {}
    for h in gpu["holders"]:
        if h["run"]:
            _add(jobs, int(h["run"].split(".")[0]), h["used_mib"])
        else:
            _add(others, h["user"] or f"pid {h['pid']}", h["used_mib"])
    for run in gpu.get("runs") or ():
        jobs.setdefault(int(run.split(".")[0]), 0)  # it holds the card but uses nothing yet
    beyond = {int(b["run"].split(".")[0]): units.show_size(b["asked_mib"]) for b in gpu.get("beyond") or ()}
    marks = {id: message("held_beyond", language, size=size) for id, size in beyond.items()}
    still = [int(run.split(".")[0]) for run in gpu.get("paused") or ()]
    marks |= {id: marks.get(id, "") + message("held_paused", language) for id in still}
    parts = [_held(message("job_number", language, id=id), mib, marks.get(id, "")) for id, mib in sorted(jobs.items())]
    idle = message("card_no_load", language, time=units.show_duration(gpu["idle_s"])) if gpu.get("idle_s") else ""
    return ", ".join([*parts, *(_held(who, mib) for who, mib in others.items())]) + idle or "-"


def _add(sums: dict[Any, int | None], who: Any, mib: int | None) -> None:
    before = sums.get(who, 0)
    sums[who] = None if before is None or mib is None else before + int(mib)


def _held(who: str, mib: int | None, mark: str = "") -> str:
    return f"{who} ({units.show_size(mib)}{mark})" if mib else who


def occupancy(gpus: Sequence[Row], language: str) -> str:
    """`4 GPUs: 2 ours, 1 not to be had, 1 free`."""
    ours = sum(bool(gpu["runs"]) for gpu in gpus)
    free = sum(not gpu["runs"] and gpu["refusal"] is None for gpu in gpus)
    counts = {"cards_ours": ours, "cards_refused": len(gpus) - ours - free, "cards_free": free}
    parts = listed([message(code, language, n=n) for code, n in counts.items() if n], language)
    return message("cards", language, n=len(gpus), parts=parts) if gpus else ""


def allocation(held: Row, now: float, language: str) -> str:
    """`train: 2 GPUs on gpu7 (running), GPU 0,1, for 2h, until 18:30, idle for 15m, job 13 inside`."""
    parts = [message("held_gpus", language, n=len(held["gpus"]) or held["gpu_request"][0])]
    if held["node"] is not None:
        parts = [message("held_on", language, gpus=parts[0], node=held["node"])]
        parts += [f"GPU {gpus(held['gpus'])}", message("held_for", language, time=units.show_duration(now - held["since"]))]
    else:
        parts.append(message("held_waits", language, why=beside(held["reason"])))
    if held["until"] is not None:
        parts.append(message("held_until", language, at=units.show_instant(held["until"], now)))
    if held["reason"] and held["reason"]["code"] == "visited":
        who = {**held["reason"]["params"], "user": plain(held["reason"]["params"]["user"])}
        parts.append(message("held_visited", language, **who))
    if (held["idle_s"] or 0) >= IDLE_SAID_AFTER:
        parts.append(message("held_idle_for", language, time=units.show_duration(held["idle_s"])))
    if held["programs"]:
        parts.append(message("held_inside", language, ids=", ".join(str(program["id"]) for program in held["programs"])))
    return f"{plain(held['name'])}{'：' if language == 'zh' else ': '}{listed(parts, language)}"


def free(resources: Row, language: str) -> str:
    """`6 of 8 CPU cores free, 96 GiB of 128 GiB of memory, licence 1 of 4`."""
    cpus, memory = resources["cpus"], {name: units.show_size(mib) for name, mib in resources["host_memory_mib"].items()}
    counters = [f"{plain(name)} {one['free']}/{one['total']}" for name, one in resources["counters"].items()]
    return listed([message("free_cpus", language, **cpus), message("free_memory", language, **memory), *counters], language)


def event_lines(events: Sequence[Row], language: str) -> list[str]:
    """The last of them, each with its time, under a blank line."""
    lines = [f"{units.show_instant(of['at'])}  {event(of, language)}" for of in events[-50:]]
    return ["", *lines] if lines else []


def status_lines(status: Row, now: float, language: str) -> list[str]:
    """The engine, its jobs, what is held, and its consoles."""
    time, spec = units.show_duration(status["uptime_s"]), status["gpus_spec"]
    facts = {"pid": status["pid"], "version": status["version"], "time": time, "gpus": spec}
    texts = [message("status_engine", language, **facts) if status["running"] else message("status_no_engine", language)]
    if status["hold"] and hold_of(status["hold"])[:2] != (UNREADABLE, status["probe"]):  # else the next line says it
        texts.append(message("status_hold", language, why=status["hold_text"]))
    if status["probe"]:
        texts.append(message("status_gpus", language, why=status["probe"]))
    counts = listed(states(status["counts"], language), language) or message("none", language)
    texts.append(message("status_jobs", language, counts=counts))
    texts += [message("status_host", language, what=free(status["resources"], language))] if status["resources"] else []
    texts += [message("status_node", language, **node) for node in status["nodes"]]
    texts += [message("status_held", language, what=allocation(held, now, language)) for held in status["allocations"]]
    for one in status["consoles"]:
        at = f"{one['bind'] or 'localhost'}:{one['port']}"
        texts.append(message("status_web", language, at=at, pid=one["pid"], path=one["workspace"] or "-"))
    if not status["consoles"]:
        texts.append(message("status_no_web", language))
    return [*texts, message("status_home", language, path=status["paths"]["home"])]
