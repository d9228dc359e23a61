"""What the reading verbs print, kept as files in tests/golden: code may move, what people and scripts see does not.

The store, the engine and its answers are real; time, cards and processes are those of tests/engine/fakes. `JOSTLE_GOLDEN=write`
writes the files anew; what changed in them is then read by a person before it is committed.
"""

import itertools
import json
import os
import pathlib
import re
import secrets
import socket
import time

import pytest

from jostle import __version__
from jostle.engine.loop import Loop
from jostle.engine.service import Service
from jostle.views import statustypes, types
from tests.engine.fakes import FakeClock, Host
from tests.fits import misfits

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
OOM = "RuntimeError: CUDA out of memory"
HOSTS_OWN = ("python", "home", "disk", "leases", "bash", "pidfd", "logout")  # what doctor says of the machine a test runs on
JOBS = range(1, 18)
PID = 987654321  # of the engine: no other number of the scene, as a small pid of this process may be
LOOKS = [
    ["ps"],
    ["ps", "--all"],
    ["ps", "-s", "failed"],
    ["ps", "--batches"],
    ["gpus"],
    ["why", "all"],
    *(["why", str(id)] for id in JOBS),
    *(["show", str(id)] for id in (1, 2, 5, 8, 9, 10, 16)),
    ["status"],
    ["results", "1"],
    ["results", "--format", "csv"],
    ["doctor"],
]


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """A host some minutes into its day: of every state one, and all that can be said against a card."""
    home = tmp_path_factory.mktemp("golden") / "home"
    home.mkdir(mode=0o700)
    patch = pytest.MonkeyPatch()
    patch.setattr(FakeClock, "wall", lambda clock: clock.at + 1.8e9)
    drawn = itertools.count(1)  # a run's id decides how its pauses are spread
    patch.setattr(secrets, "token_hex", lambda size: f"{next(drawn):0{2 * size}x}")
    host = Host(str(home), gpus=6, strangers={"GPU-4": 9000}, errors={"GPU-5": 0})
    play(host)
    yield host
    patch.undo()
    host.let_go()
    host.store.db.close()
    os.close(host.store.journal)


def play(host):
    """Minutes pass; what is submitted here is what the files show."""
    lasting, failing = (1e6, 0, ""), (3.0, 3, "")
    host.disk.durations = {
        1: (20.0, 0, ""),
        2: (4.0, 1, OOM),
        3: failing,
        4: lasting,
        5: lasting,
        6: lasting,
        10: failing,
        13: lasting,
    }
    seeds = [{"name": f"train seed={n}", "params": {"seed": str(n)}, "memory_mib": 8192, "tags": ["night"]} for n in (1, 2)]
    host.submit(*seeds, {"name": "breaks", "retry": {"max": 0}}, policy={"retry": {"max": 2, "backoff": 600, "backoff_after": 2}})
    host.step()
    host.disk.errors["GPU-5"] = 3
    for _ in range(30):
        host.step(1.0)
    host.submit({"name": "long", "gpus": [2, 2], "env": {"MODE": "fast"}}, {"name": "doomed", "time_limit": 86400})
    host.submit({"name": "first of q", "queue": "q"}, {"name": "second of q", "queue": "q"})
    host.submit({"name": "too big", "gpus": [9, 9]}, {"name": "later", "needs": [["job", 4, False]]})
    host.submit({"name": "fails again", "retry": {"max": 5, "backoff": 3600, "backoff_after": 1}})
    host.submit({"name": "after it", "needs": [["job", 3, False]]}, {"name": "kept back"})
    with host.store.transaction() as db:
        db.execute("UPDATE job SET intent = 'hold', ready = 0 WHERE id = 12")
    host.submit({"name": "one of two"}, {"name": "two of two"}, policy={"max_concurrent": 1})
    host.submit({"name": "much", "memory_mib": 30000}, {"name": "gone"}, {"name": "wide", "gpus": [4, 4], "memory_mib": 20000})
    for _ in range(3):
        host.step(1.0)
    host.cancel(5)
    host.cancel(16)
    for _ in range(20):
        host.step(1.0)
    for id, accuracy in ((1, 0.91), (2, 0.93)):
        folder = pathlib.Path(host.home, "runs", f"{id}.{host.job(id)['attempt']}")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "log").write_text(f"epoch 1\nTest Accuracy: {accuracy}\n")
        os.utime(folder / "log", (1.8e9, 1.8e9))


@pytest.fixture
def engine(scene, request):
    """The scene's engine on a socket: what its service answers, asked beforehand, as a database is of one thread."""
    from tests.cli.conftest import Engine

    service = Service(scene.engine, Loop(), permanent=True)
    asked = {
        json.dumps([op, lang, id]): getattr(service, op)(None, {"lang": lang, "id": id, "again": True})
        for lang in ("en", "zh")
        for op, ids in (("hello", [None]), ("reasons", [None]), ("gpus", [None]), ("why", JOBS))
        for id in ids
    }
    asked |= {key: {**told, "pid": PID} for key, told in asked.items() if "pid" in told}
    made = Engine(scene.home)
    for op in ("hello", "reasons", "gpus", "why"):
        made.answers[op] = lambda r: asked[json.dumps([r["op"], r.get("lang") or "en", r.get("id")])]
    made.start()
    yield made
    made.stop()


@pytest.fixture
def look(scene, monkeypatch, capfd):
    """look(argv) gives what it prints, as a person would see it after the command."""
    from jostle.cli.main import main

    wall = scene.clock.wall()
    monkeypatch.setenv("JOSTLE_HOME", scene.home)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(time, "time", lambda: wall)
    for name in ("LC_ALL", "LC_MESSAGES", "LANG", "NO_COLOR", "JOSTLE_UNI_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(scene.home)

    def look(argv):
        code = main(argv)
        out, err = capfd.readouterr()
        if argv[0] == "doctor":
            out = without_the_machine(out)
        if "--json" in argv:
            out = json.dumps(json.loads(out), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        said = "".join(f"! {line}\n" for line in err.splitlines())
        return masked(f"$ jostle {' '.join(argv)}  -> {code}\n{said}{out}\n", scene.home)

    yield look
    monkeypatch.undo()
    time.tzset()


def without_the_machine(out):
    if out.startswith("{"):
        told = json.loads(out)
        return json.dumps({**told, "checks": [check for check in told["checks"] if check["name"] not in HOSTS_OWN]})
    return "".join(line for line in out.splitlines(keepends=True) if not line.startswith(HOSTS_OWN))


def masked(text, home):
    for pattern, name in (
        (re.escape(home), "HOME"), (rf"(?<=[ \"]){re.escape(socket.gethostname())}(?=[\":：])", "HOST"),
        (re.escape(__version__), "VERSION"), (rf"\b{PID}\b", "PID"),
        (r"sound, [\d.]+ \w+", "sound, SIZE"), (r"read in \d+ ms", "read in N ms"),
        (r"完好，[\d.]+ \w+", "完好，SIZE"), (r"读取用时 \d+ ms", "读取用时 N ms"),
    ):  # fmt: skip
        text = re.sub(pattern, name, text)
    return text


def held_by(name, text):
    path = GOLDEN / name
    if os.environ.get("JOSTLE_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8"), f"{name} is not what is printed now; `JOSTLE_GOLDEN=write` writes it anew"


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_reading_verbs_print_what_they_printed(look, engine, monkeypatch, language, form):
    monkeypatch.setenv("JOSTLE_LANG", language)
    json_wanted = ["--json"] * (form == "json")
    asked = [argv for argv in LOOKS if not (json_wanted and "--format" in argv)]
    held_by(f"engine.{language}.{form}", "".join(look([*argv, *json_wanted]) for argv in asked))


def test_what_the_reading_verbs_give_as_json_is_of_the_types_of_the_views(look, engine):
    kinds = {"ps": types.Jobs, "gpus": types.WordedCards, "why": types.Why, "show": types.Story, "status": statustypes.Overview}
    kinds |= {"doctor": types.Health, "logs": types.Log, "results": types.Results}
    for argv in [*LOOKS, ["logs", "1"]]:
        if argv[0] in kinds and "--format" not in argv and argv != ["why", "all"]:
            told = json.loads(look([*argv, "--json"]).partition("\n")[2].replace('"pid": PID', '"pid": 1'))
            assert told.pop("schema") == 1
            kind = types.Batches if "--batches" in argv else kinds[argv[0]]
            assert list(misfits(told, kind, " ".join(argv))) == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_reading_verbs_print_what_they_printed_where_no_engine_runs(look, monkeypatch, language):
    monkeypatch.setenv("JOSTLE_LANG", language)
    asked = [["ps"], ["ps", "--json"], ["why", "all"], ["why", "4", "--json"], ["show", "10"], ["status"], ["status", "--json"]]
    held_by(f"alone.{language}.text", "".join(map(look, asked)))


@pytest.mark.parametrize("columns", [60, 100, 140])
def test_tables_on_a_screen_are_what_they_were(look, engine, monkeypatch, columns):
    monkeypatch.setenv("JOSTLE_LANG", "en")
    monkeypatch.setattr("jostle.cli.terminal.Terminal.width", columns)
    held_by(f"screen.{columns}.text", "".join(map(look, [["ps"], ["gpus"]])))
