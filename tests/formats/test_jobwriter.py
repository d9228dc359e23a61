"""A workspace as a job file: what is written reads back as the same jobs and policy; and the verb that does it."""

import argparse
import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.cli import importing
from jostle.cli.parse import parser
from jostle.cli.terminal import Terminal
from jostle.core.fit import CHOICES
from jostle.errors import Invalid, JostleError
from jostle.formats import jobfile, jobwriter, spec, taskfile, taskjobs
from jostle.formats.flaws import BadFiles
from jostle.formats.gpumanage import Settings
from jostle.formats.taskfile import Block
from jostle.formats.workspace import Workspace

SPACE = Workspace(
    root="/p/compete", mode="single", index=0, command_file="/p/compete/command.txt", config_file=None, settings=Settings()
)


def said(policy):
    """Null is written, and read as nothing said."""
    return {key: value for key, value in policy.items() if value is not None}


def read_back(tmp_path, text):
    path = tmp_path / "jobs.yaml"
    path.write_text(text, encoding="utf-8")
    batch = jobfile.load([str(path)])
    return {**batch, "policy": said(batch["policy"])}


def same(tmp_path, batch, **more):
    wanted = {**{key: value for key, value in batch.items() if key != "texts"}, "policy": said(batch["policy"])}
    return read_back(tmp_path, jobwriter.text_of(batch, **more)) == wanted


commands = st.one_of(
    st.text(alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1).filter(str.strip),
    st.sampled_from(["a: b", "- a", "'", '"', "it's \"x\"", "# a", "{uni_id}", "null", "1e5", "yes", " a ", "a\\", "a\tb"]),
    st.sampled_from(["*a", "&a", "!a", "%a", "@a", "`a`", "|", ">", "a #b", "[a", "{a", "a:", ":a", "?", "---", "=", "<<"]),
)  # fmt: skip
blocks = st.builds(
    Block, queue=st.integers(0, 5), commands=st.lists(commands, min_size=1, max_size=3).map(tuple), memory_gb=st.floats(0, 1000),
    gpus=st.integers(1, 8),
)  # fmt: skip
counts = st.one_of(st.none(), st.integers(0, 9))
rules = st.builds(
    Settings, maximize_resource_utilization=st.booleans(), memory_save_mode=st.booleans(), use_all_gpus=st.booleans(),
    compete_gpus=st.lists(st.integers(0, 20), min_size=1, max_size=5).map(tuple), gpu_left=st.integers(0, 9), min_gpu=counts,
    max_gpu=counts, max_retry_before_backoff=st.integers(1, 9), backoff_duration=st.floats(0, 1e6), max_retries=counts,
    on_failure=st.sampled_from(["stop", "continue"]),
    strangers=st.sampled_from(["share", "avoid"]), start_interval=st.floats(0, 1e6),
    time_limit=st.one_of(st.none(), st.floats(0.001, 1e6)), gpu_choice=st.one_of(st.none(), st.sampled_from(sorted(CHOICES))),
    work_dir=st.sampled_from([None, "..", "/a b", "/it's", "数据", "a: b"]),
)  # fmt: skip
notes = st.lists(st.lists(st.text(max_size=20), max_size=2), max_size=4)


@given(st.lists(blocks, min_size=1, max_size=4), rules, st.sampled_from(["single", "multi"]), notes)
@settings(deadline=None)
def test_what_is_written_reads_back_as_the_same_jobs_and_policy(tmp_path_factory, tasks, chosen, mode, above):
    space = dataclasses.replace(SPACE, mode=mode, settings=chosen)
    assert same(tmp_path_factory.getbasetemp(), taskjobs.batch(space, tasks, None), head=["from\nthere"], notes=above)


def test_every_key_of_a_job_that_can_be_written_is(tmp_path):
    job = spec.job(
        name="all: of it", queue="q", commands=["a", "b"], gpus=[1, 4], memory_mib=1025, share=True, on=["lab", "local"],
        env={"A": "1e-5", "B C": "null"}, workdir="/w", log="/l", priority=-3, time_limit=0.5, tags=["x", "y z"],
        leftovers="wait",
    )  # fmt: skip
    bare = spec.job(name="b", commands=["c"], gpus=[0, 0])
    assert same(tmp_path, {"name": "n", "policy": {"min_free_mib": 512, "margin_mib": 0}, "queues": None, "jobs": [job, bare]})


@pytest.mark.parametrize("values", [{"needs": [["job", 1, False]]}, {"begin": 5.0}, {"commands": [["a", "b"]]}])
def test_what_is_not_written_yet_is_refused(values):
    job = spec.job(**{"name": "n", "commands": ["a"], **values})
    with pytest.raises(Invalid, match="cannot be written"):
        jobwriter.text_of({"name": "n", "policy": {}, "jobs": [job]})


TASKS = """\
# car
1 # the first
python car.py
20

# about birds

# bird
python bird.py
2,2.5

broken

# last
"""


def test_comments_come_along(tmp_path):
    good, _ = taskfile.parse(TASKS, "single")
    text = jobwriter.text_of(taskjobs.batch(SPACE, good, None), notes=jobwriter.notes_of(TASKS, "single"))
    assert "  # car\n  - name: 'queue 1 task 1: python car.py'\n" in text
    assert "  # about birds\n  # bird\n  - name: 'queue 2 task 1: python bird.py'\n" in text
    assert text.endswith("\n# last\n")
    assert jobwriter.notes_of("", "single") == [[]]


# --- the verb


@pytest.fixture
def workspace(tmp_path):
    root = tmp_path / "compete"
    (root / "command").mkdir(parents=True)
    (root / "config").mkdir()
    (root / "command" / "command_gpu.txt").write_text(TASKS.replace("broken", ""))
    (root / "command" / "command_gpus_1.txt").write_text("1\npython a.py\n4\n20\n")
    (root / "config" / "gpu_manage.yaml").write_text("gpu_left: 2\n")
    return root


def run(*words):
    return importing.import_(parser("import").parse_args([str(word) for word in words]), Terminal())


def test_import_prints_a_job_file_that_validates(workspace, tmp_path, capsys):
    assert run(workspace) == 0
    batch = read_back(tmp_path, capsys.readouterr().out)
    assert [job["queue"] for job in batch["jobs"]] == ["1", "2"]
    assert (batch["policy"]["gpu_left"], batch["queues"], batch["name"]) == (2, "own", "compete single config 1")


def test_import_writes_a_file_and_never_over_another_without_force(workspace, tmp_path, capsys):
    out = tmp_path / "jobs.yaml"
    assert run(workspace / "command/command_gpus_1.txt", "-o", out) == 0
    assert f"wrote {out}: 1 job, 1 queue" in capsys.readouterr().err
    assert jobfile.load([str(out)])["jobs"][0]["gpus"] == [4, 4]
    with pytest.raises(Invalid, match="exists; --force writes over it"):
        run(workspace, "-o", out)
    assert run(workspace, "-o", out, "--force") == 0
    assert len(jobfile.load([str(out)])["jobs"]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["compete", "jobs.yaml"]
    with pytest.raises(JostleError, match="cannot write"):
        run(workspace, "-o", tmp_path / "none" / "jobs.yaml")
    assert run(workspace, "--mode", "multi", "--config-index", "1") == 0


def test_import_tells_all_errors_or_leaves_bad_blocks_out(workspace, capsys):
    file = workspace / "command/command_gpu.txt"
    file.write_text(TASKS)
    with pytest.raises(BadFiles, match=f"{file}:12: the block ends with"):
        run(workspace)
    assert run(workspace, "--lenient") == 0
    assert "warning: " in capsys.readouterr().err
    file.write_text("# nothing\n")
    with pytest.raises(Invalid, match="holds no tasks"):
        run(workspace)


def test_the_verb_is_known_by_its_word():
    assert isinstance(parser("import"), argparse.ArgumentParser)
