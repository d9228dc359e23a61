"""The cards of a run that may get others while it lives: the orders that come over its control socket, and what became of them.

Rules. An order has a number, more than any before it, and names all the cards that the run is to use; each is obeyed once, and
one that comes late, twice or is absurd is refused, and the descriptors that came with it are closed. `restart`: the commands are
told to end, and when nobody of them is left they begin again with the new list, as the next leg; only then cards are given back.
`signal`: the new list is written, and those processes hear of it that wait for it; a card that is left is given back when the
engine, which sees who is on it, says so. `hold`: nobody is told. A card that came later is held for as long as the first ones:
its descriptor lies in a socket whose other end every process of the run has.
"""

from __future__ import annotations

import array
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jostle import proc
from jostle.backends.local import control, process
from jostle.backends.local.claimlock import give_back
from jostle.backends.local.claims import Claim, parse
from jostle.core.runvariables import GPUS, GPUS_FILE, LEG, VISIBLE
from jostle.failpoint import failpoint

RESTART, SIGNAL = "restart", "signal"
GAP = 64  # orders that engines may have recorded and never sent
GROWN_UP = 1.0  # s: a process that is younger may be about to become another program, which the signal would kill
LOOK_AGAIN, LOOKS_FOR = 0.25, 10.0  # s, at processes that could not be told at once
ENDED_LEGS = 50  # that are told of


class Legs:
    """What a run holds, and the leg it is in."""

    def __init__(self, spec: dict[str, Any], leases: Sequence[int], note: Callable[[str], None]) -> None:
        """Raises OSError if it cannot be reached, or its list not be written."""
        self._spec, self._note = spec, note
        self.how: str = spec["resize"]
        self._lease_dir = os.path.dirname(spec["claims"][0]) if spec["claims"] else spec.get("lease_dir", "")
        self.held = {uuid_of(path): (fd, path) for fd, path in zip(leases, spec["claims"], strict=True)}
        self.listed = list(self.held)
        self.effective = self.order = self._fence = 1  # numbers of orders: in effect, the last, the last that may come
        self._begun = 1  # legs, which programs and people count: an order that was refused, or never came, is none
        self._next: dict[str, Any] | None = None  # an order that waits for the end of a leg
        self._ended: list[dict[str, Any]] = []
        self._untold: dict[int, int] = {}  # pid -> start ticks: processes that are to be told, and could not be yet
        self._told_until = 0.0
        self.due: float | None = None
        self._kept, self._keeper = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._parked = False
        self._socket = control.ControlSocket(spec["dir"])
        self._write_list(spec["env"].get(VISIBLE, ""))
        spec["env"].update({GPUS_FILE: f"{spec['dir']}/gpus", LEG: "1"})
        os.set_inheritable(self._kept.fileno(), True)

    @property
    def fds(self) -> list[int]:
        return [fd for fd, _ in self.held.values()]

    @property
    def paths(self) -> list[str]:
        return [path for _, path in self.held.values()]

    @property
    def ends_leg(self) -> bool:
        """Whether the commands are to begin again when they have ended."""
        return self._next is not None

    def state(self) -> dict[str, Any]:
        """What engines are told."""
        return {
            "leg": self.effective, "order": max(self.order, self._fence), "taken": self.order,
            "claims": [os.path.basename(path) for path in self.paths], "ended": self._ended,
        }  # fmt: skip

    # ------------------------------------------------------------------ orders

    def step(self, end_leg: Callable[[], bool]) -> None:
        """Sees to what was ordered; `end_leg` tells the commands to end, unless it is too late for that."""
        for peer, message, fds in self._socket.heard():
            left = list(fds)
            try:
                why = self._obey(message, left, end_leg)
            except (TypeError, ValueError, KeyError, OSError) as e:
                why = f"absurd {e}"
            control.close_all(left)
            if why:
                number = message.get("resize")
                answer = {"refused": number if isinstance(number, int) else 0, "why": why[:200]}
                self._socket.tell({**self.state(), **answer}, peer)
            else:
                self._socket.tell(self.state())
        if self._untold:
            self._tell_rest()
        self.due = 0.0 if self._socket.more else time.monotonic() + LOOK_AGAIN if self._untold else None

    def _obey(self, message: Mapping[str, Any], fds: list[int], end_leg: Callable[[], bool]) -> str:
        """Why it is refused; "": it is not. Descriptors that are taken are taken out of `fds`."""
        if "fence" in message:  # no order up to this number comes any more
            number = whole(message["fence"])
            if number > self.order + GAP:
                return "absurd"
            self._fence = max(self._fence, number)
            return ""
        if "drop" in message:
            return self._drop(whole(message["drop"]), words(message["cards"]))
        number, cards, new = whole(message["resize"]), words(message["cards"]), words(message["claims"])
        last = max(self.order, self._fence)
        if number <= last:
            return "stale"
        if number > last + GAP or not cards or len(fds) != len(new) or "/" in "".join(new):
            return "absurd"
        if self._next is not None:
            return "busy"
        coming = {uuid_of(name): (fd, f"{self._lease_dir}/{name}") for name, fd in zip(new, fds, strict=True)}
        if not set(cards) <= {*self.held, *coming} or not set(coming) <= set(cards) - set(self.held):
            return "absurd"
        if not all(self._is_claim(fd, path) for fd, path in coming.values()):
            return "no_claim"
        env = {name: message["env"][name] for name in (VISIBLE, GPUS)}
        if not all(isinstance(value, str) and "\0" not in value and "\n" not in value for value in env.values()):
            return "absurd"
        if self.how == SIGNAL and not self._listeners():
            return "no_listener"
        if self.how == RESTART and not end_leg():
            return "ending"
        failpoint("legs.taken")
        for uuid, (fd, path) in coming.items():
            self.held[uuid] = process.inherited(fd), path
            fds.remove(fd)
        self.order, order = number, {"cards": cards, "env": env}
        self._park()
        if self.how == RESTART:
            self._next = order
        else:
            self._in_effect(order)
        return ""

    def _is_claim(self, fd: int, path: str) -> bool:
        """Whether this is a claim of this very run, as it lies in the directory of claims."""
        claim, job = claim_of(path), self._spec["run"].partition(".")[0]
        if claim.sid != os.getpid() or claim.run[0] != int(job):
            return False
        here, there = os.fstat(fd), os.lstat(path)
        return (here.st_dev, here.st_ino, here.st_uid) == (there.st_dev, there.st_ino, os.geteuid())

    def _drop(self, number: int, cards: list[str]) -> str:
        """Cards that are not on the list, and that nobody of the run is on, as the engine sees."""
        if number != self.effective or self._next is not None:
            return "stale"
        if self.how == RESTART or not set(cards).isdisjoint(self.listed):
            return "absurd"
        failpoint("legs.before_give_up")
        self._give_back(cards)
        return ""

    def _give_back(self, cards: Sequence[str]) -> None:
        claims = [self.held.pop(uuid) for uuid in cards if uuid in self.held]
        for fd, path in claims:
            give_back(fd)
            try:
                os.unlink(path)
            except OSError:
                pass  # unlocked it is dead; the engine removes it
            os.close(fd)
        if claims:
            self._park()

    def _park(self) -> None:
        """Lays the descriptors where all processes of the run hold them, as those have only the ones that they began with."""
        if self.how != SIGNAL:
            return
        try:
            socket.send_fds(self._keeper, [b"cards"], self.fds)
            if self._parked:
                control.close_all(parked(self._kept))
        except OSError:
            pass  # a program has read there itself, or shut it: they are held by this process alone then
        self._parked = True

    # ------------------------------------------------------------------ legs

    def next_leg(self, code: int | None, number: int | None) -> None:
        """Nobody of the leg before is left: the cards that are not on the new list go, and the commands begin again."""
        assert self._next is not None
        order, self._next = self._next, None
        self._ended = [*self._ended, {"leg": self.effective, "code": code, "signal": number, "at": time.time()}][-ENDED_LEGS:]
        failpoint("legs.ended")
        self._give_back([uuid for uuid in self.held if uuid not in order["cards"]])
        self._in_effect(order)
        self._spec["env"].update({**order["env"], LEG: str(self._begun)})
        self._note(f"leg {self._begun} begins with GPU {order['env'][GPUS]}")
        self._socket.tell(self.state())
        failpoint("legs.before_begin")

    def _in_effect(self, order: Mapping[str, Any]) -> None:
        self.listed, self.effective, self._begun = list(order["cards"]), self.order, self._begun + 1
        self._write_list(order["env"][VISIBLE])
        if self.how == SIGNAL:
            failpoint("legs.before_signal")
            self._untold = dict(self._listeners())
            self._told_until = time.monotonic() + LOOKS_FOR
            self._tell_rest()

    def _write_list(self, cards: str) -> None:
        """Two lines: the list as CUDA_VISIBLE_DEVICES has it, and its number. There is always a whole one."""
        path = f"{self._spec['dir']}/gpus"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = os.open(f"{path}.new", flags, 0o600)
        try:
            os.write(fd, f"{cards}\n{self.effective}\n".encode())
        finally:
            os.close(fd)
        os.rename(f"{path}.new", path)

    # ------------------------------------------------------------------ who listens

    def _listeners(self) -> list[tuple[int, int]]:
        """Processes of the run that handle SIGUSR1, with their start ticks; also those that keep it out for the moment."""
        stats = (proc.stat(pid) for pid in proc.tree(os.getpid()))
        return [(s.pid, s.ticks) for s in stats if s is not None and proc.catches(s.pid, signal.SIGUSR1) is not False]

    def _tell_rest(self) -> None:
        """Signals those that wait for it and surely go on to: a child between fork and exec looks like its parent."""
        if time.monotonic() > self._told_until:
            self._untold = {}

        def listens(pid: int, ticks: int) -> bool:
            ours = proc.alive(pid, ticks) and process.is_descendant(pid)
            return ours and proc.age(ticks) >= GROWN_UP and proc.catches(pid, signal.SIGUSR1) is True

        for pid, ticks in list(self._untold.items()):
            done = proc.signal_proven(pid, signal.SIGUSR1, lambda pid, ticks=ticks: listens(pid, ticks))  # type: ignore[misc]
            if done or proc.gone(pid, ticks) or proc.catches(pid, signal.SIGUSR1) is False:
                del self._untold[pid]

    def close(self) -> None:
        self._socket.close()
        self._kept.close()
        self._keeper.close()


def parked(sock: socket.socket) -> list[int]:
    """The descriptors that were laid there first; it is not waited for any. (socket.recv_fds takes no heed of flags.)"""
    fds = array.array("i")
    room = socket.CMSG_SPACE(control.MOST_CARDS * fds.itemsize)
    for _, _, data in sock.recvmsg(16, room, socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT)[1]:
        fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return fds.tolist()


def claim_of(path: str) -> Claim:
    """By the name of its file; ValueError: it is none."""
    claim = parse(os.path.basename(path))
    if claim is None:
        raise ValueError("no claim")
    return claim


def uuid_of(path: str) -> str:
    return claim_of(path).uuid


def whole(value: Any) -> int:
    if type(value) is not int or not 0 < value < 1 << 31:
        raise ValueError("a number")
    return value


def words(value: Any) -> list[str]:
    if not isinstance(value, list) or len(value) > control.MOST_CARDS or len(set(value)) != len(value):
        raise ValueError("a list")
    if not all(isinstance(word, str) and 0 < len(word) < 256 for word in value):
        raise ValueError("a list")
    return value
