"""CUDA_VISIBLE_DEVICES where jobs are submitted (SPEC A12): a restriction that is kept and said, or a warning."""

from __future__ import annotations

import pytest

from tests.e2e.instance import Instance, until

NAME = "CUDA_VISIBLE_DEVICES"


def added(jostle: Instance, visible: str, *words: str, **env: str) -> tuple[int, str]:
    """The job, and what was said."""
    code, out, err = jostle.run("add", *words, "--", "true", env={NAME: visible, **env})
    assert code == 0, err
    return int(out), err


def pool(jostle: Instance, id: int) -> object:
    """The cards that the job's batch may use."""
    with jostle.reader() as reader:
        found = reader.batch(jostle.job(id)["batch"])
    assert found is not None
    return found["policy"].get("gpus")


@pytest.mark.parametrize(
    ("visible", "cards"),
    [("5", [5]), ("6, 2", [2, 6]), ("GPU-sim-0003", [3]), ("GPU-sim-0001,4", [1, 4]), ("2,2", [2])],
)
def test_a12_a_job_added_where_only_some_cards_are_visible_uses_these_and_it_is_said(
    jostle: Instance, visible: str, cards: list[int]
) -> None:
    id, said = added(jostle, visible)
    assert f"{NAME}={visible} is set here: only GPU {','.join(map(str, cards))} may be used" in said
    assert pool(jostle, id) == cards
    assert jostle.end(id) == ["succeeded"] and set(jostle.job(id)["gpus"]) <= set(cards)


@pytest.mark.parametrize(
    ("visible", "said"),
    [
        ("", "hides all GPUs"), ("-1", "hides all GPUs"), ("GPU-sim-00", "is not understood"), ("GPU-none", "is not understood"),
        ("MIG-1", "is not understood"), ("NoDevFiles", "is not understood"), ("0,,1", "is not understood"),
    ],
)  # fmt: skip
def test_a12_what_hides_everything_or_is_not_understood_is_only_warned_of(jostle: Instance, visible: str, said: str) -> None:
    id, err = added(jostle, visible)
    assert err.startswith(f"warning: {NAME}={visible} ") and said in err and "Traceback" not in err
    assert pool(jostle, id) is None and jostle.end(id) == ["succeeded"]


def test_a12_it_is_said_in_chinese_too_and_a_job_without_gpus_hears_nothing(jostle: Instance) -> None:
    assert "只使用 GPU 1" in added(jostle, "1", JOSTLE_LANG="zh")[1]
    assert added(jostle, "1", "-g", "0")[1] == added(jostle, "", "-g", "0")[1] == ""


def test_a12_what_a_run_submits_is_not_restricted_to_its_own_cards(jostle: Instance) -> None:
    outer = jostle.add("--", "jostle() { python3 -m jostle \"$@\"; }; jostle add -- true > inner 2> said")
    assert jostle.end(outer) == ["succeeded"]
    inner = int((jostle.work / "inner").read_text())
    assert (jostle.work / "said").read_text() == "" and pool(jostle, inner) is None
    assert jostle.end(inner) == ["succeeded"]


def test_a12_run_is_restricted_within_what_the_file_allows(jostle: Instance) -> None:
    file = jostle.file("policy: {gpus: 0-3}\njobs: [{name: a, run: exit 0}, {name: b, run: exit 0}]\n", "within.yaml")
    code, _, err = jostle.run("run", file, env={NAME: "3,4,5"})
    assert code == 0 and "only GPU 3 may be used" in err
    assert [row["gpus"] for row in jostle.newest(2)] == [[3], [3]]
    jostle.ok("run", "--dry-run", file, env={NAME: "GPU-sim-0003"})
    plain = jostle.file("jobs: [{name: j, run: exit 0}]\n", "plain.yaml")
    code, _, err = jostle.run("run", "-d", plain, env={NAME: "GPU-sim-0006"})
    assert code == 0 and "only GPU 6 may be used" in err
    (row,) = jostle.newest()
    assert jostle.end(row["id"]) == ["succeeded"] and jostle.job(row["id"])["gpus"] == [6]
    code, _, err = jostle.run("run", plain, env={NAME: ""})
    assert code == 0 and "hides all GPUs" in err


def test_a12_a_workspace_that_names_its_cards_is_run_on_these_and_another_on_what_is_visible(jostle: Instance) -> None:
    space = jostle.work / "space"
    (space / "config").mkdir(parents=True)
    tasks = space / "command.txt"
    tasks.write_text("1\ntrue\n1\n")
    settings = space / "config" / "gpu_manage.yaml"
    for text, cards, said in (("use_all_gpus: true\n", [2], True), ("use_all_gpus: false\ncompete_gpus: [5]\n", [5], False)):
        settings.write_text(text)
        code, _, err = jostle.run("run", str(space), env={NAME: "2"})
        assert code == 0 and ("only GPU 2 may be used" in err) == said, err
        assert jostle.newest()[0]["gpus"] == cards
    settings.write_text("use_all_gpus: true\n")
    code, _, err = jostle.run("run", str(space), env={NAME: "nothing"})
    assert code == 0 and "is not understood" in err


def test_a12_the_settings_of_the_engine_are_not_widened(instance: Instance) -> None:
    instance.home.mkdir(mode=0o700)
    (instance.home / "config.yaml").write_text("policy: {gpus: 0-1}\n")
    instance.up("sim:4x24")
    instance.see_cards()
    id, said = added(instance, "1,2")
    assert "only GPU 1 may be used" in said and instance.end(id) == ["succeeded"] and instance.job(id)["gpus"] == [1]
    id, said = added(instance, "3")
    assert "none of these is among the cards that the settings allow (0-1)" in said or "(0,1)" in said
    until(lambda: instance.json("why", str(id))["reason"]["code"] == "impossible_count", "it is said why")
