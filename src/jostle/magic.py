"""`%load_ext jostle` in IPython and Jupyter: a cell that begins with `%%jostle` runs as a job; what it prints appears below it.

    %%jostle gpus=1 memory=20GiB name=probe
    import torch; print(torch.cuda.get_device_name())

It runs in a Python of its own, in this directory, and knows nothing of the notebook's names: a card is taken for as long as the
cell runs, not for as long as the notebook is open. Behind `%%jostle` stand keys of a job file; `&` lets the notebook go on.
"""

from __future__ import annotations

import shlex
import sys
import time
from typing import Any

from jostle.api import Batch, submit
from jostle.errors import Usage
from jostle.follow.output import POLL, Note, output
from jostle.session import Session

LONGEST = 100_000  # characters of a cell: it goes on a command line
SHORT = {"-g": "gpus", "-m": "memory", "-n": "name", "-q": "queue"}


def load(shell: Any) -> None:
    shell.register_magic_function(cell, "cell", "jostle")


def cell(line: str, text: str) -> Batch:
    """Failed if the job did, so that `Run all` stops there; an interrupt cancels it."""
    job, detach = asked(line)
    if len(text) > LONGEST:
        raise Usage(f"the cell has {len(text):,} characters, a job takes {LONGEST:,}: put the code into a file")
    code = shlex.join([sys.executable, "-u", "-c", text])
    batch = submit({"name": "cell", **job, "run": code}, strict=not detach)  # nobody waits for what never comes
    if not detach:
        try:
            show(batch.ids[0])
            batch.result()
        except KeyboardInterrupt:
            batch.cancel()
            raise
    return batch


def asked(line: str) -> tuple[dict[str, Any], bool]:
    """The keys of a job file, and whether nobody waits for it."""
    words = shlex.split(line)
    detach = words[-1:] == ["&"]
    job: dict[str, Any] = {}
    rest = iter(words[:-1] if detach else words)
    for word in rest:
        key, sign, value = (SHORT[word], "=", next(rest, "")) if word in SHORT else word.partition("=")
        if not sign or key == "run":
            expected = "keys of a job such as gpus=1 memory=20GiB, or -g 1 -m 20GiB"
            raise Usage(f"%%jostle: {word!r} is not understood; expected {expected}")
        job[key] = value
    return job, detach


def show(id: int) -> None:
    """What it prints, as it does."""
    session = Session()
    try:
        for item in output(session, id):
            if item is None:
                time.sleep(POLL)
            elif isinstance(item, Note):
                print(session.message(item.code, **item.values), file=sys.stderr)
            else:
                print(item.decode("utf-8", "replace"), end="", flush=True)
    finally:
        session.close()
