"""`python -m jostle.torchrun`: PyTorch on as many cards as the job has now. Real processes; with torch where there is one."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from jostle import elastic, proc
from tests.e2e.instance import SOURCE, Instance, alive, until

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "elastic" / "torch_train.py"
WORKER = str(HERE / "torch_worker.py")
PATIENT = {"grace": 60.0}  # s to save, also where the processor is somebody else's


def stand_in(folder: Path) -> Path:
    """A place from which Python imports our torch.distributed.run."""
    package = folder / "site" / "torch" / "distributed"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    shutil.copy(HERE / "torch_stand_in.py", package / "run.py")
    return folder / "site"


class Training:
    """A job with cards that come and go, on a host of four, and what its processes wrote down."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.evidence = instance.work / "evidence"
        self.evidence.mkdir()
        self.env = {"PYTHONPATH": f"{stand_in(instance.work)}:{SOURCE}", "EVIDENCE": str(self.evidence)}
        instance.up("sim:4x24")
        instance.call("reload", config=PATIENT)

    def begin(self, *words: str, gpus: int = 1, **more: Any) -> int:
        argv = [sys.executable, "-m", "jostle.torchrun", WORKER, *words]
        job = {"commands": [argv], "env": self.env, "gpus": [gpus, gpus], "resize": "restart", **more}
        (id,) = self.instance.submit(job, policy={"resize_interval": 0.1})
        self.works(id, gpus)
        return id

    def lines(self, name: str, *kinds: str) -> list[dict[str, Any]]:
        path = self.evidence / name
        found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [line for line in found if not kinds or line["kind"] in kinds]

    def works(self, id: int, cards: int) -> list[dict[str, Any]]:
        """Until one process works on each of so many cards, which are those of the record; what they said when they began."""

        def there() -> list[dict[str, Any]]:
            held = {str(card) for card in self.instance.job(id)["gpus"]}
            living = [line for line in self.lines("workers", "begin") if alive(line["pid"])]
            return living if len(held) == cards == len(living) and {line["card"] for line in living} == held else []

        found: list[dict[str, Any]] = until(there, f"{cards} processes on {cards} cards: {self.lines('workers')[-4:]}")
        assert {line["world"] for line in found} == {cards}
        return found

    def resize(self, id: int, cards: int) -> None:
        self.instance.ok("set", str(id), f"gpus={cards}")


@pytest.fixture
def training(instance: Instance) -> Training:
    return Training(instance)


def test_a_training_grows_and_shrinks_and_goes_on_from_what_it_saved(training: Training) -> None:
    id = training.begin("--lr", "0.1")
    for cards in (3, 2):
        training.resize(id, cards)
        training.works(id, cards)
    (training.evidence / "go").touch()
    assert training.instance.end(id) == ["succeeded"]
    assert training.lines("workers", "overlap") == [], "no card had two processes"
    first = [line for line in training.lines("workers") if line["rank"] == 0]
    begins, ends = first[::2], first[1::2]
    assert {line["kind"] for line in begins} == {"begin"} and [line["kind"] for line in ends[-2:]] == ["told to end", "end"]
    assert begins[0]["step"] == 0
    assert all(told["step"] == begun["step"] > 0 for told, begun in zip(ends, begins[1:], strict=False)), "from what was saved"
    agents = training.lines("agents")
    assert [line["nproc_per_node"] for line in agents] == [str(line["world"]) for line in begins]
    assert {(line["script"], *line["arguments"]) for line in agents} == {(WORKER, "--lr", "0.1")}
    assert training.instance.job(id)["attempt"] == 1


def test_of_several_changes_at_once_the_last_holds(training: Training) -> None:
    training.instance.call("reload", config={"grace": 1.0})  # what has just been begun may not have heard
    id = training.begin()
    for cards in (4, 2, 3, 1, 2):
        training.resize(id, cards)
    training.works(id, 2)
    (training.evidence / "go").touch()
    assert training.instance.end(id) == ["succeeded"]
    assert training.lines("workers", "overlap") == []


def test_a_training_that_comes_to_its_end_while_its_cards_change_has_succeeded(training: Training) -> None:
    """It has nothing left to do when it begins again, and that is no failure."""
    id = training.begin("--ends-well")
    training.resize(id, 2)
    training.works(id, 2)
    (training.evidence / "go").touch()
    assert training.instance.end(id) == ["succeeded"]


def test_a_worker_that_fails_fails_the_job(training: Training) -> None:
    id = training.begin(gpus=3)
    (training.evidence / "crash").touch()
    assert training.instance.end(id) == ["failed"]
    (run,) = training.instance.runs(id)
    assert run["exit_code"] == 1, "torchrun's own"
    assert {line["rank"] for line in training.lines("workers", "told to end")} == {0, 1}, "the others are told"


def test_a_cancel_lets_it_save(training: Training) -> None:
    id = training.begin(gpus=2)
    training.instance.ok("cancel", str(id))
    assert training.instance.end(id) == ["cancelled"]
    (told,) = [line for line in training.lines("workers", "told to end") if line["rank"] == 0]
    assert (training.evidence / "saved").read_text() == str(told["step"])


def test_no_worker_outlives_a_torchrun_that_was_killed(training: Training) -> None:
    """A killed torchrun leaves its workers behind, at work on the cards; the run ends them."""
    training.instance.call("reload", config={"grace": 0.1})
    id = training.begin(gpus=2)
    workers = training.works(id, 2)
    (agent,) = training.lines("agents")
    os.kill(agent["pid"], signal.SIGKILL)
    assert training.instance.end(id) == ["failed"]
    assert [line["pid"] for line in workers if alive(line["pid"])] == []


# --- by hand


@pytest.fixture
def by_hand(tmp_path: Path) -> Iterator[Any]:
    """Runs it in a bare environment; its exit code, what it said, and the torchrun that it became."""

    def run(*words: str, **env: str) -> tuple[int, str, dict[str, Any] | None]:
        bare = {"PATH": os.defpath, "PYTHONPATH": SOURCE, "EVIDENCE": str(tmp_path), **env}
        argv = [sys.executable, "-m", "jostle.torchrun", *words]
        done = subprocess.run(argv, env=bare, capture_output=True, text=True, timeout=60, cwd=tmp_path)
        agents = tmp_path / "agents"
        return done.returncode, done.stdout + done.stderr, json.loads(agents.read_text()) if agents.exists() else None

    yield run


def test_what_torchrun_is_told(by_hand: Any, tmp_path: Path) -> None:
    """One process per card of CUDA_VISIBLE_DEVICES; a meeting place that nobody else can come to; what the person says counts."""
    script = tmp_path / "script.py"
    script.touch()
    site = str(stand_in(tmp_path))
    words = ("--max-restarts", "3", str(script), "--nnodes=9", "-h")
    code, said, became = by_hand(*words, PYTHONPATH=f"{site}:{SOURCE}", CUDA_VISIBLE_DEVICES="4,GPU-7", GLOO_SOCKET_IFNAME="eth0")
    assert (code, said) == (0, "") and became is not None
    assert (became["nnodes"], became["nproc_per_node"], became["max_restarts"]) == ("1", "2", "3")
    assert (became["script"], became["arguments"]) == (str(script), ["--nnodes=9", "-h"])
    assert (became["rdzv_backend"], became["rdzv_conf"], became["local_addr"]) == ("c10d", "store_type=file", "127.0.0.1")
    assert became["file"] == {"links": 0, "size": 0, "regular": True, "uid": os.geteuid()}, "new, empty, and under no name"
    assert became["env"] == {
        "CUDA_VISIBLE_DEVICES": "4,GPU-7", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "GLOO_SOCKET_IFNAME": "eth0",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "env", "processes"),
    [
        ((), {}, "gpu"),
        ((), {"CUDA_VISIBLE_DEVICES": ""}, "gpu"),
        ((), {"CUDA_VISIBLE_DEVICES": "0,1", "JOSTLE_GPUS_FILE": "gpus"}, "3"),
        (("--nproc-per-node=2",), {"CUDA_VISIBLE_DEVICES": "0"}, "2"),
    ],
)
def test_how_many_processes_there_are(
    by_hand: Any, tmp_path: Path, words: tuple[str, ...], env: dict[str, str], processes: str
) -> None:
    """The list that jostle keeps counts before the variable; without any, torchrun counts the cards."""
    (tmp_path / "gpus").write_text("0,1,2\n7\n")
    script = tmp_path / "script.py"
    script.touch()
    code, said, became = by_hand(*words, str(script), PYTHONPATH=f"{stand_in(tmp_path)}:{SOURCE}", **env)
    assert (code, said) == (0, "") and became is not None and became["nproc_per_node"] == processes


def without_torch(tmp_path: Path) -> str:
    """A path on which a directory that is called torch is all there is of it."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hides:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch':\n"
        "            from importlib.machinery import ModuleSpec\n"
        "            return ModuleSpec(name, None, is_package=True)\n"
        "sys.meta_path.insert(0, Hides())\n"
    )
    return f"{hidden}:{SOURCE}"


def test_without_torch_the_torchrun_of_the_path_is_taken_and_without_that_it_says_so(by_hand: Any, tmp_path: Path) -> None:
    path = without_torch(tmp_path)
    code, said, became = by_hand("script.py", PYTHONPATH=path)
    assert code == 1 and became is None
    assert said == f"jostle.torchrun: {sys.executable} has no torch, and there is no torchrun on the PATH\n"
    (tmp_path / "bin").mkdir()
    torchrun = tmp_path / "bin" / "torchrun"
    torchrun.write_text(f"#!{sys.executable}\n" + (HERE / "torch_stand_in.py").read_text())
    torchrun.chmod(0o755)
    (tmp_path / "script.py").touch()
    code, said, became = by_hand("script.py", PYTHONPATH=path, PATH=f"{tmp_path}/bin", CUDA_VISIBLE_DEVICES="3")
    assert (code, said) == (0, "") and became is not None and became["nproc_per_node"] == "1"


def test_it_explains_itself(by_hand: Any) -> None:
    for words, expected in (((), 2), (("--help",), 0)):
        code, said, became = by_hand(*words)
        assert code == expected and became is None and "python -m jostle.torchrun train.py" in said


# --- with torch


RATE, POINTS = 0.01, [-1 + 2 * k / 11 for k in range(12)]


def curve(steps: int) -> list[float]:
    """The losses of the example if nobody ever interrupts it, by hand: of y = 3x + 1, from a line that is 0."""
    slope, height, losses = 0.0, 0.0, []
    for _ in range(steps):
        off = [slope * x + height - (3 * x + 1) for x in POINTS]
        losses.append(sum(e * e for e in off) / 12)
        slope -= RATE * 2 * sum(e * x for e, x in zip(off, POINTS, strict=True)) / 12
        height -= RATE * 2 * sum(off) / 12
    return losses


@pytest.fixture
def torch_job(instance: Instance) -> dict[str, Any]:
    """The training of the examples, on the real torch; endless, unless its steps are given."""
    if find_spec("torch") is None:
        pytest.skip("torch is not installed here: make torchrun")
    instance.up("sim:4x24")
    instance.call("reload", config=PATIENT)
    shutil.copy(EXAMPLE, instance.work / "train.py")
    (instance.work / "tmp").mkdir()
    env = {"PYTHONPATH": SOURCE, "STEPS": "1000000", "TMPDIR": str(instance.work / "tmp"), "OMP_NUM_THREADS": "1"}
    return {"commands": [[sys.executable, "-m", "jostle.torchrun", "train.py"]], "env": env, "resize": "restart"}


def test_a_real_training_grows_and_shrinks_and_its_losses_are_those_of_one_that_nobody_interrupted(
    instance: Instance, torch_job: dict[str, Any]
) -> None:
    """On CPUs (gloo), with simulated cards: 1, 3, then 2 of them."""
    (id,) = instance.submit({**torch_job, "gpus": [1, 1]}, policy={"resize_interval": 0.1})
    for cards in (1, 3, 2):
        if cards > 1:
            instance.ok("set", str(id), f"gpus={cards}")
        learns(instance, id, cards)
        assert len(instance.job(id)["gpus"]) == cards
        seen = {(proc.environ(pid) or {}).get(elastic.VISIBLE) for pid in marked(instance, id)}
        assert seen == {",".join(map(str, instance.job(id)["gpus"]))}, "nobody is left on a card that was given back"
    instance.ok("cancel", str(id))
    assert instance.end(id) == ["cancelled"]
    said = instance.output(id)  # several write into it: what others say may stand between a text and its newline
    begun = [(int(step), int(world)) for step, world in re.findall(r"from step (\d+) with (\d+) processes", said)]
    assert begun[0] == (0, 1) and begun[-1][1] == 2 and all(a < b for (a, _), (b, _) in pairwise(begun))
    steps = [(int(step), float(loss)) for step, loss in re.findall(r"step (\d+) loss (\d+\.\d{6})", said)]
    assert [step for step, _ in steps] == list(range(len(steps))), "each step is done once"
    assert re.search(rf"saved step {len(steps)}(?!\d)", said), "the cancel lost nothing either"
    assert [loss for _, loss in steps] == pytest.approx(curve(len(steps)), abs=2e-5)


def test_a_real_training_that_ends_well_has_succeeded_and_one_whose_worker_fails_has_not(
    instance: Instance, torch_job: dict[str, Any]
) -> None:
    few = {**torch_job["env"], "STEPS": "20", "PAUSE": "0"}
    (id,) = instance.submit({**torch_job, "gpus": [2, 2], "env": few})
    until(lambda: instance.job(id)["state"] in ("succeeded", "failed"), instance.output(id), patience=200)
    assert instance.job(id)["state"] == "succeeded" and "saved step 20" in instance.output(id)
    (bad,) = instance.submit({**torch_job, "gpus": [2, 2], "env": {**few, "PAUSE": "never"}})
    until(lambda: instance.job(bad)["state"] in ("succeeded", "failed"), instance.output(bad), patience=200)
    assert instance.job(bad)["state"] == "failed" and instance.runs(bad)[0]["exit_code"] == 1


def learns(instance: Instance, id: int, processes: int) -> None:
    """Until so many processes have done ten steps together."""

    def steps() -> bool:
        last = instance.output(id).rpartition("from step ")[2]
        return re.match(rf"\d+ with {processes} processes", last) is not None and last.count(" loss ") >= 10

    until(steps, f"{processes} processes learn: {instance.output(id)[-2000:]}", patience=200)


def marked(instance: Instance, id: int) -> list[int]:
    """The processes of the job's run."""
    (run,) = instance.runs(id)
    return [pid for pid in proc.pids() if proc.mark(pid) == run["uni_id"]]
