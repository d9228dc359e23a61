"""The sentences of jostle.wording.flaws about what a person asks of the console: code -> English, Chinese."""

ASKED: dict[str, tuple[str, str]] = {
    # --- what was sent
    "asked_needed": ("it is needed", "必须给出"),
    "asked_unknown": ("there is no such key", "没有这样的键"),
    "asked_json": ("expected JSON", "应为 JSON"),
    "asked_ge": ("expected {ge} or more", "应不小于 {ge}"),
    "asked_gt": ("expected more than {gt}", "应大于 {gt}"),
    "asked_le": ("expected {le} at the most", "应不大于 {le}"),
    "asked_lt": ("expected less than {lt}", "应小于 {lt}"),
    "asked_long": ("expected {max_length} at the most", "应最多 {max_length} 个"),
    "asked_short": ("expected one at least", "应至少有一个"),
    "asked_text_long": ("expected {max_length} characters at the most", "应最多 {max_length} 个字符"),
    "asked_text": ("expected a text", "应为文字"),
    "asked_kind": ("expected {expected}", "应为{expected}"),
    "asked_unread": ("this cannot be read", "无法读取"),
    "asked_place": (
        '`to`: expected "first", "last", {{"before": ID}} or {{"after": ID}}',
        '`to`：应为 "first"、"last"、{{"before": 编号}} 或 {{"after": 编号}}',
    ),
    "asked_ids": ("expected `ids` or `batch`", "应有 `ids` 或 `batch`"),
    "asked_cards": ("expected `exclude` or `include`: indices of cards", "应有 `exclude` 或 `include`：卡的编号"),
    "asked_hold": ("`hold` is true or false, `once` a text", "`hold` 应为 true 或 false，`once` 应为文字"),
    "asked_workdir": (
        "`workdir` is needed: the absolute path of a directory on this host", "需要 `workdir`：本机上一个目录的绝对路径",
    ),
    "asked_no_folder": (
        "workdir {path} is no directory; expected the absolute path of one that exists",
        "workdir {path} 不是目录；应为已有目录的绝对路径",
    ),
    "asked_absolute": ("expected the absolute path of a file on this host", "应为本机上一个文件的绝对路径"),
    "asked_job_file": (
        "expected the absolute path of a job file: its name ends with .yaml or .yml, and no settings lie in it",
        "应为任务文件（job file）的绝对路径：名字以 .yaml 或 .yml 结尾，且不是设置文件",
    ),
    # --- words that mean jobs, and values that they are to have, from wherever they come
    "id_none": ("{word} is no job id; expected {expected}{hint}", "{word} 不是任务编号；应为{expected}{hint}"),
    "id_of_name": ("; a job of that name is {written}", "；叫这个名字的任务写作 {written}"),
    "id_perhaps": ("; did you mean {written}?", "；是想写 {written} 吗？"),
    "id_backwards": ("{word} runs backwards; expected the smaller id first", "{word} 前后颠倒；应把小的编号写在前面"),
    "id_many": ("{word} names more than {most} jobs", "{word} 超过 {most} 个任务"),
    "id_nobody": ("there is no job {called}{hint}", "没有{called}的任务{hint}"),
    "id_no_last": ("there is no job yet", "还没有任务"),
    "id_unable": (
        "nothing to {verb} among the jobs {called}: {counts}; the newest is {newest}{hint}",
        "{called}的任务里没有可以 {verb} 的：{counts}；最新的是 {newest}{hint}",
    ),
    "id_by_number": ("; what was cancelled or has succeeded is retried by number", "；已取消或已成功的，按编号重试"),
    "of_name": ("named {text}", "名为 {text} "),
    "of_queue": ("in queue {text}", "队列 {text} 中"),
    "of_tag": ("with tag {text}", "带标签 {text} "),
    "of_batch": ("of batch {text}", "批次 {text} "),
    "no_setting": ("there is no setting {key}; expected {expected}", "没有设置项 {key}；应为{expected}"),
    "no_batch": ("there is no batch {number}", "没有批次 {number}"),
    # --- what this caller, or the console, may do
    "may_not_prints": ("this token may not see what jobs print", "此令牌无权查看任务的输出"),
    "may_not_files": ("this token may not see what files hold", "此令牌无权查看文件内容"),
    "may_not_channels": ("this token may not see who is told of what", "此令牌无权查看通知发给谁"),
    "seats_streams": (
        "too many streams are open, or calls that wait: ask again when one has ended",
        "打开的事件流或等待中的请求太多：等其中一个结束后再试",
    ),
    "seats_lengthy": (
        "too many calls that take long are under way: ask again when one has ended",
        "耗时的请求太多：等其中一个结束后再试",
    ),
    "needs_engine": ("no engine runs: `jostle up` starts one", "引擎没有运行：用 `jostle up` 启动"),
    "no_workspace": (
        "this console has no workspace: `jostle up DIR` gives it one", "此控制台没有工作区：用 `jostle up 目录` 指定",
    ),
    "workspace_unknown": (
        "this workspace is not known here: `jostle up DIR` or `jostle compete DIR` makes it so",
        "这里不知道这个工作区：运行 `jostle up 目录` 或 `jostle compete 目录` 后即可",
    ),
    # --- files
    "file_none": ("there is no {path} in {root}", "{root} 中没有 {path}"),
    "file_outside": (
        "{path} lies outside of the workspace: it is not shown in a browser", "{path} 在工作区之外：不在浏览器中显示",
    ),
    "file_link": (
        "{path} leads through a link, which is not followed from a browser", "{path} 经过一个链接，从浏览器不会跟随它",
    ),
    "file_odd_read": (
        "{path} is not a regular file of yours with one name: it is not read from a browser",
        "{path} 不是您自己的、只有一个名字的普通文件：不能从浏览器读取",
    ),
    "file_odd_write": (
        "{path} is not a regular file of yours with one name: it is not written from a browser",
        "{path} 不是您自己的、只有一个名字的普通文件：不能从浏览器写入",
    ),
    "file_too_large": ("{path} is larger than {mib} MiB: edit it with an editor", "{path} 超过 {mib} MiB：请用编辑器修改"),
    "file_lock": (
        "{name}, by which saving is locked there, is not a file of yours alone: remove it",
        "保存时用作锁的 {name} 不是您独有的文件：请删除它",
    ),
    "file_changed": (
        "it was changed meanwhile: read it again, and save over what you have seen", "期间文件已被修改：请重新读取，再保存",
    ),
    "file_unknown": (
        "this file lies in no workspace, and beside no job file that was run: `jostle run FILE` makes it known",
        "这个文件不在任何工作区里，旁边也没有运行过的任务文件（job file）：运行 `jostle run 文件` 后即可",
    ),
    # --- configs, tasks and rules
    "config_one": ("config 1 cannot be deleted", "配置 1 不能删除"),
    "config_none": ("there is no config {n} of {mode} mode", "{mode} 模式没有配置 {n}"),
    "config_runs": ("config {n} is running: stop it first", "配置 {n} 正在运行：请先停止"),
    "config_no_backup": ("there is no backup of {name}", "{name} 没有备份"),
    "config_encoding": (
        "{path} is {encoding}, which has no such character; save it as UTF-8 first",
        "{path} 的编码是 {encoding}，其中没有这个字符；请先存为 UTF-8",
    ),
    "config_long": (
        "{name} has more than {most:,} lines, or is one of many: edit it with an editor",
        "{name} 超过 {most:,} 行，或文件太多：请用编辑器修改",
    ),
    "task_wrong": ("queue {queue}, process {n}: {text}", "队列 {queue}，第 {n} 个进程：{text}"),
    "task_no_command": ("no command; expected at least one", "没有命令；应至少有一条"),
    "task_unwritable": (
        "a block of queue {queue}, {n} commands, {gpus} GPUs and {memory} GB cannot be written in a task file of {mode} mode; "
        "expected numbers that such a file can hold",
        "队列 {queue}、{n} 条命令、{gpus} 个 GPU、{memory} GB 的块无法写入 {mode} 模式的任务文件；应为这种文件能容纳的数",
    ),
    "command_unwritable": (
        "the command {text} cannot be written in a task file; expected one line without a backslash at its end or spaces "
        "around it",
        "命令 {text} 无法写入任务文件；应为一行，末尾没有反斜杠，首尾没有空格",
    ),
    "rules_by_hand": (
        "{keys} cannot be changed in {file} by program: edit the file (it says {text})",
        "{file} 中的 {keys} 无法由程序修改：请编辑该文件（其中写着 {text}）",
    ),
    # --- settings
    "setting_odd": ("{key}: expected {expected}", "{key}：应为 {expected}"),
    "secret_weak": (
        "this secret is too easy to guess; expected at least {least} characters, not built from a well-known one",
        "这个密钥太容易猜到；应至少 {least} 个字符，且不由常见的密钥构成",
    ),
    "secret_characters": (
        "a secret consists of ASCII characters without spaces, 500 at the most", "密钥由不含空格的 ASCII 字符组成，最多 500 个",
    ),
    # --- logs
    "log_none": ("there is no such log file", "没有这个日志文件"),
    "log_outside": (
        "this file lies in no log folder of the workspace or of its jobs", "这个文件不在工作区或其任务的日志目录里",
    ),
    "log_bindings": ("{file} is damaged: mend it, or remove it", "{file} 已损坏：请修复或删除它"),
    "log_job": ("there is no job {id}", "没有任务 {id}"),
    "log_replaced": (
        "the log {path} is not a regular file of its own: something else was put in its place",
        "日志 {path} 不是它自己的普通文件：有别的东西占了它的位置",
    ),
    "log_ticket": ("this download is over, or another's: ask for it again", "这次下载已结束，或属于别人：请重新下载"),
}  # fmt: skip
