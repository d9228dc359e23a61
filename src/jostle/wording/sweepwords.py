"""The sentences of jostle.wording.flaws about sweeps, suites and old job files: code -> English, Chinese."""

SWEEPS: dict[str, tuple[str, str]] = {
    # --- axes and their values
    "sweep_nothing": (
        "nothing to combine; expected `matrix:` with keys and lists of values",
        "没有可组合的内容；应有 `matrix:`，其中是键和值的列表",
    ),
    "sweep_no_command": (
        "no command; expected a template such as `command: python train.py --seed {{seed}}`",
        "没有命令；应有模板，例如 `command: python train.py --seed {{seed}}`",
    ),
    "sweep_many": (
        "{n} combinations; expected at most {most}: take values away, or split it into suites",
        "共 {n} 种组合；应最多 {most} 种：请减少取值，或拆成几个 suite",
    ),
    "sweep_all_excluded": (
        "every combination is excluded; expected at least one that is left", "所有组合都被排除了；应至少留下一种",
    ),
    "axis_value_twice": (
        "matrix: {key}: {value} is there twice; expected each value once", "matrix：{key}：{value} 出现了两次；每个值应只有一次",
    ),
    "zip_shape": (
        "zip: expected mappings of equally long lists, such as `{{lr: [0.1, 0.01], epochs: [10, 100]}}`",
        "zip：应为映射，其中各列表一样长，例如 `{{lr: [0.1, 0.01], epochs: [10, 100]}}`",
    ),
    "zip_twice": ("zip: a key is there twice; expected each key once", "zip：有一个键出现了两次；每个键应只有一次"),
    "zip_lengths": (
        "zip: lists of different lengths ({counts}); expected equally long ones", "zip：列表长度不同（{counts}）；应一样长",
    ),
    "key_in_both": (
        "the key {key} is there twice; expected it once, in matrix or in zip",
        "键 {key} 出现了两次；应只有一次，在 matrix 或 zip 中",
    ),
    "key_twice_in": ("{where}: the key {key} is there twice; expected it once", "{where}：键 {key} 出现了两次；应只有一次"),
    "no_sweep_key": (
        "{where}: {key} is no key of this sweep; expected {expected}", "{where}：{key} 不是这个 sweep 的键；应为{expected}",
    ),
    "no_axis_value": (
        "exclude: {key} has no value {value}; expected one of {known}",
        "exclude：{key} 没有 {value} 这个值；应为其中之一：{known}",
    ),
    "as_value": ("{key}: {shape} as a value; expected a number or a text", "{key}：用{shape}作值；应为数字或文字"),
    "value_ungiven": (
        "{key}: {value} cannot be given to a command; expected text without NUL",
        "{key}：{value} 不能传给命令；应为不含 NUL 的文字",
    ),
    "axis_key": (
        "{where}: the key {key}; expected a word without spaces and braces", "{where}：键 {key} 不可用；应为不含空格和花括号的词",
    ),
    "axis_reserved": (
        "{where}: {{{key}}} has a meaning of its own in templates; expected another key",
        "{where}：{{{key}}} 在模板里另有含义；应换一个键",
    ),
    "span_shape": (
        "{key}: {shape}; expected a list of values, or {{range: [0, 10]}}, {{linspace: [0, 1, 5]}}, {{logspace: [-5, -1, 5]}}",
        "{key}：写成了{shape}；应为值的列表，或 {{range: [0, 10]}}、{{linspace: [0, 1, 5]}}、{{logspace: [-5, -1, 5]}}",
    ),
    "span_odd": (
        "{key}: {kind} {problem}; expected numbers such as {{{kind}: {such}}}",
        "{key}：{kind} {problem}；应为数字，例如 {{{kind}: {such}}}",
    ),
    "span_text": (
        "{key}: {value} is one text, not numbers; expected {meant}, or the text in quotes",
        "{key}：{value} 是一段文字而不是数字；应为 {meant}，或给文字加引号",
    ),
    # --- jobs of a sweep
    "template_no_value": (
        "{{{word}}} has no value where {values}; expected one for every job",
        "{{{word}}} 在 {values} 时没有值；每个任务都应有一个",
    ),
    "key_nowhere": (
        "{shown} is used nowhere; write {{{key}}} or {{args}} into command, or {key} under into_config",
        "{shown} 没有用到；请在 command 中写 {{{key}}} 或 {{args}}，或在 into_config 中写 {key}",
    ),
    "log_of_two": (
        "log: {log} is the log of {first} and of {second}; expected a log for each{hint}",
        "log：{log} 同时是 {first} 和 {second} 的日志；每个任务应各有一个日志{hint}",
    ),
    "name_of_two": (
        "name: {name} is the name of several jobs; expected a name for each{hint}",
        "name：{name} 是几个任务的名字；每个任务应各有一个名字{hint}",
    ),
    "with_word": (", e.g. with {{{key}}} in it", "，例如其中写入 {{{key}}}"),
    "config_file_bad": ("the config file {path} {text}", "配置文件 {path}：{text}"),
    "config_file_line": ("the config file {path}, line {line}: {text}", "配置文件 {path} 第 {line} 行：{text}"),
    "copy_of_two": (
        "config_copy: {place} would be two different copies; expected a place for each, e.g. with {{name}} or {{suite}} in it",
        "config_copy：{place} 会是两份不同的副本；每份应各有位置，例如其中写入 {{name}} 或 {{suite}}",
    ),
    "copy_yaml": (
        "{keys} cannot be written into {path} by program; expected plain `key: value` lines",
        "程序无法把 {keys} 写入 {path}；应为普通的 `键: 值` 行",
    ),
    "copy_json": (
        "{keys} cannot be written into {path}; expected JSON that has these keys",
        "无法把 {keys} 写入 {path}；应为含有这些键的 JSON",
    ),
    "expected_only": ("{key}: expected {expected}", "{key}：应为{expected}"),
    "command_arguments": (
        "{key}: arguments that cannot be executed; expected a program and its arguments", "{key}：参数无法执行；应为程序及其参数",
    ),
    "command_unclear": (
        "command: {what}, where values cannot be quoted for certain; expected a list: a program and its arguments, or a variable "
        "of `job: env` in place of the value",
        "command：{what}，此处无法确保值被正确引用；应写成列表（程序及其参数），或用 `job: env` 的变量代替该值",
    ),
    "no_config_file": (
        "into_config without a config file; expected the key `config` in the sweep, or `config_file: configs/{{…}}.yaml`",
        "有 into_config 而没有配置文件；sweep 中应有键 `config`，或写 `config_file: configs/{{…}}.yaml`",
    ),
    "config_path_empty": ("an empty path of a config file; expected a path", "配置文件的路径为空；应为路径"),
    "log_long": (
        "log: {log} is too long for a file; expected at most {most} bytes between slashes, e.g. with {{index}} instead of "
        "{{name}}",
        "log：{log} 作文件名太长；斜杠之间应最多 {most} 字节，例如用 {{index}} 代替 {{name}}",
    ),
    # --- suites
    "suite_nested": (
        "holds suites of its own, but is one of a suites file; expected jobs or a matrix",
        "本身是某个 suites 文件里的一项，却又含有 suites；应为 jobs 或 matrix",
    ),
    "suite_of_suites": (
        "suites: {name} holds suites of its own; expected jobs or a matrix", "suites：{name} 又含有 suites；应为 jobs 或 matrix",
    ),
    "suite_no_sweep": (
        "suites: {name} is no sweep; expected `matrix:`, or the path of a file: `{name}: jobs.yaml`",
        "suites：{name} 不是 sweep；应有 `matrix:`，或写文件的路径：`{name}: jobs.yaml`",
    ),
    # --- old job files
    "matrix_beside_jobs": ("a matrix beside `jobs:`; expected one of them", "`jobs:` 旁边还有 matrix；应只有其一"),
    "old_without": ("a job without `{key}`; the command needs it: {command}", "任务没有 `{key}`；命令需要它：{command}"),
    "old_shape": (
        "{shape} in jobs; expected a job with keys such as `config: configs/x.yaml`",
        "jobs 里有{shape}；应为带键的任务，例如 `config: configs/x.yaml`",
    ),
    "log_twice": ("both log and log_path; expected one of them", "log 和 log_path 都写了；应只有其一"),
    "extra_twice": (
        "extra_args: {key} is a key of the job too; expected it once", "extra_args：{key} 也是任务的键；应只写一次",
    ),
}  # fmt: skip
