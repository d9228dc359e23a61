"""`jostle compete [DIR]`: runs the tasks of a workspace, as the source system's `main_gpu.py` and `main_gpus.py` did (SPEC A33).

An attached client like `run`: Ctrl-C or SIGTERM stops its tasks and cleans up; kill -9 or a hang-up leaves them running, and the
same command attaches to them again. compete.resume finds or makes the batch, compete.scheduler follows it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from jostle.cli import render
from jostle.cli.parse import Namespace, Parser
from jostle.cli.terminal import Terminal

if TYPE_CHECKING:
    from jostle.formats.workspace import Workspace


def compete_options(p: Parser) -> None:
    p.example("""
        cd scripts/compete_gpu_retry && jostle compete       command/command_gpu.txt with config/gpu_manage.yaml
        jostle compete --mode multi                          command/command_gpus.txt
        jostle compete --config-index 1                      command/command_gpu_1.txt (the first config has index 0)
        jostle compete --command-file command_bk.txt         any other file
        nohup jostle compete > /dev/null 2>&1 &              in the background; then: tail -f logs/compete_gpu.log
        jostle compete --status                              queues, GPUs and running tasks (also: kill -USR1 PID)
        jostle compete --gpus sim:8x24                       try it on 8 simulated GPUs of 24 GB""")
    p.epilog = f"{p.epilog}\n\n{NOTES}"
    p.add_argument("directory", nargs="?", default=".", metavar="DIR", help="the workspace (default: this directory)")
    p.mode_option("one GPU per task, or several (default: as the file's name tells)")
    p.add_argument("--command-file", metavar="F", help="the tasks (default: command/command_gpu.txt or command.txt)")
    p.add_argument("--config-file", metavar="F", help="the settings (default: config/gpu_manage.yaml or config.yaml)")
    p.number("--config-index", help="command_gpu_N.txt; 0 is command_gpu.txt")
    p.add_argument("--lenient", action="store_true", help="skip bad blocks with a warning instead of refusing the file")
    p.add_argument("--fresh", action="store_true", help="cancel an unfinished batch of these tasks and start over")
    p.add_argument("--status", action="store_true", help="print how the running schedulers of the workspace stand, and leave")
    p.number("--seed", help="makes the random order of a new batch repeatable")
    p.devices_option("the set of devices")
    p.set_defaults(json=False)


NOTES = """\
A task is a block of lines; blank lines separate tasks:     in multi mode:
  1                                     queue                 1
  bash {work_dir}/train.sh car          commands …            bash {work_dir}/train.sh car
  20                                    GB of GPU memory      2     GPUs
                                                              20    GB per GPU
Tasks of a queue run one after another, queues beside each other. A failed task is tried again; its queue waits.
Ctrl-C or `kill PID` stops the tasks. After kill -9 or a lost terminal they run on: the same command attaches again.
Files: logs/compete_gpu.log, logs/tasks/ (output of each task), logs/state/PID.json (also in logs/status/),
logs/uni_id.json.
The exit status is 0 if all tasks succeeded. An edited config/gpu_manage.yaml takes effect at once."""


def compete(args: Namespace, terminal: Terminal) -> int:
    from jostle.formats import workspace

    which = {
        "mode": args.mode, "command_file": args.command_file, "config_file": args.config_file, "index": args.config_index
    }  # fmt: skip
    if args.status:
        this_config = bool(args.mode or args.command_file or args.config_index is not None)
        return show(terminal, workspace.find(args.directory, **which), this_config)
    from jostle.compete.resume import CompeteOptions
    from jostle.compete.scheduler import run

    tasks = workspace.tasks(args.directory, **which, lenient=args.lenient)
    options = CompeteOptions(fresh=args.fresh, seed=args.seed, devices=args.gpus)
    if terminal.interactive:
        from jostle.cli.watching import Live

        return run(terminal, *tasks, options, say=terminal.say, picture=lambda progress: Live(terminal, progress))
    return run(terminal, *tasks, options, echo=echo)


def echo(lines: list[str]) -> None:
    data = ("\n".join(lines) + "\n").encode(sys.stdout.encoding or "utf-8", "backslashreplace")
    while data:
        data = data[os.write(1, data) :]


def show(terminal: Terminal, space: Workspace, this_config: bool) -> int:
    """The status of each scheduler of the workspace that runs here; of `one` config, if one was named."""
    from jostle.compete.status import schedulers

    texts = ["\n".join(map(render.plain, lines)) for lines in schedulers(terminal, space, this_config=this_config)]
    if texts:
        terminal.put("\n\n".join(texts))
        return 0
    left = terminal.reader.unfinished_batch(space.key)
    terminal.tell("no_scheduler" if left is None else "no_scheduler_left", root=space.root, batch=left)
    return 1
