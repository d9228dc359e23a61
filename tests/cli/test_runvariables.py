"""What a run is told of itself has one list, and the page has a row for each of it; nobody passes it on who is within a run."""

import re

import pytest

from jostle import client, context, elastic
from jostle.core import runvariables
from jostle.engine import launch
from tests.pages import ROOT, text

SECTION = text("docs/settings.md").partition("## What a job gets")[2].partition("\n### ")[0]
ROWS = set(re.findall(r"^\| `(\w+)` \|", SECTION, re.M))
BESIDE = set(re.findall(r"`(\w+)`", SECTION.partition("\nBeside them: ")[2].partition(";")[0]))
OF_A_RUN = ROWS | BESIDE - {"PYTHONUNBUFFERED"}  # which says nothing of it
JOB = {"env": "{}", "queue": None, "batch": 1, "cpus": 2, "inside": 3}


def test_the_page_has_a_row_for_each_and_nobody_types_them_again():
    assert runvariables.OF_A_RUN == OF_A_RUN
    typed = re.compile(rf'"(?:{"|".join(OF_A_RUN)})"')
    files = {path.name for path in (ROOT / "src" / "jostle").rglob("*.py") if typed.search(path.read_text("utf-8"))}
    assert files == {"runvariables.py", "elastic.py"}


def test_a_run_is_told_what_the_page_says():
    told = {*launch.environment({}, JOB, (1, 1), "u"), *launch.card_variables("0", [])}
    assert told <= ROWS | BESIDE and {elastic.FILE, elastic.LEG, elastic.VISIBLE} <= OF_A_RUN


@pytest.mark.parametrize("within", ["JOSTLE_UNI_ID", "JOSTLE_ALLOC"])
def test_within_a_run_nothing_of_it_is_passed_on_to_what_is_submitted_nor_to_what_is_started(monkeypatch, within):
    run = dict.fromkeys(OF_A_RUN - {"JOSTLE_UNI_ID", "JOSTLE_ALLOC"} | {within}, "1")
    monkeypatch.setattr("os.environ", {**run, "A": "b"})
    assert (context.environment({**run, "A": "b"}), client.own_environment()) == ({"A": "b"}, {"A": "b"})


def test_outside_of_a_run_all_is_a_persons_own(monkeypatch):
    theirs = {"CUDA_VISIBLE_DEVICES": "1", "JOSTLE_UNI_ID_FILE": "/ids", "A": "b"}
    monkeypatch.setattr("os.environ", theirs)
    assert context.environment(theirs) == client.own_environment() == theirs
