"""What `doctor` says of each finding, and its advice."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from jostle.units import show_instant, show_size
from jostle.wording.notices import trouble
from jostle.wording.reasons import hold_text, language
from jostle.wording.sentences import continued, on_hold, set_aside
from jostle.wording.text import count, message

Words = tuple[str, str]

HOME = ("{path} on {kind}, mode {mode:o}", "{path}，位于 {kind}，权限 {mode:o}")
LEASES = ("{path}, owner uid {uid}, mode {mode:o}", "{path}，属主 uid {uid}，权限 {mode:o}")
ENGINE = ("pid {pid}, version {version}", "pid {pid}，版本 {version}")
PYTHON = ("{version} at {path}", "{version}，位于 {path}")
FREE = ("{free_mib} free", "剩余 {free_mib}")
ERROR = ("{error}", "{error}")
CLOCK = ("{at} {zone}", "{at} {zone}")
NOTHING = ("", "")
NOTIFY_TEST = ("mend that; `jostle notify test {channel}` tries it", "请排除；`jostle notify test {channel}` 可试发")

# code: (what was found, advice), each (English, Chinese)
FOUND: dict[str, tuple[Words, Words]] = {
    "error": (ERROR, ("mend that, and ask again", "请排除后再检查")),
    "check_failed": (("the check itself failed: {error}", "检查本身失败：{error}"), ("please report this", "请报告此问题")),
    "python": (PYTHON, NOTHING),
    "python_old": (PYTHON, ("jostle needs 3.10 or newer", "jostle 需要 3.10 或更新的版本")),
    "pidfd": (("available", "可用"), NOTHING),
    "no_pidfd": (
        ("not available ({error})", "不可用（{error}）"),
        ("ends of jobs are seen within a second instead of at once", "任务结束会在一秒内被发现，而不是立即"),
    ),
    "home": (HOME, NOTHING),
    "home_open": (HOME, ("others can read your jobs: chmod 700 {path}", "他人可以读取您的任务：chmod 700 {path}")),
    "home_way": (HOME, ERROR),
    "home_network": (HOME, ("set JOSTLE_HOME to a directory on a local disk", "请把 JOSTLE_HOME 设为本地磁盘上的目录")),
    "home_volatile": (
        HOME,
        (
            "everything is forgotten at a reboot; set JOSTLE_HOME to a directory on a disk",
            "重启后会全部丢失；请把 JOSTLE_HOME 设为磁盘上的目录",
        ),
    ),
    "disk": (FREE, NOTHING),
    "disk_low": (FREE, ("make room soon: `jostle clean`", "请尽快腾出空间：`jostle clean`")),
    "disk_full": (
        ("{free_mib} free, {files} inodes", "剩余 {free_mib}，{files} 个 inode"),
        ("make room (`jostle clean`): nothing starts on a full disk", "请腾出空间（`jostle clean`）：磁盘满时任何任务都不会启动"),
    ),
    "database": (("sound, {size_mib}", "完好，{size_mib}"), NOTHING),
    "no_database": (("none yet", "尚未建立"), NOTHING),
    "database_missing": (
        ("missing", "丢失"),
        (
            "put it back, or `jostle doctor --accept` if you mean to begin anew",
            "请放回原处；如果确实要重新开始，用 `jostle doctor --accept`",
        ),
    ),
    "database_no_file": (
        ("{path} is no file", "{path} 不是文件"),
        ("move it away and put the database, or a copy, in its place", "请移走它，并把数据库或其副本放到原处"),
    ),
    "database_older": (
        ERROR,
        (
            "put the newer one back, or `jostle doctor --accept` takes this one",
            "请放回较新的；或用 `jostle doctor --accept` 接受这一个",
        ),
    ),
    "database_open": (("mode {mode:o}", "权限 {mode:o}"), ("chmod 600 {path}", "chmod 600 {path}")),
    "database_damaged": (
        ERROR,
        ("`jostle doctor --salvage` writes what can be read into a new file", "`jostle doctor --salvage` 把能读出的写入新文件"),
    ),
    "settings": (("config.yaml sets {keys}", "config.yaml 设置了 {keys}"), NOTHING),
    "no_settings": (("no config.yaml: all defaults", "没有 config.yaml：全部为默认值"), NOTHING),
    "settings_wrong": (("{error}{more}", "{error}{more}"), ("mend it, then `jostle up`", "请改正，然后 `jostle up`")),
    "engine": (ENGINE, NOTHING),
    "no_engine": (("none runs; any verb that needs one starts it", "没有运行；需要它的命令会启动它"), NOTHING),
    "engine_other": (
        ENGINE,
        (
            "this command is version {own}: `jostle up` replaces the engine, jobs do not notice",
            "本命令的版本是 {own}：`jostle up` 会替换引擎，任务不受影响",
        ),
    ),
    "engine_holds": (
        (ENGINE[0] + "; {on_hold}", ENGINE[1] + "；{on_hold}"),
        ("mend that: it goes on by itself", "请排除：之后会自动继续"),
    ),
    "engine_gone": (
        ("none runs; jobs of yours that have not ended: {jobs:,}", "没有运行；您尚未结束的任务：{jobs:,} 个"),
        ("`jostle up` starts one; what runs goes on meanwhile", "用 `jostle up` 启动；正在运行的不受影响"),
    ),
    "engine_silent": (
        ("pid {pid} does not answer: {why}", "进程 {pid} 没有回答：{why}"),
        (
            "if it stays so: `kill -9 {pid}`, then `jostle up`; jobs do not notice",
            "若一直如此：`kill -9 {pid}`，然后 `jostle up`；任务不受影响",
        ),
    ),
    "gpus": (("{gpus} by {spec}, read in {took_ms:.0f} ms", "{spec} 的 {gpus}，读取用时 {took_ms:.0f} ms"), NOTHING),
    "gpus_error": (
        ERROR,
        (
            "see whether `nvidia-smi` works: it asks the same driver; jobs without a GPU run all the same",
            "请看 `nvidia-smi` 能否工作：它问的是同一个驱动；不用 GPU 的任务照常运行",
        ),
    ),
    "driver_silent": (
        ("{hold}", "{hold}"),
        (
            "if `nvidia-smi` hangs, too, an admin has to reset the driver or reboot; running jobs go on, none starts on a GPU",
            "如果 `nvidia-smi` 也卡住，需由管理员重置驱动或重启；正在运行的任务继续，需要 GPU 的任务不会启动",
        ),
    ),
    "cards": (("none of {gpus} is lost or set aside", "{gpus} 中没有丢失或被隔离的"), NOTHING),
    "no_cards": (("none is known", "没有已知的卡"), NOTHING),
    "cards_out": (("{out}", "{out}"), ("{mend}; the other cards are used", "{mend}；其余的卡照常使用")),
    "driver_starting": (
        ("{hold}", "{hold}"),
        ("persistence mode keeps it ready (an admin: nvidia-smi -pm 1)", "持久模式可让驱动保持就绪（管理员：nvidia-smi -pm 1）"),
    ),
    "leases": (LEASES, NOTHING),
    "leases_missing": (
        ("{path} is no directory", "{path} 不是目录"),
        (
            "make it (`mkdir -m 1777 {path}`), or unset JOSTLE_LEASE_DIR: nothing starts on a GPU until then",
            "请建立它（`mkdir -m 1777 {path}`），或取消 JOSTLE_LEASE_DIR：在此之前需要 GPU 的任务不会启动",
        ),
    ),
    "leases_closed": (
        LEASES,
        ("an admin can prepare one: mkdir -m 1777 /run/lock", "管理员可以准备一个：mkdir -m 1777 /run/lock"),
    ),
    "leases_of_another": (
        LEASES,
        (
            "uid {uid} could remove your claims, and put others there: set JOSTLE_LEASE_DIR to one of root's; "
            "an admin can prepare it (mkdir -m 1777)",
            "uid {uid} 可以删除您的占用声明并放入别的：请把 JOSTLE_LEASE_DIR 设为 root 的目录；管理员可以准备（mkdir -m 1777）",
        ),
    ),
    "leases_open": (
        LEASES,
        (
            "others could remove your claims: an admin should chmod 1777 {path}",
            "他人可以删除您的占用声明：管理员应执行 chmod 1777 {path}",
        ),
    ),
    "claims_removed": (
        (
            "claims {whose} in {path} were removed while they were held, last at {at}",
            "{path} 中{whose}的占用声明在占用期间被删除，最近一次在 {at}",
        ),
        (
            "tell whatever cleans temporary files to spare {path}/jostle-* (systemd-tmpfiles: a line `x {path}/jostle-*`)",
            "请让清理临时文件的程序跳过 {path}/jostle-*（systemd-tmpfiles：加一行 `x {path}/jostle-*`）",
        ),
    ),
    "no_notify": (("nobody is told of anything", "没有设置通知"), NOTHING),
    "notify": (("{channels}", "{channels}"), NOTHING),
    "notify_wrong": (("channel {channel}: {trouble}", "通道 {channel}：{trouble}"), NOTIFY_TEST),
    "notify_failing": (
        (
            "channel {channel} since {since}: {trouble}; {waiting} wait",
            "通道 {channel} 自 {since} 起：{trouble}；{waiting} 条等待",
        ),
        NOTIFY_TEST,
    ),
    "notify_damaged": (
        ("the spool of channel {channel} cannot be read", "通道 {channel} 的队列文件无法读取"),
        (
            "the notifier puts it aside when it starts, and begins with what happens then",
            "通知进程启动时会将其移开，并从那时起重新开始",
        ),
    ),
    "notify_stopped": (
        ("no notifier runs beside the engine", "引擎在运行，但通知进程没有运行"),
        ("`jostle up` starts it; {path} may tell why it does not stay", "`jostle up` 可启动它；{path} 或许写明了原因"),
    ),
    "notify_dropped": (
        ("{dropped} messages were dropped until now", "至今有 {dropped} 条消息被丢弃"),
        ("`jostle notify` tells why", "`jostle notify` 会说明原因"),
    ),
    "bash": (("{path}", "{path}"), NOTHING),
    "no_bash": (
        ("not on PATH", "不在 PATH 中"),
        ("commands of job files are run by bash: install it", "任务文件的命令由 bash 执行：请安装它"),
    ),
    "logout": (("processes go on after logout", "退出登录后进程继续运行"), NOTHING),
    "no_systemd": (("no systemd: nothing ends processes at logout", "没有 systemd：退出登录时不会结束进程"), NOTHING),
    "lingering": (("lingering is on: jobs go on after logout", "已开启 linger：退出登录后任务继续运行"), NOTHING),
    "logout_ends_all": (
        ("systemd-logind ends all your processes at logout", "systemd-logind 会在退出登录时结束您的所有进程"),
        ("run `loginctl enable-linger`", "请执行 `loginctl enable-linger`"),
    ),
    "clock": (CLOCK, NOTHING),
    "clock_behind": (
        CLOCK,
        (
            "the clock is years behind; times shown will be wrong, waits will not",
            "时钟落后多年；显示的时间会不对，等待时间不受影响",
        ),
    ),
    "clock_set_back": (
        ("{at} {zone}, before the last change of the database", "{at} {zone}，早于数据库的最后改动"),
        ("the clock was set back: times may be out of order", "时钟被调回过：时间顺序可能错乱"),
    ),
}


def worded(finding: Mapping[str, Any], lang: str) -> dict[str, Any]:
    """The check in words: what was found, and the advice."""
    at, params = language(lang), finding["params"]
    sentence, advice = FOUND[finding["code"]]
    shown = {**params, **_shown(params, lang)}
    texts = {"found": sentence[at].format(**shown), "advice": advice[at].format(**shown)}
    return {"name": finding["name"], "verdict": finding["verdict"], **texts}


def _shown(params: Mapping[str, Any], lang: str) -> dict[str, Any]:
    zh = bool(language(lang))
    shown: dict[str, Any] = {key: show_size(value) for key, value in params.items() if key.endswith("_mib")}
    if "kind" in params:
        shown["kind"] = params["kind"] or ("未知的文件系统" if zh else "an unknown file system")
    if "keys" in params:
        shown["keys"] = ", ".join(params["keys"]) or ("（空）" if zh else "nothing")
    if "more" in params:
        more = "（另有 {} 处）" if zh else " (and {} more)"
        shown["more"] = more.format(params["more"]) if params["more"] else ""
    if "count" in params:
        shown["gpus"] = f"{params['count']} 张 GPU" if zh else count(params["count"], "GPU")
    if params.get("trouble"):
        shown["trouble"] = trouble(params["trouble"], lang)
    if "channels" in params:
        shown["channels"] = ", ".join(params["channels"])
    if "since" in params:
        shown["since"] = show_instant(params["since"])
    if "hold" in params:
        shown |= {"hold": hold_text(params["hold"], language(lang)), "on_hold": continued(on_hold(params["hold"], lang))}
    if "condition" in params:
        shown["why"] = message(params["condition"], lang, pid=params["pid"])
    if "unread" in params:
        shown |= _out(params, lang)
    if "ours" in params:
        ours, theirs = ("您的运行", f" uid {params['uid']} ") if zh else ("of your runs", f"of uid {params['uid']}")
        shown["whose"] = ours if params["ours"] else theirs
    if "at" in params:
        local = time.localtime(params["at"])
        shown |= {"at": time.strftime("%Y-%m-%d %H:%M:%S", local), "zone": time.strftime("%Z", local)}
    return shown


def _out(params: Mapping[str, Any], lang: str) -> dict[str, str]:
    """Cards that are not used: what is said of each, and what helps."""
    zh = bool(language(lang))
    states = {"lost": "丢失", "unreadable": "无法读取"} if zh else {"lost": "lost", "unreadable": "unreadable"}
    unread = [
        f"GPU {gpu['index']} {'' if zh else 'is '}{states[gpu['state']]}{'：' if zh else ': '}{gpu['error']}"
        for gpu in params["unread"]
    ]
    lost, aside = (",".join(str(gpu["index"]) for gpu in cards) for cards in (params["unread"], params["faulty"].values()))
    helps = []
    if lost:
        reset = f"nvidia-smi --gpu-reset -i {lost}"
        helps.append(f"管理员可用 `{reset}` 重置，或重启" if zh else f"an admin can reset it (`{reset}`) or reboot")
    if aside:
        include = f"jostle gpus --include {aside}"
        helps.append(f"修好后用 `{include}` 重新使用" if zh else f"once it is mended, `{include}` uses it again")
    joint = "；" if zh else "; "
    return {"out": joint.join([*unread, *set_aside(params, lang)]), "mend": joint.join(helps)}
