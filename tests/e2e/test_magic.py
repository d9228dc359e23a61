"""`%%jostle` in a real IPython: a cell is a job."""

import json
import subprocess
import sys

from tests.e2e.instance import PATIENCE, Instance, until


def in_ipython(instance: Instance, *cells: str) -> list[str]:
    """What each cell printed, or the name of its error."""
    code = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell = InteractiveShell.instance(history_length=0)
told = []
for cell in json.loads(sys.argv[1]):
    with capture_output() as seen:
        done = shell.run_cell(cell)
    error = done.error_in_exec or done.error_before_exec
    told.append(type(error).__name__ + ": " + str(error) if error else seen.stdout)
print(json.dumps(told))
"""
    env = {**instance.env, "IPYTHONDIR": str(instance.root / "ipython")}
    words = [sys.executable, "-W", "ignore", "-c", code, json.dumps(["%load_ext jostle", *cells])]
    done = subprocess.run(words, env=env, cwd=instance.work, capture_output=True, text=True, timeout=2 * PATIENCE)
    assert done.returncode == 0, done.stderr
    told: list[str] = json.loads(done.stdout.splitlines()[-1])
    return told[1:]


def test_a_cell_runs_as_a_job_on_a_card_and_what_it_prints_appears(instance: Instance) -> None:
    instance.up("sim:2x24")
    cell = "import os\nfor k in range(2):\n    print('line', k, os.environ['CUDA_VISIBLE_DEVICES'], \"it's\")\n"
    (told,) = in_ipython(instance, f"%%jostle gpus=1 memory=4GiB name=probe\n{cell}")
    assert told.splitlines()[:2] == ["line 0 0 it's", "line 1 0 it's"]
    (job,) = instance.newest()
    assert (job["name"], job["state"], job["memory_mib"]) == ("probe", "succeeded", 4096)


def test_a_cell_may_fail_be_refused_or_not_be_waited_for(instance: Instance) -> None:
    instance.up("sim:2x24")
    instance.see_cards()
    failed, odd, key, never, went_on = in_ipython(
        instance, "%%jostle -g 0 -n bad\n1/0\n", "%%jostle what\npass\n", "%%jostle memroy=4GiB\npass\n",
        "%%jostle gpus=9\npass\n", "%%jostle -g 0 -n later &\nopen('made', 'w')\n",
    )  # fmt: skip
    assert "It can never start with the cards this host has: it needs 9 cards" in never and len(instance.jobs()) == 2
    assert failed.startswith("Failed: job 1 (bad) failed")
    assert odd.startswith("Usage: %%jostle: 'what' is not understood; expected keys of a job")
    assert "memory?" in key
    assert "jostle batch" in went_on
    instance.made("made")
    until(lambda: [job["state"] for job in instance.newest(2)] == ["failed", "succeeded"], "both have ended")
