"""What a person is told by the manager: a part of wording.messages."""

from __future__ import annotations

# code: (English, Chinese)
MANAGE: dict[str, tuple[str, str]] = {
    "manage_pending": ("task {name} waits (job {id}): {why}", "任务 {name} 在等待（任务 {id}）：{why}"),
    "manage_refused": ("task {name} was refused: {why}", "任务 {name} 被拒绝：{why}"),
    "manage_started": ("the program of task {name} runs as job {id}", "任务 {name} 的程序作为任务 {id} 运行"),
    "manage_queued": ("the program of task {name} waits as job {id}: {why}", "任务 {name} 的程序作为任务 {id} 等待：{why}"),
    "manage_no_cards_yet": ("it starts when it has its cards", "拿到卡后启动"),
    "manage_runs": ("the program of task {name} runs already, as job {id}", "任务 {name} 的程序已在运行（任务 {id}）"),
    "manage_no_program": (
        "there is no program to start: {file} names none; expected program_template with a command",
        "没有可启动的程序：{file} 中没有写；需要带 command 的 program_template",
    ),
    "manage_no_file": (
        "there is no program to start: no {file} is loaded; expected one with program_template and its command",
        "没有可启动的程序：没有加载 {file}；需要其中有带 command 的 program_template",
    ),
    "manage_stays": (
        "the program of {name} keeps the cards that it starts with: {file} asks for scaling, and scaling.resize is not set "
        "(`signal` or `restart`: how the program takes part)",
        "{name} 的程序保持启动时的卡：{file} 要求伸缩，但没有设置 scaling.resize（`signal` 或 `restart`：程序如何配合）",
    ),
    "manage_released": ("task {name} is released (job {id})", "任务 {name} 已释放（任务 {id}）"),
    "manage_no_task": (
        "there is no task {name}: `jostle alloc {name}` or `--allocate {name}` makes one",
        "没有任务 {name}：用 `jostle alloc {name}` 或 `--allocate {name}` 创建",
    ),
    "manage_reloaded": ("{file} has changed and is loaded again", "{file} 已改变，重新加载"),
    "manage_unread": ("{why}; what it said before goes on", "{why}；沿用先前的内容"),
    "manage_daemon": (
        "the manager runs in the background (pid {pid}) and writes to {log}; `kill {pid}` ends it",
        "管理器在后台运行（pid {pid}），写入 {log}；用 `kill {pid}` 结束",
    ),
    "manage_ended": ("the manager ended before it was at work; its log is {log}", "管理器未能开始工作就结束了；其日志为 {log}"),
    "manage_log_unwritten": (
        "cannot write {path}: {why}; see logging.file in the configuration", "无法写入 {path}：{why}；见配置中的 logging.file",
    ),
    "manage_floor_taken": (
        "the floor of this home is kept by pid {pid} already; expected `--monitor-only`, or that one ended first",
        "此 home 的保底已由 pid {pid} 维持；请用 `--monitor-only`，或先结束它",
    ),
    "floor_on": ("keeps {least} to {most:card|cards} for you", "为您保底 {least} 至 {most} 张卡"),
    "floor_off": ("keeps no cards: {why}", "不保底：{why}"),
    "floor_off_file": ("auto_manage is false in {file}", "{file} 中 auto_manage 为 false"),
    "floor_off_limit": ("max_reserved_gpus is 0, {by}", "max_reserved_gpus 为 0（{by}）"),
    "floor_no_engine": (
        "no engine runs, so no cards are kept; `jostle up` starts one", "引擎没有运行，因此不保底；用 `jostle up` 启动",
    ),
    "floor_takes": ("the floor asks for {n:card|cards}", "保底申请 {n} 张卡"),
    "floor_gives": ("the floor gives {n:card|cards} back: {why}", "保底归还 {n} 张卡：{why}"),
    "floor_why_off": ("it is not wanted any more", "不再需要"),
    "floor_why_waiting": ("jobs of yours wait for cards", "您的任务在等卡"),
    "floor_why_idle": ("nothing of yours has run for long", "您很久没有运行任何任务"),
    "floor_why_crowded": ("somebody else came onto it", "有他人使用该卡"),
    "floor_why_enough": ("you hold as many as you may, or as it should keep", "您的占用已达上限或保底所需"),
    "floor_why_not_had": ("none was to be had", "没有得到卡"),
}
