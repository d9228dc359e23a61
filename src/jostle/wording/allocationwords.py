"""What is said of allocations and of what runs inside them: parts of wording.words and wording.declined."""

from __future__ import annotations

# code: (English, Chinese)
REASONS: dict[str, tuple[str, str]] = {
    # why a job inside does not start
    "inside_waits": (
        "It runs inside allocation {allocation}, which has no cards yet.", "它要在占卡 {allocation} 内运行，而后者还没有拿到卡。",
    ),
    "inside_releasing": (
        "Allocation {allocation} is being released: nothing starts inside it any more.",
        "占卡 {allocation} 正在释放，不再有任务在其中启动。",
    ),
    "inside_resizing": (
        "Allocation {allocation} is about to have other cards; what it is to run on will be known in a moment.",
        "占卡 {allocation} 正在换卡，稍后才知道用哪些卡。",
    ),
    "inside_full": (
        "⟦{fit} of the {total:card|cards} of allocation {allocation} fit{wanted}⟧: {gpus}.",
        "占卡 {allocation} 的 {total} 张卡中有 ⟦{fit} 张可用{wanted}⟧：{gpus}。",
    ),
    "inside_impossible": (
        "⟦It can never start inside allocation {allocation}⟧: it needs {needed:card|cards} with {asked}, and that has {total} "
        "with {most_mib} each.{stays}",
        "⟦在占卡 {allocation} 内无法运行⟧：需要 {needed} 张卡、每张 {asked}，而它只有 {total} 张、每张 {most_mib}。{stays}",
    ),
    # what is remarkable of an allocation that holds its cards
    "held_idle": (
        "Nothing has been on its cards for {idle_s}; `jostle release` gives them back.",
        "其卡上已 {idle_s} 没有进程；可用 `jostle release` 释放。",
    ),
    "held_idle_until": (
        "Nothing has been on its cards for {idle_s}; it is released in {left_s} unless something starts.",
        "其卡上已 {idle_s} 没有进程；若无任务启动，将在 {left_s}后释放。",
    ),
    "visited": (
        "Before anything was started here, {user} came onto GPU {gpu} (pid {pid}): an allocation keeps nobody away who does not "
        "ask jostle.",
        "{user} 在此处启动任何任务之前用上了 GPU {gpu}（pid {pid}）：占卡挡不住不经 jostle 的人。",
    ),
    "releasing": (
        "It is being released: job {job} inside it is told to end first.", "正在释放：先让其中的任务 {job} 结束。",
    ),
    # why it is over
    "released": ("It was released.", "已释放。"),
    "released_time": ("Its time ({limit_s}) was up, and it was released.", "时间（{limit_s}）已到，已释放。"),
    "released_process": (
        "The process that it was tied to has ended, and it was released.", "与它绑定的进程已结束，已释放。",
    ),
    "tied_ended": (
        "The process that it was tied to ended before it had its cards, and it was given up.",
        "与它绑定的进程在拿到卡之前已结束，已放弃。",
    ),
    "waiter_ended": (
        "The `jostle alloc` that waited for its cards was ended, and it was given up with it.",
        "等待它的 `jostle alloc` 已被结束，随之放弃。",
    ),
    "released_idle": (
        "Nothing was on its cards for {idle_s}, and it was released.", "其卡上 {idle_s} 没有进程，已释放。",
    ),
    "allocation_over": (
        "Allocation {job}, which it belongs to, has ended.", "它所在的占卡 {job} 已结束。",
    ),
}  # fmt: skip

DECLINED: dict[str, tuple[str, str]] = {
    "name_taken": (
        "allocation {name} exists already (job {job}): `jostle alloc {name} -g N --grow` lets it have more cards, "
        "`jostle release {name}` gives it back",
        "占卡 {name} 已存在（任务 {job}）：`jostle alloc {name} -g N --grow` 可增加其卡，`jostle release {name}` 可释放",
    ),
    "no_allocation": ("job {allocation} is no allocation", "任务 {allocation} 不是占卡"),
    "allocation_ended": (
        "allocation {allocation} has ended: `unset JOSTLE_ALLOC CUDA_VISIBLE_DEVICES` in a shell that was made for it, or "
        "`jostle alloc` again",
        "占卡 {allocation} 已结束：在为它准备的 shell 中请 `unset JOSTLE_ALLOC CUDA_VISIBLE_DEVICES`，或重新 `jostle alloc`",
    ),
    "allocation_leaves": ("allocation {allocation} is being released", "占卡 {allocation} 正在释放"),
    "program_inside": (
        "job {job} is inside allocation {allocation} already: `--beside` starts another beside it",
        "占卡 {allocation} 内已有任务 {job}：用 `--beside` 可再启动一个",
    ),
    "not_of_allocation": (
        "job {job} is an allocation, and {key} means nothing for one", "任务 {job} 是占卡，{key} 对它没有意义",
    ),
    "not_of_inside": (
        "job {job} runs inside allocation {allocation}, and {key} means nothing there",
        "任务 {job} 在占卡 {allocation} 内运行，{key} 在那里没有意义",
    ),
    "holds_no_card": ("job {job} is an allocation: it holds at least one GPU", "任务 {job} 是占卡：至少占用一张 GPU"),
    "not_retried": (
        "job {job} is an allocation: `jostle alloc` asks for another", "任务 {job} 是占卡：请用 `jostle alloc` 重新申请",
    ),
}  # fmt: skip
