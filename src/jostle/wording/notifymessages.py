"""What a person is told of notifications: a part of wording.messages."""

from __future__ import annotations

# code: (English, Chinese)
NOTIFY: dict[str, tuple[str, str]] = {
    "notify_unset": (
        "nobody is told of anything: `notify:` of config.yaml names channels, see docs/notify.md",
        "没有设置任何通知：在 config.yaml 的 `notify:` 中写明通道，见 docs/notify.md",
    ),
    "notify_runs": ("the notifier runs (pid {pid}); its log is {log}", "通知进程正在运行（pid {pid}）；其日志为 {log}"),
    "notify_stopped": (
        "no notifier runs: it comes with the engine (`jostle up`), and what waits is sent then; its log is {log}",
        "通知进程没有运行：它随引擎启动（`jostle up`），等待中的消息届时发送；其日志为 {log}",
    ),
    "notify_no_channel": ("there is no channel {name}; expected {known}", "没有通道 {name}；应为 {known}"),
    "notify_taken": ("{name}: delivered", "{name}：已送达"),
    "notify_not_taken": ("{name}: not delivered{why}", "{name}：未送达{why}"),
}
