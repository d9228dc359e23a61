"""Blocks as jobs: what the engine is asked to run is what the file says."""

import dataclasses

from jostle.core.fields import JOB
from jostle.engine import checks
from jostle.formats import taskfile, taskjobs
from jostle.formats.gpumanage import Settings
from jostle.formats.taskfile import Block
from jostle.formats.workspace import Workspace

SPACE = Workspace(
    root="/p/compete",
    mode="single",
    index=1,
    command_file="/p/compete/command/command_gpu_1.txt",
    config_file=None,
    settings=Settings(),
)
TEXT = """\
rm -rf {work_dir}/kb
bash {work_dir}/run.sh car --uni_id {uni_id} ${work_dir} {x} CUDA={available_gpu}
1,20

2
python b.py
0.5

1
python c.py
0
"""


def test_a5_a15_blocks_become_jobs_in_the_order_of_the_file():
    blocks, _ = taskfile.parse(TEXT, "single")
    batch = taskjobs.batch(SPACE, blocks, None)
    first, second, third = batch["jobs"]
    assert (batch["name"], batch["queues"]) == ("compete single config 2", "own")
    wanted = {
        "name": "queue 1 task 1: bash run.sh car ${work_dir} {x} CUDA={available…", "queue": "1",
        "commands": ["rm -rf /p/kb", "bash /p/run.sh car --uni_id {uni_id} ${work_dir} {x} CUDA={available_gpu}"],
        "gpus": [1, 1], "memory_mib": 20480, "share": False, "env": {"JOSTLE_UNI_ID_FILE": "/p/compete/logs/uni_id.json"},
        "workdir": "/p", "log": "/p/compete/logs/tasks/single_2_queue1_task1.log", "priority": 0, "needs": [], "begin": None,
        "time_limit": None, "retry": None, "tags": [], "leftovers": "wait", "on": ["local"],
    }  # fmt: skip
    assert first | wanted == first
    fresh = {name: field.fresh() for name, field in JOB.items()}
    assert {**fresh, **first} == {**fresh, **wanted}, "what a task file has no word for is not asked for"
    assert (second["queue"], second["memory_mib"]) == ("2", 512)
    assert (third["queue"], third["memory_mib"], third["log"][-23:]) == ("1", 1, "single_2_queue1_task2.log"[-23:])


def test_the_engine_takes_the_batch():
    blocks, _ = taskfile.parse(TEXT, "single")
    batch = taskjobs.batch(SPACE, blocks, "0,1")
    head = {"key": SPACE.key, "name": batch["name"], "owner": None, "policy": batch["policy"], "queues": batch["queues"]}
    taken = checks.request({"batch": head, "context": {}, "jobs": batch["jobs"]})
    assert [job["queue"] for job in taken["jobs"]] == ["1", "2", "1"]


def test_a3_a_task_of_several_gpus_asks_for_exactly_those():
    multi = dataclasses.replace(SPACE, mode="multi")
    [job] = taskjobs.jobs(multi, [Block(queue=7, commands=("a",), memory_gb=1.0001, gpus=4)])
    assert (job["gpus"], job["memory_mib"], job["log"]) == ([4, 4], 1025, "/p/compete/logs/tasks/multi_2_queue7_task1.log")
    assert job["env"] == {"JOSTLE_UNI_ID_FILE": "/p/compete/logs/uni_id_gpus.json"}


def test_a_file_given_by_name_has_logs_and_a_name_of_its_own():
    spare = dataclasses.replace(SPACE, command_file="/p/my tasks.txt", numbered=False)
    batch = taskjobs.batch(spare, [Block(queue=1, commands=("a\tb\x1b",), memory_gb=1)], None)
    assert batch["name"] == "compete single my tasks.txt"
    assert batch["jobs"][0]["log"] == "/p/compete/logs/tasks/single_my_tasks_queue1_task1.log"
    assert batch["jobs"][0]["name"] == "queue 1 task 1: a b "
