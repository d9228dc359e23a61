"""The history of cards, with real processes: whatever befalls it, jobs and answers go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jostle.store.history import HistoryFile
from jostle.store.historyreads import HistoryReader
from tests.e2e.instance import SOURCE, Instance, alive, until

WRITER = """
import sys
from jostle.store.history import CardPage, Stay, HistoryFile, Mean
file = HistoryFile(sys.argv[1])
for k in range(1000):
    at = 5_000_000 + 60 * k
    means = [Mean(at + 10 * n, 10.0, 50.0, 1000.0, None, None) for n in range(6)]
    file.write([CardPage(f"GPU-{c}", c, "A100", 24576, means, [Stay(5e6, "bob", 7, at)]) for c in range(8)])
"""


def test_a_writer_killed_in_the_middle_leaves_what_it_had_written_and_another_goes_on(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": SOURCE, "JOSTLE_FAILPOINTS": "history.before_commit=kill@151"}
    child = subprocess.run([sys.executable, "-c", WRITER, str(tmp_path)], env=env)
    assert child.returncode == -signal.SIGKILL
    reader = HistoryReader(str(tmp_path))
    cards = reader.cards(0)
    counts = {len(reader.means(card.id, 0, 1 << 40, 10)) for card in cards}
    reader.close()
    assert (len(cards), counts, reader.error) == (8, {900}, "")
    file = HistoryFile(str(tmp_path))
    file.prune(5_000_000)
    file.close()


def cards_known(instance: Instance) -> int:
    reader = HistoryReader(str(instance.home))
    try:
        return len(reader.cards(0))
    finally:
        reader.close()


def test_an_engine_killed_while_it_writes_the_history_harms_neither_jobs_nor_history(make_instance: Callable[..., Any]) -> None:
    instance = make_instance()
    instance.up("sim:2x24", env={"JOSTLE_FAILPOINTS": "history.before_commit=kill@2"})
    pid = instance.engine
    (id,) = instance.submit({"commands": ["sleep 1000"]})
    until(lambda: not alive(pid), "the engine dies in its first write")
    assert cards_known(instance) == 0
    instance.up("sim:2x24")
    until(lambda: cards_known(instance) == 2, "the next one goes on with it")
    assert instance.job(id)["state"] == "running" and len(instance.runs(id)) == 1
    past = instance.json("gpus", "--history", "1h")
    assert [(card["index"], [span["job"] for span in card["spans"]]) for card in past["gpus"]] == [(0, [id]), (1, [])]


def test_while_the_history_cannot_be_written_jobs_start_and_end(make_instance: Callable[..., Any]) -> None:
    instance = make_instance()
    instance.up("sim:2x24", env={"JOSTLE_FAILPOINTS": "history.before_commit=EIO"})
    until(lambda: "the history of the cards cannot be written" in instance.log(), "that is said")
    assert instance.end(*instance.submit({}, {}, {})) == ["succeeded"] * 3
    past = instance.json("gpus", "--history", "1h")
    assert past["engine"] and [len(card["spans"]) for card in past["gpus"]] in ([3, 0], [2, 1], [1, 2])
    assert instance.log().count("history of the cards") == 1
