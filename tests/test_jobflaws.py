"""What the fields of a job cannot say together stands once (core.jobflaws), so every door says the same: files, sweeps, the
engine's gate, and `set`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jostle import context, uniid
from jostle.core.jobflaws import flaws
from jostle.core.reasons import Reason
from jostle.core.variables import ALLOCATION, UNI_ID_FILE
from jostle.engine import checks
from jostle.errors import Invalid
from jostle.experiments.load import load
from jostle.formats import jobfile
from jostle.formats.flaws import BadFiles
from jostle.store import intents, jobs
from jostle.store.store import Store
from jostle.wording.declined import DECLINED
from jostle.wording.flaws import FlawText
from jostle.wording.flawwords import FLAWS

CASES = {  # code: the words of a file, fields, and what `set` says of a job that has only the first of them
    "shares_without_memory": ("share: true, memory: null", {"share": True}, {"share": True}),
    "memory_without_card": ("gpus: 0, memory: 5GiB", {"memory_mib": 5120, "gpus": [0, 0]}, {"gpus": [0, 0]}),
    "resize_needs_card": ("resize: restart, gpus: 0", {"resize": "restart", "gpus": [0, 0]}, {"gpus": [0, 0]}),
    "resize_without_uni_id": (
        "uni_id_file: u.json, resize: signal", {"env": {UNI_ID_FILE: "/u"}, "resize": "signal"}, {"resize": "signal"},
    ),
}  # fmt: skip


def gate(**fields: Any) -> dict[str, Any]:
    request = checks.request({"jobs": [{"commands": ["true"], "workdir": "/", **fields}]})
    return dict(request["jobs"][0])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    made = Store(str(home))
    yield made
    made.close()


def taken(store: Store, *asked: dict[str, Any]) -> int:
    request = checks.request({"jobs": [{"commands": ["true"], "workdir": "/", **fields} for fields in asked]})
    with store.transaction():
        return int(jobs.submit(store, request, at=1.0, now=1.0, rank=lambda: 0.5)["ids"][1])


def change(store: Store, id: int, **values: Any) -> Reason | None:
    with store.transaction():
        return intents.change(store, id, checks.settable(values), at=2.0, now=2.0)


def told(of: Any) -> list[tuple[int, str]]:
    with pytest.raises(BadFiles) as why:
        of()
    return [(line, text.code) for _, line, text in why.value.flaws if isinstance(text, FlawText)]


@pytest.mark.parametrize("code", CASES)
def test_a_job_file_tells_it_with_its_line(code: str, tmp_path: Path) -> None:
    (tmp_path / "jobs.yaml").write_text(f"jobs:\n  - run: x\n  - {{run: x, {CASES[code][0]}}}\n")
    assert told(lambda: jobfile.load([str(tmp_path / "jobs.yaml")])) == [(3, code)]


@pytest.mark.parametrize("code", CASES)
def test_a_sweep_tells_it_with_its_line(code: str, tmp_path: Path) -> None:
    (tmp_path / "sweep.yaml").write_text(f"matrix: {{lr: [1, 2]}}\ncommand: x {{lr}}\njob: {{{CASES[code][0]}}}\n")
    flaws_of_it = told(lambda: load([str(tmp_path / "sweep.yaml")]))
    assert {text for _, text in flaws_of_it} == {code} and all(line > 0 for line, _ in flaws_of_it)


@pytest.mark.parametrize("code", CASES)
def test_the_gate_refuses_it_of_whoever_comes_past_the_doors(code: str) -> None:
    with pytest.raises(Invalid) as why:
        gate(**CASES[code][1])
    assert str(why.value) == f"job 1: {checks.FLAWS[code]}"


@pytest.mark.parametrize("code", CASES)
def test_set_does_not_bring_it_about(code: str, store: Store) -> None:
    _, fields, values = CASES[code]
    id = taken(store, {key: value for key, value in fields.items() if key not in values})
    assert change(store, id, **values) == Reason(code, {"job": id})


def test_what_a_program_has_of_its_allocation_it_need_not_say_when_something_else_is_set(store: Store) -> None:
    held = taken(store, {"commands": [], "name": "train"})
    id = taken(store, {"inside": held, "share": True})
    assert change(store, id, priority=5) is None
    assert change(store, id, resize="restart") == Reason("not_of_inside", {"job": id, "key": "resize", "allocation": held})


@pytest.mark.parametrize("values", [{"nice": 5}, {"resize": "signal"}, {"cpus": 2}, {"queue": "q"}])
def test_what_means_nothing_for_an_allocation_is_neither_submitted_nor_set(values: dict[str, Any], store: Store) -> None:
    with pytest.raises(Invalid, match="means nothing for an allocation"):
        gate(commands=[], name="other", **values)
    held = taken(store, {"commands": [], "name": "train"})
    assert change(store, held, **values) == Reason("not_of_allocation", {"job": held, "key": next(iter(values))})


def test_a_job_that_was_taken_by_other_rules_can_be_changed_in_what_they_do_not_concern(store: Store) -> None:
    id = taken(store, {"memory_mib": 5120})
    with store.transaction():
        store.db.execute("UPDATE job SET gpus_min = 0, gpus_max = 0 WHERE id = ?", (id,))
    assert change(store, id, priority=5) is None and change(store, id, memory_mib=None) is None


def test_memory_of_defaults_is_none_where_there_is_no_card(tmp_path: Path) -> None:
    text = "defaults: {memory: 5GiB, share: true}\njobs:\n  - {run: x, gpus: 0}\n  - run: y\n"
    (tmp_path / "jobs.yaml").write_text(text)
    first, second = jobfile.load([str(tmp_path / "jobs.yaml")])["jobs"]
    assert (first["memory_mib"], second["memory_mib"]) == (None, 5120)
    assert gate(**first)["share"] is True, "which means nothing then"


def test_a_wrong_value_is_told_alone(tmp_path: Path) -> None:
    (tmp_path / "jobs.yaml").write_text("jobs:\n  - {run: x, share: true, memory: much}\n")
    with pytest.raises(BadFiles) as why:
        jobfile.load([str(tmp_path / "jobs.yaml")])
    assert len(why.value.flaws) == 1


def test_every_flaw_has_words_at_every_door() -> None:
    job = {**{name: field.default for name, field in checks.FIELDS.items()}, "commands": ["true"]}
    assert flaws(job) == []
    for code in checks.FLAWS:
        assert code in DECLINED or code == "only_of_allocation", "nobody can set those"
        assert code in FLAWS or "allocation" in code or code in ("holds_no_card", "not_of_inside"), "no file says such"


def test_variables_of_the_environment_have_one_name_also_where_core_is_not_imported() -> None:
    assert uniid.VARIABLE == UNI_ID_FILE
    assert ALLOCATION in context.OURS and context.environment({ALLOCATION: "3", "A": "b"}) == {"A": "b"}
