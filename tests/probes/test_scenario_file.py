"""Scenario files: what is taken, and how a mistake is told."""

from __future__ import annotations

import json
import math
import os

import pytest

from jostle.errors import Invalid
from jostle.probes import scenario
from jostle.probes.scenario import Window
from jostle.probes.scenario_file import parse

GOOD = """\
gpus:
  - {total: 80GiB, name: A100}
  - {total: 24576}
repeat: 10m
runs: {use: 0.5, ramp: 3, lag: 1.5, free_lag: 2s, utilization: 40}
strangers:
  - {user: bob, gpu: all, from: 1m, for: 30, used: 8GiB, ramp: 5, utilization: 80}
  - {user: root, gpu: [0], used: 100, hidden: true}
faults: [{gpu: 0, from: 5, to: 6, state: unreadable}]
missing: [{gpu: 1, from: 7}]
hang: [{from: 20, to: 21}]
mismatch: [{from: 30, to: 31}]
"""


def test_a_file_says_all_that_happens() -> None:
    found = parse(GOOD, "good.yaml")
    assert [(card.total_mib, card.name) for card in found.cards] == [(81920, "A100"), (24576, "Simulated GPU")]
    assert found.repeat == 600
    assert (found.runs.use, found.runs.ramp, found.runs.lag, found.runs.free_lag) == (0.5, 3, 1.5, 2)
    assert [(s.user, s.card, s.window, s.used_mib) for s in found.strangers] == [
        ("bob", 0, Window(start=60, end=90), 8192),
        ("bob", 1, Window(start=60, end=90), 8192),
        ("root", 0, Window(), 100),
    ]
    assert found.strangers[2].uid == 0
    assert [(m.card, m.kind, m.window.end) for m in found.mishaps] == [(0, "unreadable", 6), (1, "missing", math.inf)]
    assert found.hang == (Window(start=20, end=21),) and found.mismatch == (Window(start=30, end=31),)


def test_json_says_the_same_as_yaml() -> None:
    text = json.dumps({"gpus": {"count": 2, "total": "24GiB"}, "faults": [{"gpu": 1, "state": "lost"}]})
    assert parse(text, "s.json") == parse("gpus: {count: 2, total: 24GiB}\nfaults: [{gpu: 1, state: lost}]", "s.yaml")


def test_the_user_me_is_the_probes_own() -> None:
    found = parse("gpus: {count: 1, total: 1GiB}\nstrangers: [{user: me, gpu: 0, used: 1}]", "s.yaml")
    assert found.strangers[0].uid == os.getuid()


HEAD = "gpus: {count: 2, total: 24GiB}\n"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "the file is empty: expected a mapping"),
        ("[]", 1, "expected a mapping"),
        ("runs: {}", 1, "expected the key gpus"),
        ("gpus: {count: 2}", 1, "expected its memory (total)"),
        ("gpus: {count: 0, total: 24GiB}", 1, "gpus.count is 0: expected a number of GPUs from 1 to 1024"),
        ("gpus: {count: 2, total: 24}", 1, "gpus.total is 24: expected at least 128 MiB (a plain number is MiB: write 24GiB)"),
        ("gpus:\n  - total: 24GiB\n  - total: lots", 3, 'gpus[1].total is "lots": expected MiB, like 6000'),
        (HEAD + "strangrs: []", 2, "unknown key 'strangrs': expected one of gpus, repeat"),
        (HEAD + "strangers:\n- gpu: 0\n  used: 1\n- gpu: 5\n  used: 1", 5, "strangers[1].gpu is 5: expected a GPU from 0 to 1"),
        (HEAD + "strangers:\n- used: 1", 3, "expected the key gpu"),
        (HEAD + "strangers:\n- gpu: 0", 3, "expected the memory it takes (used)"),
        (HEAD + "strangers:\n- {gpu: 0, used: 1,\n   from: soon}", 4, 'strangers[0].from is "soon": expected seconds, like 30'),
        (HEAD + "strangers:\n- {gpu: 0, used: 1, from: 9, to: 3}", 3, "to is 3: expected an end after the start (9 s)"),
        (HEAD + "strangers:\n- {gpu: 0, used: 1, to: 9, for: 3}", 3, "expected either to or for"),
        (HEAD + "strangers:\n- {gpu: 0, used: 1, colour: red}", 3, "unknown key 'colour' in strangers[0]"),
        (HEAD + "strangers:\n- {gpu: 0, used: 1, utilization: 200}", 3, "expected percent, 0 to 100"),
        (HEAD + "strangers:\n- {gpu: 0, used: 1, hidden: perhaps}", 3, "expected true or false"),
        (HEAD + "strangers: nobody", 2, 'strangers is "nobody": expected a list'),
        (HEAD + "repeat: 10\nhang: [{from: 20}]", 3, "hang[0].from is 20: expected a time before the script repeats (10 s)"),
        (HEAD + "repeat: 0", 2, "expected a period above 0 s"),
        (HEAD + "faults:\n- gpu: 0\n  state: tired", 4, 'faults[0].state is "tired": expected lost, unreadable, ecc or remap'),
        (HEAD + "faults:\n- gpu: 0", 3, "expected the key state"),
        (HEAD + "runs:\n  use: all", 3, 'runs.use is "all": expected MiB'),
        (HEAD + "mig: [{gpu: 0, slices: 9}]", 2, "expected 1 to 7 slices"),
        (HEAD + "mig: [{gpu: 0, slices: [20GiB, 20GiB]}]", 2, "expected at most the 24576 MiB of the GPU in all"),
        (HEAD + "runs: {ramp: true}", 2, "runs.ramp is true: expected seconds"),
        (HEAD + "runs: [\n", 3, "not YAML"),
        (HEAD + HEAD, 2, "twice"),
        (HEAD + "1: 2", 2, "unknown key '1'"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_file_line_and_what_was_expected(text: str, line: int, words: str) -> None:
    with pytest.raises(Invalid) as e:
        parse(text, "dir/s.yaml")
    assert str(e.value).startswith(f"dir/s.yaml:{line}: ")
    assert words in str(e.value)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{"gpus": {"count": 2,\n "total": "24GiB"},\n "hang": [{"from": "x"}]}', 3, 'hang[0].from is "x"'),
        ('{"gpus": {"count": 2,\n "total": }', 2, "not JSON"),
    ],
)
def test_json_mistakes_have_lines_too(text: str, line: int, words: str) -> None:
    with pytest.raises(Invalid) as e:
        parse(text, "s.json")
    assert str(e.value).startswith(f"s.json:{line}: ")
    assert words in str(e.value)


@pytest.mark.parametrize("name", ["8y24", "0x24", "8x0", "99999x24", "nowhere.yaml", "", "8x24+"])
def test_a_name_that_is_nothing_says_what_would_be(name: str) -> None:
    with pytest.raises(Invalid, match="sim:8x24"):
        scenario.load(name)


def test_a_file_that_is_not_text_is_refused(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "s.yaml")
    with open(path, "wb") as f:
        f.write(b"gpus: \xff\xfe")
    with pytest.raises(Invalid, match="cannot be read"):
        scenario.load(path)
