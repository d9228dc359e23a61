"""What keeps anything from starting: English and Chinese, by code; {s} is what stands behind the code."""

from __future__ import annotations

HOLDS: dict[str, tuple[str, str]] = {
    "ending": ("the engine is about to end", "引擎即将停止"),
    "disk_full": (
        "the disk with jostle's state is full; free some space, and it goes on by itself",
        "存放 jostle 状态的磁盘已满；腾出空间后会自动继续",
    ),
    "disk_error": (
        "the disk with jostle's state reports errors; look at it and at your quota; once it can be written, it goes on by itself",
        "存放 jostle 状态的磁盘报告读写错误；请检查磁盘和配额，恢复后会自动继续",
    ),
    "unwritten": (
        "jostle's state is locked by another program, or read-only; when that is over, it goes on by itself",
        "无法写入 jostle 的状态：被其他程序锁定，或变为只读；恢复后会自动继续",
    ),
    "home_moved": (
        "the directory with jostle's state is not in its place; when it is back, it goes on by itself",
        "存放 jostle 状态的目录不在原处；恢复后会自动继续",
    ),
    "driver_mismatch": (
        "the NVIDIA driver was updated and its parts do not match until a reboot; running jobs are not affected",
        "NVIDIA 驱动已更新，重启前各部分版本不一致；正在运行的任务不受影响",
    ),
    "driver_starting": ("the driver is starting, {s} so far", "驱动正在启动，已 {s}"),
    "gpus_unclaimable": ("GPUs cannot be claimed in {s}", "无法占用 GPU，占用目录为 {s}"),
    "gpus_unlisted": ("the lease directory cannot be read: {s}", "无法读取占用目录 {s}"),
    "gpu_limits_unread": (
        "the lab's file of limits cannot be understood, and without it nobody knows how many you may use: {s}",
        "无法理解实验室的限额文件，不知道您可以用几张卡：{s}",
    ),
    "no_nursery": ("the process that makes shims cannot be started: {s}", "无法启动用于创建 shim 的进程：{s}"),
    "no_shim": ("no shim can be made: {s}", "无法创建 shim：{s}"),
    "nursery_died": ("the process that makes shims died; another is started", "用于创建 shim 的进程已退出，正在重新启动"),
    "nursery_silent": (
        "the process that makes shims does not answer; another is started", "用于创建 shim 的进程没有响应，正在重新启动",
    ),
    # not holds, but why the cards cannot be read
    "no_engine": ("no engine runs: `jostle up` starts one", "引擎没有运行：用 `jostle up` 启动"),
    "probe_unstarted": ("the probe cannot be started: {s}", "读取 GPU 的进程无法启动：{s}"),
    "probe_ended": ("the probe ended", "读取 GPU 的进程已退出"),
    "probe_silent": ("the probe has not answered for {s}", "读取 GPU 的进程已 {s}没有回答"),
    "probe_waits": ("the GPUs do not answer: the probe waits for the driver", "GPU 没有回答：读取进程在等待驱动"),
}

NOTHING, NO_GPU_JOB = ("Nothing starts", "暂停启动任务"), ("No job with a GPU starts", "暂停启动需要 GPU 的任务")
