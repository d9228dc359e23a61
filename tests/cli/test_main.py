"""The command as a whole: verbs, help, errors and their exit codes, and how quickly it starts."""

import os
import subprocess
import sys

import pytest

from jostle import __version__
from jostle.cli.parse import options, parser
from jostle.cli.verbs import VERBS
from jostle.formats.workspace import STEMS

INSTALLED = [verb for verb in VERBS if verb != "demo"]


def test_alone_it_lists_every_verb(jostle):
    code, out, err = jostle()
    assert code == 0 and err == ""
    assert all(f"\n  {verb} " in out for verb in VERBS)


@pytest.mark.parametrize("verb", INSTALLED)
def test_every_verb_has_help_with_an_example(jostle, verb):
    code, out, _ = jostle(verb, "--help")
    assert code == 0
    assert f"jostle {verb}" in out.split("examples:")[1]


@pytest.mark.parametrize("verb", INSTALLED)
def test_every_verb_is_one_function_of_its_name(verb):
    made, function = options(verb)
    assert callable(made) and function.__name__.rstrip("_") == verb.replace("-", "_")  # import is Python's


@pytest.mark.parametrize("verb", ["ps", "show", "why", "logs", "gpus", "status", "wait", "doctor", "validate"])
def test_every_reading_verb_speaks_json(verb):
    assert any("--json" in action.option_strings for action in parser(verb)._actions)


def test_the_version_is_told(jostle):
    assert jostle("--version") == (0, f"jostle {__version__}\n", "")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("pss", "ps"), ("cancle", "cancel"), ("statsu", "status"), ("list", "ps"), ("stop", "cancel"), ("kill", "cancel")],
)
def test_an_unknown_verb_gets_the_nearest_one(jostle, typed, meant):
    code, out, err = jostle(typed)
    assert (code, out) == (2, "") and f"did you mean `jostle {meant}`?" in err


def test_a_bad_option_is_a_usage_error_in_one_line(jostle):
    code, out, err = jostle("ps", "--nonsense")
    assert (code, out) == (2, "") and err.count("\n") == 1 and "--nonsense" in err


def test_no_engine_where_none_may_be_started_is_exit_code_3(home):
    env = {**os.environ, "JOSTLE_HOME": str(home)}
    code = "import jostle.client as c, sys\nfrom jostle.cli import main\nfrom jostle.cli.terminal import Terminal\n"
    code += "Terminal.client = lambda self, **k: c.connect(self.home, start=False)\nsys.exit(main.main(['add', '--', 'true']))"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 3 and "`jostle up` starts one" in done.stderr


def test_a_closed_pipe_is_no_error(home, store):
    store(rows=3000)
    command = f"{sys.executable} -m jostle ps --all --json | head -c 10; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env={**os.environ, "JOSTLE_HOME": str(home)})
    assert (done.returncode, done.stderr) == (0, "")


def test_output_that_cannot_be_written_is_an_error_in_one_line(home, store):
    store()
    with open("/dev/full", "w") as full:
        env = {**os.environ, "JOSTLE_HOME": str(home)}
        done = subprocess.run([sys.executable, "-m", "jostle", "ps"], stdout=full, stderr=subprocess.PIPE, text=True, env=env)
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("jostle: the output cannot be written: No space left")
    assert "Traceback" not in done.stderr


def test_a_home_that_is_open_to_others_is_forbidden(home, jostle):
    os.chmod(home, 0o755)
    code, _, err = jostle("ps")
    os.chmod(home, 0o700)
    assert code == 5 and "chmod 700" in err


HEAVY = (
    "sqlite3",
    "dataclasses",
    "inspect",
    "yaml",
    "rich",
    "fastapi",
    "uvicorn",
    "pydantic",
    "asyncio",
    "subprocess",
    "shutil",
    "threading",
    "tempfile",
    "datetime",
)


def test_the_way_to_add_imports_nothing_heavy(engine, home):
    engine.answers["submit"] = {"batch": 1, "ids": [7, 7], "count": 1}
    code = "import sys\nfrom jostle.cli.main import main\nassert main(['add', '--', 'true']) == 0\n"
    code += f"print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "JOSTLE_HOME": str(home)}
    )
    assert done.stdout == "7\n[]\n", done.stderr


def test_the_way_to_why_jobs_wait_imports_no_dataclasses(engine, home, store):
    """They cost a sixth of `jostle ps`."""
    store(rows=2, queue="q")
    code = "import sys\nfrom jostle.cli.main import main\nassert main(['ps']) == 0\nprint('dataclasses' in sys.modules)"
    env = {**os.environ, "JOSTLE_HOME": str(home)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert "behind 1 other job" in done.stdout and done.stdout.endswith("False\n"), done.stderr


@pytest.mark.parametrize("verb", ["run", "compete", "validate", "import"])
def test_the_modes_of_a_task_file_are_those_of_a_workspace(verb):
    (mode,) = [action for action in parser(verb)._actions if "--mode" in action.option_strings]
    assert [*mode.choices] == [*STEMS]
