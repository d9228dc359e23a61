"""What a person is told on the way: what became of a request, how a batch goes, and how it ended. In English and Chinese.

In the words, `{n:job|jobs}` shows a number with its noun or verb, `{n}` the number alone. Texts come from anybody: each is
shown as one line. A test holds that both languages use the same values, and that each message is said somewhere.
"""

from __future__ import annotations

from jostle.wording import resizing
from jostle.wording.allocationmessages import ALLOCATIONS
from jostle.wording.consolemessages import CONSOLE
from jostle.wording.managemessages import MANAGE
from jostle.wording.notifymessages import NOTIFY
from jostle.wording.previewmessages import PREVIEWS

# code: (English, Chinese)
MESSAGES: dict[str, tuple[str, str]] = {
    **CONSOLE,
    **PREVIEWS,
    **ALLOCATIONS,
    **MANAGE,
    **NOTIFY,
    **resizing.MESSAGES,
    "warning": ("warning: {text}", "警告：{text}"),
    "note": ("note: {text}", "提示：{text}"),
    "and_more": ("… and {n:,} more", "…… 还有 {n:,} 个"),
    # an inherited CUDA_VISIBLE_DEVICES
    "visible_restrict": (
        "{name}={value} is set here: only GPU {cards} may be used",
        "此处设置了 {name}={value}：只使用 GPU {cards}",
    ),
    "visible_none_left": (
        "warning: {name}={value} is set here, and none of these is among the cards that the settings allow ({cards})",
        "警告：此处设置了 {name}={value}，但设置允许的卡（{cards}）中没有它们",
    ),
    "visible_hide_all": (
        "warning: {name}={value} hides all GPUs from CUDA; it restricts nothing here. A job without GPUs is asked for with -g 0",
        "警告：{name}={value} 对 CUDA 隐藏所有 GPU；此处不作限制。不需要 GPU 的任务请用 -g 0",
    ),
    "visible_unknown": (
        "warning: {name}={value} is not understood and restricts nothing; expected indices such as 0,1, or UUIDs of cards here",
        "警告：无法理解 {name}={value}，不作限制；应为 0,1 这样的编号，或本机 GPU 的 UUID",
    ),
    # the engine
    "no_engine": (
        "no engine runs: this is how it was when the last one ended; `jostle up` goes on",
        "引擎没有运行：以下是上一个引擎结束时的状态；用 `jostle up` 继续",
    ),
    "engine_silent": ("jostle: {why}; this is what is recorded", "jostle: {why}；以下是已记录的状态"),
    "engine_unanswering": (
        "jostle: the engine of {home} (pid {pid}) does not answer: {condition}",
        "jostle: {home} 的引擎（pid {pid}）没有回答：{condition}",
    ),
    "engine_awaited": (
        "jostle: the engine of {home} (pid {pid}) does not answer: {condition}. Waiting for it; Ctrl-C leaves it",
        "jostle: {home} 的引擎（pid {pid}）没有回答：{condition}。正在等待；按 Ctrl-C 放弃",
    ),
    "process_gone": ("it is not there any more", "它已不存在"),
    "process_stopped": ("it is stopped, and `kill -CONT {pid}` lets it go on", "它被暂停，用 `kill -CONT {pid}` 可让它继续"),
    "process_in_disk": ("it waits for a disk", "它在等待磁盘"),
    "process_busy": ("it is busy, or hangs", "它正忙，或已挂起"),
    "engine_locked": (
        "jostle: waiting for an engine that holds {home}/engine.lock and does not answer",
        "jostle: 有引擎占着 {home}/engine.lock 但没有回答：正在等待",
    ),
    "engine_starting": (
        "jostle: the engine of {home} is starting and not ready yet: see {home}/engine.log",
        "jostle: {home} 的引擎正在启动，尚未就绪：见 {home}/engine.log",
    ),
    "engine_up": ("the engine is up: {facts}", "引擎已启动：{facts}"),
    "engine_runs": ("the engine runs already: {facts}; settings reloaded", "引擎已在运行：{facts}；已重新读取设置"),
    "engine_replaced": (
        "the engine is up: {facts}; it replaces one of version {version}",
        "引擎已启动：{facts}；它取代了版本 {version} 的引擎",
    ),
    "engine_took_over": (
        "the engine is up: {facts}; it replaces an idle one with GPUs {gpus}",
        "引擎已启动：{facts}；它取代了使用 GPU {gpus} 的空闲引擎",
    ),
    "engine_facts": ("pid {pid}, GPUs {gpus}", "进程 {pid}，GPU {gpus}"),
    "engine_other_gpus": (
        "config.yaml names other GPUs ({gpus}): `jostle up --gpus {gpus}` changes to them",
        "config.yaml 写的是别的 GPU（{gpus}）：用 `jostle up --gpus {gpus}` 切换",
    ),
    "engine_none": ("no engine runs", "引擎没有运行"),
    "engine_down": ("the engine is down", "引擎已停止"),
    "jobs_go_on": ("; {n:running job goes|running jobs go} on", "；{n:,} 个正在运行的任务继续运行"),
    "jobs_not_stopped": (
        "; {n:job was|jobs were} not stopped, handed over to a target that the engine did not have: asked again when it is back",
        "；{n:,} 个任务未能停止，它们已交给引擎目前没有的目标：待其恢复后再次取消",
    ),
    "jobs_stopped": ("; {n:running job was|running jobs were} stopped", "；{n:,} 个正在运行的任务已停止"),
    "engine_lost": ("jostle: {why}; connecting again", "jostle: {why}；正在重新连接"),
    "engine_stopped": (
        "jostle: {why}; this goes on as soon as one runs again: `jostle up`",
        "jostle: {why}；引擎再次运行后继续（`jostle up`）",
    ),
    "engine_back": ("jostle: the engine is back", "jostle: 引擎已恢复"),
    # a log that is followed
    "log_waiting": (
        "job {id} is {state}; waiting for its output (`jostle why {id}`)",
        "任务 {id} 的状态是{state}；等待它的输出（`jostle why {id}`）",
    ),
    "log_again": ("job {id} is tried again (run {run})", "任务 {id} 正在重试（第 {run} 次运行）"),
    "log_alone": (
        "no engine runs: job {id} is followed until its run is over; `jostle up` starts one",
        "引擎没有运行：跟踪任务 {id} 直到本次运行结束；用 `jostle up` 启动引擎",
    ),
    "log_over": (
        "the run of job {id} is over, and no engine runs to say how it ended: `jostle up` goes on",
        "任务 {id} 的运行已结束，但没有引擎记录它如何结束：用 `jostle up` 继续",
    ),
    "no_scheduler": (
        "jostle: no scheduler of {root} runs; `jostle compete` starts one",
        "jostle: {root} 没有调度器在运行；用 `jostle compete` 启动一个",
    ),
    "no_scheduler_left": (
        "jostle: no scheduler of {root} runs, but batch {batch} is not finished: `jostle compete` attaches to it",
        "jostle: {root} 没有调度器在运行，但批次 {batch} 尚未结束：用 `jostle compete` 接上它",
    ),
    # housekeeping
    "cleaned": (
        "{runs:run directory|run directories} ({size}){extra} and {events:event|events} removed",
        "已删除 {runs:,} 个运行目录（{size}）{extra}，以及 {events:,} 条事件",
    ),
    "clean_would": (
        "{runs:run directory|run directories} ({size}){extra} and {events:event|events} would be removed",
        "将删除 {runs:,} 个运行目录（{size}）{extra}，以及 {events:,} 条事件",
    ),
    "clean_snapshots": (", {n:snapshot|snapshots}", "、{n:,} 个代码快照"),
    "clean_contexts": (", {n:captured environment|captured environments}", "、{n:,} 份环境记录"),
    "clean_copies": (", {n:copy of an older database|copies of older databases}", "、{n:,} 份旧数据库副本"),
    "clean_held": ("{path} is still held by a process: left alone", "{path} 仍被进程占用：保留"),
    "clean_strays": ("{path} holds files that jobs wrote into it: left alone", "{path} 中有任务写入的文件：保留"),
    "home_moved": (
        "jostle: {path} is on a network file system; its state lies in {local}",
        "jostle: {path} 位于网络文件系统上；其状态保存在 {local}",
    ),
    "home_of_others": ("jostle: warning: {error}", "jostle: 警告：{error}"),
    # what was done to jobs
    "no_job_meant": ("nothing to do: no job is meant", "没有要做的：没有指到任何任务"),
    "cancelled": ("cancelled: {n:job|jobs} ({ids})", "已取消：{n:,} 个任务（{ids}）"),
    "told_to_end": (
        "told to end: {n:job|jobs} ({ids}); cancelled when the processes are gone",
        "已要求结束：{n:,} 个任务（{ids}）；进程全部退出后即为已取消",
    ),
    "held": ("held: {n:job|jobs} ({ids})", "已暂缓：{n:,} 个任务（{ids}）"),
    "released": ("released: {n:job|jobs} ({ids})", "已放行：{n:,} 个任务（{ids}）"),
    "moved": ("moved: {n:job|jobs} ({ids})", "已移动：{n:,} 个任务（{ids}）"),
    "changed": ("changed: {n:job|jobs} ({ids})", "已修改：{n:,} 个任务（{ids}）"),
    "refused": ("jostle: {why}", "jostle: {why}"),
    "more_refused": ("jostle: … and {n:,} more", "jostle: …… 还有 {n:,} 个"),
    # what is waited for, listed, or looked at
    "waiting_for": (
        "waiting for {n:job|jobs} ({ids}); `jostle why` says why they wait, Ctrl-C leaves them",
        "正在等待 {n:,} 个任务（{ids}）；`jostle why` 说明它们为何等待，Ctrl-C 离开",
    ),
    "nothing_to_wait": ("nothing to wait for: every job has ended", "没有要等的：所有任务都已结束"),
    "time_is_up": ("time is up: {n:job|jobs} not finished", "时间到：还有 {n:,} 个任务没有结束"),
    "job_ended": ("job {id} {state}: `jostle why {id}`", "任务 {id} {state}：`jostle why {id}`"),
    "nothing_to_explain": ("nothing to explain: no job is meant", "没有要说明的：没有指到任何任务"),
    "no_such_jobs": ("no such jobs", "没有这样的任务"),
    "no_jobs": ("no jobs: `jostle add -- COMMAND` queues one", "没有任务：用 `jostle add -- 命令` 添加一个"),
    "more_waiting": (
        "… and {n:more job|more jobs} waiting ({ids}); `jostle ps --all` lists them",
        "…… 还有 {n:,} 个任务在等待（{ids}）；`jostle ps --all` 会全部列出",
    ),
    "more_failed_lately": (
        "… and {n:,} more that failed in the last day; `jostle ps --state failed` lists them",
        "…… 还有 {n:,} 个在最近一天内失败；`jostle ps --state failed` 会全部列出",
    ),
    "more_ended_lately": (
        "… and {n:,} more that ended lately; `jostle ps --all` lists them",
        "…… 还有 {n:,} 个在近期结束；`jostle ps --all` 会全部列出",
    ),
    "cards_unread": ("jostle: {why}", "jostle: {why}"),
    "no_cards": ("jostle: no GPU here; try --gpus sim:8x24", "jostle: 这里没有 GPU；可试 --gpus sim:8x24"),
    "single_look": (
        "a single look at {devices}: {why}, so nobody can say what may be taken",
        "只看了一眼 {devices}：{why}，所以无法说明哪些可以占用",
    ),
    "engine_has_others": ("the engine has other GPUs", "引擎用的是别的 GPU"),
    "engine_not_up": ("no engine runs (`jostle up` starts one)", "引擎没有运行（用 `jostle up` 启动）"),
    "excluded": ("excluded: GPU {gpus}", "已排除：GPU {gpus}"),
    "none_excluded": ("no GPU is excluded", "没有排除任何 GPU"),
    "set_aside": ("set aside as faulty: GPU {gpus}", "因故障已隔离：GPU {gpus}"),
    "card_yes": ("yes", "可以"),
    "card_no_load": ("; no load for {time}", "；{time} 无负载"),
    "held_beyond": (", asked for {size}", "，只要求了 {size}"),
    "held_paused": (", paused", "，已暂停"),
    "status_engine": (
        "engine: pid {pid}, version {version}, up for {time}, GPUs {gpus}",
        "引擎：  进程 {pid}，版本 {version}，已运行 {time}，GPU {gpus}",
    ),
    "status_no_engine": ("engine: none runs; any verb that needs one starts it", "引擎：  没有运行；需要它的命令会启动它"),
    "status_hold": ("hold:   {why}", "暂停：  {why}"),
    "status_gpus": ("GPUs:   {why}", "显卡：  {why}"),
    "status_host": ("host:   {what}", "主机：  {what}"),
    "free_cpus": ("{free} of {total:CPU core|CPU cores} free for jobs that ask", "供任务申请的 CPU 核空闲 {free}/{total}"),
    "free_memory": ("{free} of {total} of memory", "内存 {free}/{total}"),
    "status_jobs": ("jobs:   {counts}", "任务：  {counts}"),
    "status_web": ("web:    {at}, pid {pid}, workspace {path}", "控制台：{at}，进程 {pid}，工作区 {path}"),
    "status_no_web": ("web:    no console runs; `jostle up` starts one", "控制台：没有运行；用 `jostle up` 启动"),
    "status_home": ("home:   {path}", "目录：  {path}"),
    "none": ("none", "无"),
    "logs_show": ("`jostle logs {id}` shows its output", "用 `jostle logs {id}` 查看输出"),
    "jobs_before": ("{n:job like it comes|jobs like it come} before it", "前面还有 {n:,} 个同类任务"),
    # of one job
    "job_number": ("job {id}", "任务 {id}"),
    "run_number": (" (run {n})", "（第 {n} 次运行）"),
    "no_queue": ("none", "无"),
    "no_commit": ("no commit", "无提交"),
    "need": ("{id} {name} ({now})", "{id} {name}（{now}）"),
    "need_any": ("{id} {name} ({now}, however it ends)", "{id} {name}（{now}，无论如何结束）"),
    "retry_unlimited": ("without limit", "不限次数"),
    "retry_most": ("at most {n:time|times}", "最多 {n} 次"),
    "retry_pause": ("; a pause of {time} after every {n:failure|failures}", "；每失败 {n} 次暂停 {time}"),
    "asks_no_gpu": ("no GPU", "不用 GPU"),
    "asks_gpus": ("{n:GPU|GPUs}", "{n} 张 GPU"),
    "asks_up_to": ("{low}-{high} GPUs", "{low}-{high} 张 GPU"),
    "asks_whole_card": (", the whole card", "，整张卡"),
    "asks_whole_cards": (", whole cards", "，整张卡"),
    "asks_memory": (" with {size}", "，显存 {size}"),
    "asks_memory_each": (" with {size} each", "，每张显存 {size}"),
    "asks_cpus": ("{n:CPU core|CPU cores}", "{n} 个 CPU 核"),
    "asks_host_memory": ("{size} of host memory", "主机内存 {size}"),
    "asks_shared": (", shared with other jobs", "，与其他任务共用"),
    "files_changed": ("had changed since the submit when it began", "开始时与提交时相比已有改动"),
    "files_unknown": ("cannot be told to be those of the submit", "无法确认与提交时相同"),
    # results
    "results_batch": ("batch {batch}{name}, {n:job|jobs}{code}", "批次 {batch}{name}，{n:,} 个任务{code}"),
    "results_name": (" ({name})", "（{name}）"),
    "results_code": (", code {commit}", "，代码 {commit}"),
    "results_left": (
        "note: an older batch of {file} has {n:job|jobs} that this one has not; --last {last} takes both",
        "提示：{file} 的一个较早批次有 {n:,} 个任务是这个批次没有的；--last {last} 两者都取",
    ),
    "results_older": (
        "note: batch {batch} is of an older {file}; what it says now was done by other batches, which count",
        "提示：批次 {batch} 出自较早的 {file}；现在所写的由其他批次完成，以它们为准",
    ),
    "results_never": ("note: nothing of {names} in {file} has run", "提示：{file} 中的 {names} 还没有运行过"),
    "results_not_counted": ("not counted: {why}", "未计入：{why}"),
    "results_missing": ("not counted: {n}", "未计入：{n} 个"),
    "results_more": ("… and {n:,} more; `--json` lists them", "…… 还有 {n:,} 个；`--json` 会全部列出"),
    "results_listed_below": (
        "{n:run|runs} not counted; they are listed below the table",
        "{n:,} 次运行未计入；列在表格下方",
    ),
    "results_without_metric": (
        "note: unless a metric is named, it is `accuracy: 91.2` and the like that is looked for; the metric `f1=F1: ([0-9.]+)` "
        "(on the command line `-m 'f1=F1: ([0-9.]+)'`, on the page “+ metric”) is the number behind `F1: `",
        "提示：没有指定指标时查找 `accuracy: 91.2` 一类的行；指标 `f1=F1: ([0-9.]+)`"
        "（命令行写 `-m 'f1=F1: ([0-9.]+)'`，页面上点“+ 指标”）取 `F1: ` 后面的数",
    ),
    "results_bare_metric": (
        "note: a metric that is only a name is a key of JSON lines; `f1=F1: ([0-9.]+)` "
        "(on the command line `-m 'f1=F1: ([0-9.]+)'`, on the page “+ metric”) is the number behind `F1: `",
        "提示：只写名称的指标指 JSON 行中的键；`f1=F1: ([0-9.]+)`"
        "（命令行写 `-m 'f1=F1: ([0-9.]+)'`，页面上点“+ 指标”）取 `F1: ` 后面的数",
    ),
    # what is submitted
    "submitted": ("batch {batch}: {n:job|jobs} ({ids})", "批次 {batch}：{n:,} 个任务（{ids}）"),
    "attached": (
        "batch {batch} of the same file is not finished ({left:job|jobs} left): attached to it again",
        "同一文件的批次 {batch} 尚未结束（还有 {left:,} 个任务）：已重新接上",
    ),
    "would_attach": (
        "batch {batch} of the same file is not finished: `jostle run` attaches to it",
        "同一文件的批次 {batch} 尚未结束：`jostle run` 会接上它",
    ),
    "nothing_to_run": ("{name}: nothing to run ({n:job|jobs}: {rest})", "{name}：没有要运行的（{n:,} 个任务：{rest}）"),
    "redo_all": ("; --redo runs all again", "；--redo 全部重新运行"),
    "redo_changed": (", --redo-changed those with other code", "，--redo-changed 重新运行代码不同的"),
    "would_run": ("{run:,} of {n:job|jobs} would run", "{n:,} 个任务中有 {run:,} 个会运行"),
    "done_before": ("{n:,} done before", "{n:,} 个此前已完成"),
    "with_a_log": ("{n:,} with a log (--trust-logs)", "{n:,} 个已有日志（--trust-logs）"),
    "did_not_fail": ("{n:,} that did not fail", "{n:,} 个没有失败"),
    "other_code": (", {n:,} of them with other code ({then} → {now})", "，其中 {n:,} 个所用代码不同（{then} → {now}）"),
    "joined": ("{n:job|jobs} ({ids}) of the file joined batch {batch}", "文件中的 {n:,} 个任务（{ids}）已加入批次 {batch}"),
    "file_changed": (
        "the file has changed since batch {batch} was submitted: {why}",
        "批次 {batch} 提交之后文件已修改：{why}",
    ),
    "not_in_batch": ("{n:job of it is|jobs of it are} not part of the batch", "其中 {n:,} 个任务不属于该批次"),
    "not_in_file": (
        "{n:job of the batch is not in it any more and goes on|jobs of the batch are not in it any more and go on}",
        "批次中的 {n:,} 个任务已不在文件中，它们继续运行",
    ),
    "batch_frozen": (", whose code is frozen", "，而该批次的代码已冻结"),
    "freeze_is_for_new": (" (--freeze is for a new batch)", "（--freeze 只用于新批次）"),
    "run_it_later": (": run it again when this batch has ended", "：请在该批次结束后再次运行"),
    "other_rules": ("batch {batch} goes on under other rules: {rules}", "批次 {batch} 改用新规则继续：{rules}"),
    "no_effect": (
        "no effect on a batch that is under way: {options}; run it again when batch {batch} has ended",
        "对正在进行的批次不起作用：{options}；请在批次 {batch} 结束后再次运行",
    ),
    "cannot_share": (
        "warning: {n:job|jobs} without `memory` cannot share a card: each takes a whole one",
        "警告：{n:,} 个任务没有写 `memory`，不能共用一张卡：各占一整张",
    ),
    "much_memory": (
        "note: a number alone counts GB, and this asks for {gib} GB of each card; write {gib}MiB if that is meant",
        "提示：不带单位的数以 GB 计，这里要求每张卡 {gib} GB；如果指的是 MiB，请写 {gib}MiB",
    ),
    "no_directory": (
        "warning: workdir {path} does not exist; a job fails if it is not there when the job starts",
        "警告：工作目录 {path} 不存在；任务启动时若仍不存在就会失败",
    ),
    "not_frozen": (
        "warning: jobs in {paths} are not frozen: that is no part of {root}",
        "警告：{paths} 中的任务没有冻结代码：它不属于 {root}",
    ),
    "frozen": ("frozen: {root}{commit}{changed}, {n:file|files}", "已冻结代码：{root}{commit}{changed}，{n:,} 个文件"),
    "at_commit": (" at commit {commit}", "，提交 {commit}"),
    "with_changes": (" with changes", "（有改动）"),
    "never_one": ("job {ids}: {why}", "任务 {ids}：{why}"),
    "never_many": ("jobs {ids}: {why}", "任务 {ids}：{why}"),
    "of_batch": ("{name}: ", "{name}："),
    "and_others": (" and {n} more", " 等另外 {n} 个"),
    "not_checked": (
        "not checked: whether this host's GPUs can ever run them; no engine that has read them runs (`jostle up`)",
        "没有检查本机的 GPU 能否运行它们：没有读过 GPU 的引擎在运行（`jostle up`）",
    ),
    # how a batch goes
    "next": ("next: {job}: {why}", "下一个：{job}：{why}"),
    "on_gpus": (" on GPU {gpus}", "，在 GPU {gpus} 上"),
    "try": (" (try {n})", "（第 {n} 次）"),
    "after": (" after {time}", "，用时 {time}"),
    "because": (": {why}", "：{why}"),
    "exit_code": ("exit code {code}", "退出码 {code}"),
    "queued_again": ("it is queued again", "重新排队"),
    "nothing_to_do": ("nothing to do", "没有要做的"),
    "progress_left": ("about {time} left", "约剩 {time}"),
    "cards": ("{n:GPU|GPUs}: {parts}", "{n} 张 GPU：{parts}"),
    "cards_ours": ("{n} ours", "我们的 {n}"),
    "cards_refused": ("{n} not to be had", "不可用 {n}"),
    "cards_free": ("{n} free", "空闲 {n}"),
    # Ctrl-C
    "asks": ("Ctrl-C asks whether to cancel, to detach or to go on", "Ctrl-C 会询问：取消、离开还是继续"),
    "ask": (
        "Ctrl-C: [c] cancel batch {batch}, [d] detach (it runs on; the same command attaches again), "
        "[g] go on, then Enter; or Ctrl-C again to cancel",
        "Ctrl-C：[c] 取消批次 {batch}，[d] 离开（它继续运行；同样的命令可重新接上），[g] 继续，然后按回车；再按 Ctrl-C 则取消",
    ),
    "cancelling": ("jostle: cancelling the batch (again: at once)", "jostle: 正在取消该批次（再按一次：立即结束）"),
    "killing": ("jostle: killing the jobs", "jostle: 正在强制结束任务"),
    "leaving": ("jostle: leaving; the jobs are being killed", "jostle: 离开；任务正被强制结束"),
    "leaving_unheard": (
        "jostle: leaving; the engine could not be told to kill the jobs ({why}): they are being cancelled",
        "jostle: 离开；无法让引擎强制结束任务（{why}）：任务正在取消",
    ),
    "leaving_running": (
        "jostle: leaving; the engine could not be told to kill the jobs ({why}): batch {batch} runs on; "
        "`jostle cancel` stops its jobs",
        "jostle: 离开；无法让引擎强制结束任务（{why}）：批次 {batch} 继续运行；用 `jostle cancel` 停止其任务",
    ),
    "not_taken": ("jostle: {why}", "jostle: {why}"),
    "not_taken_yet": ("jostle: {why}; told again until it is taken", "jostle: {why}；会反复发送直到被接受"),
    "taken_cancel": ("jostle: the engine has taken it now: cancelling", "jostle: 引擎已接受：正在取消"),
    "taken_kill": ("jostle: the engine has taken it now: killing", "jostle: 引擎已接受：正在强制结束"),
    "interrupted_before": ("jostle: interrupted before {names}", "jostle: 已中断，未运行 {names}"),
    # how it ended
    "batch_summary": ("batch {batch}: {summary}", "批次 {batch}：{summary}"),
    "runs_on": (
        "batch {batch} runs on ({summary}): the same command attaches to it again, `jostle ps` shows it",
        "批次 {batch} 继续运行（{summary}）：同样的命令可重新接上，`jostle ps` 可查看",
    ),
    "failed_job": ("  failed {job}{because} (jostle {verb} {id})", "  失败 {job}{because}（jostle {verb} {id}）"),
    "more_failed": ("  … and {n:,} more (jostle ps --state failed)", "  …… 还有 {n:,} 个（jostle ps --state failed）"),
}

STEPS: dict[str, tuple[str, str]] = {
    "starting": ("started   ", "启动"), "requeued": ("again     ", "重试"), "background": ("waiting   ", "等待"),
    "quarantined": ("set aside ", "隔离"), "succeeded": ("succeeded ", "成功"), "failed": ("failed    ", "失败"),
    "cancelled": ("cancelled ", "取消"), "skipped": ("skipped   ", "跳过"),
}  # fmt: skip
"""How the line of an event begins: all of a language equally wide."""


def step(kind: str, language: str) -> str:
    return STEPS[kind][language == "zh"]
