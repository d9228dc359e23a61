"""Job files from a browser: which may be read and written, what of a text would be queued, and what a hostile one gets."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.e2e.instance import SOURCE, until
from tests.web.console import Console

GOOD = "# stays\njobs:\n  - {name: a, run: echo a, gpus: 0}\n  - {name: b, run: echo b, gpus: 0}\n"
SWEEP = "command: echo {lr} {seed}\nmatrix: {lr: [1, 2], seed: [1, 2, 3]}\njob: {gpus: 0}\n"


@pytest.fixture(scope="module")
def edited(tmp_path_factory):
    """A console with a workspace, and a job file outside of it that was run."""
    root = tmp_path_factory.mktemp("j")
    space = root / "space"
    for name in ("command/command_gpu.txt", "config/gpu_manage.yaml", "config/control_setting.yaml", ".git/y.yaml"):
        (space / name).parent.mkdir(parents=True, exist_ok=True)
        (space / name).write_text("")
    made = Console(root / "c", gpus="sim:1x24", workspace=space)
    made.root = root
    made.ran = made.instance.file(SWEEP, "sweep.yaml")
    ids = json.loads(made.instance.ok("run", "--detach", "--json", made.ran))["ids"]
    until(lambda: set(made.instance.states(ids).values()) == {"succeeded"}, "the end of the sweep")
    yield made
    made.close()


def of(path):
    return f"/api/v1/jobfiles/text?path={quote(str(path))}"


def looked(console, path, text):
    return console.script("POST", f"/api/v1/jobfiles/preview?path={quote(str(path))}", {"text": text})


def seen(console, path):
    told = console.script("GET", of(path))
    assert told.status == 200, told
    return told.json, told.heads["etag"]


def put(console, path, text, etag):
    return console.script("PUT", of(path), {"text": text}, **{"If-Match": etag})


def test_files_that_were_run_are_listed_first_then_those_beside_them_and_of_workspaces(edited):
    (edited.root / "space" / "mine.yml").write_text(GOOD)
    (edited.instance.work / "beside.yaml").write_text(GOOD)
    (edited.instance.work / ".hidden.yaml").write_text(GOOD)
    (edited.instance.work / "linked.yaml").symlink_to(edited.root / "space" / "mine.yml")
    told = edited.get("/api/v1/jobfiles")
    listed = [(one["name"], one["batch"]) for one in told["files"]]
    assert listed[0] == ("sweep.yaml", 1)
    assert sorted(listed[1:]) == [("beside.yaml", None), ("mine.yml", None)]
    assert set(told["folders"]) == {str(edited.instance.work), str(edited.root / "space")}


def test_a_text_is_looked_at_as_if_it_stood_in_its_place(edited):
    told = looked(edited, edited.ran, SWEEP.replace("[1, 2, 3]", "[1, 2, 3, 4]")).json
    (batch,) = told["batches"]
    assert (told["flaws"], batch["name"], batch["jobs"], batch["run"], batch["kind"]) == ([], "sweep", 8, 2, "sweep")
    assert [job["do"] for job in batch["first"]] == ["done", "done", "done", "run"] * 2
    assert batch["first"][0]["by"] == [1, 1] and "-matrix: {lr: [1, 2], seed: [1, 2, 3]}" in told["diff"]
    assert batch["would"]["starts"] == 2
    assert batch["first"][3]["text"].startswith("starts now") and batch["first"][0]["text"] == ""
    assert Path(edited.ran).read_text() == SWEEP  # nothing was written
    dry = edited.post("/api/v1/run?dry_run=true", {"file": edited.ran})["jobs"]
    again = looked(edited, edited.ran, SWEEP).json["batches"][0]["first"]
    assert [(job["name"], job["do"]) for job in dry] == [(job["name"], job["do"]) for job in again]


def test_a_file_is_made_and_saved_as_it_was_typed_with_a_backup_and_only_over_what_was_seen(edited):
    path = edited.root / "space" / "new.yaml"
    before, none = seen(edited, path)
    assert (before["exists"], before["text"], none) == (False, "", '"none"')
    assert edited.script("PUT", of(path), {"text": GOOD}).status == 428
    first = put(edited, path, GOOD, none)
    assert first.status == 200 and path.read_text() == GOOD
    assert put(edited, path, GOOD + "# b\n", none).status == 412  # it was none when that was seen
    assert path.read_text() == GOOD
    assert put(edited, path, GOOD + "# c\n", first.heads["etag"]).status == 200
    assert path.read_text() == GOOD + "# c\n" and (edited.root / "space" / "new.yaml.backup").read_text() == GOOD
    _, etag = seen(edited, path)
    bad = put(edited, path, "jobs:\n  - {name: a, rum: x}\n", etag)
    assert bad.status == 422 and {flaw["line"] for flaw in bad.json["flaws"]} == {2}
    assert path.read_text() == GOOD + "# c\n"


def test_line_ends_of_windows_stay(edited):
    path = edited.root / "space" / "windows.yaml"
    path.write_bytes(GOOD.replace("\n", "\r\n").encode())
    told, etag = seen(edited, path)
    assert told["text"] == GOOD
    assert put(edited, path, GOOD + "# more\n", etag).status == 200
    assert path.read_bytes() == (GOOD + "# more\n").replace("\n", "\r\n").encode()


def test_a_suite_may_name_a_file_that_is_not_there_yet_but_what_is_wrong_with_it_is_told(edited):
    path = edited.root / "space" / "suites.yaml"
    text = "suites: {later: later.yaml}\n"
    assert put(edited, path, text, seen(edited, path)[1]).status == 200
    (flaw,) = looked(edited, path, text).json["flaws"]
    assert flaw["file"].endswith("/later.yaml") and "cannot be read" in flaw["text"]


@pytest.mark.parametrize("path", [
    "/etc/hostname", "/etc/x.yaml", "relative.yaml", "SPACE/../outside.yaml", "SPACE/./a.yaml", "SPACE//a.yaml", "SPACE/a.yaml/",
    "SPACE/a\n.yaml", "SPACE/\u202ea.yaml", "SPACE/a.txt", "SPACE/.hidden.yaml", "SPACE/.git/y.yaml",
    "SPACE/config/gpu_manage.yaml", "SPACE/config/control_setting.yaml", "SPACE/config.yaml", "WORK/below/z.yaml",
    "HOME/config.yaml", "WORK/sweep.yaml.backup",
])  # fmt: skip
def test_s51_s52_a_path_outside_of_the_known_folders_hidden_or_of_settings_is_not_there(edited, path):
    places = {"SPACE": edited.root / "space", "WORK": edited.instance.work, "HOME": edited.instance.home}
    for name, place in places.items():
        path = path.replace(name, str(place))
    assert edited.script("GET", of(path)).status == 404
    assert put(edited, path, GOOD, "*").status == 404
    assert looked(edited, path, GOOD).status == 404
    assert not os.path.exists("/etc/x.yaml") and not (edited.root / "outside.yaml").exists()


def test_s52_s54_nothing_is_read_or_written_through_a_link_or_a_second_name(edited):
    space, secret = edited.root / "space", edited.root / "secret.yaml"
    secret.write_text("jobs: [{run: secret}]\n")
    (space / "soft.yaml").symlink_to(secret)
    (space / "folder").symlink_to(edited.root)
    os.link(secret, space / "hard.yaml")
    os.mkfifo(space / "pipe.yaml")
    for name in ("soft.yaml", "folder/secret.yaml", "hard.yaml", "pipe.yaml"):
        for told in (edited.script("GET", of(space / name)), put(edited, space / name, GOOD, "*")):
            assert told.status in (403, 404, 409) and b"jobs: [{run" not in told.body, (name, told)
    assert secret.read_text() == "jobs: [{run: secret}]\n"
    (space / "hard.yaml").unlink()


def test_s55_who_may_only_look_sees_no_file_and_changes_none(edited):
    reader = edited.instance.ok("web", "--token", "--read-only").strip()
    for method, path, body in (
        ("GET", "/api/v1/jobfiles", None), ("GET", of(edited.ran), None), ("PUT", of(edited.ran), {"text": GOOD}),
        ("POST", f"/api/v1/jobfiles/preview?path={quote(edited.ran)}", {"text": GOOD}),
    ):  # fmt: skip
        told = edited.script(method, path, body, token=reader, **{"If-Match": "*"})
        assert told.status == 403 and b"command" not in told.body


def laughs():
    levels = [f"l{k}: &l{k} [{', '.join([f'*l{k - 1}'] * 9)}]" for k in range(1, 12)]
    return "\n".join(["l0: &l0 [lol, lol]", *levels])


HOSTILE = {
    "an object": ("jobs:\n- {run: !!python/object/apply:os.system [touch /tmp/x]}\n", 2),
    "a tag of its own": ("jobs:\n- !evil {run: x}\n", 2),
    "a billion laughs": (laughs(), 7),
    "an anchor that holds itself": ("jobs: &a [*a]\n", 1),
    "a key twice": ("jobs:\n- {run: x, gpus: 1,\n   gpus: 2}\n", 3),
    "a tab": ("jobs:\n\t- {run: x}\n", 2),
    "memory that is no number": ("jobs:\n- {run: x, memory: .nan}\n", 2),
    "fewer GPUs than none": ("jobs:\n- {run: x, gpus: -1}\n", 2),
    "a number beyond all": ("jobs:\n- {run: x, memory: 1e309}\n", 2),
    "true for a number": ("jobs:\n- {run: x, gpus: true}\n", 2),
    "a line of a megabyte": ("jobs:\n- {run: x, rum: " + "a" * 1_000_000 + "}\n", 2),
    "a key of a megabyte": ("jobs:\n- {run: x, " + "a" * 1_000_000 + ": 1}\n", 2),
    "deep brackets": ("jobs:\n" + "[" * 100_000, 2),
    "half a million values": ("jobs: [" + "1," * 500_000 + "1]\n", 1),
    "a second document": ("jobs:\n- {run: x}\n---\njobs:\n", 3),
    "a character that YAML does not allow": ("jobs:\n- {run: 'a\x00b'}\n", 2),
    "too many combinations": ("command: echo {a} {b}\nmatrix:\n" + "".join(f"  {k}: {list(range(900))}\n" for k in "ab"), 3),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_s30_a_hostile_text_is_told_with_its_line_and_the_process_goes_on(edited, what):
    text, line = HOSTILE[what]
    told = looked(edited, edited.root / "space" / "hostile.yaml", text)
    assert told.status == 200, told.body[:300]
    assert told.json["flaws"] and told.json["batches"] == []
    assert told.json["flaws"][0]["line"] == line, told.json["flaws"][:3]
    assert all(len(flaw["text"]) <= 501 for flaw in told.json["flaws"]) and len(told.body) < 100_000
    assert put(edited, edited.root / "space" / "hostile.yaml", text, "*").status == 422
    assert not (edited.root / "space" / "hostile.yaml").exists()


@pytest.mark.parametrize("what", HOSTILE)
def test_s30_what_looks_at_a_hostile_text_needs_no_more_than_100_mb_and_two_seconds_of_the_processor(edited, tmp_path, what):
    """Limits of the kernel, not of a clock: with less it would be ended, or run out of memory."""
    def limited():
        resource.setrlimit(resource.RLIMIT_DATA, (100_000_000, 100_000_000))
        resource.setrlimit(resource.RLIMIT_CPU, (2, 2))

    given = json.dumps({"file": str(tmp_path / "hostile.yaml"), "saved": "", "text": HOSTILE[what][0]})
    words = [sys.executable, "-m", "jostle.web.deeds", "preview"]
    env = {**edited.instance.env, "PYTHONPATH": SOURCE}
    told = subprocess.run(words, input=given, env=env, text=True, capture_output=True, preexec_fn=limited, timeout=60)
    assert told.returncode == 0, told.stderr[-500:]
    assert json.loads(told.stdout)["answer"]["flaws"]


def test_s30_a_file_of_50_mb_is_not_read_and_a_text_that_large_not_taken(edited):
    path = edited.root / "space" / "large.yaml"
    with open(path, "wb") as f:
        f.truncate(50_000_000)
    told = edited.script("GET", of(path))
    assert told.status == 409 and "larger than" in told.json["detail"]
    path.write_bytes(b"# " + b"a" * (1 << 20))
    assert edited.script("GET", of(path)).status == 409
    path.unlink()
    heads = (
        f"POST /api/v1/jobfiles/preview?path={quote(str(path))} HTTP/1.1", "Host: localhost",
        f"Authorization: Bearer {edited.token}", "Content-Type: application/json", "Content-Length: 5000000",
    )  # fmt: skip
    told = edited.bytes("\r\n".join([*heads, "", "{"]).encode())
    assert b" 413 " in told  # before it was sent: who goes on sending may find the line cut, and no answer
    assert looked(edited, path, "a" * ((1 << 20) + 1)).status == 422


def test_s30_a_file_that_is_no_text_says_where(edited):
    path = edited.root / "space" / "latin.yaml"
    path.write_bytes(b"jobs:\n- {run: \xff\xfe}\n")
    told = edited.script("GET", of(path))
    assert told.status == 422 and told.json["flaws"][0]["line"] == 2
    path.unlink()
