"""What a person is told of allocations and limits: a part of wording.messages."""

from __future__ import annotations

# code: (English, Chinese)
ALLOCATIONS: dict[str, tuple[str, str]] = {
    "alloc_waits": ("{name} (job {id}) waits: {why}", "{name}（任务 {id}）等待中：{why}"),
    "alloc_held": (
        "{name} holds GPU {gpus} (job {id}): `jostle start {name} -- CMD` runs something there, `jostle release {name}` gives "
        "them back",
        "{name} 已占用 GPU {gpus}（任务 {id}）：`jostle start {name} -- CMD` 在其上运行，`jostle release {name}` 释放",
    ),
    "alloc_runs": (
        "{name} holds GPU {gpus} (job {id}) until the command ends", "{name} 占用 GPU {gpus}（任务 {id}），直到命令结束",
    ),
    "alloc_too_few": (
        "{name} has {n:GPU|GPUs}, and {asked} are asked for: `jostle alloc {name} -g {asked} --grow` gets more",
        "{name} 只有 {n} 张 GPU，却要求 {asked} 张：`jostle alloc {name} -g {asked} --grow` 可增加",
    ),
    "alloc_given_up": ("{name} was given up", "{name} 已放弃"),
    "alloc_not_now": ("{name} cannot have its cards now: {why}", "{name} 现在拿不到卡：{why}"),
    "alloc_ended": ("{name} (job {id}) ended before it held its cards: {why}", "{name}（任务 {id}）在拿到卡之前就结束了：{why}"),
    "alloc_unknown": (
        "there is no allocation {name}: `jostle alloc {name} -g N` makes one, `jostle status` lists them",
        "没有名为 {name} 的占卡：可用 `jostle alloc {name} -g N` 申请，`jostle status` 可列出",
    ),
    "alloc_releasing": ("{name} (job {id}) is being released", "{name}（任务 {id}）正在释放"),
    "alloc_released": ("{name} is released", "{name} 已释放"),
    "alloc_no_program": (
        "there is no program to start: give one behind `--`, as in `jostle start {name} -- python train.py`",
        "没有可启动的程序：请写在 `--` 之后，如 `jostle start {name} -- python train.py`",
    ),
    "alloc_no_process": ("there is no process {pid} to tie an allocation to", "没有可绑定占卡的进程 {pid}"),
    "cuda_has_begun": (
        "CUDA has begun in this process ({who}), and no longer looks at CUDA_VISIBLE_DEVICES: ask for cards before anything uses "
        "it, or restart the kernel",
        "此进程中 CUDA 已经启动（{who}），不再读取 CUDA_VISIBLE_DEVICES：请在使用它之前申请卡，或重启 kernel",
    ),
    "limits_odd": (
        "limits: {word} is not understood; expected a limit such as max_total_gpus=4",
        "limits：无法理解 {word}；应为限额，例如 max_total_gpus=4",
    ),
    "limits_nothing": ("limits: expected a limit such as max_total_gpus=4", "limits：应为限额，例如 max_total_gpus=4"),
    "limits_unknown": ("limits: there is no limit {name}; expected {known}", "limits：没有限额 {name}；应为 {known}"),
    "status_node": (
        "cards:  {name}: {free}/{total} free ({allocated} yours)", "显卡：  {name}：{free}/{total} 空闲（您占 {allocated}）",
    ),
    "status_held": ("holds:  {what}", "占卡：  {what}"),
    "held_gpus": ("{n:GPU|GPUs}", "{n} 张 GPU"),
    "held_on": ("{gpus} on {node}", "{node} 上 {gpus}"),
    "held_for": ("for {time}", "已 {time}"),
    "held_waits": ("waits: {why}", "等待中：{why}"),
    "held_until": ("until {at}", "到 {at}"),
    "held_idle_for": ("idle for {time}", "空闲 {time}"),
    "held_visited": ("{user} is on GPU {gpu} (pid {pid})", "{user} 在 GPU {gpu} 上（pid {pid}）"),
    "held_inside": ("inside: job {ids}", "其中有任务 {ids}"),
}
