"""What a person is told of consoles: a part of wording.messages."""

from __future__ import annotations

# code: (English, Chinese)
CONSOLE: dict[str, tuple[str, str]] = {
    "console_url": (
        "the console: this URL is good for one login within 10 minutes (`jostle web --url` makes another). "
        "From another computer first: {tunnel}",
        "控制台：此网址 10 分钟内可登录一次（`jostle web --url` 可再生成一个）。从其他电脑访问请先运行：{tunnel}",
    ),
    "console_down": ("the console is down", "控制台已停止"),
    "console_none": ("no console runs", "没有控制台在运行"),
    "console_missing": (
        "without its console: that needs more packages, pip install 'jostle[web]'",
        "没有启动控制台：它需要更多软件包，pip install 'jostle[web]'",
    ),
    "console_off": ("without its console: JOSTLE_WEB is off", "没有启动控制台：JOSTLE_WEB 为 off"),
    "demo_short": (
        "4 simulated GPUs. alice and bob come and go; carol's desktop keeps 300 MiB on GPU 0, which bothers nobody.\n"
        "Queues `cifar` and `svhn` are each serial; `ddp` wants two cards; `probe-*` share one by memory; `flaky` fails once.",
        "4 个模拟 GPU。alice 和 bob 来来去去；carol 的桌面在 GPU 0 上占 300 MiB，不妨碍任何人。\n"
        "队列 `cifar` 和 `svhn` 各自串行；`ddp` 要两张卡；`probe-*` 按显存共用一张；`flaky` 会失败一次。",
    ),
    "demo_long": (
        "8 simulated GPUs, real processes. alice, bob and erin come and go; dave holds GPU 7 and does nothing; carol's desktop\n"
        "bothers nobody.",
        "8 个模拟 GPU，真实的进程。alice、bob 和 erin 来来去去；dave 占着 GPU 7 却什么也不做；carol 的桌面不妨碍任何人。",
    ),
    "demo_console": ("its console answers on {url}: {n} cards", "其控制台在 {url} 应答：{n} 张卡"),
    "demo_outcome": (
        "\n{succeeded} of {jobs} jobs succeeded in {took} s with {tries} runs; whole cards given out twice: {clashes}.\n"
        "Next: jostle up --gpus sim:4x24, jostle add -- CMD, jostle ps, jostle why ID; on a real server leave out --gpus.",
        "\n{jobs} 个任务中 {succeeded} 个成功，用时 {took} 秒，共运行 {tries} 次；整卡被重复分配：{clashes} 次。\n"
        "接下来：jostle up --gpus sim:4x24、jostle add -- CMD、jostle ps、jostle why ID；在真实服务器上去掉 --gpus。",
    ),
    "demo_login": ("its console, good for one login: {url}", "其控制台（可登录一次）：{url}"),
    "demo_ctrl_c": ("Ctrl-C ends it and all that it has started", "按 Ctrl-C 结束，所启动的一切随之结束"),
    "demo_ends": ("ending its engine, console and jobs; nothing is left behind", "正在结束其引擎、控制台和任务；不留下任何东西"),
    "console_port": (
        "warning: port {taken} is taken by another program, perhaps a neighbour's: this console is on {port}",
        "警告：端口 {taken} 已被别的程序占用，可能是他人的：本控制台在 {port}",
    ),
    "console_port_own": (
        "port {taken} is that of another console of yours: this one is on {port}",
        "端口 {taken} 上是您的另一个控制台：本控制台在 {port}",
    ),
    "console_anew": (
        "the console on port {port} has started anew; its workspace: {path}",
        "端口 {port} 上的控制台已重新启动；工作区：{path}",
    ),
    "console_secret": (
        "{path}: secret is not used: the token lies in a file of its own (`jostle web --token`)",
        "{path}：secret 不起作用：令牌保存在单独的文件中（`jostle web --token`）",
    ),
    "console_address": (
        "{path}: {key} is not used: who is to reach the console is said by options (`jostle web --bind`)",
        "{path}：{key} 不起作用：谁能访问控制台由选项指定（`jostle web --bind`）",
    ),
    "console_place": ("{path}: {key} is not used: it is always {fixed}", "{path}：{key} 不起作用：始终是 {fixed}"),
    "console_setting": ("{path}: {key} is not used: expected {expected}", "{path}：{key} 不起作用：应为 {expected}"),
    "console_replaced": (
        "the console on port {port} has started anew: the one that ran was of version {version}",
        "端口 {port} 上的控制台已重新启动：原先运行的是版本 {version}",
    ),
    "console_no_workspace": (
        "note: {path} is no workspace yet: the first config that is saved in the console makes it one",
        "提示：{path} 还不是工作区：在控制台中保存第一个配置后即成为工作区",
    ),
    "scheduler_runs": ("it runs already: process {pid}, batch {batch}", "它已在运行：进程 {pid}，批次 {batch}"),
    "scheduler_begun": (
        "the scheduler of config {n} ({mode}) runs: process {pid}", "配置 {n}（{mode}）的调度器已启动：进程 {pid}",
    ),
    "scheduler_stopping": ("scheduler {pid} is stopping its tasks", "调度器 {pid} 正在停止它的任务"),
    "scheduler_stopped": ("scheduler {pid} has ended", "调度器 {pid} 已结束"),
    "scheduler_log": ("cannot write {path}: {why}", "无法写入 {path}：{why}"),
    "scheduler_not": ("config {n} of {mode} mode does not run", "{mode} 模式的配置 {n} 没有在运行"),
    "scheduler_no_tasks": ("{path} holds no task: nothing to do", "{path} 里没有任务：无事可做"),
    "scheduler_ended": ("the scheduler ended at once ({code}): {last}", "调度器随即结束（{code}）：{last}"),
    "scheduler_gone": ("process {pid} is no scheduler of ours", "进程 {pid} 不是我们的调度器"),
    "console_line": (
        "{at}  pid {pid}  workspace {path}  socket {socket}  since {since}",
        "{at}  pid {pid}  工作区 {path}  套接字 {socket}  启动于 {since}",
    ),
}
