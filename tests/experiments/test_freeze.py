"""Snapshots of work trees: what is in them, where jobs run, and how they go."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from jostle.errors import DiskFull, Invalid, JostleError
from jostle.experiments import freeze, gittree, snapshots
from jostle.formats import spec


def git(tree: Path, *words: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", "-C", str(tree), *who, *words], check=True, capture_output=True, text=True).stdout


def put(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "proj"
    put(root / "train.py", "print(1)\n")
    put(root / "pkg" / "net.py", "x = 1\n")
    put(root / "run.sh", "#!/bin/sh\n").chmod(0o755)
    put(root / ".gitignore", "data/\n*.pt\n/configs/temp/\n")
    put(root / "data" / "big.bin", "1234")
    put(root / "pkg" / "model.pt", "weights")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    return root


def frozen_files(found: freeze.Frozen) -> set[str]:
    """Real files of the snapshot; what a link leads to is not there."""
    return {os.path.relpath(os.path.join(at, f), found.tree) for at, _, files in os.walk(found.tree) for f in files
            if not os.path.islink(os.path.join(at, f))}  # fmt: skip


def made(workdir: Path, *commands: Any, **more: Any) -> dict[str, Any]:
    return spec.job(commands=list(commands) or ["python train.py"], workdir=str(workdir), **more)


# --- git


def test_a_snapshot_holds_what_is_tracked_and_what_is_new_and_links_what_is_ignored(tree: Path, home: Path) -> None:
    put(tree / "new.py", "new\n")
    (tree / "train.py").write_text("print(2)\n")
    found = freeze.snapshot(str(tree / "pkg"), str(home))
    assert frozen_files(found) == {"train.py", "pkg/net.py", "run.sh", ".gitignore", "new.py"}
    assert Path(found.tree, "train.py").read_text() == "print(2)\n", "the work tree, not the commit"
    assert os.readlink(f"{found.tree}/data") == str(tree / "data")
    assert Path(found.tree, "pkg", "model.pt").read_text() == "weights"
    assert os.access(f"{found.tree}/run.sh", os.X_OK)
    assert not Path(found.tree, ".git").exists()


def test_the_commit_and_what_differs_from_it_are_recorded(tree: Path, home: Path) -> None:
    clean = freeze.snapshot(str(tree), str(home)).about
    assert (clean["commit"], clean["dirty"], clean["diff"]) == (git(tree, "rev-parse", "HEAD").strip(), False, "")
    (tree / "train.py").write_text("print(2)\n")
    put(tree / "new.py")
    about = freeze.snapshot(str(tree), str(home)).about
    assert (about["commit"], about["dirty"], about["untracked"]) == (clean["commit"], True, ["new.py"])
    assert "-print(1)\n+print(2)\n" in about["diff"]
    assert json.loads(json.dumps(about)) == about, "it goes into the store"
    assert Path(about["path"]).parent.joinpath("changes.diff").read_text() == about["diff"]


@pytest.mark.parametrize("rules", ["", "!.env\n!*.pem\n"])
def test_passwords_and_keys_are_linked_and_never_copied_nor_shown(tree: Path, home: Path, rules: str) -> None:
    names = (".env", "pkg/.ENV.local", "server.pem", "pkg/id_ed25519", "conf/credentials.json", ".aws/config")
    for name in names:
        put(tree / name, "TOKEN=old-secret\n")
    put(tree / ".jostleignore", rules)
    put(tree / ".env.example", "TOKEN=\n")
    git(tree, "add", "-f", ".")
    git(tree, "commit", "-qm", "who would")
    for name in names:
        put(tree / name, "TOKEN=hush-hush\n")
    put(tree / "train.py", "print(2)\n")
    found = freeze.snapshot(str(tree), str(home), inputs=[str(tree / ".env")])
    assert "print(2)" in found.about["diff"] and found.about["dirty"]
    for name in names:
        assert Path(found.tree, name).read_text() == "TOKEN=hush-hush\n", "programs find it"
    assert Path(found.tree, ".env.example").is_file() and ".env.example" in frozen_files(found)
    kept = [path.read_text() for at, _, files in os.walk(home) for file in files if not (path := Path(at, file)).is_symlink()]
    assert not [text for text in (*kept, json.dumps(found.about)) if "old-secret" in text or "hush-hush" in text]


def test_a_change_of_nothing_but_a_secret_is_a_change(tree: Path, home: Path) -> None:
    put(tree / ".env", "TOKEN=old\n")
    git(tree, "add", "-f", ".env")
    git(tree, "commit", "-qm", "x")
    put(tree / ".env", "TOKEN=new\n")
    about = freeze.snapshot(str(tree), str(home)).about
    assert (about["dirty"], about["diff"]) == (True, "")


def test_the_code_of_a_snapshot_is_known_before_it_is_made_and_inputs_and_data_are_no_part_of_it(tree: Path, home: Path) -> None:
    config = put(tree / "configs" / "a.yaml", "lr: 1\n")
    copy = tree / "configs" / "temp" / "a_seed1.yaml"

    def both() -> str:
        known = freeze.code(str(tree / "pkg"), str(home), apart=[str(config), str(copy)])
        put(copy, "seed: 1\n")
        made = freeze.snapshot(str(tree / "pkg"), str(home), inputs=[str(config), str(copy)]).about["code"]
        assert known == made
        return str(made)

    first = both()
    put(config, "lr: 2\n")
    put(tree / "data" / "more.bin", "5678")
    put(copy, "seed: 2\n")
    assert both() == first
    os.utime(tree / "train.py", (1, 1))
    assert both() == first
    put(tree / "train.py", "print(2)\n")
    second = both()
    (tree / "run.sh").chmod(0o644)
    assert len({first, second, both()}) == 3
    assert freeze.code(str(tree / "nowhere"), str(home)) is None


def test_later_edits_do_not_reach_a_snapshot(tree: Path, home: Path) -> None:
    found = freeze.snapshot(str(tree), str(home))
    (tree / "train.py").write_text("broken")
    (tree / "pkg" / "net.py").unlink()
    assert Path(found.tree, "train.py").read_text() == "print(1)\n"
    assert Path(found.tree, "pkg", "net.py").exists()


def test_equal_trees_share_one_snapshot_and_others_do_not(tree: Path, home: Path) -> None:
    one, two = (freeze.snapshot(str(tree), str(home)) for _ in range(2))
    assert one.tree == two.tree
    (tree / "run.sh").chmod(0o644)
    three = freeze.snapshot(str(tree), str(home))
    (tree / "train.py").write_text("other")
    four = freeze.snapshot(str(tree), str(home))
    assert len({one.tree, three.tree, four.tree}) == 3
    assert not [name for name in os.listdir(home / "frozen") if name.startswith(".")], "nothing half made is left"


def test_what_a_job_is_made_of_is_copied_even_where_it_is_ignored(tree: Path, home: Path) -> None:
    one, other = put(tree / "configs" / "temp" / "a_seed1.yaml", "seed: 1\n"), put(tree / "configs" / "temp" / "old.yaml", "old")
    found = freeze.snapshot(str(tree), str(home), inputs=[str(one), "/etc/hostname", str(tree / "missing.yaml")])
    one.write_text("seed: 2\n")
    at = Path(found.tree, "configs", "temp")
    assert ((at / "a_seed1.yaml").read_text(), os.readlink(at / "old.yaml")) == ("seed: 1\n", str(other))


def test_links_inside_stay_inside_and_links_that_lead_out_lead_to_the_same_place(tree: Path, home: Path, tmp_path: Path) -> None:
    put(tmp_path / "shared" / "x", "shared")
    (tree / "pkg" / "inner").symlink_to("../train.py")
    (tree / "pkg" / "full").symlink_to(tree / "train.py")
    (tree / "out").symlink_to("../shared")
    found = freeze.snapshot(str(tree), str(home))
    (tree / "train.py").write_text("edited")
    assert {Path(found.tree, "pkg", name).read_text() for name in ("inner", "full")} == {"print(1)\n"}
    assert Path(found.tree, "out", "x").read_text() == "shared"


def test_submodules_are_part_of_it(tree: Path, home: Path, tmp_path: Path) -> None:
    put(tree / "sub" / "inner.py", "in")
    put(tree / "sub" / ".gitignore", "secret\n")
    put(tree / "sub" / "secret", "s")
    git(tree / "sub", "init", "-q")
    git(tree / "sub", "add", ".")
    git(tree / "sub", "commit", "-qm", "sub")
    found = freeze.snapshot(str(tree), str(home))
    assert "sub/inner.py" in frozen_files(found) and "sub/secret" not in frozen_files(found)


def test_a_repository_without_a_commit_and_one_that_ignores_the_directory(tmp_path: Path, home: Path) -> None:
    root = tmp_path / "fresh"
    put(root / "a.py")
    put(root / "scratch" / "b.py")
    put(root / ".gitignore", "scratch/\n")
    git(root, "init", "-q")
    about = freeze.snapshot(str(root), str(home)).about
    assert (about["commit"], about["dirty"]) == (None, True)
    inner = freeze.snapshot(str(root / "scratch"), str(home))
    assert (inner.root, frozen_files(inner)) == (str(root / "scratch"), {"b.py"}), "else the jobs would run from a link"


# --- a folder without git


def test_a_plain_folder_leaves_out_what_is_no_code(tmp_path: Path, home: Path) -> None:
    root = tmp_path / "plain"
    for name in ("a.py", "logs/x.log", "m.pt", "__pycache__/a.pyc", "keep/own.txt", "tmp/t.txt", "conf/c.yaml", "notes.md"):
        put(root / name, name)
    put(root / ".jostleignore", "# not code\ntmp/\n*.md\n")
    (root / "outputs_to_come").mkdir()
    os.mkfifo(root / "pipe")
    found = freeze.snapshot(str(root / "conf"), str(home), base=str(root))
    assert frozen_files(found) == {"a.py", "keep/own.txt", "conf/c.yaml", ".jostleignore"}
    links = {name for name in os.listdir(found.tree) if os.path.islink(os.path.join(found.tree, name))}
    assert links == {"logs", "m.pt", "tmp", "notes.md", "outputs_to_come"}, "an empty folder is for what comes"
    assert found.about["commit"] is None


def test_a_home_inside_of_the_tree_is_not_part_of_it(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    put(root / "a.py")
    put(root / "home" / "jostle.db")
    found = freeze.snapshot(str(root), str(root / "home"))
    assert os.listdir(found.tree) == ["a.py"]


def test_too_much_is_refused_with_what_to_do(tmp_path: Path, home: Path) -> None:
    root = tmp_path / "plain"
    put(root / "a.py")
    put(root / "corpus.txt", "x" * 5000)
    with pytest.raises(Invalid, match=r"\.jostleignore .*largest are corpus\.txt"):
        freeze.snapshot(str(root), str(home), max_bytes=4000)
    put(root / ".jostleignore", "corpus.txt\n")
    assert Path(freeze.snapshot(str(root), str(home), max_bytes=4000).tree, "corpus.txt").read_text() == "x" * 5000


def test_a_directory_that_does_not_exist_is_told(tmp_path: Path, home: Path) -> None:
    with pytest.raises(Invalid, match="does not exist"):
        freeze.snapshot(str(tmp_path / "none"), str(home))


# --- jobs in it


def test_jobs_run_inside_and_their_logs_stay_where_they_are(tree: Path, home: Path) -> None:
    found = freeze.snapshot(str(tree), str(home))
    job = freeze.moved(made(tree / "pkg", log=str(tree / "logs" / "a.log")), found)
    assert (job["workdir"], job["log"]) == (f"{found.tree}/pkg", str(tree / "logs" / "a.log"))


def test_jobs_outside_of_the_tree_are_left_alone(tree: Path, home: Path, tmp_path: Path) -> None:
    found = freeze.snapshot(str(tree), str(home))
    (tmp_path / "proj2").mkdir()
    for directory in (tmp_path, tmp_path / "proj2"):
        job = made(directory, f"python {tree}/train.py")
        assert freeze.moved(job, found) == job


def test_full_paths_of_code_lead_into_it_and_those_of_outputs_do_not(tree: Path, home: Path, tmp_path: Path) -> None:
    found = freeze.snapshot(str(tree), str(home))
    untouched = f"--out {tree}/results --data {tree}/data/big.bin {tree}2/train.py"
    command = f"cd {tree} && python '{tree}/train.py' {untouched} --c={tree}/run.sh"
    job = freeze.moved(made(tree, command, ["cat", f"{tree}/pkg/net.py"], env={"PYTHONPATH": f"/x:{tree}/pkg:{tree}"}), found)
    t = found.tree
    assert job["commands"] == [
        f"cd {t} && python '{t}/train.py' {untouched} --c={t}/run.sh",
        ["cat", f"{t}/pkg/net.py"],
    ]
    assert job["env"] == {"PYTHONPATH": f"/x:{t}/pkg:{t}"}


def test_a_tree_that_is_reached_over_a_link_is_the_same_tree(tree: Path, home: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(tree)
    found = freeze.snapshot(str(tmp_path / "alias" / "pkg"), str(home))
    job = freeze.moved(made(tmp_path / "alias" / "pkg", f"python {tmp_path}/alias/train.py"), found)
    assert (found.root, job["workdir"], job["commands"]) == (str(tree), f"{found.tree}/pkg", [f"python {found.tree}/train.py"])


@pytest.mark.parametrize(
    ("at", "command", "word"),
    [
        ("", "python train.py --cfg ../configs/a.yaml", "../configs/a.yaml"),
        ("", ["python", "train.py", "--cfg=../configs/a.yaml"], "../configs/a.yaml"),
        ("pkg", "cat pkg/../../../configs/a.yaml", "pkg/../../../configs/a.yaml"),
        ("pkg", "python net.py <../../configs/new.yaml", "../../configs/new.yaml"),
        ("", "bash -c \"cat '../configs/a.yaml'\"", "../configs/a.yaml"),
    ],
)
def test_a_relative_path_that_leaves_the_tree_is_refused(tree: Path, home: Path, at: str, command: Any, word: str) -> None:
    put(tree.parent / "configs" / "a.yaml")
    put(tree / "pkg" / "pkg" / "x")
    found = freeze.snapshot(str(tree), str(home))
    with pytest.raises(Invalid) as caught:
        freeze.moved(made(tree / at, command), found)
    assert f"--freeze: {word} " in str(caught.value) and str(tree.parent / "configs") in str(caught.value)


def test_inputs_and_variables_that_leave_the_tree_are_refused_too_but_not_what_was_done(tree: Path, home: Path) -> None:
    found = freeze.snapshot(str(tree), str(home))
    job = made(tree)
    for more in ({"inputs": [f"{tree}/../a.yaml"]}, {"env": {"PYTHONPATH": "pkg:../lib"}}):
        with pytest.raises(Invalid, match=r"\.\./"):
            freeze.moved({**job, **more}, found)
        assert freeze.moved({**job, **more, "done_by": [1, 1]}, found)["workdir"] == found.tree


def test_paths_that_stay_or_are_full_are_not_refused(tree: Path, home: Path) -> None:
    found = freeze.snapshot(str(tree), str(home))
    job = made(tree / "pkg", f"python ../train.py {tree.parent}/configs/a.yaml --re 's/../../x/' \"$D/../../y\" a..b ../../no/x")
    assert freeze.moved({**job, "inputs": [f"{tree}/pkg/../train.py", "/etc/hostname"]}, found)["workdir"] == f"{found.tree}/pkg"


def test_a_sweep_whose_configs_lie_outside_says_so_to_the_freeze(tree: Path, home: Path) -> None:
    from jostle.experiments.load import load

    put(tree.parent / "configs" / "a.yaml", "lr: 1\n")
    for k, text in enumerate(("matrix: {config: [../configs/a.yaml]}\ncommand: x {config}\n",
                              "matrix: {lr: [1]}\ncommand: x {lr}\ninputs: [../configs/a.yaml]\n")):  # fmt: skip
        (batch,) = load([str(put(tree / f"s{k}.yaml", text))])
        with pytest.raises(Invalid, match=r"\.\./configs/a\.yaml"):
            freeze.moved(batch["jobs"][0], freeze.snapshot(str(tree), str(home)))


# --- what goes wrong


def test_an_unreadable_file_is_named_with_what_to_do(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(path: Any, mode: str = "r", **more: Any) -> Any:
        if str(path).endswith("proj/train.py"):
            raise PermissionError(errno.EACCES, "Permission denied", path)  # root may read anything: chmod would not do
        return open(path, mode, **more)

    monkeypatch.setattr(freeze, "open", refuses, raising=False)
    with pytest.raises(Invalid, match=r"proj/train\.py cannot be copied \(Permission denied\); name it in .*/\.jostleignore"):
        freeze.snapshot(str(tree), str(home))
    put(tree / ".jostleignore", "train.py\n")
    assert os.path.islink(f"{freeze.snapshot(str(tree), str(home)).tree}/train.py")


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, DiskFull), (errno.EIO, JostleError)])
def test_a_full_disk_is_one_sentence(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception]
) -> None:  # fmt: skip
    def full(path: Any, mode: str = "r", **more: Any) -> Any:
        if mode == "wb":
            raise OSError(number, os.strerror(number), path)
        return open(path, mode, **more)

    monkeypatch.setattr(freeze, "open", full, raising=False)
    with pytest.raises(kind, match=f"--freeze: no snapshot of .*{os.strerror(number)}"):
        freeze.snapshot(str(tree), str(home))
    assert os.listdir(home / "frozen") == [], "nothing half made is left"


# --- the end of it


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_nobody_writes_into_a_snapshot(tree: Path, home: Path) -> None:
    found = freeze.snapshot(str(tree), str(home))
    for name in ("train.py", "new", "pkg/new"):
        with pytest.raises(PermissionError):
            Path(found.tree, name).write_text("x")


def test_modes_of_a_snapshot_say_that_it_is_read_only(tree: Path, home: Path) -> None:
    found = freeze.snapshot(str(tree), str(home))
    assert {os.stat(found.tree).st_mode & 0o222, os.stat(f"{found.tree}/train.py").st_mode & 0o222} == {0}


def test_unused_snapshots_go_and_what_links_lead_to_stays(tree: Path, home: Path) -> None:
    one = freeze.snapshot(str(tree), str(home))
    (tree / "train.py").write_text("two")
    two = freeze.snapshot(str(tree), str(home))
    paths = {os.path.dirname(found.tree) for found in (one, two)}
    assert snapshots.unused(str(home), [], time.time() + 10) == [], "those of the last hour may be about to be used"
    for path in paths:
        os.utime(path, (1, 1))
    assert set(snapshots.unused(str(home), [], time.time())) == paths
    (free,) = snapshots.unused(str(home), [two.about["path"]], time.time())
    assert (free, snapshots.strays(free)) == (os.path.dirname(one.tree), [])
    snapshots.remove(free)
    assert not os.path.exists(free)
    assert (tree / "data" / "big.bin").read_text() == "1234"
    assert snapshots.unused(str(home / "none"), [], time.time()) == []


def test_a_snapshot_that_is_found_again_counts_as_new(tree: Path, home: Path) -> None:
    path = os.path.dirname(freeze.snapshot(str(tree), str(home)).tree)
    os.utime(path, (1, 1))
    freeze.snapshot(str(tree), str(home))
    assert snapshots.unused(str(home), [], time.time()) == []


def test_what_somebody_wrote_into_it_is_told(tree: Path, home: Path) -> None:
    found = freeze.snapshot(str(tree), str(home))
    os.chmod(f"{found.tree}/pkg", 0o755)
    put(Path(found.tree, "pkg", "results.csv"), "1")
    put(Path(found.tree, "pkg", "__pycache__", "net.pyc"), "1")
    assert snapshots.strays(os.path.dirname(found.tree)) == ["pkg/results.csv"]


def test_a_snapshot_that_was_written_into_is_not_used_again(tree: Path, home: Path) -> None:
    seen = [freeze.snapshot(str(tree), str(home))]
    for harm in ("changed", "added", "gone", "mode", "link"):
        at = Path(seen[-1].tree)
        for folder in (at, at / "pkg"):
            folder.chmod(0o755)
        if harm == "changed":
            old = os.stat(at / "train.py")
            (at / "train.py").chmod(0o644)
            (at / "train.py").write_text("print(9)\n")
            (at / "train.py").chmod(0o444)
            os.utime(at / "train.py", ns=(old.st_atime_ns, old.st_mtime_ns))
        elif harm == "added":
            put(at / "pkg" / "config.py")
        elif harm == "gone":
            (at / "pkg" / "net.py").unlink()
        elif harm == "mode":
            (at / "run.sh").chmod(0o444)
        else:
            (at / "data").unlink()
            (at / "data").symlink_to("/")
        seen.append(freeze.snapshot(str(tree), str(home)))
        assert Path(seen[-1].tree, "train.py").read_text() == "print(1)\n" and seen[-1].about["path"] == seen[-1].tree
    assert len({found.tree for found in seen}) == 6, "and the others stay: jobs may run from them"
    put(Path(seen[-1].tree, "pkg", "__pycache__", "net.pyc"), "1")
    assert freeze.snapshot(str(tree), str(home)).tree == seen[-1].tree, "what Python leaves behind does no harm"


# --- what code there is, without a snapshot


def test_the_code_of_a_tree_is_its_tracked_content_whatever_the_commit_and_nothing_is_written(tree: Path) -> None:
    def now(*apart: str) -> tuple[bool, str]:
        before = kept()
        found = gittree.tracked(str(tree), apart)
        assert found["commit"] == git(tree, "rev-parse", "HEAD").strip()
        assert kept() == before
        return found["dirty"], found["tree"]

    def kept() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in (tree / ".git").rglob("*") if path.is_file()}

    clean, first = now()
    put(tree / "train.py", "print(2)\n")
    dirty, second = now()
    assert (clean, dirty, first == second) == (False, True, False)
    assert now("train.py")[1] != second
    git(tree, "commit", "-qam", "two")
    assert now() == (False, second), "a commit of what was there is the same code"
    before = now("train.py")
    put(tree / "train.py", "print(3)\n")
    put(tree / "new.py", "not tracked\n")
    assert now("train.py") == (True, before[1]), "what is apart does not count to it"
    git(tree, "rm", "-q", "--cached", "pkg/net.py")
    assert now("train.py")[1] != before[1]


def test_an_edit_in_the_moment_of_a_commit_is_seen(tree: Path) -> None:
    """Git tells such an edit by the time of its index, which a copy of it must keep."""
    git(tree, "config", "core.trustctime", "false")
    at = (1_700_000_000, 1_700_000_000)
    os.utime(tree / "train.py", at)
    git(tree, "add", "train.py")
    os.utime(tree / ".git" / "index", at)
    before = gittree.tracked(str(tree))
    put(tree / "train.py", "print(2)\n")
    os.utime(tree / "train.py", at)
    after = gittree.tracked(str(tree))
    assert (before["dirty"], after["dirty"]) == (False, True) and before["tree"] != after["tree"]


def test_a_tree_without_a_commit_has_code(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    empty = gittree.tracked(str(tmp_path))
    put(tmp_path / "a.py", "1")
    git(tmp_path, "add", "a.py")
    found = gittree.tracked(str(tmp_path), ["not there.py"])
    assert (found["commit"], found["dirty"]) == (None, True) and found["tree"] != empty["tree"]
