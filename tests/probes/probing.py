"""Probe processes under test, and the two kinds of world they look at."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from fakenvml import Driver
from jostle.probes import scenario_file

PATIENCE = 60.0  # s; only a broken probe takes so long


class Process:
    """A probe process, spoken to as the engine does."""

    def __init__(self, devices: str, env: dict[str, str], *, silent: float | None = None, **options: Any) -> None:
        """`silent`: after how many seconds a card without an answer cannot be read, in place of the usual."""
        usual = ["-m", "jostle.probes.serve"]
        quick = f"from jostle.probes import relay, serve; relay.SILENT = {silent}; import sys; sys.exit(serve.main(sys.argv[1:]))"
        self.child = subprocess.Popen(
            [sys.executable, *(usual if silent is None else ["-c", quick]), devices],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **env},
            bufsize=0,
            **options,
        )
        self._rest = b""
        self._asked = 0

    def say(self, text: str) -> None:
        assert self.child.stdin
        self.child.stdin.write(text.encode())

    def line(self, patience: float = PATIENCE) -> dict[str, Any] | None:
        """The next snapshot; None if none comes in time or ever."""
        assert self.child.stdout
        deadline = time.monotonic() + patience
        while b"\n" not in self._rest:
            if not select.select([self.child.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return None
            part = os.read(self.child.stdout.fileno(), 65536)
            if not part:
                return None
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def look(self) -> dict[str, Any]:
        """A snapshot that was taken after now."""
        self._asked += 1
        self.say(f"look {self._asked}\n")
        while True:
            found = self.line()
            assert found is not None, "the probe does not answer"
            if found["asked"] == self._asked:
                return found

    def until(self, true: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first snapshot for which this holds."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = self.look()
            if true(found):
                return found
        raise AssertionError(f"never came true; last: {found}")

    def end(self) -> int:
        assert self.child.stdin
        self.child.stdin.close()
        return self.child.wait(PATIENCE)

    def close(self) -> None:
        assert self.child.stdin and self.child.stdout
        self.child.kill()
        self.child.wait(PATIENCE)
        self.child.stdin.close()
        self.child.stdout.close()


class Place:
    """Directories of a test, and what it started there."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.sim_dir, self.lease_dir = os.path.join(path, "sim"), os.path.join(path, "leases")
        os.mkdir(self.lease_dir)
        self.env = {"JOSTLE_SIM_DIR": self.sim_dir, "JOSTLE_LEASE_DIR": self.lease_dir}
        self._open: list[Process] = []
        self._children: list[subprocess.Popen[bytes]] = []

    def start(self, devices: str, env: dict[str, str] | None = None, **options: Any) -> Process:
        process = Process(devices, {**self.env, **(env or {})}, **options)
        self._open.append(process)
        return process

    def child(self, *command: str, **options: Any) -> subprocess.Popen[bytes]:
        """Some process in a session of its own."""
        child = subprocess.Popen(command or ("sleep", "600"), start_new_session=True, **options)
        self._children.append(child)
        return child

    def close(self) -> None:
        for process in self._open:
            process.close()
        for child in self._children:
            child.kill()
            child.wait(PATIENCE)


class World:
    """GPUs that a scenario describes, simulated or through the stand-in driver."""

    def __init__(self, kind: str, place: Place) -> None:
        self.kind = kind
        self._place = place
        self._file = os.path.join(place.path, "scenario.yaml")
        self._driver = None if kind == "sim" else Driver(place.path, int(kind[-1]))

    def show(self, text: str) -> None:
        if self._driver is not None:
            self._driver.show(scenario_file.parse(text, "scenario.yaml"))
            return
        with open(self._file + ".new", "w") as f:
            f.write(text)
        os.replace(self._file + ".new", self._file)

    def probe(self, text: str, **options: Any) -> Process:
        self.show(text)
        if self._driver is None:
            return self._place.start("sim:" + self._file, **options)
        return self._place.start("nvml", self._driver.env, **options)
