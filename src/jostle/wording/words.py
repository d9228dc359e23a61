"""The words for every reason and refusal, in English and Chinese; docs/reasons.md lists them with examples.

In the words, `{x_mib}` shows GiB, `{x_s}` a duration, `{n:GPU|GPUs}` a number with its noun or verb, `{gpus}` all refusals as
a histogram; what stands in ⟦ ⟧ decides, and is set off where type can do so. Free memory is rounded down and needed memory up,
so that the two never look alike.
"""

from jostle.wording.allocationwords import REASONS
from jostle.wording.resizing import RESIZING
from jostle.wording.stock import STOCK

# code: (English, Chinese)
TEXTS: dict[str, tuple[str, str]] = {
    **(REASONS | RESIZING),
    # why a job that is ready does not start
    "gpus": (
        "⟦{fit} of {total:GPU|GPUs} fit{wanted}⟧: {gpus}.{unkept}",
        "{total} 张 GPU 中有 ⟦{fit} 张可用{wanted}⟧：{gpus}。{unkept}",
    ),
    "gpus_unknown": (
        "The GPUs cannot be read at the moment, and an unread card is never taken for free{details}.",
        "目前读不到 GPU 的状态，读不到的卡一律不视为空闲{details}。",
    ),
    "cancelled": ("It was cancelled.", "它已被取消。"),
    "dropped": ("It was dropped: its file was edited and names it no more.", "已移除：任务文件修改后不再包含它。"),
    "on_hold": ("{nothing} at the moment: {hold}.", "目前{nothing}：{hold}。"),
    "limit": (
        "You hold {held:card|cards} and may hold {limit} now, so ⟦there is room for {more} more and {needed:is|are} needed⟧: "
        "{available:card is|cards are} available to you (gpu_left {left}, min_gpu {least}, max_gpu {most}).{unkept}",
        "您已占用 {held} 张卡，目前最多可占用 {limit} 张，⟦还可再用 {more} 张，而任务需要 {needed} 张⟧"
        "（可用 {available} 张；gpu_left {left}，min_gpu {least}，max_gpu {most}）。{unkept}",
    ),
    "impossible": (
        "⟦It can never start with the cards this host has⟧: it needs {needed:card|cards} with {needed_mib}, and {able} of the "
        "{cards:card|cards} it may use {able_have} that much (the largest offers {largest_mib} when it is empty).{stays}",
        "⟦以本机现有的卡无法运行⟧：需要 {needed} 张显存不少于 {needed_mib} 的卡，而可用范围内的 {cards} 张中只有 {able} 张满足"
        "（最大的一张空闲时有 {largest_mib}）。{stays}",
    ),
    "impossible_count": (
        "⟦It can never start with the cards this host has⟧: it needs {needed:card|cards} and may use {cards}.{stays}",
        "⟦以本机现有的卡无法运行⟧：需要 {needed} 张卡，而可用范围内只有 {cards} 张。{stays}",
    ),
    "impossible_slices": (
        "⟦It can never start with the cards this host has⟧: it needs {needed:card|cards}, and a program can use one MIG slice, "
        "with no card beside it; it may use {slices:slice|slices} and {cards:whole card|whole cards}. Ask for one "
        "(`-g 1`).{stays}",
        "⟦以本机现有的卡无法运行⟧：需要 {needed} 张卡，而一个程序只能使用一个 MIG 实例，且不能与其他卡同用；"
        "可用范围内有 {slices} 个实例、{cards} 张整卡。请只要求一张（`-g 1`）。{stays}",
    ),
    "impossible_limit": (
        "⟦It can never start under the present limits⟧: it needs {needed:card|cards}, and you may never hold more than {limit} "
        "(gpu_left, min_gpu, max_gpu).",
        "⟦在当前限制下无法运行⟧：需要 {needed} 张卡，而最多只能占用 {limit} 张（gpu_left、min_gpu、max_gpu）。",
    ),
    "user_limit": (
        "You hold {held:card|cards} that count for ⟦{limit}, which is {most}⟧, {by}; {needed:is|are} needed.{unkept}",
        "计入 {limit} 的卡您已占用 {held} 张，⟦{limit} 为 {most}⟧（{by}），而任务需要 {needed} 张。{unkept}",
    ),
    "impossible_user_limit": (
        "⟦It can never start under your limits⟧: it needs {needed:card|cards}, and {limit} is {most}, {by}.{stays}",
        "⟦在您的限额下无法运行⟧：需要 {needed} 张卡，而 {limit} 为 {most}（{by}）。{stays}",
    ),
    **STOCK,
    "max_concurrent": (
        "Its batch runs {running:job|jobs} and may run {most} at once.",
        "所属批次正在运行 {running} 个任务，最多同时运行 {most} 个。",
    ),
    "start_interval": (
        "Its batch starts one job every {interval_s}; the next may start in {left_s}.",
        "所属批次每隔 {interval_s} 启动一个任务；{left_s}后可启动下一个。",
    ),
    "no_target": (
        "It may run on {target}, which this engine does not have (it has {known}).{stays}",
        "它指定在 {target} 上运行，而本引擎没有该目标（现有：{known}）。{stays}",
    ),
    "no_room": ("There is no room on {target} for more of your runs.", "{target} 已满，不能再接收您的运行。"),
    "nowhere": (
        "It may run at {n} places, and none of them takes it now. {places}",
        "它可以在 {n} 处运行，目前都不能启动。{places}",
    ),
    "starting_soon": ("Nothing is in its way; it starts in a moment.", "没有阻碍，马上就会启动。"),
    # why a job is not ready, worked out by those who show it
    "behind": (
        "It waits behind {n:other job|other jobs} of queue {queue}{head}.",
        "排在队列 {queue} 的 {n} 个任务之后{head}。",
    ),
    "after": ("It waits for {jobs} to end.", "等待{jobs}结束。"),
    "held": ("A person holds it back; `jostle unhold` lets it go.", "已被人工暂缓；用 `jostle unhold` 放行。"),
    "begin": ("It was asked to begin later: in {left_s}.", "设定为 {left_s}后开始。"),
    "backoff": (
        "It failed {failures:time|times}{last} and is tried again in {left_s}.",
        "已失败 {failures} 次{last}，{left_s}后重试。",
    ),
    "beyond": (
        "It uses {used_mib} of GPU {gpu} and asked for {asked_mib}.",
        "它在 GPU {gpu} 上用了 {used_mib}，而只要求了 {asked_mib}。",
    ),
    "cancelling": ("It is being cancelled; its processes are ending.", "正在取消，等待其进程结束。"),
    "no_engine": (
        "No engine is running, so nothing starts; `jostle up` starts one.",
        "引擎没有运行，任务不会启动；用 `jostle up` 启动引擎。",
    ),
    "waits_there": ("It was handed over to {target} and waits there: {why}.", "已交给 {target}，在那里等待：{why}。"),
    "target_absent": (
        "It was handed over to {target}, which this engine does not have now: what became of it will be known when it is back.",
        "它已交给 {target}，而本引擎目前没有该目标：待其恢复后才能知道结果。",
    ),
    "background": (
        "Its commands have ended; it waits for what they left running: {pids}.",
        "命令已结束，正在等待它们留在后台的{pids}。",
    ),
    # why it is tried again
    "retry": (
        "It failed ({error_type}, failure {failures}) and is tried again at once.",
        "运行失败（{error_type}，第 {failures} 次），立即重试。",
    ),
    "no_process": (
        "No process could be started for it ({error}): that does not count as a try, and it is tried again in {left_s}.",
        "无法为它创建进程（{error}）：不计入尝试次数，{left_s}后重试。",
    ),
    "not_started": (
        "The run was withdrawn before it began, so it does not count as a try.",
        "该次运行在开始前已撤回，不计入尝试次数。",
    ),
    "card_failed": (
        "It failed on GPU {card}, which is faulty ({error_type}): that does not count as a try, and it is tried again at once.",
        "在有故障的 GPU {card} 上失败（{error_type}）：不计入尝试次数，立即重试。",
    ),
    "oom_squeezed": (
        "It ran out of GPU memory though it used only {peak_mib} of {asked}: a neighbour took the rest. "
        "It is tried again with the same request on another card.",
        "显存不足，但它只用了 {asked} 中的 {peak_mib}：其余被同卡的其他进程占用。将以同样的要求换一张卡重试。",
    ),
    "oom_raised": (
        "It ran out of GPU memory: it used {peak_mib} and had asked for {asked}. It is tried again with {next}.",
        "显存不足：用了 {peak_mib}，原先要求 {asked}。将以 {next} 重试。",
    ),
    "oom_larger_card": (
        "It ran out of GPU memory on a whole card. It is tried again on a larger one (at least {next}).",
        "整张卡的显存也不够。将在更大的卡上重试（至少 {next}）。",
    ),
    # why it is over
    "oom_beyond_any_card": (
        "It needs more GPU memory than any card it may use has (the largest: {largest_mib}); trying again cannot help.",
        "所需显存超过了可用范围内最大的卡（{largest_mib}），重试无济于事。",
    ),
    "oom": (
        "It ran out of GPU memory{seen} and has failed {failures:time|times}.",
        "显存不足{seen}，共失败 {failures} 次。",
    ),
    "exit_code": (
        "Its command ended with exit code {exit_code} ({error_type}); it has failed {failures:time|times}.",
        "命令以退出码 {exit_code} 结束（{error_type}），共失败 {failures} 次。",
    ),
    "signal": (
        "Its command was ended by signal {signal}{hint} ({error_type}); it has failed {failures:time|times}.",
        "命令被信号 {signal} 终止{hint}（{error_type}），共失败 {failures} 次。",
    ),
    "reported": (
        "The program itself reported that it failed ({error_type}); it has failed {failures:time|times}.",
        "程序自己报告失败（{error_type}），共失败 {failures} 次。",
    ),
    "start_failed": ("Its command could not be started: {error}.", "命令无法启动：{error}。"),
    "time_limit": ("It ran longer than its time limit of {limit_s}.", "运行时间超过了时限 {limit_s}。"),
    "wait_timeout": (
        "It waited longer than {limit_s} for its GPUs and was given up{details}.",
        "等待 GPU 超过 {limit_s}，已放弃{details}。",
    ),
    "exit_unknown": (
        "How it ended is not known: it is gone and left no exit record, so it does not count as succeeded.",
        "不知道它如何结束：进程已消失且没有退出记录，因此不视为成功。",
    ),
    "host_rebooted": (
        "The host was rebooted while it ran, so how it ended is not known.",
        "运行期间主机重启，不知道它如何结束。",
    ),
    "after_failed": (
        "It was skipped: job {job}, which it comes after, ended as {state}.",
        "已跳过：它所依赖的任务 {job} 以 {state} 结束。",
    ),
    "done_before": (
        "It was not started: run {job}.{run} has done the same work, and its log is still there.",
        "没有启动：运行 {job}.{run} 已完成同样的工作，且其日志仍在。",
    ),
    "queue_failed": (
        "It was not started: job {job} of its queue failed for good.",
        "没有启动：同一队列的任务 {job} 最终失败。",
    ),
}

# code: (one card, English; one card, Chinese; several cards after their number, English; Chinese)
REFUSALS: dict[str, tuple[str, str, str, str]] = {
    "memory": (
        "too little memory: {available_mib} available, {needed_mib} needed",
        "显存不足：可用 {available_mib}，需要 {needed_mib}",
        "{n:has|have} too little memory (most {available_mib} free, {needed_mib} needed)",
        "{n} 张显存不足（最多可用 {available_mib}，需要 {needed_mib}）",
    ),
    "min_free": (
        "too little free memory: {available_mib} available, the rule asks for {needed_mib}",
        "空闲显存不足：可用 {available_mib}，规则要求 {needed_mib}",
        "{n:is|are} below the least free memory (most {available_mib} free, {needed_mib} asked for)",
        "{n} 张低于最小空闲显存（最多可用 {available_mib}，要求 {needed_mib}）",
    ),
    "not_empty": (
        "a whole card is wanted, and {used_mib} of it is in use",
        "需要整张卡，但已被使用 {used_mib}",
        "{n:is|are} not empty, and whole cards are wanted",
        "{n} 张不是空卡（需要整张卡）",
    ),
    "stranger": (
        "used by {user} (process {pid}, {used_mib})",
        "被 {user} 使用（进程 {pid}，{used_mib}）",
        "{n:is|are} used by others ({who})",
        "{n} 张被他人使用（{who}）",
    ),
    "newcomer": (
        "{user} has a process there ({pid}, {used_mib}) that has not been small and idle for {idle_for_s} yet: {left_s} to go",
        "{user} 在上面有一个进程（{pid}，{used_mib}），占用小且空闲的时间未满 {idle_for_s}，还差 {left_s}",
        "{n:has|have} processes of others that may just be starting ({who}; the first in {left_s})",
        "{n} 张上有他人可能刚启动的进程（{who}；最快还差 {left_s}）",
    ),
    "neighbour": (
        "taken by a jostle job of {user}",
        "被 {user} 的 jostle 任务占用",
        "{n:is|are} taken by jostle jobs of others ({who})",
        "{n} 张被他人的 jostle 任务占用（{who}）",
    ),
    "neighbour_idle": (
        "held by a jostle of {user} for {held_s}, with nothing on it",
        "被 {user} 的 jostle 占用 {held_s}，上面没有任何进程",
        "{n:is|are} held idle by jostles of others ({who})",
        "{n} 张被他人的 jostle 占用而空闲（{who}）",
    ),
    "taken": (
        "taken by your job {job}",
        "被您的任务 {job} 占用",
        "{n:is|are} taken by your jobs ({jobs})",
        "{n} 张被您的任务占用（{jobs}）",
    ),
    "taken_elsewhere": (
        "taken by a job of another jostle of yours",
        "被您另一个 jostle 的任务占用",
        "{n:is|are} taken by another jostle of yours",
        "{n} 张被您另一个 jostle 占用",
    ),
    "own_process": (
        "you run process {pid} ({name}, {used_mib}) there by hand",
        "您在上面手动运行着进程 {pid}（{name}，{used_mib}）",
        "{n:has|have} processes that you started by hand",
        "{n} 张上有您手动启动的进程",
    ),
    "misplaced": (
        "process {pid} of your job {job} uses it though it was given other cards",
        "您的任务 {job} 的进程 {pid} 用了没有分配给它的这张卡",
        "{n:is|are} used by your jobs that were given other cards ({jobs})",
        "{n} 张被没有分得它们的任务使用（{jobs}）",
    ),
    "leaving": (
        "your job {job} has ended, but its {used_mib} are not given back yet",
        "您的任务 {job} 已结束，但其 {used_mib} 显存尚未归还",
        "{n:is|are} being given back by your jobs ({jobs})",
        "{n} 张正由您的任务归还（{jobs}）",
    ),
    "unexplained": (
        "{used_mib} of the {card_mib} in use there belong to processes that cannot be seen (load {utilization} %)",
        "已用的 {card_mib} 中有 {used_mib} 属于看不到的进程（负载 {utilization} %）",
        "{n:has|have} memory in use by processes that cannot be seen",
        "{n} 张有显存被看不到的进程使用",
    ),
    "utilization": (
        "busy: {utilization} % load, at most {most} % allowed",
        "负载过高：{utilization} %，上限 {most} %",
        "{n:is|are} too busy (least {utilization} % load, at most {most} % allowed)",
        "{n} 张负载过高（最低 {utilization} %，上限 {most} %）",
    ),
    "utilization_unknown": (
        "its load cannot be read, and at most {most} % is allowed",
        "读不到负载，而上限为 {most} %",
        "{n:has|have} a load that cannot be read",
        "{n} 张读不到负载",
    ),
    "idle": (
        "not idle for {idle_for_s} yet: {left_s} to go",
        "空闲未满 {idle_for_s}，还差 {left_s}",
        "{n:is|are} not idle for {idle_for_s} yet (the first in {left_s})",
        "{n} 张空闲未满 {idle_for_s}（最快还差 {left_s}）",
    ),
    "kept": (
        "kept for job {job}, which comes before it",
        "为排在它前面的任务 {job} 保留",
        "{n:is|are} kept for job {jobs}, which comes before it",
        "{n} 张为排在它前面的任务 {jobs} 保留",
    ),
    "avoided": (
        "the job failed there, and tries another card first",
        "该任务曾在此卡上失败，先换一张卡重试",
        "{n:is|are} avoided because it failed there",
        "{n} 张因曾在上面失败而避开",
    ),
    "over_limit": (
        "it fits, but you hold as many cards as you may",
        "可用，但您占用的卡已达上限",
        "{n:fits|fit}, but you hold as many cards as you may",
        "{n} 张可用，但您占用的卡已达上限",
    ),
    "left": (
        "left for others (gpu_left: {left})",
        "留给他人（gpu_left: {left}）",
        "{n:is|are} left for others",
        "{n} 张留给他人",
    ),
    "out_of_range": (
        "outside the range of cards it may use",
        "不在可用范围内",
        "{n:is|are} outside the range",
        "{n} 张不在可用范围内",
    ),
    "excluded": (
        "excluded by hand (`jostle gpus --include` brings it back)",
        "已被手动排除（可用 `jostle gpus --include` 恢复）",
        "{n:is|are} excluded by hand",
        "{n} 张被手动排除",
    ),
    "faulty_memory": (
        "set aside as faulty: its memory has had {errors} more uncorrectable errors (`jostle gpus --include` brings it back)",
        "因故障已隔离：显存新增 {errors} 个不可纠正的错误（可用 `jostle gpus --include` 恢复）",
        "{n:is|are} set aside for errors of memory",
        "{n} 张因显存错误被隔离",
    ),
    "faulty_row": (
        "set aside as faulty: a broken row of its memory could not be replaced (`jostle gpus --include` brings it back)",
        "因故障已隔离：显存的坏行无法替换（可用 `jostle gpus --include` 恢复）",
        "{n:is|are} set aside for broken memory",
        "{n} 张因显存损坏被隔离",
    ),
    "faulty_said": (
        "set aside as faulty: the log of run {job}.{run} ends with \"{words}\" (`jostle gpus --include` brings it back)",
        "因故障已隔离：运行 {job}.{run} 的日志末尾有 \"{words}\"（可用 `jostle gpus --include` 恢复）",
        "{n:is|are} set aside for what the logs of jobs say ({jobs})",
        "{n} 张因任务日志所述故障被隔离（{jobs}）",
    ),
    "faulty_jobs": (
        "set aside as faulty: jobs {failed} failed on it at once and ran longer on other cards "
        "(`jostle gpus --include` brings it back)",
        "因故障已隔离：任务 {failed} 在上面立即失败，在别的卡上运行更久（可用 `jostle gpus --include` 恢复）",
        "{n:is|are} set aside because jobs fail there",
        "{n} 张因任务在上面失败被隔离",
    ),
    "prohibited": (
        "its compute mode forbids every program (an admin can change it: `nvidia-smi -c DEFAULT`)",
        "其计算模式禁止任何程序使用（管理员可用 `nvidia-smi -c DEFAULT` 更改）",
        "{n:forbids|forbid} every program (compute mode)",
        "{n} 张的计算模式禁止任何程序",
    ),
    "exclusive": (
        "its compute mode allows one process at a time, and it is taken",
        "其计算模式一次只允许一个进程，且已被占用",
        "{n:allows|allow} one process at a time, which is there",
        "{n} 张一次只允许一个进程且已被占用",
    ),
    "quarantined": ("set aside: {why}", "已隔离：{why}", "{n:is|are} set aside", "{n} 张被隔离"),
    "lost": ("the driver has lost it{because}", "驱动已丢失此卡{because}", "{n:is|are} lost", "{n} 张已丢失"),
    "unreadable": ("it cannot be read{because}", "无法读取{because}", "{n:is|are} unreadable", "{n} 张无法读取"),
    "silent": (
        "no answer from it for {silent_s}",
        "已 {silent_s}没有响应",
        "{n:gives|give} no answer (for {silent_s})",
        "{n} 张没有响应（已 {silent_s}）",
    ),
    "starting": (
        "the driver is starting, {silent_s} so far",
        "驱动正在启动，已 {silent_s}",
        "{n:is|are} waiting for the driver to start ({silent_s} so far)",
        "{n} 张等待驱动启动（已 {silent_s}）",
    ),
    "unknown": ("no fresh reading of it", "没有最新读数", "{n:has|have} no fresh reading", "{n} 张没有最新读数"),
    "slice": (
        "a MIG slice: a program can use one, and no card beside it",
        "MIG 实例：一个程序只能使用一个，且不能与其他卡同用",
        "{n:is a MIG slice|are MIG slices}, of which a program can use one alone",
        "{n} 张是 MIG 实例，一个程序只能单独使用一个",
    ),
    "mig": (
        "split into MIG slices, of which each counts as a card",
        "已切分为 MIG 实例，各实例单独计为一张卡",
        "{n:is|are} split into slices",
        "{n} 张已切分为实例",
    ),
}

SIGNALS = {9: ("killed, perhaps for want of host memory", "被强制杀死，可能是主机内存不足"), 11: ("a crash", "程序崩溃")}

STATES = {
    "queued": "排队", "starting": "启动", "running": "运行", "stopping": "停止", "succeeded": "成功", "failed": "失败",
    "cancelled": "取消", "skipped": "跳过",
}  # fmt: skip
"""The states inside Chinese sentences."""
