"""Processes as Linux shows them, and a signal to one that is proven: the only reader of /proc/PID.

A process is known by (boot id, pid, start ticks): the pid alone may be someone else's by now. Anything may vanish or be
denied between two looks; then the answer is None (a text, a sum or a set is empty), which means "not known", never "not
there": that a process runs is proven by `alive`, that it has ended by `gone`.

Light to import, so its annotations are no texts: a NamedTuple compiles each of those.
"""

import _socket as socket  # the rest of it takes a shim too long to import
import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from jostle.core.runvariables import UNI_ID
from jostle.printable import one_line

MARK = UNI_ID
"""The variable in a run's environment by which its processes are recognised."""


class Stat(NamedTuple):
    pid: int
    name: str
    state: str
    ppid: int
    sid: int
    ticks: int  # start time since boot, field 22: immune to clock changes


def close_inherited() -> None:
    """All descriptors of this process but stdin, stdout and stderr."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                os.close(int(name))
            except OSError:
                pass  # the listing's own


def boot_id() -> str:
    override = os.environ.get("JOSTLE_TEST_BOOT_ID")
    if override:
        return override
    with open("/proc/sys/kernel/random/boot_id") as f:
        return f.read().strip()


def stat(pid: int) -> Stat | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            text = f.read()
    except OSError:
        return None
    # the name may hold spaces and parentheses: fields are counted from the last one
    left, right = text.index(b"("), text.rindex(b")")
    rest = text[right + 2 :].split()
    return Stat(
        pid,
        text[left + 1 : right].decode(errors="replace"),
        rest[0].decode(),
        int(rest[1]),
        int(rest[3]),
        int(rest[19]),
    )


def alive(pid: int, ticks: int) -> bool:
    """Whether this very process is seen to run (a zombie does not)."""
    s = stat(pid)
    return s is not None and s.ticks == ticks and s.state not in "ZX"


def gone(pid: int, ticks: int | None = None) -> bool:
    """Whether this very process (without ticks: any by this pid) has certainly ended: one that cannot be looked at, for want of
    descriptors, may run."""
    s = stat(pid)
    if s is not None:
        return ticks not in (None, s.ticks) or s.state in "ZX"
    try:
        os.stat(f"/proc/{pid}")
    except FileNotFoundError:
        return True
    except OSError:
        pass
    return False


def uid(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


def real_uid(pid: int) -> int | None:
    """The owner of /proc/PID is root for processes that may not be dumped; this is their own."""
    try:
        with open(f"/proc/{pid}/status", "rb") as f:
            for line in f:
                if line.startswith(b"Uid:"):
                    return int(line.split()[1])
    except (OSError, ValueError, IndexError):
        return uid(pid)
    return None


def catches(pid: int, number: int) -> bool | None:
    """Whether the process handles this signal itself and lets it in now; None: it may, as it keeps it out for the moment, or
    cannot be looked at."""
    try:
        with open(f"/proc/{pid}/status", "rb") as f:
            sets = {line[:6]: int(line[7:], 16) for line in f if line.startswith((b"SigBlk", b"SigCgt"))}
    except (OSError, ValueError):
        return None
    bit = 1 << (number - 1)
    if not sets.get(b"SigCgt", 0) & bit:
        return False
    return None if sets.get(b"SigBlk", 0) & bit else True


def age(ticks: int) -> float:
    """How long ago a process was started, in seconds, by its start ticks."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def pids() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            yield int(name)


def environ(pid: int) -> dict[str, str] | None:
    """The environment the process was started with, if we may see it."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as f:
            raw = f.read()
    except OSError:
        return None
    pairs = (entry.partition(b"=") for entry in raw.split(b"\0") if entry)
    return {os.fsdecode(k): os.fsdecode(v) for k, _, v in pairs}


def mark(pid: int) -> str | None:
    env = environ(pid)
    return env.get(MARK) if env else None


def exe(pid: int) -> str:
    """The base name of the file that the process executes, whatever it calls itself; "" if we may not see it."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix(" (deleted)")
    except OSError:
        return ""


def open_files(pid: int) -> set[str]:
    """What its descriptors lead to, as the kernel names it; nothing if we may not see it."""
    folder = f"/proc/{pid}/fd"
    files: set[str] = set()
    try:
        names = os.listdir(folder)
    except OSError:
        return files
    for name in names:
        try:
            files.add(os.readlink(f"{folder}/{name}"))
        except OSError:
            continue  # closed since
    return files


def tree(root: int, besides: int = 0) -> list[int]:
    """All descendants of a process, the nearest first, but not this one of them and what descends from it."""
    children: dict[int, list[int]] = {}
    for pid in pids():
        s = stat(pid) if pid != besides else None
        if s is not None:
            children.setdefault(s.ppid, []).append(pid)
    members, todo = [], [root]
    while todo:
        todo = [kid for pid in todo for kid in children.get(pid, ())]
        members += todo
    return members


def children(pid: int) -> list[Stat]:
    """Of a process that has one thread; none where the kernel does not list them."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            stats = [stat(int(word)) for word in f.read().split()]
    except OSError:
        return []
    return [s for s in stats if s is not None]


def tcp_owner(theirs: tuple[str, int], ours: tuple[str, int]) -> int | None:
    """The uid of the process at the other end of a connection on this host; None: nobody holds it, as far as can be seen."""
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        try:
            wanted = [f"{_written(address, family)}:{port:04X}" for address, port in (theirs, ours)] + ["01"]  # established
            with open(f"/proc/net/{table}") as f:
                next(f)
                for line in f:
                    fields = line.split()
                    if fields[1:4] == wanted:
                        return int(fields[7])
        except (OSError, ValueError, IndexError, StopIteration):
            continue
    return None


def _written(address: str, family: int) -> str:
    """An address as /proc/net/tcp has it: words of 32 bits, each in the order of this machine."""
    if family == socket.AF_INET6 and ":" not in address:
        address = f"::ffff:{address}"  # a client whose socket is one of IPv6
    raw = socket.inet_pton(family, address.partition("%")[0])
    return "".join(f"{int.from_bytes(raw[k : k + 4], sys.byteorder):08X}" for k in range(0, len(raw), 4))


def signal_proven(pid: int, number: int, proof: Callable[[int], bool]) -> bool:
    """Signals a process only if the proof holds while we have a handle on it: its pid cannot become another's then."""
    try:
        fd = os.pidfd_open(pid)
    except AttributeError:
        fd = -1  # a Python built without it
    except OSError as e:
        if e.errno not in (errno.ENOSYS, errno.EPERM):
            return False
        fd = -1
    try:
        if not proof(pid):
            return False
        if fd >= 0:
            import signal  # 0.3 ms that every command would pay, for `store.seen` asks here for the boot

            signal.pidfd_send_signal(fd, number)
        else:
            os.kill(pid, number)
    except OSError:
        return False
    finally:
        if fd >= 0:
            os.close(fd)
    return True


class ProcessUsage(NamedTuple):
    age_s: float
    processor_s: float
    rss: int  # bytes


def usage(pid: int) -> ProcessUsage | None:
    """What a process has used since its start."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            fields = f.read().rpartition(b")")[2].split()
        with open("/proc/uptime") as uptime:
            now = float(uptime.read().split()[0])
    except (OSError, IndexError, ValueError):
        return None
    hertz = os.sysconf("SC_CLK_TCK")
    used = (int(fields[11]) + int(fields[12])) / hertz
    return ProcessUsage(now - int(fields[19]) / hertz, used, int(fields[21]) * os.sysconf("SC_PAGE_SIZE"))


def command_line(pid: int) -> str:
    """Its words with spaces between, on one line; "" if it cannot be seen."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            text = f.read(4096).rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""
    return one_line(text)


def memory() -> dict[str, int]:
    """Of the host, in bytes, by the kernel's names."""
    try:
        with open("/proc/meminfo") as f:
            pairs = (line.split()[:2] for line in f)
            return {name.rstrip(":"): int(size) * 1024 for name, size in pairs}
    except (OSError, ValueError):
        return {}


def network() -> tuple[int, int]:
    """Bytes that came and went since the boot, over all interfaces but the loopback."""
    came = went = 0
    try:
        with open("/proc/net/dev") as f:
            for line in f:
                name, colon, numbers = line.partition(":")
                if colon and name.strip() != "lo":
                    each = numbers.split()
                    came, went = came + int(each[0]), went + int(each[8])
    except (OSError, ValueError, IndexError):
        return 0, 0
    return came, went


def uptime() -> float:
    """Seconds since the boot; 0 if nobody can say."""
    try:
        with open("/proc/uptime") as f:
            return float(f.read().split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0


def processor_ticks() -> tuple[int, int]:
    """All processors together since the boot: busy, and all."""
    try:
        with open("/proc/stat") as f:
            ticks = [int(word) for word in f.readline().split()[1:9]]
    except (OSError, ValueError):
        return 0, 0
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def memory_bytes() -> int:
    """All that the host has; 0 if it does not say."""
    try:
        return memory().get("MemTotal") or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


CGROUPS = "/sys/fs/cgroup"


def cgroup_folders(controller: str) -> list[str]:
    """Of the control groups that this process is in, the folders where limits of this controller may stand, outermost first: in
    the one hierarchy there is today, or in that of the controller."""
    try:
        with open("/proc/self/cgroup") as f:
            lines = [line.rstrip("\n").split(":", 2) for line in f]
    except OSError:
        return []
    folders = []
    for number, controllers, path in lines:
        base = CGROUPS if number == "0" else f"{CGROUPS}/{controller}"
        if number == "0" or controller in controllers.split(","):
            parts = [part for part in path.split("/") if part not in ("", "..")]
            folders += [os.path.join(base, *parts[:k]) for k in range(len(parts) + 1)]
    return folders


def cgroup_value(folder: str, name: str) -> list[str]:
    """The words in a file of a control group; none if it has no such file."""
    try:
        with open(os.path.join(folder, name)) as f:
            return f.read().split()
    except (OSError, UnicodeError):
        return []
