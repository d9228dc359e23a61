"""What is sent to people who do not look: titles and texts of notifications, and why one was not delivered.

Rules: everything that anybody chose (names, reasons of programs) is shown as one line of bounded length. Plain text: no markup.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from jostle import units
from jostle.wording.reasons import language as column
from jostle.wording.sentences import beside, continued, states, worded
from jostle.wording.text import count, gpus, listed, plain

Entry = Mapping[str, Any]
Words = tuple[str, str]
LONGEST_NAME = 80
SHOWN = 30  # lines of one kind; beyond that only their number

LINES: dict[str, Words] = {
    "failed": ("{what} {job}{name} failed{after}{why}", "{what} {job}{name} 失败{after}{why}"),
    "succeeded": ("{what} {job}{name} {succeeded}{after}", "{what} {job}{name} {succeeded}{after}"),
    "batch_ended": ("batch {batch}{name} has ended{after}: {counts}", "批次 {batch}{name} 已结束{after}：{counts}"),
    "quarantined": ("GPU {gpu}: {why}", "GPU {gpu}：{why}"),
    "lost": ("GPU {gpu} is lost: the driver does not give it any more", "GPU {gpu} 丢失：驱动不再提供它"),
    "unreadable": ("GPU {gpu} cannot be read", "GPU {gpu} 无法读取"),
    "free": ("{cards} free: GPU {gpus}", "{cards}空闲：GPU {gpus}"),
    "grown": ("{what} {job}{name} has grown{to}", "{what} {job}{name} 已扩展{to}"),
    "shrunk": ("{what} {job}{name} has shrunk{to}", "{what} {job}{name} 已缩减{to}"),
    "resized": ("{what} {job}{name} was resized{to}", "{what} {job}{name} 的卡数已改变{to}"),
    "idle": (
        "{what} {job}{name} holds GPU {gpus} and does not use it{since}",
        "{what} {job}{name} 占用 GPU {gpus} 但没有使用{since}",
    ),
    "test": ("this is a test of the channel {channel}", "这是通道 {channel} 的测试消息"),
}
HEADS: dict[str, Words] = {
    "failed": ("{n:job} failed", "{n} 个任务失败"), "finished": ("{n:job} succeeded", "{n} 个任务成功"),
    "batch": ("{n:batch} ended", "{n} 个批次结束"), "free": ("GPUs are free", "有 GPU 空闲"),
    "gpu": ("{n:GPU} in trouble", "{n} 张 GPU 有故障"), "resized": ("{n:change} of size", "{n} 次卡数变化"),
    "idle": ("{n:job} idle on GPUs", "{n} 个任务闲占 GPU"), "test": ("a test", "测试"),
}  # fmt: skip
"""Of several of one kind."""
PLURALS = {"batch": "batches", "change": "changes", "job": "jobs", "GPU": "GPUs"}

TROUBLES: dict[str, Words] = {
    "secret_unset": (
        "the variable {name} is not set where the notifier was started; `jostle down` and `jostle up` start it anew",
        "启动通知进程的环境中没有变量 {name}；`jostle down` 后 `jostle up` 可重新启动",
    ),
    "secret_odd": ("the secret of {path} is empty or not one line", "{path} 中的密钥为空或不是一行"),
    "secret_unread": ("the secret {path} cannot be read: {error}", "无法读取密钥 {path}：{error}"),
    "secret_open": (
        "the secret {path} is not a private file (mode {mode}): chmod 600 {path}",
        "密钥 {path} 不是私有文件（权限 {mode}）：chmod 600 {path}",
    ),
    "secret_base64": ("the secret begins with whsec_ but is no base64 after it", "密钥以 whsec_ 开头，但其后不是 base64"),
    "url_odd": ("the address cannot be used: expected https://HOST/PATH", "地址无法使用：应为 https://HOST/PATH"),
    "url_scheme": ("the address is neither https nor http", "地址既不是 https 也不是 http"),
    "url_clear": (
        "the address of {host} is not https; notify.allow_private can name hosts of your own network",
        "{host} 的地址不是 https；自己网络的主机可写入 notify.allow_private",
    ),
    "url_port": ("port {port} of {host} is not one for HTTP", "{host} 的端口 {port} 不用于 HTTP"),
    "address_private": (
        "{host} is {address}, on this host or in a private network: name it in notify.allow_private if that is meant",
        "{host} 是 {address}，属于本机或内网：如确需如此，请写入 notify.allow_private",
    ),
    "address_never": ("{host} is {address}, where nothing is ever sent", "{host} 是 {address}，从不向其发送"),
    "unresolved": ("the name {host} cannot be found", "找不到名称 {host}"),
    "unresolved_yet": ("the name {host} was not found in time", "查找名称 {host} 超时"),
    "unreachable": ("{host} port {port} cannot be reached: {error}", "无法连接 {host} 端口 {port}：{error}"),
    "too_slow": ("{host} did not answer in time", "{host} 未及时回答"),
    "broken_off": ("the connection to {host} broke off: {error}", "与 {host} 的连接中断：{error}"),
    "no_answer": ("{host} hung up before it answered", "{host} 未回答就断开"),
    "ca_unread": ("the certificates {path} cannot be read: {error}", "无法读取证书 {path}：{error}"),
    "untrusted": ("TLS with {host} failed: {error}", "与 {host} 的 TLS 失败：{error}"),
    "no_starttls": ("{host} offers no STARTTLS, so nothing was sent", "{host} 不提供 STARTTLS，因此没有发送"),
    "no_login": ("{host} takes no login", "{host} 不接受登录"),
    "login_ascii": ("{host} takes no login with such characters", "{host} 不接受含此类字符的登录"),
    "login_refused": ("{host} refused the login of {user} ({number})", "{host} 拒绝 {user} 登录（{number}）"),
    "smtp_refused": ("{host} refused ({number})", "{host} 拒绝（{number}）"),
    "recipients_refused": ("{host} refused all recipients ({number})", "{host} 拒绝所有收件人（{number}）"),
    "message_refused": ("{host} refused the message ({number})", "{host} 拒收消息（{number}）"),
    "redirected": (
        "{host} wants us elsewhere ({status}): redirects are not followed",
        "{host} 要求转到别处（{status}）：不跟随重定向",
    ),
    "http_status": ("{host} answered {status}", "{host} 回答 {status}"),
    "said_no": ("{host} said no (code {number})", "{host} 拒绝（代码 {number}）"),
    "apprise_missing": ("it needs apprise: pip install 'jostle[apprise]'", "需要 apprise：pip install 'jostle[apprise]'"),
    "apprise_odd": ("apprise does not understand its address", "apprise 不认识其地址"),
    "apprise_refused": (
        "apprise did not deliver it, or its address is private and notify.allow_private does not name the host",
        "apprise 未能送达，或其地址属于内网而 notify.allow_private 没有写明",
    ),
    "failed_inside": ("an error of our own ({error}): please report it", "自身错误（{error}）：请报告"),
    "too_old": ("it could not be delivered for {age}", "{age}内未能送达"),
    "refused_often": ("it was refused {tries} times", "被拒绝 {tries} 次"),
}


def trouble(entry: Entry, language: str) -> str:
    """Why a message was not delivered."""
    at = column(language)
    values = {key: plain(str(value))[:200] for key, value in entry["params"].items()}
    if "age" in entry["params"]:
        values["age"] = units.show_duration(entry["params"]["age"])
    return TROUBLES[entry["code"]][at].format(**values) if entry["code"] in TROUBLES else plain(str(entry["code"]))


def line(entry: Entry, language: str) -> str:
    """One happening in a sentence."""
    at = column(language)
    return LINES[entry["event"]][at].format(**{**entry, **_shown(entry, language)})


def _shown(entry: Entry, language: str) -> dict[str, Any]:
    zh = bool(column(language))
    name = short(entry.get("name") or "")
    shown: dict[str, Any] = {"name": (f"（{name}）" if zh else f" ({name})") if name else "", "why": _why(entry, language)}
    held = bool(entry.get("allocation"))
    shown["what"] = ("分配" if held else "任务") if zh else "allocation" if held else "job"
    shown["succeeded"] = ("已释放" if held else "成功") if zh else "was released" if held else "succeeded"
    for key, words in (("after", (" after {}", "，历时 {}")), ("since", (" for {}", "，已 {}"))):
        shown[key] = words[zh].format(units.show_duration(entry[f"{key}_s"])) if entry.get(f"{key}_s") is not None else ""
    if "counts" in entry:
        shown["counts"] = listed(states(entry["counts"], language), language) or ("0 个任务" if zh else "no jobs")
    cards = entry.get("gpus") or []
    some = f"{len(cards)} 张 GPU " if zh else f"{count(len(cards), 'GPU')} {'is' if len(cards) == 1 else 'are'}"
    to = f"，现有 {len(cards)} 张 GPU（{gpus(cards)}）" if zh else f" to {count(len(cards), 'GPU')} ({gpus(cards)})"
    return {**shown, "gpus": gpus(cards), "cards": some, "to": to if cards else ""}


def _why(entry: Entry, language: str) -> str:
    """After a colon, where it is not a whole sentence of its own."""
    zh = bool(column(language))
    reason, code = entry.get("reason"), entry.get("exit_code")
    text = because(reason, language) if reason else plain(entry.get("error_type") or "")
    if not text and code is not None:
        text = f"退出码 {code}" if zh else f"exit code {code}"
    return text if entry["event"] == "quarantined" or not text else ("：" if zh else ": ") + text


def because(reason: Entry, language: str) -> str:
    """A reason after a colon."""
    return plain(continued(beside(worded(reason, language))))[:200].rstrip(".。")


def short(name: str) -> str:
    shown = plain(name)
    return shown if len(shown) <= LONGEST_NAME else shown[: LONGEST_NAME - 1] + "…"


def head(about: str, entries: Sequence[Entry], language: str) -> str:
    """`3 jobs failed`; of one what it says itself."""
    at, n = column(language), len(entries)
    if n == 1:
        return line(entries[0], language)
    words = HEADS[about][at]
    for noun, many in PLURALS.items():
        words = words.replace(f"{{n:{noun}}}", f"{n:,} {noun if n == 1 else many}")
    return words.replace("{n}", f"{n:,}")


def title(groups: Mapping[str, Sequence[Entry]], host: str, language: str) -> str:
    heads = [head(about, entries, language) for about, entries in groups.items()]
    return f"[jostle {plain(host)[:40]}] " + listed(heads, language)


def body(groups: Mapping[str, Sequence[Entry]], host: str, at: float, language: str, notes: Sequence[str] = ()) -> str:
    """Each kind by itself; of a batch what failed in it, and its table."""
    parts = [*notes]
    for about, entries in groups.items():
        lines = [] if len(entries) == 1 else [head(about, entries, language) + ("：" if column(language) else ":")]
        indent = "" if len(entries) == 1 else "  "
        for entry in entries[:SHOWN]:
            lines.append(indent + line(entry, language))
            lines += [f"{indent}  {text}" for text in _details(entry, language)]
        if len(entries) > SHOWN:
            lines.append(indent + more(len(entries) - SHOWN, language))
        parts.append("\n".join(lines))
    parts.append(f"{plain(host)} · {time.strftime('%Y-%m-%d %H:%M:%S %z', time.localtime(at))}")
    return "\n\n".join(parts)


def _details(entry: Entry, language: str) -> list[str]:
    failed = entry.get("failed") or []
    lines = [line(one, language) for one in failed]
    if entry.get("more_failed"):
        lines.append(more(entry["more_failed"], language))
    table = entry.get("table") or ""
    return [*lines, *([""] if lines and table else []), *(plain(row)[:300].rstrip() for row in table.split("\n") if table)]


def more(n: int, language: str) -> str:
    return f"…… 还有 {n:,} 个" if column(language) else f"… and {n:,} more"


def dropped(n: int, why: Entry, language: str) -> str:
    reason = trouble(why, language)
    if column(language):
        return f"此前有 {n:,} 条消息被丢弃：{reason}。"
    return f"{count(n, 'earlier message')} {'was' if n == 1 else 'were'} dropped: {reason}."


def gone(language: str) -> str:
    """Events were removed before anybody read them."""
    return "有些事件在通知之前已被清除。" if column(language) else "Some events were removed before they could be told."


def channel_cells(channel: Entry) -> tuple[str, ...]:
    """A row of `notify status`."""
    counts = (str(channel["waiting"]), str(channel["dropped"]))
    sent = (str(channel["sent"]), units.show_instant(channel["sent_at"]))
    return channel["name"], channel["kind"], channel["host"] or "-", *sent, *counts, ", ".join(channel["events"])


def troubled(channel: Entry, language: str) -> list[str]:
    """What is wrong with a channel, a line each."""
    zh, lines = bool(column(language)), []
    if channel["flaw"]:
        lines.append(trouble(channel["flaw"], language))
    if channel["damaged"]:
        lines.append("其队列文件无法读取" if zh else "its spool cannot be read")
    if channel["error"] and channel["failing_since"] is not None:
        since, next_at = units.show_instant(channel["failing_since"]), units.show_instant(channel["next_at"])
        again = "" if channel["next_at"] is None else f"；{next_at} 重试" if zh else f"; tried again at {next_at}"
        words = f"自 {since} 起：" if zh else f"since {since}: "
        lines.append(words + trouble(channel["error"], language) + again)
    if channel["dropped"] and channel["dropped_why"]:
        lines.append(dropped(channel["dropped"], channel["dropped_why"], language))
    return [f"{channel['name']}{'：' if zh else ': '}{text}" for text in lines]
