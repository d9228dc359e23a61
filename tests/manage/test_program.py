"""The program of the template (SPEC C5), as bash runs it; and names with and without their prefix (C4)."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.errors import Usage
from jostle.formats.managerfile import NAME, ManagerConfig, Scaling, TaskTemplate
from jostle.manage.names import bare, managed, prefixed
from jostle.manage.program import command, environment, program, tell_if_it_stays
from jostle.session import Session

TELL = "python3 -c 'import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))'"


def ran(template: TaskTemplate, cards: str = "1,3") -> tuple[list[str], dict[str, str]]:
    config = ManagerConfig(program_template=template)
    env = {"PATH": "/usr/bin:/bin:/usr/local/bin", **environment(config), "CUDA_VISIBLE_DEVICES": cards}
    out = subprocess.run(["bash", "-c", command(config)], env=env, capture_output=True, text=True, check=True).stdout
    words, variables = json.loads(out)
    return words, variables


def test_c5_the_cards_stand_in_arguments_and_variables_when_it_starts() -> None:
    template = TaskTemplate(
        command=TELL + " {gpu_list}", args=("--gpus", "{gpu_list}", "--n={gpu_list}!"),
        env_vars={"CUDA_VISIBLE_DEVICES": "{gpu_list}", "SEEN": "on {gpu_list}", "PLAIN": "$HOME `x`"},
    )  # fmt: skip
    words, variables = ran(template)
    assert words == ["1,3", "--gpus", "1,3", "--n=1,3!"]
    assert (variables["CUDA_VISIBLE_DEVICES"], variables["SEEN"], variables["PLAIN"]) == ("1,3", "on 1,3", "$HOME `x`")


def test_c5_a_file_cannot_give_its_program_other_cards_than_it_has() -> None:
    config = ManagerConfig(program_template=TaskTemplate(command="true", env_vars={"CUDA_VISIBLE_DEVICES": "0,1,2,3"}))
    assert environment(config) == {} and command(config) == "true"


ANY = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)


@settings(max_examples=25)
@given(st.lists(st.one_of(ANY, ANY.map(lambda text: text + "{gpu_list}")), max_size=4))
def test_c5_whatever_an_argument_says_it_is_one_argument(args: list[str]) -> None:
    words, _ = ran(TaskTemplate(command=TELL, args=tuple(args)), "0")
    assert words == [arg.replace("{gpu_list}", "0") for arg in args]


@pytest.mark.parametrize(("language", "said"), [("en", "expected"), ("zh", "没有可启动的程序")])
@pytest.mark.parametrize("path", ["", "/x/gpu_manager_config.json"])
def test_c5_without_a_program_that_is_said(monkeypatch: pytest.MonkeyPatch, path: str, language: str, said: str) -> None:
    monkeypatch.setenv("JOSTLE_LANG", language)
    with pytest.raises(Usage, match=f"{said}.*program_template") as caught:
        program(Session(), ManagerConfig(path=path))
    assert (path or NAME) in str(caught.value)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"written": frozenset({"scaling"})}, True),
        ({"written": frozenset({"auto_scale"})}, True),
        ({}, False),  # nobody asked for it
        ({"written": frozenset({"auto_scale"}), "auto_scale": False}, False),
        ({"written": frozenset({"scaling"}), "scaling": Scaling(enabled=False)}, False),
        ({"written": frozenset({"scaling"}), "scaling": Scaling(resize="signal")}, False),
    ],
)
def test_c8_a_file_that_asks_for_scaling_and_does_not_say_how_is_told_that_its_program_keeps_its_cards(
    values: dict[str, Any], told: bool
) -> None:
    heard: list[str] = []
    session = Session()
    session.say = heard.append  # type: ignore[method-assign]
    tell_if_it_stays(session, ManagerConfig(path="/x/file.json", **values), "t")
    assert [("/x/file.json" in text and "scaling.resize" in text) for text in heard] == [True] * told


@pytest.mark.parametrize(
    ("name", "shown", "told"), [("a", "a", "NDFS_a"), ("NDFS_a", "a", "NDFS_a"), ("NDFS_", "NDFS_", "NDFS_")]
)
def test_c4_the_prefix_is_put_once_and_names_are_the_same_with_or_without_it(name: str, shown: str, told: str) -> None:
    assert (bare(name, "NDFS_"), prefixed(name, "NDFS_")) == (shown, told)


def test_c1_jobs_with_a_managed_prefix_are_the_managers_too() -> None:
    cases: dict[str, Any] = {"NDFS_x": True, "old_x": True, "x": False}
    assert {name: managed(name, ("NDFS_", "old_")) for name in cases} == cases
    assert not managed("x", ("",))
