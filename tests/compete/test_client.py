"""Small pure parts of the client: what changed in the settings, which cards are meant, what waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jostle.compete.outlook import usable
from jostle.compete.reload import changes
from jostle.compete.scheduler import TaskProgress
from jostle.formats.gpumanage import PLACES, Settings
from jostle.intake.visible import indices
from tests.cli.conftest import event
from tests.compete.rows import row


def test_a14_what_changed_is_told_and_what_waits_for_the_next_start() -> None:
    old = Settings()
    new = replace(old, gpu_left=2, min_gpu=3, use_all_gpus=False, compete_gpus=(4, 7), backoff_duration=1.5, work_dir="../x")
    assert changes(old, new) == (
        [
            "compete_gpus [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] → [4, 7]", "use_all_gpus true → false", "gpu_left 0 → 2",
            "min_gpu null → 3", "backoff_duration 600 → 1.5",
        ],
        ["work_dir null → ../x"],
    )  # fmt: skip
    assert changes(old, old) == ([], []) and all(hasattr(old, key) for key in PLACES)


@pytest.mark.parametrize(
    ("policy", "cards"),
    [
        ({"gpus": None}, [0, 1, 2, 3]),
        ({"gpus": [3, 1, 9]}, [1, 3]),
        ({"gpus": None, "gpu_left": 1, "min_gpu": None, "max_gpu": None}, [0, 1, 2]),
        ({"gpus": [1, 2], "gpu_left": 5}, []),
        ({"gpus": [3, 0, 1], "gpu_left": 1}, [0, 3]),
        ({"gpus": None, "gpu_left": 1, "max_gpu": 2}, [0, 1, 2, 3]),
    ],
)
def test_a32_gpus_used_is_the_range_it_may_use(policy: dict[str, object], cards: list[int]) -> None:
    assert usable(policy, [0, 1, 2, 3]) == cards


def test_a12_uuids_of_cuda_visible_devices_are_the_cards_that_are_here() -> None:
    gpus = [{"index": k, "uuid": f"GPU-{k}abc"} for k in range(3)]
    assert indices("GPU-2abc, GPU-0", gpus) == "2,0"
    assert indices("1,GPU-7,MIG-x", gpus) == "1,GPU-7,MIG-x" and indices("GPU-", gpus) == "GPU-"


def test_only_heads_of_queues_that_do_not_run_wait_for_a_gpu() -> None:
    progress = TaskProgress([row(1, state="running"), row(2), row(3, queue=2), row(4, queue=2), row(5, queue=3)])
    assert progress.first_waiting(5) == [3, 5] and progress.first_waiting(1) == [3]
    edited = TaskProgress([row(1, place=3.0), row(2, place=1.0), row(3, queue=2), row(4, queue=2, attempt=1)])
    assert edited.first_waiting(5) == [4, 2], "as the file has them; what has begun is the head of its queue"


def test_what_is_tried_again_by_hand_takes_the_place_of_the_task() -> None:
    progress = TaskProgress([row(1, state="failed"), row(2, state="succeeded")])
    assert progress.over and not progress.succeeded
    progress.take(event(1, "retried", 1, as_job=3))
    assert not progress.over and progress.first_waiting(2) == [3]
    progress.take(event(2, "starting", 3, gpus=[0]))
    progress.take(event(3, "succeeded", 3))
    assert progress.succeeded and progress.summary() == "2 succeeded"
