"""The engine's socket from the other side: connect (starting an engine if need be), call, follow events.

Light to import: the command line starts with it. JSON lines, one answer per request; errors come back as jostle.errors.
"""

from __future__ import annotations

import _socket as socket  # the class without the rest, which takes the command line 10 ms to import
import errno
import json
import os
import sys
import time
from collections.abc import Callable

from jostle.address import DOWN, LOCK, LOG, NOTIFIER_LOCK, SOCKET, UP, address
from jostle.core.runvariables import RUN, UNI_ID, passed_on
from jostle.errors import BY_CODE, Declined, DiskFull, Forbidden, Invalid, JostleError, NoEngine, Usage

TYPE_CHECKING = False  # not from typing, which `add` does without
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Any

Tell = Callable[..., None]
"""Takes a message: its code in wording.messages, and its values."""

READING = frozenset(("hello", "reasons", "why", "gpus", "check", "history"))
"""Requests whose answer can be done without; any other is waited for."""
GONE_WITHIN = 60.0  # s that an engine has to end, beyond the grace of the jobs that it ends first
PATIENCE = 4.0  # s until a person is told what is waited for


def _refused(error: dict[str, Any], request: dict[str, Any], language: str) -> str:
    from jostle.wording.sentences import refused

    jobs = request.get("jobs") or ()
    return refused(error, language, alone=len(jobs) == 1, strict=any(job.get("commands") for job in jobs))


def _declined(why: dict[str, Any], language: str) -> Declined:
    from jostle.wording.declined import declined

    return Declined(declined(why, language), why["code"], why["params"])


class Lost(NoEngine):
    """The engine went away in the middle of a call."""


class Silent(NoEngine):
    """The engine is there and does not answer, and its answer can be done without."""


def silent(code: str, /, **values: Any) -> None:
    """Where nobody is to be told what is waited for."""


class Client:
    patience = PATIENCE  # of all clients of this process: one that did not answer is not waited for as long again

    def __init__(self, home: str, sock: socket.socket, tell: Tell = silent, language: str = "en") -> None:
        self.home, self.tell, self.language = home, tell, language
        self.sock = sock
        self.heard = b""
        self.asked = ""  # what we wait for, while we do

    def send(self, op: str, **fields: Any) -> None:
        data = memoryview(json.dumps({"op": op, **fields}).encode("utf-8", "surrogateescape") + b"\n")
        while data:
            try:
                data = data[self.sock.send(data) :]
            except TimeoutError:
                self._no_answer()
            except OSError as e:
                raise Lost(f"the engine of {self.home} went away") from e

    def receive(self) -> dict[str, Any]:
        parts = [self.heard]
        while b"\n" not in parts[-1]:
            try:
                parts.append(self.sock.recv(1 << 20))
            except TimeoutError:
                self._no_answer()
                continue
            except OSError as e:
                raise Lost(f"the engine of {self.home} went away") from e
            if not parts[-1]:
                raise Lost(f"the engine of {self.home} went away")
        line, _, self.heard = b"".join(parts).partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _no_answer(self) -> None:
        """Tells it, once; then it is waited for, or done without."""
        if not self.asked:
            raise Lost(f"the engine of {self.home} did not answer in time")  # by the time of whoever set one
        if Client.patience == PATIENCE:
            code = "engine_unanswering" if self.asked in READING else "engine_awaited"
            self.tell(code, home=self.home, pid=self.pid, condition=(condition(self.pid), {"pid": self.pid}))
        if self.asked in READING:
            Client.patience = 0.2
            raise Silent(f"the engine of {self.home} did not answer and was not waited for any longer")
        self.sock.settimeout(None)

    @property
    def pid(self) -> int:
        """Of the engine at the other end."""
        return int.from_bytes(self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], sys.byteorder)

    def call(self, op: str, **fields: Any) -> dict[str, Any]:
        if self.sock.gettimeout() is None:
            self.asked = op
            self.sock.settimeout(self.patience)
        try:
            self.send(op, **fields)
            answer = self.receive()
            Client.patience = PATIENCE
        finally:
            if self.asked:
                self.asked = ""
                self.sock.settimeout(None)
        if not answer.pop("ok"):
            error = answer["error"]
            if "declined" in error:
                raise _declined(error["declined"], self.language)
            text = _refused(error, fields, self.language) if "reason" in error else error["text"]
            if error["code"] in (Invalid.code, Usage.code) and not of_this_version(self.call("hello")):
                text += f"\nthe engine of {self.home} is of another version: `jostle up` replaces it, and jobs do not notice"
            raise BY_CODE.get(error["code"], JostleError)(text)
        return answer

    def stream(self, after: int, batch: int | None = None) -> Iterator[dict[str, Any]]:
        """Events since a sequence number, then each as it happens. Subscribed when it returns; ends with Lost when the engine
        goes."""
        self.call("subscribe", after=after, batch=batch)
        return iter(self.receive, None)

    def hang_up(self) -> None:
        """Ends what another thread waits for."""
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has ended

    def fileno(self) -> int:
        return self.sock.fileno()

    def close(self) -> None:
        self.sock.close()


def condition(pid: int) -> str:
    """What keeps a process from answering: a message."""
    from jostle import proc

    if proc.gone(pid):
        return "process_gone"
    stat = proc.stat(pid)
    how = {"T": "process_stopped", "t": "process_stopped", "D": "process_in_disk"}
    return how.get(stat.state if stat is not None else "", "process_busy")


def attempt(home: str, tell: Tell = silent, language: str = "en") -> Client | None:
    """The engine that answers here, if one does."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with address(home) as path:
            sock.connect(path)
    except OSError:
        sock.close()
        return None
    check_server(home, sock)
    if os.path.exists(f"{home}/{NOTIFIER_LOCK}"):
        _notified(home)
    return Client(home, sock, tell, language)


def _notified(home: str, notify: dict[str, Any] | None = None) -> None:
    """Whoever starts an engine, or finds one, makes sure that people are told; the engine knows nothing of it."""
    from jostle import notifier

    notifier.beside(home, notify, own_environment())


def check_server(home: str, sock: socket.socket) -> None:
    """Before a word is sent: what we say goes to an engine of our own, and nobody else is believed."""
    uid = int.from_bytes(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8], sys.byteorder)
    if uid != os.getuid():
        sock.close()
        raise Forbidden(
            f"the socket {home}/{SOCKET} is served by uid {uid}, not by an engine of yours: nothing was sent. "
            "Look who can change the directories above it (`jostle doctor`)"
        )


def connect(home: str, start: bool = True, gpus: str | None = None, tell: Tell = silent, language: str = "en") -> Client:
    """A client of this home's engine; starts one unless told not to. `tell`: is given messages about what takes long. `language`:
    of what the engine refuses."""
    if gpus is not None:
        from jostle import config

        gpus = config.devices(gpus)
    client = attempt(home, tell, language)
    if client is not None and gpus is not None:
        client = _with_gpus(client, gpus)
    if client is not None:
        return client
    if not start:
        raise NoEngine(f"no engine runs for {home}: `jostle up` starts one")
    start_engine(home, gpus=gpus, tell=tell)
    client = attempt(home, tell, language)
    if client is None:
        raise NoEngine(f"the engine of {home} ended right after its start: see {home}/{LOG}")
    return client


def _with_gpus(client: Client, gpus: str) -> Client | None:
    """None if the engine made way, because it was idle, for one with other GPUs."""
    from jostle import config

    try:
        if client.call("hello")["gpus_spec"] == gpus:
            return client
        config.check_devices(gpus)
        client.call("yield", gpus=gpus)  # an error says what to do if it is busy
    except JostleError:
        client.close()
        raise
    wait_gone(client)
    return None


def up(home: str, gpus: str | None = None, tell: Tell = silent) -> tuple[dict[str, Any], dict[str, Any]]:
    """The engine that ran, if one did, and the one that runs now and stays: what each says of itself. An engine of another
    version, or with another database, makes way; one that runs reads the settings again."""
    from jostle import config

    settings = config.load(home)
    notify = settings.pop("notify", {})
    before: dict[str, Any] = {}
    client = attempt(home, tell)
    if client is None:
        start_engine(home, gpus=gpus, permanent=True, tell=tell)
    else:
        before = client.call("hello")
        if of_this_version(before):
            client.close()
        else:
            down(client, for_another=True)
            # its jobs run on its devices; whether others may take their place is for the new one to say
            start_engine(home, gpus=before["gpus_spec"] or None, permanent=True, tell=tell)
    client = connect(home, gpus=gpus, tell=tell)
    now = client.call("up")
    keep_word(home, UP)
    if before.get("pid") == now["pid"]:
        client.call("reload", config=settings)
    client.close()
    _notified(home, notify)
    return before, now


def keep_word(home: str, word: str) -> None:
    """UP or DOWN; "": neither holds any more."""
    for name in (UP, DOWN):
        try:
            if name == word:
                os.close(os.open(os.path.join(home, name), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            else:
                os.unlink(os.path.join(home, name))
        except OSError:
            pass  # it was not there; or the disk is full, and it is as if nobody had said it


def of_this_version(hello: dict[str, Any]) -> bool:
    """Whether it is an engine of ours that speaks; between releases its database says more than its version."""
    from jostle import __version__
    from jostle.store import store

    return (hello["version"], hello.get("store_version")) == (__version__, store.version())


def down(client: Client, *, stop_jobs: bool = False, now: bool = False, for_another: bool = False) -> tuple[int, int]:
    """Returns when the engine is gone; how many runs it had, and how many of them on targets that it did not have. `for_another`:
    an engine follows; else none is started by who only follows jobs."""
    if not for_another:
        keep_word(client.home, DOWN)  # before it goes: who follows looks for it then
    answer = client.call("down", stop_jobs=stop_jobs, now=now)
    wait_gone(client, GONE_WITHIN + (answer.get("grace_s", 0.0) if stop_jobs and not now else 0.0))
    return int(answer.get("runs") or 0), int(answer.get("absent") or 0)


def wait_gone(client: Client, timeout: float = GONE_WITHIN) -> None:
    """Until the engine at the other end has gone: its socket closes last of all."""
    client.sock.settimeout(timeout)
    try:
        while client.sock.recv(1 << 16):
            pass
    except TimeoutError:
        raise JostleError(f"the engine of {client.home} does not end: see {client.home}/{LOG}") from None
    except OSError:
        pass
    client.close()


def start_engine(home: str, *, gpus: str | None = None, permanent: bool = False, tell: Tell = silent) -> None:
    """Returns when an engine answers; whoever else started one at the same moment is as good."""
    from jostle import config

    _check_outside(home)
    settings = config.load(home)
    notify = settings.pop("notify", {})
    devices = config.devices(gpus) if gpus else settings.get("gpus") or ""  # "": what this home used last
    config.check_devices(devices)
    permanent = permanent or os.path.lexists(os.path.join(home, UP))
    end, told_once = time.monotonic() + 20.0, False
    while True:
        answer = _launch(home, [str(devices), *(["--permanent"] if permanent else [])], settings, tell)
        if answer.startswith("ready"):
            keep_word(home, UP if permanent else "")
            _notified(home, notify)
            return
        if answer.startswith("error "):
            _, code, text = answer.split(" ", 2)
            raise BY_CODE.get(code, JostleError)(text.strip())
        if not answer.startswith("taken"):
            raise NoEngine(f"the engine of {home} did not come up: see {home}/{LOG}")
        if _other_answers(home, 1.0):  # it was quicker, or on its way up; or on its way out: then we try again
            return
        if time.monotonic() > end - 17.0 and not told_once:
            told_once = True
            tell("engine_locked", home=home)
        if time.monotonic() > end:
            raise NoEngine(f"another engine holds {home}/{LOCK} but does not answer: see {home}/{LOG}")


def _check_outside(home: str) -> None:
    """An engine below a run of this home would end with that run, and the jobs that it had started by then, too."""
    from jostle.backends.local.outside import runs_dir

    run = os.environ.get(RUN, "")
    if UNI_ID in os.environ and run and os.path.isdir(os.path.join(runs_dir(home), run)):
        raise NoEngine(f"no engine runs for {home}, and one that run {run} started would end with it: `jostle up` from elsewhere")


def _launch(home: str, words: list[str], settings: dict[str, Any], tell: Tell) -> str:
    """Starts the process; what it says of itself when it is up, or not."""
    import select
    import subprocess

    here = os.path.dirname(os.path.abspath(__file__))
    ready, done = os.pipe()
    argv = [sys.executable, "-I", "-S", os.path.join(here, "daemon.py"), home, *words, "--ready", str(done)]
    with _log(home) as log:
        child = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=[done], cwd="/", start_new_session=True,
            env=own_environment(),
        )  # fmt: skip
    os.close(done)
    assert child.stdin is not None
    with child.stdin as pipe:
        pipe.write(json.dumps(settings).encode())
    with open(ready, encoding="utf-8", errors="replace") as pipe_out:
        if not select.select([pipe_out], [], [], PATIENCE)[0]:
            tell("engine_starting", home=home)
        answer = pipe_out.read()
    child.wait()
    return answer


def own_environment() -> dict[str, str]:
    """Ours, less what a run is told: an engine that a job starts must not look like a part of that job."""
    return passed_on(os.environ)


def _other_answers(home: str, patience: float) -> bool:
    end = time.monotonic() + patience
    while time.monotonic() < end:
        client = attempt(home)
        if client is not None:
            client.close()
            return True
        time.sleep(0.02)
    return False


def _log(home: str) -> IO[bytes]:
    path = os.path.join(home, LOG)
    try:
        return open(path, "ab", opener=_private)
    except OSError as e:
        if e.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"no space left for {path}: free some and try again") from e
        advice = "check that file system, or set JOSTLE_HOME to a directory of yours"
        raise Forbidden(f"cannot write {path}: {e.strerror}; {advice}") from e


def _private(path: str, flags: int) -> int:
    """A pipe that lies there has no reader: an error at once, instead of a wait for one."""
    return os.open(path, flags | os.O_NONBLOCK, 0o600)
