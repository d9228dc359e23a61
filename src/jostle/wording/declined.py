"""Why what people want of a job is not to be had, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jostle.wording import allocationwords
from jostle.wording.words import STATES

DECLINED: dict[str, tuple[str, str]] = {
    **allocationwords.DECLINED,
    "cannot_hold": (
        "job {job} is {state}: only a queued job can be held", "任务 {job} 的状态是“{state}”：只有排队的任务才能暂停",
    ),
    "cannot_release": (
        "job {job} is {state}: only a queued job can be released", "任务 {job} 的状态是“{state}”：只有排队的任务才能放行",
    ),
    "cannot_move": (
        "job {job} is {state}: only a queued job can be moved", "任务 {job} 的状态是“{state}”：只有排队的任务才能移动",
    ),
    "cannot_change": (
        "job {job} is {state}: only a queued job can be changed, and the gpus of an allocation or of a running job with `resize`",
        "任务 {job} 的状态是“{state}”：只有排队的任务才能修改；占卡和带 `resize` 的运行中任务可修改 gpus",
    ),
    "cannot_drop": (
        "job {job} is {state}: only a queued job can be dropped", "任务 {job} 的状态是“{state}”：只有排队的任务才能移出批次",
    ),
    "of_another_batch": ("job {job} is not of batch {batch}", "任务 {job} 不属于批次 {batch}"),
    "ended_already": ("job {job} is {state} already", "任务 {job} 早已结束（{state}）"),
    "has_begun": (
        "job {job} has begun: it heads its queue until it ends, and can be cancelled, not overtaken",
        "任务 {job} 已经开始过：结束前它一直在队首，可以取消，不能被超过",
    ),
    "beside_itself": ("job {job} cannot be moved {side} itself", "任务 {job} 不能移到它自己旁边"),
    "in_another_queue": (
        "job {other} does not wait in the same queue as job {job}", "任务 {other} 没有和任务 {job} 在同一个队列里等待",
    ),
    "shares_without_memory": (
        "job {job} cannot share a card without a memory: set memory=… too, or share=false",
        "任务 {job} 没有写明显存，不能与别人共用一张卡：请同时设置 memory=…，或设 share=false",
    ),
    "memory_without_card": (
        "job {job} has no card to have memory on: set memory=none too, or gpus=1",
        "任务 {job} 没有卡，也就没有显存：请同时设置 memory=none，或设 gpus=1",
    ),
    "resize_needs_card": (
        "job {job} may get other cards while it runs, and needs at least one: gpus=0 is not to be had",
        "任务 {job} 运行中可以换卡，至少需要一张：不能设 gpus=0",
    ),
    "resize_without_uni_id": (
        "job {job} takes part in the uni_id protocol, so its cards cannot change while it runs",
        "任务 {job} 使用 uni_id 协议，运行中不能换卡",
    ),
    "not_ended": ("job {job} is {state}: it has not ended", "任务 {job} 的状态是“{state}”：它还没有结束"),
    "environment_removed": (
        "the environment that job {job} ran in was removed by `jostle clean`: submit it anew",
        "任务 {job} 运行时的环境已被 `jostle clean` 删除：请重新提交",
    ),
    "tried_already": ("job {job} was tried again as job {new} already", "任务 {job} 已经作为任务 {new} 重试过"),
    "needs_another": (
        "job {job} comes after job {other}, which ended as {state}: try that again too, as in `jostle retry {other} {job}`",
        "任务 {job} 排在任务 {other} 之后，而后者的结果是“{state}”：请一并重试，如 `jostle retry {other} {job}`",
    ),
}


def declined(why: Mapping[str, Any], language: str) -> str:
    params, zh = dict(why["params"]), language == "zh"
    if zh and "state" in params:
        params["state"] = STATES.get(params["state"], params["state"])
    return DECLINED[why["code"]][zh].format(**params)
