"""A console that was opened to the network, and callers on another host (S7, S50): two networks of the kernel's own, joined by a
cable, that nobody else sees. Needs root; skips with a line without it."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.instance import Instance, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="networks of its own need root")

NEW_NETWORK = 0x40000000
OURS, THEIRS = "10.77.0.1", "10.77.0.2"
libc = ctypes.CDLL(None, use_errno=True)


class Network:
    """One host's; processes are put into it as they start."""

    def __init__(self) -> None:
        own = os.stat("/proc/self/ns/net").st_ino
        self.holder = subprocess.Popen(["sleep", "3600"], preexec_fn=lambda: libc.unshare(NEW_NETWORK))
        self.place = f"/proc/{self.holder.pid}/ns/net"
        until(lambda: os.readlink(f"/proc/{self.holder.pid}/exe").endswith("sleep"), "the network is there")
        if os.stat(self.place).st_ino == own:
            self.end()
            pytest.skip("no network of its own can be had here")

    def enter(self) -> None:
        fd = os.open(self.place, os.O_RDONLY | os.O_CLOEXEC)
        if libc.setns(fd, NEW_NETWORK):
            os._exit(99)
        os.close(fd)

    def run(self, *argv: str, **options: Any) -> str:
        done = subprocess.run(argv, preexec_fn=self.enter, capture_output=True, text=True, timeout=60, **options)
        assert done.returncode == 0, (argv, done.stderr)
        return done.stdout

    def end(self) -> None:
        self.holder.kill()
        self.holder.wait()


@pytest.fixture
def hosts() -> Iterator[tuple[Network, Network]]:
    """Ours and another, with a cable between them."""
    ours, theirs = Network(), Network()
    try:
        cable = subprocess.run(
            ["ip", "link", "add", "name", "ours", "type", "veth", "peer", "name", "theirs", "netns", str(theirs.holder.pid)],
            preexec_fn=ours.enter, capture_output=True,
        )  # fmt: skip
        if cable.returncode:
            pytest.skip("no cable between two networks can be had here (veth)")
        for host, name, address in ((ours, "ours", OURS), (theirs, "theirs", THEIRS)):
            host.run("ip", "address", "add", f"{address}/24", "dev", name)
            for link in ("lo", name):
                host.run("ip", "link", "set", link, "up")
        yield ours, theirs
    finally:
        ours.end()
        theirs.end()


CALLS = """import encodings.idna, http.client, json, os, sys
address, port, uid, calls = json.load(sys.stdin)
if uid:
    os.setgid(uid), os.setuid(uid)
told = []
for method, path, heads, body in calls:
    connection = http.client.HTTPConnection(address, port, timeout=30)
    try:
        connection.request(method, path, body, heads)
        answer = connection.getresponse()
        told.append([answer.status, dict(answer.getheaders()), answer.read().decode("utf-8", "replace")])
    except ConnectionError as e:
        told.append([0, {}, type(e).__name__])
    connection.close()
print(json.dumps(told))
"""
Call = tuple[str, str, dict[str, str], str | None]
Answer = tuple[int, dict[str, str], str]


def asked(host: Network, port: int, *calls: Call, uid: int = 0, address: str = OURS) -> list[Answer]:
    given = json.dumps([address, port, uid, calls])
    told: list[Answer] = json.loads(host.run(sys.executable, "-I", "-S", "-c", CALLS, input=given))
    return told


def get(path: str, **heads: str) -> Call:
    return "GET", path, {name.replace("_", "-"): value for name, value in heads.items()}, None


@pytest.fixture
def opened(hosts: tuple[Network, Network], tmp_path: Path) -> Iterator[Callable[..., tuple[int, str]]]:
    """Starts a console on our host: its port and token."""
    instance = Instance(tmp_path / "i")

    def open_(*words: str) -> tuple[int, str]:
        instance.ok("web", "--port", "0", *words, preexec_fn=hosts[0].enter)
        port = re.search(r":(\d+)", instance.ok("web", "--list"))
        assert port
        return int(port[1]), instance.ok("web", "--token").strip()

    yield open_
    instance.ok("web", "--stop")
    instance.close()


def test_s50_to_callers_from_another_host_token_and_key_alone_count(
    hosts: tuple[Network, Network], opened: Callable[..., tuple[int, str]]
) -> None:  # fmt: skip
    ours, theirs = hosts
    port, token = opened("--bind", OURS, "--allow-lan", "--insecure-http", "--classic")
    bearer = {"Authorization": f"Bearer {token}"}
    calls = [get("/api/v1/ps"), get("/api/v1/ps", Authorization="Bearer x"), get("/ui/gpu"), get("/api/v1/ps", **bearer)]
    assert [status for status, _, _ in asked(theirs, port, *calls)] == [401, 401, 200, 200]
    evil = get("/api/health", Host=f"evil.example:{port}"), get("/api/health", Host=f"{OURS}:{port}")
    assert [status for status, _, _ in asked(theirs, port, *evil)] == [400, 200]
    login: Call = ("POST", "/api/auth/login", {"Content-Type": "application/json"}, json.dumps({"password": token}))
    ((_, heads, body),) = asked(theirs, port, login)
    cookie, key = heads["set-cookie"].partition(";")[0], json.loads(body)["key"]
    alone = get("/api/config", Cookie=cookie, Sec_Fetch_Site="same-origin"), get("/api/v1/ps", Cookie=cookie, X_Jostle_Key=key)
    assert [status for status, _, _ in asked(theirs, port, *alone)] == [403, 200]  # --classic is for this host only
    assert [status for status, _, _ in asked(theirs, port, get("/api/v1/ps", **bearer), uid=65534)] == [200]  # whose nobody knows
    by_neighbour = asked(ours, port, get("/ui/gpu"), get("/api/v1/ps", **bearer), uid=65534)
    assert [status for status, _, _ in by_neighbour] == [403, 403]  # of this host: he is known, whatever address he takes
    assert [status for status, _, _ in asked(ours, port, get("/api/v1/ps", **bearer))] == [200]


def test_s7_s50_a_console_that_was_not_opened_is_not_there_for_another_host(
    hosts: tuple[Network, Network], opened: Callable[..., tuple[int, str]]
) -> None:  # fmt: skip
    ours, theirs = hosts
    port, token = opened()
    bearer = get("/api/v1/ps", Authorization=f"Bearer {token}")
    assert asked(theirs, port, bearer) == [[0, {}, "ConnectionRefusedError"]]
    assert [status for status, _, _ in asked(ours, port, bearer, address="127.0.0.1")] == [200]
