"""A work_dir in a command: bash sees exactly the path, or the task is refused."""

import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jostle.core.variables import filled
from jostle.errors import NotFound
from jostle.formats import workdir, workspace
from jostle.formats.flaws import BadFiles
from jostle.formats.taskfile import Block

BARE, DOUBLE, SINGLE, INNER = (
    "printf %s {work_dir}",
    'printf %s "{work_dir}"',
    "printf %s '{work_dir}'",
    'printf %s "$(echo {work_dir})"',
)


def refused(path, *commands):
    block = Block(queue=1, commands=commands, memory_gb=1, line=4)
    return [text for _, _, text in workdir.flaws(path, [block], "f")]


@pytest.mark.parametrize("path", [
    "/p/proj$(touch x)", "/p/a`b`", "/p/a;b", "/p/a&b", "/p/a|b", "/p/a'b", '/p/a"b', "/p/a\\b", "/p/a>b", "/p/a(b)", "/p/{a,b}",
    "/p/a\nb\x07", "/p/{uni_id}",
])  # fmt: skip
def test_a5_a_work_dir_that_acts_in_a_shell_is_refused_where_a_command_uses_it(path):
    for command in (BARE, DOUBLE, SINGLE, INNER):
        [text] = refused(path, "true", command)
        assert "the shell would act on" in text and "expected a work_dir of plain characters" in text
    assert refused(path, "printf %s $PWD", "echo ${work_dir}") == []


@pytest.mark.parametrize("path", ["/p/my data", "/p/a[1]", "/p/a*", "/p/what?"])
def test_a5_what_only_splits_is_refused_outside_of_quotes(path):
    assert refused(path, DOUBLE, SINGLE) == refused(path, "cd \"{work_dir}\" && ls '{work_dir}/x'") == []
    for command in (BARE, INNER, DOUBLE + " {work_dir}", "x=`ls '{work_dir}'`"):
        [text] = refused(path, command)
        assert 'quotes around it as in "{work_dir}/data"' in text


@pytest.mark.parametrize("path", ["/p/项目-été_v1.2", "/p/a+b,c=d@e:f%g~h#i^j!k", "/p/日本語", "/p/\udce4"])
def test_a5_letters_of_any_language_are_plain(path):
    assert refused(path, BARE, DOUBLE, SINGLE, INNER) == []


signs = st.sampled_from(" $`\\\"'|&;<>(){}*?[]~#!^=%\t")
names = st.text(st.one_of(signs, st.characters(codec="utf-8", exclude_characters="\0/")), min_size=1, max_size=6)
uses = st.sampled_from([BARE, DOUBLE, SINGLE, "printf %s a{work_dir}b", "printf %s x={work_dir}"])


@given(st.lists(names, min_size=1, max_size=2), uses)
@example(["~"], "printf %s x={work_dir}")
@settings(max_examples=60, deadline=None)
def test_a5_bash_sees_exactly_the_path_of_what_is_not_refused(parts, command):
    path = "/" + "/".join(parts)
    if refused(path, command):
        return
    seen = subprocess.run(["bash", "-c", filled(command, {"work_dir": path})], capture_output=True, timeout=60, cwd="/")
    wanted = command.removeprefix("printf %s ").strip("\"'").replace("{work_dir}", path)
    assert (seen.returncode, seen.stdout.decode("utf-8", "surrogateescape")) == (0, wanted), seen.stderr


def test_a5_the_file_is_refused_with_the_line_of_each_task_and_all_other_errors(tmp_path):
    root = tmp_path / "pro$(touch x)" / "space"
    (root / "command").mkdir(parents=True)
    (root / "command" / "command_gpu.txt").write_text(
        "1\nls {work_dir}\n1\n\n2\ntrue\n1\n\n3\nbad\n\n4\nls ok\nls {work_dir}\n1\n"
    )
    with pytest.raises(BadFiles) as caught:
        workspace.tasks(str(root))
    assert [line for _, line, _ in caught.value.flaws] == [1, 10, 12]
    (root / "config").mkdir()
    (root / "config" / "gpu_manage.yaml").write_text("work_dir: /plain\n")
    with pytest.raises(BadFiles) as caught:
        workspace.tasks(str(root))
    assert [line for _, line, _ in caught.value.flaws] == [10]
    with pytest.raises(NotFound):
        workspace.tasks(str(tmp_path / "none"))


@pytest.mark.parametrize("said, warned", [
    ("log_dir: /elsewhere/logs", ["log_dir"]), ("process_json_path: ../../ids.json", ["process_json_path"]),
    ("log_dir: ../outer", []), ("process_json_path: ../script_process/uni_id.json", []), ("log_dir: ./logs", []),
    ("log_dir: /data/logs\nwork_dir: /data", []), ("log_dir: /data2\nwork_dir: /data", ["log_dir"]), ("gpu_left: 1", []),
])  # fmt: skip
def test_places_outside_of_the_workspace_and_work_dir_are_told(tmp_path, said, warned):
    root = tmp_path / "project" / "space"
    for name, text in (("command/command_gpu.txt", "1\ntrue\n1\n"), ("config/gpu_manage.yaml", "check_time: 1\n" + said + "\n")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    told = [text for text in workspace.tasks(str(root))[2] if "lies outside of the workspace and of work_dir" in text]
    assert [text.split(" ")[1] for text in told] == warned
    assert all(text.startswith(f"{root}/config/gpu_manage.yaml:2: ") for text in told)
