"""A home with a real store, and an engine that is a script: it answers requests as a test says and keeps what it was asked."""

import contextlib
import json
import os
import pathlib
import socket
import tempfile
import threading
import time

import pytest

from jostle.cli.main import main
from jostle.core.fields import JOB
from jostle.formats import spec
from jostle.store import jobs
from jostle.store.store import Store


class Engine:
    """A tiny server of JSON lines on the engine's socket."""

    def __init__(self, home):
        self.home = str(home)
        self.requests = []
        self.answers = {"hello": HELLO, "reasons": {"shapes": {}, "now": 0.0}}
        self.events = []
        self.listener = None
        self.over = threading.Event()  # a stream that is held open is let go

    def start(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(self.home, "engine.sock"))
        self.listener.listen(16)
        self.accepting = threading.Thread(target=self._accept, args=(self.listener,), daemon=True)
        self.accepting.start()

    def stop(self):
        self.over.set()
        if self.listener is not None:
            self.listener.shutdown(socket.SHUT_RDWR)
            self.accepting.join()  # else it might accept on the number of the closed socket, which the next engine has
            self.listener.close()
            os.unlink(os.path.join(self.home, "engine.sock"))
            self.listener = None

    def _accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        """Whoever asked may be gone before he is answered."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._answer(sock)

    def _answer(self, sock):
        with sock, sock.makefile("rwb") as f:
            for line in f:
                request = json.loads(line)
                self.requests.append(request)
                if request["op"] == "subscribe":
                    self._stream(f, request)
                    return
                answer = self.answers.get(request["op"], {"ok": False, "error": {"code": "usage", "text": "unknown"}})
                answer = answer(request) if callable(answer) else answer
                f.write(json.dumps({"ok": True, **answer}).encode() + b"\n")
                f.flush()
                if request["op"] == "down":
                    return

    def _stream(self, f, request):
        f.write(b'{"ok": true, "seq": 0}\n')
        for event in self.events:
            if event == "hang up":
                self.events.remove(event)
                break
            if event == "wait":
                f.flush()
                deadline = time.monotonic() + 60
                while not any(r.get("do") == "cancel" for r in self.requests) and time.monotonic() < deadline:
                    time.sleep(0.01)
            elif event["seq"] > request["after"]:
                f.write(json.dumps(event).encode() + b"\n")
        f.flush()
        if "hold" in request:
            self.over.wait()

    def asked(self, op):
        return [request for request in self.requests if request["op"] == op]


WHOLE = {name: field.fresh() for name, field in JOB.items() if not field.into}  # what the gate adds to a job of a file

HELLO = {
    "version": "0.2.0",
    "pid": 4711,
    "gpus_spec": "sim:2x24",
    "uptime_s": 61.0,
    "home": "",
    "lease_dir": "/l",
    "sim_dir": None,
    "counts": {"queued": 2},
    "hold": "",
    "permanent": True,
    "seq": 0,
}


@pytest.fixture
def home(monkeypatch):
    """Short, because a socket's path must be."""
    with tempfile.TemporaryDirectory(prefix="jcli") as path:
        os.chmod(path, 0o700)
        monkeypatch.setenv("JOSTLE_HOME", path)
        simulated = ("JOSTLE_SIM_DIR", "JOSTLE_LEASE_DIR")  # what a look at simulated cards leaves in this process
        for name in ("JOSTLE_LANG", "LC_ALL", "LC_MESSAGES", "LANG", "NO_COLOR", "JOSTLE_UNI_ID", *simulated):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("JOSTLE_WEB", "off")
        yield pathlib.Path(path)


@pytest.fixture
def engine(home):
    made = Engine(home)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def jostle(home, capfd):
    """Runs one command; (exit code, stdout, stderr)."""

    def run(*argv):
        code = main([str(a) for a in argv])
        import sys

        sys.stdout.flush()
        out, err = capfd.readouterr()
        return code, out, err

    return run


@pytest.fixture
def store(home):
    """put(**fields) makes a job and gives its id; fields of the row may be set as they are."""
    made = Store(str(home))
    made.db.execute("DROP TRIGGER IF EXISTS temp.job_way")  # rows here are made as a scene, not lived through

    def put(*, rows=1, state="queued", **fields):
        columns = {k: fields.pop(k) for k in list(fields) if k in ROW}
        request = {
            "batch": {"key": "k", "name": "n", "join": True, "policy": {}},
            "context": {},
            "once": None,
            "jobs": [{**WHOLE, **spec.job(**{"name": "job", "commands": ["true"], **fields})} for _ in range(rows)],
        }
        with made.transaction() as db:
            first, last = jobs.submit(made, request, at=time.time(), now=0.0, rank=lambda: 0.0)["ids"]
            for column, value in {"state": state, **columns}.items():
                if column != "state" or value != "queued":
                    db.execute(f"UPDATE job SET {column} = ? WHERE id BETWEEN ? AND ?", (value, first, last))
        return first

    put.store = made
    yield put
    made.db.close()


ROW = (
    "attempt",
    "retries",
    "exit_code",
    "error_type",
    "reason",
    "started_at",
    "ended_at",
    "ready",
    "not_before",
    "begin_at",
    "intent",
)


def event(seq, kind, job=None, *, batch=1, run=1, **data):
    return {"seq": seq, "at": 1000.0 + seq, "kind": kind, "batch": batch, "job": job, "run": run, "data": data}
