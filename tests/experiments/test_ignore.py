"""Rules of what to leave out: as git reads them, in time that a rule cannot stretch, and errors where git would be silent."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from pathlib import Path

import pytest

from jostle.errors import Invalid
from jostle.experiments import freeze
from jostle.experiments.ignore import Ignore


@pytest.mark.parametrize(
    ("rules", "left_out", "kept"),
    [
        ("*.pt", ["a.pt", "x/y/b.pt"], ["a.pth", "pt"]),
        ("/a.pt", ["a.pt"], ["x/a.pt"]),
        ("logs/", ["logs/", "x/logs/"], ["logs", "my_logs/"]),
        ("x/*.py", ["x/a.py"], ["x/y/a.py", "z/x/a.py"]),
        ("x/**/a", ["x/a", "x/y/z/a"], ["a"]),
        ("**/a", ["a", "x/y/a"], ["ba"]),
        ("x/**", ["x/a", "x/y/a"], ["x"]),
        ("a?c\n[xy]z\n[!ab]q", ["abc", "xz", "cq"], ["ac", "az", "aq"]),
        ("*.log\n!keep.log", ["a.log"], ["keep.log", "x/keep.log"]),
        ("#c\n\\#d\n\na\\ \nb ", ["#d", "a ", "b"], ["#c", "c"]),
        ("数据/", ["数据/"], ["数据"]),
        ("[]a]x\n[a-c-]y\n[[:digit:]]z\n[!a-c]w", ["]x", "-y", "7z", "dw"], ["bx", "dy", "az", "bw"]),
        ("a**b\n**", ["ab", "axb", "x"], []),
        ("x/**/y/**/z", ["x/y/z", "x/1/y/y/2/3/z"], ["x/z/y", "y/z"]),
        ("\\[a]\na\\*b", ["[a]", "a*b"], ["a", "axb"]),
    ],
)
def test_rules_are_read_as_git_reads_them(rules: str, left_out: list[str], kept: list[str], tmp_path: Path) -> None:
    ignore = Ignore(rules.split("\n"))
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text(rules)
    for path, expected in [*((p, True) for p in left_out), *((p, False) for p in kept)]:
        assert ignore(path.rstrip("/"), path.endswith("/")) is expected, path
        checked = subprocess.run(["git", "-C", str(tmp_path), "check-ignore", "-q", "--", path], check=False)
        assert (checked.returncode == 0) is expected, f"git itself says otherwise of {path}"


def test_rules_made_by_chance_are_read_as_git_reads_them(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    chance = random.Random(7)
    names = ["".join(word) for n in (1, 2, 3) for word in itertools.product("ab", repeat=n)]
    paths = [*names, *("/".join(chance.choices(names[:6], k=n)) for n in (2, 3, 4) for _ in range(40))]
    names_of_rules = ["a", "ab", "*", "**", "?b", "a*", "[ab]*", "[!a]b", "*b*", "*a*b", "***"]
    made = ("/".join(chance.choices(names_of_rules, k=chance.randint(1, 4))) for _ in range(100))
    rules = {chance.choice(["", "/"]) + rule + chance.choice(["", "/"]) for rule in made}
    for rule in sorted(rules):
        (tmp_path / ".gitignore").write_text(rule)
        told = subprocess.run(["git", "-C", str(tmp_path), "check-ignore", "--stdin"], input="\n".join(paths), text=True,
                              capture_output=True, check=False)  # fmt: skip
        ignore = Ignore([rule])
        found = [path for path in paths if below(ignore, path)]
        assert sorted(found) == sorted(told.stdout.split()), rule


def below(ignore: Ignore, path: str) -> bool:
    """Whether it, or a folder that it lies in, is left out."""
    parts = path.split("/")
    return ignore(path, False) or any(ignore("/".join(parts[:n]), True) for n in range(1, len(parts)))


@pytest.mark.parametrize("rule", ["*a" * 30 + "b", "a*" * 30 + "b", "/" + "**/a/" * 30 + "b", "**/" + "*a" * 20 + "[xy]"])
def test_no_rule_takes_long(rule: str) -> None:
    code = f"from jostle.experiments.ignore import Ignore; i = Ignore([{rule!r}]); assert not i('a' * 200, False)"
    code += "; assert not i('/'.join('a' * 100), False); assert not i('/'.join(['a' * 50] * 20), False)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)  # for ever, where each star is tried with each other


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("data[0-9", "has no end; expected ]"),
        ("[", "has no end"),
        ("a/[b/c]", "has no end"),
        ("[z-a]", "the range z-a is empty; expected a-z"),
        ("[[:letter:]]", "there is no class [:letter:]; expected one of alpha"),
        ("x\\", "a backslash at its end"),
        ("logs//", "nothing stands between two slashes"),
    ],
)
@pytest.mark.parametrize("name", [".jostleignore", ".gitignore"])
def test_a_rule_that_is_none_is_an_error_with_its_line(tmp_path: Path, rule: str, why: str, name: str) -> None:
    root, home = tmp_path / "plain", tmp_path / "home"
    for path in (root, home):
        path.mkdir()
    (root / "a.py").touch()
    (root / name).write_text(f"# fine\n*.log\n{rule}\n")
    with pytest.raises(Invalid) as caught:
        freeze.snapshot(str(root), str(home))
    assert str(caught.value).startswith(f"{root / name}:3: the rule ") and why in str(caught.value)


def test_all_bad_rules_are_told_at_once() -> None:
    with pytest.raises(Invalid) as caught:
        Ignore(["[", "ok", "[b-a]"], "f")
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == ["f:1", "f:3"]
