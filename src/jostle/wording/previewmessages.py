"""What a person is told of jobs that are not queued yet: a part of wording.messages."""

from __future__ import annotations

# code: (English, Chinese)
PREVIEWS: dict[str, tuple[str, str]] = {
    "would_start": ("starts now on GPU {gpus}", "现在就能在 GPU {gpus} 上启动"),
    "would_start_drawn": ("starts now; on which GPU is drawn by chance", "现在就能启动；在哪张 GPU 上由随机决定"),
    "might_start": ("may start now: which come first is drawn by chance", "可能现在就启动：谁先启动由随机决定"),
    "would_start_bare": ("starts now, without a GPU", "现在就能启动，不用 GPU"),
    "would_hand_over": ("is handed over to {target} now", "现在就能交给 {target}"),
    "would_follow": ("after {jobs}", "在 {jobs} 之后"),
    "would_drawn": (
        "which of them come first is drawn by chance when they are queued", "谁先启动在排队时随机抽取",
    ),
    "would_hold_of": (
        "You would then hold {n:card|cards} of the {most} you may.", "届时您占用 {n} 张卡，最多可占 {most} 张。",
    ),
    "would_hold": ("You would then hold {n:card|cards}.", "届时您占用 {n} 张卡。"),
    "would_need_engine": (
        "no engine runs, and only one can tell: `jostle up` starts it", "引擎没有运行，只有它知道：用 `jostle up` 启动",
    ),
}  # fmt: skip
