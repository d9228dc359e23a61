"""The words about runs that get other cards while they live, and about jobs that give way: part of the table of words.py."""

from __future__ import annotations

# code: (English, Chinese)
RESIZING: dict[str, tuple[str, str]] = {
    # why the cards of a run change
    "free_cards": (
        "It gets {more:more card|more cards}: nobody else of yours could use what is free.",
        "再得到 {more} 张卡：空闲的卡您的其他任务都用不上。",
    ),
    "asked_for": (
        "A person asked for {span} {most_cards}.", "按人的要求改为 {span} 张卡。",
    ),
    "for_job": ("It makes room for job {job}, which waits.", "给等待中的任务 {job} 让位。"),
    "courtesy": (
        "You held {held:card|cards} and may hold {limit} now: others need some.",
        "您占用了 {held} 张卡，目前最多可占用 {limit} 张：其余留给他人。",
    ),
    "low_load": (
        "Its cards showed a load of {load} %, less than {least} %, over a minute.",
        "一分钟内其卡的平均利用率为 {load} %，低于 {least} %。",
    ),
    "stranger_came": ("Somebody else ({user}) has come onto GPU {gpu}.", "他人（{user}）来到了 GPU {gpu}。"),
    # why they do not
    "keeps_cards": (
        "It runs on {has:card|cards} (it may have {span}) and keeps them for now. {because}",
        "正在 {has} 张卡上运行（可用 {span} 张），暂时不变。{because}",
    ),
    "at_most": ("It has as many cards as it may have: {most}.", "它已有允许的最多张数：{most}。"),
    "at_minimum": (
        "Somebody else ({user}) has come onto GPU {gpu}; it has only the {least:card|cards} that it needs, and no other is free.",
        "他人（{user}）来到了 GPU {gpu}；它只有最少所需的 {least} 张卡，也没有别的空闲卡。",
    ),
    "resize_pause": (
        "Its cards changed not long ago; it gets more in {left_s} at the earliest.",
        "它的卡刚变动过；最早 {left_s}后才会再得到卡。",
    ),
    "too_dear": (
        "It could have {more:more card|more cards}, but a change costs it more than to do without for a while: it gets "
        "them in {left_s} if they stay free.",
        "还可得到 {more} 张卡，但换卡的代价比暂时不用更大：若一直空闲，{left_s}后得到。",
    ),
    "load_too_low": (
        "Its cards must show a load of at least {least} % over a minute before it gets more.",
        "其卡一分钟内的平均利用率须达到 {least} % 才会再得到卡。",
    ),
    "resizing": ("It is getting another list of cards (leg {leg}).", "正在换卡（第 {leg} 段）。"),
    "not_left": (
        "It was told to leave {gpus} and is still on it: until then the card stays its own, and nothing is ended.",
        "已通知它让出 {gpus}，但它仍在上面：在此之前卡仍归它，不会强行结束。",
    ),
    "unreachable": ("Nobody reaches what looks after it, so its cards stay as they are.", "无法联系到照看它的进程，卡保持不变。"),
    "resize_failed": (
        "Its cards could not be changed ({what}); it is tried again in {left_s}.",
        "未能换卡（{what}），{left_s}后再试。",
    ),
    # jobs that give way
    "gives_way": (
        "Somebody else has come onto its card: it gives way, and will wait until it is quiet.",
        "他人来到了它的卡上：它正在让出，清静后再继续。",
    ),
    "pausing": (
        "Somebody else ({user}) has come onto GPU {gpu}: it is being paused, and not all its processes stand still yet.",
        "他人（{user}）来到了 GPU {gpu}：正在暂停它，仍有进程未停下。",
    ),
    "paused": (
        "It is paused: somebody else ({user}) has come onto GPU {gpu}. {kept} It goes on when nobody else has been on its cards "
        "for {quiet_s}.",
        "已暂停：他人（{user}）来到了 GPU {gpu}。{kept}它的卡上连续 {quiet_s}没有他人后继续运行。",
    ),
    "paused_until": (
        "It is paused, for somebody else ({user}) came onto GPU {gpu}. {kept} Nobody else is there now: it goes on in {left_s} "
        "at the earliest.",
        "已暂停：他人（{user}）曾来到 GPU {gpu}。{kept}现在没有他人：最早 {left_s}后继续运行。",
    ),
    "quiet_again": ("Nobody else has been on its cards for {quiet_s}.", "它的卡上已连续 {quiet_s}没有他人。"),
    "unwatched": (
        "What looked after it is gone: so that it is not paused for ever, it goes on.",
        "照看它的进程已不在：为免它一直停着，让它继续运行。",
    ),
    "yielded": (
        "It gave way to somebody else on its card ({times:time|times} lately): that is no try, and it comes back in {left_s} at "
        "the earliest.",
        "它给同卡的他人让了位（最近 {times} 次）：不计入尝试次数，最早 {left_s}后回来。",
    ),
}

# parts of what `show` tells: (English, Chinese)
MESSAGES: dict[str, tuple[str, str]] = {
    "leg": ("leg {n}", "第 {n} 段"),
    "gives_way": ("gives way when somebody else comes", "他人来时让出"),
    "is_paused": ("is paused when somebody else comes", "他人来时暂停"),
}

# why an order was not obeyed: (English, Chinese)
FAILURES: dict[str, tuple[str, str]] = {
    "no_listener": ("no process of it listens for SIGUSR1", "没有进程在等待 SIGUSR1"),
    "ending": ("it is just ending", "它正在结束"),
    "unreachable": ("what looks after it was not reached", "无法联系到照看它的进程"),
    "lost": ("the engine ended before it could tell it", "引擎在通知之前结束了"),
    "taken": ("another was quicker to take the card", "卡被别人先占了"),
}


# what a run keeps that is paused: (English, Chinese)
KEPT = ("Its {} stay on the card.", "它的 {} 显存仍在卡上。")
KEPT_UNKNOWN = ("Its memory stays on the card.", "它占用的显存仍在卡上。")


def failure(why: str, at: int) -> str:
    return FAILURES[why][at] if why in FAILURES else why
