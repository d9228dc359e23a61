"""Why a run has no value in a table of results, and what is to be known of those that count, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jostle.wording.words import STATES

# code: (English, Chinese)
ABSENCES: dict[str, tuple[str, str]] = {
    "unfinished": ("{state}, not finished", "{state}，尚未结束"),
    "failed": ("failed", "失败"),
    "failed_as": ("failed: {error_type}", "失败：{error_type}"),
    "failed_with": ("failed: exit code {exit_code}", "失败：退出码 {exit_code}"),
    "dropped": ("{state}", "{state}"),
    "dropped_for": ("{state}: {reason}", "{state}：{reason}"),
    "not_as_now": ("has not run as the file says it now", "尚未按文件现在的内容运行"),
    "no_record": ("there is no record of the run that did it", "没有完成它的那次运行的记录"),
    "unreadable": ("its log {path} cannot be read: {why}", "它的日志 {path} 无法读取：{why}"),
    "no_line": ("no line that matches", "没有匹配的行"),
    "no_key": ("no line with a JSON key {key!r}", "没有带 JSON 键 {key!r} 的行"),
    "no_line_near": ("no line that matches in its last {tail:,} bytes", "最后 {tail:,} 字节中没有匹配的行"),
    "no_key_near": (
        "no line with a JSON key {key!r} in its last {tail:,} bytes", "最后 {tail:,} 字节中没有带 JSON 键 {key!r} 的行",
    ),
    "comma": (
        "its last value has a decimal comma, or groups of digits: {text!r}", "最后的值带小数逗号或数字分组：{text!r}",
    ),
    "no_number": ("its last value is no number: {text!r}", "最后的值不是数：{text!r}"),
    "not_finite": ("its last value is {value}", "最后的值是 {value}"),
    "no_value": ("no value", "没有值"),
    "again": ("the same was run again; {winner} counts", "同样的又运行过；以 {winner} 为准"),
    "instead": ("{why}; {winner} counts", "{why}；以 {winner} 为准"),
    "anyhow": ("job {job} is {state}, and what it printed counts all the same", "任务 {job} 的状态是“{state}”，它的输出仍计入"),
    "cut": (
        "{label}: {metric} stands at the very end of the log, in a line without an end: perhaps not all of it is written",
        "{label}：{metric} 在日志的最末尾，那一行没有结束：也许还没写完",
    ),
    "codes": ("the runs that count are not all of the same code: {codes}", "计入的运行不全是同一份代码：{codes}"),
}  # fmt: skip


def absence(code: str, params: Mapping[str, Any], language: str) -> str:
    chinese = language == "zh"
    shown = dict(params)
    if "state" in shown:
        shown["state"] = STATES.get(shown["state"], shown["state"]) if chinese else shown["state"]
    if "reason" in shown:
        shown["reason"] = REASONS.get(shown["reason"], shown["reason"]) if chinese else shown["reason"].replace("_", " ")
    if isinstance(shown.get("why"), Mapping):
        shown["why"] = absence(shown["why"]["code"], shown["why"]["params"], language)
    return ABSENCES[code][chinese].format(**shown)


REASONS = {
    "cancelled": "被取消", "after_failed": "它所依赖的没有成功", "queue_failed": "队列中前面的任务失败",
    "done_before": "此前已完成",
}  # fmt: skip
"""Why a job was dropped, in a few words; the whole sentence stands with the job."""

