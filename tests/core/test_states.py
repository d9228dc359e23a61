"""States and the groups of them have one home (tests/test_architecture.py); each is final or has a way on."""

import ast
import pathlib
import re

from jostle.compete import journal
from jostle.core import states
from jostle.notify import happenings
from jostle.wording import messages

ROOT = pathlib.Path(__file__).parents[2]
WRITERS = [path for room in ("engine", "store", "backends") for path in (ROOT / "src/jostle" / room).rglob("*.py")]
TEXTS = [path.read_text("utf-8") for path in WRITERS]


def test_each_state_is_final_or_has_a_way_on():
    assert set(states.UNFINISHED) | set(states.FINAL) == set(states.ALL) == set(states.SUMMED)
    assert set(states.OPEN) < set(states.UNFINISHED) and states.SUCCEEDED not in states.UNSUCCESSFUL


def written():
    """The kinds of events that are recorded by a name that stands there."""
    for text in TEXTS:
        yield from re.findall(r"(?:SELECT|VALUES \()\s*\?, '(\w+)', ", text)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("event", "once", "of_run"):
                parts = [part for arg in node.args[:2] for part in ast.walk(arg)]
                yield from (part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str))


def test_every_event_that_is_written_has_its_kind_here_and_every_kind_is_written():
    assert set(written()) - states.EVENTS == set()
    named = {word for text in TEXTS for word in re.findall(r"[\"'](\w+)[\"']", text)}
    assert states.EVENTS - named == set(states.FINAL) - named


def test_the_page_tells_of_every_kind_of_event_and_who_reads_them_knows_no_other():
    page = (ROOT / "docs/json.md").read_text("utf-8")
    told = re.sub(r"\([^)]*\)", "", page.partition("Kinds of events:")[2].partition("A `reason`")[0])
    assert {*re.findall(r"`(\w+)`", told), *states.FINAL} == states.EVENTS
    assert {*happenings.TOLD, *journal.LEVELS, *messages.STEPS} <= states.EVENTS
