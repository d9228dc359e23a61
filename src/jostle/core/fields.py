"""The one table of what a job, the rules of a batch and a settings file may say. Checks, formats, `set`, help, the shape of a job
and the documentation are made from it or held to it: a further setting is one entry here.

Rules: light to import, for every command starts with it. `None` is taken where it is the default, and nowhere else. A shape's key
is stored, so its numbers are never given to another field.
"""

from __future__ import annotations

from jostle.core import kinds
from jostle.core.kinds import MAX_COUNT, MAX_GPUS, Kind, count, one_of

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


PRIVATE = ("inputs", "copy")
"""What a job of a plan carries beside: a submit has it not, or only when it is worked out."""

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
          "您手动启动的进程（Python 不论大小，其他从 `small` 起）：避开其卡（`avoid`）或忽略（`ignore`）"),
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
    Field("resize_interval", kinds.DURATION, 60.0,
          "a job with `resize` gets no more cards sooner than this after a change; twice as long for each that others soon undid",
          "带 `resize` 的任务换卡后至少过这么久才会再得到卡；每有一次很快又被他人占去就加倍"),
    Field("scale_up", kinds.PERCENT, None, "… and only while its cards show at least this load, percent, over a minute",
          "……并且其卡的利用率（百分比，一分钟均值）至少达到此值"),
    Field("scale_down", kinds.PERCENT, None,
          "a job with `resize` whose cards show less load than this over a minute gives one back",
          "带 `resize` 的任务，其卡一分钟内的利用率低于此值时退还一张"),
    Field("yield_after", kinds.DURATION, 5.0,
          "a stranger who is on a card for so long has come: see `resize` and `when_stranger` of a job",
          "他人在卡上停留这么久才算来了：见任务的 `resize` 与 `when_stranger`"),
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
    Field("automatic", kinds.TRUTH, False,
          "its cards count as taken automatically: against `max_reserved_gpus`, not `max_manual_gpus` (see limits)",
          "其卡算作自动占用：计入 `max_reserved_gpus` 而非 `max_manual_gpus`（见限额）"),
)  # fmt: skip

LIMITS = _table(
    Field("max_total_gpus", kinds.CARDS, None, "cards that you hold at once, in all", "同时占用的卡数合计"),
    Field("max_reserved_gpus", kinds.CARDS, None, "… of which automatically, by the floor of `monitor --manage`; 0 forbids it",
          "……其中自动占用的（`monitor --manage` 的保底）；0 为禁止"),
    Field("max_manual_gpus", kinds.CARDS, None, "… of which asked for by you: jobs and allocations",
          "……其中由您要求的：任务与占卡"),
    Field("max_gpus_per_task", kinds.CARDS, None, "cards of one job or allocation", "一个任务或一次占卡的卡数"),
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
    Field("cpus", count(1, kinds.MAX_CPUS), None, "cores of the host that it takes; counted, not pinned",
          "占用的主机核数；只计数，不绑定", absent=("not counted", "不计"), shape=8, settable=True),
    Field("host_memory_mib", kinds.size(1), None, "memory of the host that it takes, in all: `64GiB`, or a bare number of GB",
          "共占用的主机内存：`64GiB`；不写单位即 GB", key="host_memory", absent=("not counted", "不计"), shape=9, settable=True),
    Field("counters", kinds.COUNTERS, {}, "how much it takes of what `config.yaml` counts, by name: `{licence: 1}`",
          "占用 `config.yaml` 中计数的资源多少：`{licence: 1}`", shape=10, settable=True),
    Field("nice", count(0, 19), 0, "how much its processes give way to others for the processor: 0 to 19 (most)",
          "其进程让出处理器的程度：0 到 19（最多）", settable=True),
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
    Field("resize", one_of("restart", "signal"), None,
          "it may get other cards while it runs, as many as `gpus` says: it begins again (`restart`), or is told (`signal`)",
          "运行中可换卡，张数在 `gpus` 的范围内：结束后重新开始（`restart`），或收到通知（`signal`）",
          absent=("it keeps its cards", "不换卡"), settable=True),
    Field("when_stranger", one_of("keep", "requeue", "pause"), "keep",
          "another user comes onto a card of it: it stays (`keep`), or until it is quiet ends and waits (`requeue`) or is paused "
          "(`pause`)",
          "他人来到其卡上时：继续（`keep`），或在清静之前结束并排队（`requeue`）、原地暂停（`pause`）", settable=True),
    Field("grace", kinds.DURATION, None,
          "time to save and end, from SIGTERM to SIGKILL, whenever it is told to end: `10`, `10s`, `2m`",
          "被要求结束时从 SIGTERM 到 SIGKILL 之间用来保存的时间：`10`、`10s`、`2m`",
          absent=("`grace` of config.yaml", "config.yaml 的 `grace`"), settable=True),
    Field("leftovers", one_of("kill", "wait"), "kill",
          "processes that a run leaves behind: `kill` (TERM, 5 s, KILL) or `wait`",
          "运行留下的进程：`kill`（TERM、5 秒、KILL）或 `wait`"),
    # what only programs say
    Field("intent", one_of("run", "hold"), "run", "whether it may start", "是否可以启动", key=""),
    Field("retry_of", kinds.JOB, None, "the job that it tries again", "它重试的任务", key=""),
    Field("inside", kinds.JOB, None, "the allocation on whose cards it runs", "它在哪个占卡之内运行", key="", shape=7),
    Field("tied_to", kinds.PROCESS, None, "the process with whose end an allocation is released", "该进程结束即释放占卡", key=""),
    Field("awaited_by", kinds.PROCESS, None, "the process that waits for an allocation's cards: with its end it is given up",
          "等待占卡的进程：拿到卡之前，进程结束则放弃占卡", key=""),
    Field("idle_release", kinds.SOME_TIME, None, "an allocation on whose cards nothing of ours is for so long is released",
          "占卡上无我们的进程达此时间即释放", key=""),
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
    Field("grace", kinds.DURATION, 5.0,
          "time between SIGTERM and SIGKILL when a job is stopped that says nothing about it itself: `10`, `10s`, `2m`",
          "停止任务时 SIGTERM 与 SIGKILL 之间的时间（任务自己没写时）"),
    Field("log_cap_mib", kinds.LOG_SIZE, 1024,
          "size of a run's log, in MiB or as `1GiB`; beyond it the middle is dropped, and the log says so",
          "一次运行的日志大小（MiB 或 `1GiB`）；超出时去掉中间部分，并在日志中注明"),
    Field("limits", kinds.LIMITS, {}, "how many cards you may hold, see below; what is stricter elsewhere holds all the same",
          "您可占用的卡数上限，见下；别处更严的照样有效", absent=("`{}`", "`{}`")),
    Field("cpus", count(1, kinds.MAX_CPUS), None, "cores of this host that jobs may take together which say how many (`cpus`)",
          "任务共可占用的本机核数（写了 `cpus` 的任务）", absent=("all that the engine may use", "引擎可用的全部")),
    Field("host_memory", kinds.size(1), None,
          "memory of this host that jobs may take together which say how much (`host_memory`)",
          "任务共可占用的本机内存（写了 `host_memory` 的任务）", absent=("all that there is", "全部")),
    Field("idle_after", kinds.DURATION, 1800.0,
          "a card that is held and shows no load for so long is named, and its holder; `0`: never",
          "卡被占用而在这么久内没有负载时，指出该卡及占用者；`0` 为从不"),
    Field("counters", kinds.COUNTED, {}, "how many there are of what jobs name under `counters`: `{licence: 4}`",
          "任务在 `counters` 中所写资源各有多少：`{licence: 4}`", absent=("`{}`", "`{}`")),
    Field("floor_idle", kinds.DURATION, 1800.0,
          "the floor of `monitor --manage` ends when nothing of yours has run for so long; with the next it is back",
          "您这么久没有运行任何任务时，`monitor --manage` 的保底结束；再有任务时恢复"),
    Field("cuda_ids", one_of("index", "uuid"), "index", "what `CUDA_VISIBLE_DEVICES` holds: `index` or `uuid`",
          "`CUDA_VISIBLE_DEVICES` 的内容：`index` 或 `uuid`"),
    Field("notify", kinds.NOTIFY, {}, "who is told of what, and how", "通知谁、通知什么、怎样通知",
          absent=("nobody", "不通知")),
)  # fmt: skip

NOTIFY = _table(
    Field("channels", kinds.CHANNEL_TABLE, {}, "where messages go: a name of your own for each, and what is set for it (below)",
          "消息发往何处：每个通道一个自取的名称及其设置（见下）", absent=("", "")),
    Field("language", one_of("en", "zh"), "en", "language of the messages: `en` or `zh`", "消息的语言：`en` 或 `zh`"),
    Field("free_gpus", count(1, MAX_GPUS), 1, "of `free`: tell when at least so many GPUs are free …",
          "`free`：至少有这么多张 GPU 空闲……"),
    Field("free_for", kinds.DURATION, 60.0, "… and have been for so long; after that, only when fewer were free for so long",
          "……并持续这么久时通知；之后须先少于此数同样久才会再次通知"),
    Field("free_pause", kinds.DURATION, 1800.0, "least time between two messages about free GPUs", "两次空闲通知的最短间隔"),
    Field("gather", kinds.DURATION, 30.0, "what happens within this time comes in one message", "在此时间内发生的事合为一条消息"),
    Field("keep_for", kinds.SOME_TIME, 604800.0,
          "a message that cannot be delivered is tried for so long, then dropped, and that is said",
          "无法送达的消息在此时间内不断重试，之后丢弃并说明"),
    Field("allow_private", kinds.HOSTS, [], "hosts on this machine or in a private network that may be sent to by HTTP",
          "允许以 HTTP 发往的本机或内网主机"),
    Field("metrics", kinds.METRICS, [], "of `batch`: what the table of results shows, as `--metric` of `results`",
          "`batch`：结果表显示什么，写法同 `results` 的 `--metric`", absent=("what `results` looks for", "同 `results` 的默认")),
)  # fmt: skip

CHANNEL = _table(
    Field("kind", one_of(*kinds.CHANNELS), None, "what it is: " + ", ".join(f"`{kind}`" for kind in kinds.CHANNELS) + "; needed",
          "通道种类，必填", absent=("", "")),
    Field("events", kinds.NOTICE_KINDS, ["failed", "batch", "gpu", "idle"], "what is told there, see below", "通知哪些事件，见下",
          absent=("`failed, batch, gpu, idle`", "`failed, batch, gpu, idle`")),
    Field("url", kinds.URL, None, "address that is posted to, or where it is to be found; needed by all but `mail`",
          "发送的地址，或其存放处；除 `mail` 外必填", absent=("", "")),
    Field("secret", kinds.SECRET, None, "where the key lies that signs messages, of `webhook`, `feishu`, `dingtalk`",
          "签名密钥的存放处（`webhook`、`feishu`、`dingtalk`）", absent=("not signed", "不签名")),
    Field("host", kinds.HOST, None, "of `mail`: the server; needed", "`mail`：邮件服务器，必填", absent=("", "")),
    Field("port", count(1, 65535), None, "of `mail`: its port", "`mail`：端口",
          absent=("587, of `tls` 465, of `none` 25", "587；`tls` 为 465，`none` 为 25")),
    Field("security", one_of("starttls", "tls", "none"), "starttls",
          "of `mail`: `starttls` (refused where the server has none), `tls` from the first byte, or `none`",
          "`mail`：`starttls`（服务器不支持即拒绝）、`tls`（一开始就加密）或 `none`"),
    Field("ca_file", kinds.PATH, None, "certificates to trust instead of the system's, of `mail` and `webhook`",
          "代替系统证书的受信证书（`mail`、`webhook`）", absent=("the system's", "系统的")),
    Field("user", kinds.NAME, None, "of `mail`: who logs in", "`mail`：登录名", absent=("no login", "不登录")),
    Field("password", kinds.SECRET, None, "of `mail`: where the password lies", "`mail`：密码的存放处", absent=("", "")),
    Field("sender", kinds.MAIL, None, "of `mail`: the address it comes from; needed", "`mail`：发件地址，必填", key="from",
          absent=("", "")),
    Field("to", kinds.MAILS, [], "of `mail`: an address or a list; needed", "`mail`：一个或多个收件地址，必填", absent=("", "")),
)  # fmt: skip
"""Which of these a kind of channel takes and needs stands in formats.notifyfile."""
