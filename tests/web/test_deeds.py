"""What has a process of its own is answered as what has none: with the same flaws, codes and statuses, and with values."""

import json

import pytest

from jostle.errors import BY_CODE, Declined, JostleError
from jostle.formats.flaws import BadFiles
from jostle.web.answers import problem, status_of
from jostle.web.deeds import plain, raised
from jostle.wording.flaws import flaw

WRONG = "jobs:\n- {name: one, run: 'true', gpus: many}\n- {name: two, run: 'true', memory: lots}\n"


def test_what_is_wrong_with_a_file_is_told_with_its_lines_also_when_it_is_to_run(console):
    path = console.instance.file(WRONG, "wrong.yaml")
    errors = console.post("/api/v1/validate", {"file": path})["errors"]
    assert [(error["file"], error["line"]) for error in errors] == [(path, 2), (path, 3)]
    for way in ("run", "run?dry_run=true"):
        refused = console.script("POST", f"/api/v1/{way}", {"file": path})
        assert (refused.status, refused.json["code"], refused.json["flaws"]) == (422, "invalid", errors)
        assert refused.json["detail"].startswith(f"{path}:2: ")
        chinese = console.script("POST", f"/api/v1/{way}{'&' if '?' in way else '?'}lang=zh", {"file": path}).json
        assert "应为" in chinese["flaws"][0]["text"] and "应为" in chinese["detail"]


def test_what_is_wrong_with_the_tasks_of_a_workspace_is_told_with_its_lines(make_console, tmp_path):
    tasks = tmp_path / "w" / "command" / "command_gpu.txt"
    tasks.parent.mkdir(parents=True)
    tasks.write_text("echo one\n1,20\n\necho two\n")
    refused = make_console(workspace=tmp_path / "w").script("POST", "/api/v1/import", {})
    assert refused.status == 422
    assert [(one["file"], one["line"]) for one in refused.json["flaws"]] == [(str(tasks), 4)], refused.body


def test_what_lies_in_the_databases_place_is_said_to_be_damage(make_console):
    console = make_console()
    (console.instance.home / "jostle.db-journal").mkdir()
    refused = console.script("GET", "/api/v1/results?target=1")
    assert (refused.status, refused.json["code"]) == (503, "damaged"), refused.body


def test_two_answers_to_what_was_done_before_are_refused_at_every_door(console):
    path = console.instance.file("jobs: [{name: one, run: 'true'}]", "twice.yaml")
    body = {"file": path, "redo": True, "skip_done": True}
    assert console.script("POST", "/api/v1/run?dry_run=true", body).json["code"] == "usage"
    code, _, err = console.instance.run("run", "--redo", "--skip-done", path)
    assert code == 2 and "--redo does not go with --skip-done" in err


def test_cleaning_answers_with_numbers_beside_the_sentences(make_console):
    console = make_console()
    console.instance.end(console.instance.add("-g", "0", "--", "echo printed"))
    would = console.post("/api/v1/clean", {"older_than": "0s"})
    assert would["runs"] == 1 and would["kept"] == [] and len(would["messages"]) == 1
    did = console.post("/api/v1/clean", {"older_than": "0s", "dry_run": False})
    assert (did["runs"], did["size_mib"]) == (1, would["size_mib"])
    assert console.post("/api/v1/clean", {"older_than": "0s"})["runs"] == 0
    assert console.script("POST", "/api/v1/clean", {"older_than": "long"}).json["code"] == "usage"


ERRORS = [
    BadFiles([("a.yaml", 3, flaw("yaml_tag", tag="!x")), ("a.yaml", 0, "cannot be read")], ["a warning"]),
    BadFiles([("a.yaml", n, "wrong") for n in range(1, 300)]),
    Declined("job 3 is running", "cannot_hold", {"job": 3, "state": "running"}),
    JostleError(flaw("asked_unread")),
    *(kind("what happened") for kind in BY_CODE.values()),
]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_of_another_process_is_answered_as_one_of_our_own(error, lang):
    again = raised(json.loads(json.dumps(plain(error, lang))))
    assert problem(again, lang) == problem(error, lang)
    assert status_of(again, "/api/v1/run") == status_of(error, "/api/v1/run")
