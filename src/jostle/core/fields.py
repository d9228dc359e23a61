"""The one table of what a job, the rules of a batch and a settings file may say. Checks, formats, `set`, help, the shape of a job
and the documentation are made from it or held to it: a further setting is one entry here.

Rules: light to import, for every command starts with it. `None` is taken where it is the default, and nowhere else. A shape's key
is stored, so its numbers are never given to another field.
"""

from __future__ import annotations

from jostle.core import kinds
from jostle.core.kinds import MAX_COUNT, Kind, count, one_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Field:
    __slots__ = ("absent", "absent_zh", "check", "default", "into", "key", "kind", "name", "settable", "shape", "what", "what_zh")

    def __init__(
        self, name: str, kind: Kind, default: Any, what: str, what_zh: str, *, key: str | None = None, into: str = "",
        absent: tuple[str, str] = ("none", "无"), shape: int = 0, settable: bool = False,
    ) -> None:  # fmt: skip
        self.name = name  # inside: in a submit, in the code
        self.key = name if key is None else key  # in a file and of `set`; "": only programs say it
        self.kind = kind
        self.check = kind.check
        self.default = default
        self.what, self.what_zh = what, what_zh  # what it is for, in English and Chinese
        self.absent, self.absent_zh = absent  # what holds if nothing is said and the default is no value
        self.into = into  # a word of files only: the field that it becomes a part of
        self.shape = shape  # part of what decides where and when a job fits: its place in the key; 0: no part of it
        self.settable = settable  # while the job waits

    def accepts(self, value: Any) -> bool:
        return (value is None and self.default is None) or self.check(value)

    def fresh(self) -> Any:
        """The default, to be kept and changed."""
        return self.default.copy() if isinstance(self.default, list | dict) else self.default


def _table(*fields: Field) -> dict[str, Field]:
    return {field.name: field for field in fields}


RETRY = _table(
    Field("max", kinds.ATTEMPTS, 0, "how often a failed job is tried again, or `unlimited`",
          "失败后最多重试几次，或 `unlimited`（不限）"),
    Field("backoff_after", Kind("whole", lambda v: kinds.is_integer(v, 1, MAX_COUNT), "at least 1", low=1, high=MAX_COUNT), 3,
          "every so many failures …", "每失败这么多次……"),
    Field("backoff", kinds.DURATION, 600.0, "… wait this long", "……等待这么久"),
)  # fmt: skip

CHOICES = ("best-fit", "least-used", "most-free", "lowest-utilization", "round-robin", "first-fit", "source-score")
"""How cards are chosen; core.fit has the measure of each."""

RULES = _table(
    Field("gpus", kinds.INDICES, None, "indices of the cards it may use; file: `0-3,6` or a list",
          "可用的卡号；文件里写 `0-3,6` 或列表", absent=("all", "全部")),
    Field("gpu_left", kinds.CARDS, 0, "cards left to others, see below", "留给他人的卡数"),
    Field("min_gpu", kinds.CARDS, None, "cards you may hold even if few are available", "可用卡很少时也可占用的卡数"),
    Field("max_gpu", kinds.CARDS, None, "cards you never hold more of", "最多占用的卡数"),
    Field("share", kinds.TRUTH, False, "only memory decides; several runs of ours per card",
          "只看显存；一张卡上可运行我们的多个任务"),
    Field("min_free_mib", kinds.size(0), 0, "a card needs this much available memory", "卡上至少要有这么多可用显存",
          key="min_free"),
    Field("max_utilization", kinds.PERCENT, None, "a card may show at most this load, percent, now and over 3 s",
          "卡的利用率上限（百分比，当前值与 3 秒均值）"),
    Field("idle_for", kinds.DURATION, 0.0,
          "a card must have been idle this long: no process that is not a run of ours, load at most 5 %",
          "卡须已空闲这么久：没有我们以外的进程，利用率不超过 5 %"),
    Field("strangers", one_of("avoid", "share"), "avoid",
          "`avoid`: not on a card that another user uses; `share`: memory decides",
          "`avoid`：不用他人在用的卡；`share`：只看显存"),
    Field("small_mib", kinds.size(0), 512,
          "use by others below this, without load, does not count as use: graphics and memory that nobody explains at once …",
          "他人占用低于此值且无负载时不算在用：图形进程与来源不明的显存立即适用……", key="small"),
    Field("small_for", kinds.DURATION, 120.0,
          "… and a process that computes when it has been so for so long: who is just starting is small and idle, too",
          "……计算进程须持续这么久：刚启动的进程同样又小又闲"),
    Field("own_processes", one_of("avoid", "ignore"), "avoid",
          "processes you started by hand (Python of any size, others from `small` on): `avoid` their cards, or `ignore` them",
          "你手动启动的进程（Python 不论大小，其他从 `small` 起）：避开其卡（`avoid`）或忽略（`ignore`）"),
    Field("choice", one_of(*CHOICES), "best-fit", "which of the cards that fit, see below", "在合适的卡中选哪张"),
    Field("order", one_of("file", "random", "gpus-desc"), "file", "order within the batch: `file`, `random`, `gpus-desc`",
          "批次内的顺序：`file`、`random`、`gpus-desc`"),
    Field("max_concurrent", count(1, MAX_COUNT), None, "jobs of the batch that run at once", "批次中同时运行的任务数"),
    Field("start_interval", kinds.DURATION, 0.0, "least time between two starts of the batch", "批次内两次启动的最短间隔"),
    Field("max_wait", kinds.DURATION, None,
          "the next job of a batch that waits longer for cards fails with `wait_timeout`, see below",
          "批次中下一个任务等卡超过此时间即失败（`wait_timeout`）"),
    Field("reserve_after", kinds.DURATION, 600.0,
          "a big job that waits longer keeps cards as they fall free; one of higher priority at once",
          "大任务等待超过此时间后逐张保留空出的卡；优先级更高的立即保留"),
    Field("retry", kinds.RETRY, {}, "how often a failed job is tried again that says nothing about it itself",
          "任务自己没写时，失败后重试几次", absent=("never", "不重试")),
    Field("on_failure", one_of("continue", "stop"), "continue",
          "a job failed for good: the rest of its queue goes on (`continue`), or is skipped (`stop`)",
          "任务最终失败后：同队列其余继续（`continue`）或跳过（`stop`）"),
    Field("command_limit", kinds.SOME_TIME, None,
          "time limit of each command of a run; `time_limit` of a job is for the run as a whole",
          "一次运行中每条命令的时限；任务的 `time_limit` 管整次运行"),
    Field("margin_mib", kinds.size(0), 0, "memory left over on each card beside what a job asks for",
          "除任务所需外，每张卡上再留的显存", key="margin"),
)  # fmt: skip

JOB = _table(
    Field("name", kinds.NAME, None, "what it is called: one line of at most 200 characters", "名称：一行，最多 200 个字符",
          absent=("the beginning of the command", "命令的开头"), settable=True),
    Field("priority", count(-MAX_COUNT, MAX_COUNT), 0, "a whole number; higher comes first", "整数，越大越先",
          shape=1, settable=True),
    Field("time_limit", kinds.LIMIT, None, "a run is stopped after this time: `90`, `45s`, `30m`, `2h30m`, `1:30:00`",
          "每次运行的时限", shape=5, settable=True),
    Field("memory_mib", kinds.size(1), None, "per card: `20GiB`, `500MiB`, or a bare number of GB", "每张卡的显存；不写单位即 GB",
          key="memory", absent=("the whole card", "整张卡"), shape=3, settable=True),
    Field("gpus", kinds.GPUS, [1, 1], "how many cards: `2`, `1-4`, or `0` for none", "几张卡：`2`、`1-4`，`0` 为不用卡",
          shape=2, settable=True),
    Field("on", kinds.TARGETS, ["local"],
          "where it may run: a target or a list, in the order in which they are tried; `local` is this host",
          "可在哪里运行：一个目标或按先后尝试的列表；`local` 为本机", shape=6, settable=True),
    Field("queue", kinds.QUEUE, None, "name of a queue: its jobs run one after another", "队列名：同队列任务依次运行",
          absent=("none: free to run any time", "无：随时可运行"), settable=True),
    Field("tags", kinds.TAGS, [], "a word or a list of words", "一个或多个标签", settable=True),
    Field("share", kinds.TRUTH, False, "`true`: other jobs of ours may use the same card; needs `memory`",
          "`true`：我们的其他任务可共用此卡；须写 `memory`", shape=4, settable=True),
    Field("commands", kinds.COMMANDS, None, "a script, or a list of commands; needed", "脚本或命令列表，必填",
          key="run", absent=("", "")),
    Field("env", kinds.ENV, {}, "`NAME: value`; added to those of `defaults`", "环境变量 `名: 值`，加在 `defaults` 之上"),
    Field("uni_id_file", kinds.PATH, None, "file of the uni_id protocol", "uni_id 协议的文件", into="env"),
    Field("workdir", kinds.PATH, None, "directory to run in", "运行目录", absent=("the file's directory", "文件所在目录")),
    Field("log", kinds.PATH, None, "file for its output", "输出写入的文件", absent=("in the run's directory", "在运行目录中")),
    Field("needs", kinds.NEEDS, [], "only when these have succeeded, else it is skipped: a name in this file, an id, or a list",
          "这些任务成功后才运行，否则跳过：本文件中的名称、编号或列表", key="after"),
    Field("after_any", kinds.NEEDS, [], "when these have ended, however", "这些任务结束后运行，不论结果", into="needs"),
    Field("begin", kinds.INSTANT, None, "not before: `18:30`, `+10m`, `2031-05-01T18:30`", "不早于此时间",
          absent=("at once", "立即")),
    Field("retry", kinds.RETRY, None, "`{max, backoff_after, backoff}`, or just a number for `max`",
          "`{max, backoff_after, backoff}`，或只写 `max` 的数", absent=("no retry", "不重试")),
    Field("leftovers", one_of("kill", "wait"), "kill",
          "processes that a run leaves behind: `kill` (TERM, 5 s, KILL) or `wait`",
          "运行留下的进程：`kill`（TERM、5 秒、KILL）或 `wait`"),
    # what only programs say
    Field("intent", one_of("run", "hold"), "run", "whether it may start", "是否可以启动", key=""),
    Field("retry_of", kinds.JOB, None, "the job that it tries again", "它重试的任务", key=""),
    Field("params", kinds.SWEEP_VALUES, None, "what it stands for in a sweep", "在参数扫描中的取值", key=""),
    Field("fingerprint", kinds.DIGEST, None, "what makes it the same work", "同一工作的指纹", key=""),
    Field("inputs", kinds.INPUTS, None, "files that are part of what it is", "构成它的文件", key=""),
    Field("done_by", kinds.RUN, None, "the run that did its work before", "先前完成它的运行", key=""),
)  # fmt: skip

SETTINGS = _table(
    Field("gpus", kinds.DEVICES, None, "devices, where no `--gpus` is given: `nvml`, `sim:8x24`, or `sim:FILE`",
          "没有 `--gpus` 时的设备：`nvml`、`sim:8x24` 或 `sim:FILE`",
          absent=("what this home used last, else `nvml`", "上次所用，否则 `nvml`")),
    Field("policy", kinds.POLICY, {}, "the rules below, for every batch; a batch's own rules go over them",
          "对所有批次的规则；批次自己的规则优先", absent=("`{}`", "`{}`")),
    Field("grace", kinds.DURATION, 5.0, "time between SIGTERM and SIGKILL when a job is stopped: `10`, `10s`, `2m`",
          "停止任务时 SIGTERM 与 SIGKILL 之间的时间"),
    Field("log_cap_mib", kinds.LOG_SIZE, 1024,
          "size of a run's log, in MiB or as `1GiB`; beyond it the middle is dropped, and the log says so",
          "一次运行的日志大小（MiB 或 `1GiB`）；超出时去掉中间部分，并在日志中注明"),
    Field("cuda_ids", one_of("index", "uuid"), "index", "what `CUDA_VISIBLE_DEVICES` holds: `index` or `uuid`",
          "`CUDA_VISIBLE_DEVICES` 的内容：`index` 或 `uuid`"),
)  # fmt: skip
