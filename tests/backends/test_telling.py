"""Which part of a failed run's log says why: the first traceback near its end, else the end itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jostle.backends.local import joblog
from jostle.core import failure

HEAD = "Traceback (most recent call last):\n"
FRAMES = '  File "/work/train.py", line 12, in step\n    loss = model(batch)\n'
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
NOISE = "W0101 torch.distributed.elastic: closing process 4242 via signal SIGTERM\n"


def kind(tmp_path: Path, text: str) -> tuple[str, str]:
    """The kind of failure, and what of the log was looked at."""
    path = tmp_path / "log"
    path.write_text(text)
    fd = os.open(path, os.O_RDWR | os.O_APPEND)
    try:
        tail = joblog.tail(fd)
    finally:
        os.close(fd)
    assert len(tail.encode()) <= joblog.TAIL
    return failure.error_type(code=1, tail=tail), tail


def prefixed(text: str, before: str) -> str:
    return "".join(before + line for line in text.splitlines(keepends=True))


@pytest.mark.parametrize("before", ["", "[rank0]: ", "  | "])
@pytest.mark.parametrize("deep", [1, 200])
@pytest.mark.parametrize("noise", [0, 300, 550])
def test_a26_what_a_launcher_says_after_the_first_traceback_does_not_hide_its_cause(
    tmp_path: Path, before: str, deep: int, noise: int
) -> None:
    text = "epoch 1\n" * 100 + prefixed(HEAD + FRAMES * deep + OOM, before) + NOISE * noise + "RuntimeError: a worker failed\n"
    assert kind(tmp_path, text)[0] == "oom"


def test_of_several_tracebacks_the_first_is_the_cause(tmp_path: Path) -> None:
    others = "".join(prefixed(HEAD + FRAMES + "RuntimeError: NCCL was aborted\n", f"[rank{n}]: ") for n in range(1, 9))
    assert kind(tmp_path, prefixed(HEAD + FRAMES + OOM, "[rank0]: ") + others)[0] == "oom"
    late = HEAD + FRAMES + "KeyError: 'lr'\n" + NOISE * 100 + "slurmstepd: error: Detected 1 OOM event\n"
    assert kind(tmp_path, late)[0] == "exit_code_1"


def test_a_timestamp_before_the_head_alone_is_no_prefix(tmp_path: Path) -> None:
    text = "2031-05-01 12:00:00 ERROR " + HEAD + FRAMES * 100 + OOM + NOISE * 100
    assert kind(tmp_path, text)[0] == "oom"


def test_without_a_traceback_near_its_end_the_end_of_the_log_tells(tmp_path: Path) -> None:
    assert kind(tmp_path, NOISE * 1000 + "CUDA out of memory\n")[0] == "oom"
    assert kind(tmp_path, "CUDA out of memory\n" + NOISE * 100)[0] == "exit_code_1"
    text = HEAD + FRAMES + OOM + NOISE * 1000 + "RuntimeError: a worker failed\n"
    found, tail = kind(tmp_path, text)
    assert found == "runtime_error" and tail == text[-joblog.TAIL :]


CUT = [HEAD, HEAD.rstrip(), HEAD + FRAMES, HEAD + FRAMES * 200, "\n" + HEAD + "\n\n"]


@pytest.mark.parametrize("text", ["", "x", "é" * 9000, *CUT])
def test_any_log_has_a_tail(tmp_path: Path, text: str) -> None:
    assert kind(tmp_path, text)[0] == "exit_code_1"
