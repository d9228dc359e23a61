"""The sentences of jostle.wording.flaws: code -> English, Chinese."""

from jostle.wording.consoleflaws import ASKED
from jostle.wording.sweepwords import SWEEPS

FLAWS: dict[str, tuple[str, str]] = {
    # --- any file
    "more_flaws": ("… and {n} more", "……还有 {n} 处"),
    "warning": ("warning: {text}", "警告：{text}"),
    "told_at": ("{place}: {text}", "{place}：{text}"),
    "file_unread": ("cannot be read: {why}", "无法读取：{why}"),
    "file_kind": ("is {kind}; expected {expected}", "是{kind}；应为{expected}"),
    "file_large": ("is larger than {most} MB; split it into several files", "大于 {most} MB；请分成几个文件"),
    "not_utf8": ("is not UTF-8 here; save the file as UTF-8", "此处不是 UTF-8；请把文件存为 UTF-8"),
    "not_utf16": ("begins like UTF-16 and is not; save the file as UTF-8", "开头像 UTF-16 而其实不是；请把文件存为 UTF-8"),
    "no_encoding": (
        "is neither UTF-8 nor GB18030 here; save the file as UTF-8", "此处既不是 UTF-8 也不是 GB18030；请把文件存为 UTF-8",
    ),
    "read_as": (
        "is not UTF-8 and was read as {encoding}; save it as UTF-8 if its texts look wrong",
        "不是 UTF-8，按 {encoding} 读取；如果文字不对，请存为 UTF-8",
    ),
    # --- YAML
    "yaml_character": (
        "a character that YAML does not allow; expected printable text", "有 YAML 不允许的字符；应为可显示的文字",
    ),
    "yaml_tab": ("a tab where YAML wants spaces; indent with spaces", "YAML 要求空格的地方用了制表符；请用空格缩进"),
    "yaml_wrong": ("not YAML: {problem}", "不是 YAML：{problem}"),
    "yaml_colon": (
        "not YAML: {problem}; put quotes around a text that contains `: `", "不是 YAML：{problem}；含有 `: ` 的文字请加引号",
    ),
    "yaml_error": ("not YAML ({problem})", "不是 YAML（{problem}）"),
    "yaml_documents": ("a second document; expected one document per file", "有第二个文档；一个文件应只有一个文档"),
    "yaml_anchors": (
        "more than {most} anchors (&name); write the values themselves", "锚点（&name）超过 {most} 个；请直接写值",
    ),
    "yaml_tag": ("the tag {tag} is not read; expected plain values", "不读取标签 {tag}；应为普通的值"),
    "yaml_deep": ("nested deeper than {most} levels", "嵌套超过 {most} 层"),
    "yaml_no_anchor": ("the alias *{name} has no anchor before it", "别名 *{name} 前面没有对应的锚点"),
    "yaml_loop": (
        "the alias *{name} stands inside what it names; expected a value that ends",
        "别名 *{name} 位于它自己所指的内容之中；应为有尽头的值",
    ),
    "yaml_many": (
        "more than {most} values, aliases counted each time; split the file", "超过 {most} 个值（别名每次都算）；请拆分文件",
    ),
    "yaml_key": ("a list or mapping as a key; expected a word", "用列表或映射作键；应为一个词"),
    "yaml_merge": ("<< merges a mapping; expected an alias of one", "<< 用于合并映射；应为映射的别名"),
    # --- JSON
    "json_after": ("there is something after the end of the object", "对象结束之后还有内容"),
    "json_deep": ("is nested deeper than {most} levels", "嵌套超过 {most} 层"),
    "json_value": ("{token} where a value should be; expected {expected}", "应有值的地方是 {token}；应为{expected}"),
    "json_text": (
        "a text that is not understood ({problem}); expected it in double quotes", "无法理解的文字（{problem}）；应放在双引号里",
    ),
    "json_half": (
        "a text with half a character (\\ud800 to \\udfff); expected whole ones",
        "文字里有半个字符（\\ud800 到 \\udfff）；应为完整的字符",
    ),
    "json_key": ("{token} where a key should be; expected a key in double quotes", "应有键的地方是 {token}；键应放在双引号里"),
    "json_colon": ("{token} after the key {key}; expected :", "键 {key} 之后是 {token}；应为 :"),
    "json_comma": ("{token} after a value; expected , or {end}", "值之后是 {token}；应为 , 或 {end}"),
    "json_last_comma": (
        "a comma before {end}; expected another value, or no comma", "{end} 之前有逗号；应再有一个值，或不要逗号",
    ),
    # --- keys and values
    "key_without_effect": ("{key} has no effect here", "{key} 在这里不起作用"),
    "key_ignored": ("unknown key {key}{where}", "未知的键 {key}{where}"),
    "key_ignored_perhaps": ("unknown key {key}{where}; {near}?", "未知的键 {key}{where}；是想写 {near} 吗？"),
    "low_over_high": (
        "{low_key} {low} is more than {high_key} {high}; expected the smaller first",
        "{low_key} {low} 大于 {high_key} {high}；前者应不大于后者",
    ),
    "key_twice": ("the key {key} is there twice{where}; expected it once", "键 {key}{where}出现了两次；应只有一次"),
    "key_unknown": ("unknown key {key}{where}; expected one of {known}", "未知的键 {key}{where}；应为其中之一：{known}"),
    "key_perhaps": ("unknown key {key}{where}; expected {near}?", "未知的键 {key}{where}；是想写 {near} 吗？"),
    "key_unused": ("unknown key {key} is not used; known keys are {known}", "未知的键 {key}，不起作用；已知的键有 {known}"),
    "key_unused_perhaps": ("unknown key {key} is not used; did you mean {near}?", "未知的键 {key}，不起作用；是想写 {near} 吗？"),
    "value_shape": ("{key}: {shape}; expected {expected}", "{key}：写成了{shape}；应为{expected}"),
    "value_odd": ("{key}: {value} is not understood; expected {expected}", "{key}：无法理解 {value}；应为{expected}"),
    "value_twice": ("{key}: {value} is there twice; expected it once", "{key}：{value} 出现了两次；应只有一次"),
    "value_is": ("{key}: {value} is {shape}; expected {expected}", "{key}：{value} 是{shape}；应为{expected}"),
    "holds": ("{shape}; expected {expected}", "写成了{shape}；应为{expected}"),
    # --- rules of a workspace
    "path_number": (
        "{key}: {value} is no text; expected a path (one that is a number: in quotes)",
        "{key}：{value} 不是文字；应为路径（路径若是数字，请加引号）",
    ),
    "entries_many": ("{key}: {n} entries; expected at most {most}", "{key}：有 {n} 项；应最多 {most} 项"),
    "no_cards": (
        "compete_gpus: an empty list, and use_all_gpus is false; expected at least one index such as [0]",
        "compete_gpus：列表为空，而 use_all_gpus 为 false；应至少有一个编号，例如 [0]",
    ),
    "delay_twice": (
        "launch_delay is the same as start_interval, which is there too; start_interval is taken",
        "launch_delay 与 start_interval 是同一项，后者也写了；以 start_interval 为准",
    ),
    "min_over_max": (
        "min_gpu {low} is more than max_gpu {high}; max_gpu decides", "min_gpu {low} 大于 max_gpu {high}；以 max_gpu 为准",
    ),
    # --- task files
    "block_empty": (
        "a block without a command; expected at least one command line", "这一块没有命令；应至少有一行命令",
    ),
    "block_no_commands": ("a block without a command; expected commands and {ends}", "这一块没有命令；应有命令，以及{ends}"),
    "block_no_count": (
        "no count of GPUs before the memory; expected, in multi mode, the queue, commands, the count of GPUs and the memory, "
        "each on a line of its own (a file without counts is read with --mode single)",
        "显存之前没有 GPU 数；multi 模式下应依次为队列、命令、GPU 数和显存，各占一行（没有 GPU 数的文件用 --mode single 读取）",
    ),
    "block_count": (
        "{text} before the memory is a count of GPUs; expected none in single mode "
        "(a file with counts is read with --mode multi)",
        "显存之前的 {text} 是 GPU 数；single 模式下不应有（有 GPU 数的文件用 --mode multi 读取）",
    ),
    "block_list": (
        'a list of the form `"cmd",` `1,` `20`; expected, without commas at the ends of lines, {way}',
        '写成了 `"cmd",` `1,` `20` 的列表；行末不应有逗号，应为{way}',
    ),
    "block_way": ("the queue, the commands, {ends}", "队列、命令、{ends}"),
    "block_two_ends": (
        "{first} is no command, and {last} ends the block; expected either the queue on the first line and {ends}, or only "
        "`queue,memory` such as 1,20 at the end",
        "{first} 不是命令，而 {last} 结束了这一块；应为第一行写队列并且{ends}，或者只在末行写 `队列,显存`，例如 1,20",
    ),
    "block_numbers": (
        "{text} has too many numbers; expected `queue,memory` such as 1,20", "{text} 的数字太多；应为 `队列,显存`，例如 1,20",
    ),
    "block_no_queue": (
        "no queue; expected its number on the first line, or `queue,memory` such as 1,20 on the last one",
        "没有队列；应在第一行写它的编号，或在末行写 `队列,显存`，例如 1,20",
    ),
    "block_before": (
        "{text} stands before the commands; expected `queue,memory` on the last line",
        "{text} 写在了命令之前；`队列,显存` 应写在末行",
    ),
    "block_end": ("the block ends with {text}; expected {ends}, such as 20", "这一块以 {text} 结束；应为{ends}，例如 20"),
    "block_end_other": (
        "the block ends with {text}; expected `queue,memory` such as 1,20 on the last line, or the queue on the first line and "
        "{ends}",
        "这一块以 {text} 结束；末行应为 `队列,显存`，例如 1,20；或者第一行写队列，并且{ends}",
    ),
    "block_stray": (
        "{text} stands among the commands and is none; expected a blank line between blocks",
        "{text} 夹在命令之间而不是命令；两块之间应有空行",
    ),
    "block_command": ("{text} cannot be run; expected {expected}", "{text} 无法运行；应为{expected}"),
    "block_odd": ("{text} is not understood; expected {expected}", "无法理解 {text}；应为{expected}"),
    "block_memory": (
        "the memory in {text} {what}; expected a number of GB from 0 to {most}",
        "{text} 里的显存{what}；应为 0 到 {most} 的 GB 数",
    ),
    "blocks_many": ("more than {most} blocks; split {file} into several files", "超过 {most} 块；请把 {file} 分成几个文件"),
    "work_dir": (
        "a command uses {{work_dir}}, and in {text} the shell would act on {acting}; expected a work_dir of plain "
        "characters{hint} (commands start in work_dir: relative paths do without it)",
        "有命令用了 {{work_dir}}，而 {text} 里的 {acting} 会被 shell 解释；work_dir 应只含普通字符{hint}"
        "（命令在 work_dir 中启动：相对路径不需要它）",
    ),
    # --- job files
    "no_jobs": ("{what}; expected `jobs:` and a list of jobs", "{what}；应为 `jobs:` 和任务列表"),
    "not_in_defaults": (
        "{key} in defaults; expected it in the jobs it is meant for", "{key} 写在了 defaults 里；应写在相应的任务里",
    ),
    "jobs_many": ("jobs: {n} jobs; expected at most {most} in one file", "jobs：有 {n} 个任务；一个文件应最多 {most} 个"),
    "job_shape": (
        "{shape} in jobs; expected a job with keys such as `run: python train.py`",
        "jobs 里有{shape}；应为带键的任务，例如 `run: python train.py`",
    ),
    "job_no_run": (
        "a job without `run`; expected a command such as `run: python train.py`",
        "任务没有 `run`；应有命令，例如 `run: python train.py`",
    ),
    "resize_needs_card": (
        "resize without a card; expected `gpus:` of 1 or more", "写了 resize 却没有卡；`gpus:` 应至少为 1",
    ),
    "resize_without_uni_id": (
        "resize with a uni_id file; expected one of them", "同时写了 resize 和 uni_id 文件；应只有其一",
    ),
    "memory_without_card": (
        "memory without a card; expected `gpus:` of 1 or more, or no `memory:`",
        "写了 memory 却没有卡；`gpus:` 应至少为 1，或不写 `memory:`",
    ),
    "shares_without_memory": (
        "share without memory; expected `memory:`, since a job without it takes the whole card",
        "有 share 而没有 memory；应写 `memory:`，因为没有它的任务会占整张卡",
    ),
    "after_several": (
        "after: {name} names {n} jobs (lines {lines}); expected one",
        "after：{name} 指了 {n} 个任务（第 {lines} 行）；应只指一个",
    ),
    "after_nobody": (
        "after: no job is named {name}; expected a name in this file or an id{hint}",
        "after：没有名为 {name} 的任务；应为本文件里的名字或编号{hint}",
    ),
    "perhaps": (", perhaps {near}", "，也许是 {near}"),
    "after_circle": (
        "after: these jobs wait for each other: {story}; expected an order in which they can run{hint}",
        "after：这些任务互相等待：{story}；应有能够运行的顺序{hint}",
    ),
    "policy_twice": (
        "a second policy in one batch; expected it in one file, or the same in all",
        "一个批次里有第二个 policy；应只写在一个文件里，或者各文件相同",
    ),
    # --- parts of job files and settings
    "retry_no_max": (
        "retry without max; expected `max: 3`, or `max: unlimited`",
        "retry 没有 max；应为 `max: 3` 或 `max: unlimited`",
    ),
    "targets_none": (
        "{key}: nothing is named; expected a target, or a list of them",
        "{key}：什么也没有写；应为一个去处，或去处的列表",
    ),
    "names_many": ("{key}: {n} names; expected {expected}", "{key}：有 {n} 个名字；应为{expected}"),
    "channel_name": (
        "the name of a channel is not understood; expected up to 40 letters, digits, _, - and .",
        "无法理解通道的名字；应为最多 40 个字母、数字、_、- 和 .",
    ),
    "once_twice": ("{key} is there twice; expected it once", "{key} 出现了两次；应只有一次"),
    "channels_many": ("notify.channels: {n} of them; expected {expected}", "notify.channels：有 {n} 个；应为{expected}"),
    "channel_no_kind": ("{key} has no kind; expected {expected}", "{key} 没有 kind；应为{expected}"),
    "channel_not_its": ("{key}: a {kind} channel has no {name}", "{key}：{kind} 通道没有 {name} 这一项"),
    "channel_missing": ("{key}: {name} is missing; expected {expected}", "{key}：缺少 {name}；应为{expected}"),
    "channel_login": (
        "{key}: user and password belong together; expected both or none", "{key}：user 和 password 应同时有，或都没有",
    ),
    "channel_clear": (
        "{key}: with security none the password would be sent in the clear; expected starttls or tls",
        "{key}：security 为 none 时密码会以明文发送；应为 starttls 或 tls",
    ),
    **ASKED,
    **SWEEPS,
}
