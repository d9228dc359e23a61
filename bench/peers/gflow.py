"""gflow (PyPI: runqd): a GPU queue in Rust, which decides at each poll of NVML.

Measured with the shortest poll it accepts and with its default way to run jobs, in tmux (its other way, plain
processes, was slower still).
"""

from __future__ import annotations

import os
import shutil
import socket

from peers import driver
from peers.base import Missing, Peer
from peers.install import in_venv
from scene import Scene, until
from tasks import Task

CONFIG = """[daemon]
host = "127.0.0.1"
port = {port}
gpu_poll_interval_secs = 1
[executor]
type = "tmux"
"""


class Gflow(Peer):
    name = "gflow"
    note = "runqd 0.4.18, tmux, polls each second (default: 10 s), on a pretended driver"
    can = frozenset({"hold", "one", "status", "multi"})
    seconds_per_task = 5.0

    @classmethod
    def prepare(cls) -> None:
        driver.library_dir()
        if not shutil.which("tmux"):
            raise Missing("it runs jobs in tmux, which is not installed")
        cls.bin = os.path.dirname(in_venv("gflow", "runqd==0.4.18", "gflowd"))
        works(cls)

    def start(self, slots: int, held: bool = False) -> None:
        self.slots, self.cards = slots, self.scene.path("cards.json")
        driver.write_cards(self.cards, slots, busy=held)
        self._furnish_home()
        self.server = self.scene.start([self.tool("gflowd")])
        until(self._answers, 20.0, "gflowd", step=0.2)

    def _furnish_home(self) -> None:
        """A home of its own, so that nothing of the user's is read or written."""
        home = self.scene.path("h")
        for part in (".config/gflow", ".local/share", "run", "tmux"):
            os.makedirs(os.path.join(home, part), mode=0o700)
        with open(os.path.join(home, ".config/gflow/gflow.toml"), "w") as f:
            f.write(CONFIG.format(port=free_port()))
        with open(os.path.join(home, ".bash_profile"), "w") as f:
            f.write(f"PATH={self.bin}:$PATH\n")
        self.scene.env.update(
            driver.environment(self.cards),
            HOME=home,
            XDG_CONFIG_HOME=f"{home}/.config",
            XDG_DATA_HOME=f"{home}/.local/share",
            XDG_RUNTIME_DIR=f"{home}/run",
            TMUX_TMPDIR=f"{home}/tmux",
            PATH=f"{self.bin}:{os.environ['PATH']}",
        )

    def tool(self, name: str) -> str:
        return os.path.join(self.bin, name)

    def _answers(self) -> bool:
        try:
            self.scene.run(self.status_argv(), timeout=5)
        except RuntimeError:
            return False
        return True

    def submit(self, tasks: list[Task]) -> None:
        """Alike in their GPUs: a thousand at a time by its table of parameters; else one by one."""
        if len({task.gpus for task in tasks}) > 1:
            for task in tasks:
                self.scene.run(self.one_argv(task))
            return
        table = self.scene.path("table.csv")
        for start in range(0, len(tasks), 1000):
            part = tasks[start : start + 1000]
            with open(table, "w") as f:
                f.writelines(["number,ms\n", *(f"{t.number},{t.ms:g}\n" for t in part)])
            program, out, *_ = part[0].argv()
            words = ["--gpus", str(part[0].gpus), "--param-file", table, program, out, "{number}", "{ms}"]
            self.scene.run([self.tool("gbatch"), *words])

    def one_argv(self, task: Task) -> list[str]:
        return [self.tool("gbatch"), "--gpus", str(task.gpus), *task.argv()]

    def release(self) -> None:
        driver.write_cards(self.cards, self.slots, busy=False)

    def status_argv(self) -> list[str]:
        return [self.tool("gqueue")]

    def processes(self) -> list[int]:
        return [self.server.pid]

    def stop(self) -> None:
        self.server.terminate()
        self.server.wait(10)
        try:
            self.scene.run(["tmux", "kill-server"])
        except RuntimeError:  # it ended with its last session
            pass


def works(kind: type[Gflow]) -> None:
    """Whether its daemon comes up here at all."""
    scene = Scene("gflow")
    try:
        peer = kind(scene)
        peer.start(1)
        peer.stop()
    except Exception as e:
        raise Missing(f"its daemon does not start: {e}") from e
    finally:
        scene.close()


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
