"""Where things lie and what is set: JOSTLE_HOME, the lease directory, config.yaml.

One directory holds state, socket and settings. It is private (0700) from its first instant, and on a local disk: SQLite's
journal and flock are not to be trusted on network file systems, so there the state moves to /var/tmp and says so.
"""

from __future__ import annotations

import os

from jostle.errors import Forbidden, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "fuse.sshfs",
           "fuse.glusterfs", "fuse.s3fs", "pvfs2", "orangefs"}  # fmt: skip

SHAPE = frozenset("0123456789x+.")
"""Of such characters is `8x24` or `4x80+4x24`, and the name of no scenario."""


def _nobody(code: str, /, **values: Any) -> None: ...


def home(*, only_warn: bool = False, tell: Callable[..., None] = _nobody) -> str:
    """The directory of this instance, made if need be. `only_warn`: an existing one is used though others could replace it;
    `tell` is given that as a message, and where the state lies if not there."""
    setting = os.environ.get("JOSTLE_HOME")
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    path = os.path.abspath(setting or os.path.join(state, "jostle"))
    if on_network(path):
        local = f"/var/tmp/jostle-{os.getuid()}"
        tell("home_moved", path=path, local=local)
        path = local
    make_private(path, only_warn=only_warn, tell=tell)
    return path


def make_private(path: str, *, only_warn: bool = False, tell: Callable[..., None] = _nobody) -> None:
    from jostle.store.private import Others, check_private, check_way

    only_warn = only_warn and os.path.lexists(path)
    try:
        if not only_warn:
            _make(path)
        check_private(path)
        check_way(path)
    except OSError as e:
        raise Forbidden(f"cannot make {path}: {e.strerror}; set JOSTLE_HOME to a directory of yours") from e
    except Others as e:
        if not only_warn:
            raise
        tell("home_of_others", error=str(e))


def _make(path: str) -> None:
    """Whatever is missing on the way is ours alone, too, whatever the umask."""
    if not os.path.lexists(path):
        _make(os.path.dirname(path))
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            pass  # another of our processes was quicker; it is checked like any other


def on_network(path: str) -> bool:
    return file_system(path) in NETWORK


def file_system(path: str) -> str:
    """The type of the file system a path lies (or would lie) on, "" if unknown."""
    faked = os.environ.get("JOSTLE_TEST_FSTYPE", "")
    if faked:
        where, _, kind = faked.partition("=")
        if path.startswith(where):
            return kind
    path = os.path.realpath(path)
    best, kind = "", ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as f:
            for line in f:
                left, _, right = line.partition(" - ")
                point = left.split()[4].replace("\\040", " ")
                inside = path == point or path.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= len(best):
                    best, kind = point, right.split()[0]
    except (OSError, IndexError):
        return ""
    return kind


def lease_dir(home: str, devices: str) -> str:
    """Where claims on GPUs lie: seen by all users for real cards, private for simulated ones."""
    from jostle.core.devices import world

    setting = os.environ.get("JOSTLE_LEASE_DIR")
    if setting:
        return os.path.abspath(setting)
    if world(devices) is not None:
        path = os.path.join(home, "leases")
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path
    from jostle.backends.local.leases import find_dir

    return find_dir()


def sim_dir(home: str) -> str:
    return os.path.abspath(os.environ.get("JOSTLE_SIM_DIR") or os.path.join(home, "sim"))


def load(home: str) -> dict[str, Any]:
    """The settings of config.yaml as plain values; absent file = none."""
    path = config_file(home)
    if not os.path.exists(path):
        return {}
    from jostle.formats import configfile

    settings = configfile.load(path)
    if "gpus" in settings:
        settings["gpus"] = devices(settings["gpus"], home)  # relative paths in a file are relative to the file
    return settings


def lab_file() -> str:
    """Where the administrator of a host says how many cards each of its users may hold."""
    return os.environ.get("JOSTLE_LIMITS_FILE") or "/etc/jostle/limits.yaml"


def lab_mark() -> object:
    """Another, or another content, has another mark; None: there is none. One that cannot be seen is not taken for none."""
    try:
        s = os.stat(lab_file())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as e:
        return e.errno
    return s.st_dev, s.st_ino, s.st_mtime_ns, s.st_size


def lab_limits() -> dict[str, int]:
    """What the lab's file sets; Invalid if it cannot be understood."""
    if lab_mark() is None:
        return {}
    from jostle.formats import limitsfile

    return limitsfile.load(lab_file())


def config_file(home: str) -> str:
    return os.path.join(home, "config.yaml")


def devices(text: str, base: str | None = None) -> str:
    """A set of devices as the engine takes it: it runs elsewhere, so that the path of a scenario is made whole."""
    from jostle.core.devices import EXPECTED, SIMULATED, known, world

    if not known(text):
        raise Usage(f"--gpus {text}: expected {EXPECTED}")
    what = world(text)
    if what is None or set(what) <= SHAPE:
        return text
    return SIMULATED + os.path.normpath(os.path.join(base or os.getcwd(), os.path.expanduser(what)))


def check_devices(devices: str) -> None:
    """Invalid if this is a scenario that cannot be played: better told now, to a person, than later, to a log."""
    from jostle.core.devices import world

    what = world(devices)
    if what is not None:
        from jostle.probes import scenario

        scenario.load(what)
