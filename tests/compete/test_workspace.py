"""Workspaces: which files they are made of, in the new layout and the older one, and what is said when one is missing."""

import os

import pytest

from jostle.errors import NotFound, Usage
from jostle.formats import workspace
from jostle.formats.flaws import BadFiles
from jostle.formats.gpumanage import Settings
from jostle.formats.workspace import configs, find


@pytest.fixture
def root(tmp_path):
    made = tmp_path / "project" / "compete"
    (made / "command").mkdir(parents=True)
    (made / "config").mkdir()
    return made


def put(root, *names, text="python a.py\n1,20\n"):
    for name in names:
        (root / name).write_text(text)


def settings(root, text, name="config/gpu_manage.yaml"):
    (root / name).write_text(text)


# --- A7


def test_a7_config_n_plus_1_is_the_file_with_the_number_n(root):
    put(root, "command/command_gpu.txt", "command/command_gpu_1.txt", "command/command_gpu_10.txt", "command/command_gpus_2.txt")
    put(
        root,
        "command/command_gpu.txt.backup",
        "command/command_gpu_1.txt.backup",
        "command/command_gpu_x.txt",
        "command/command_gpu_0.txt",
    )
    put(root, "command/command_gpu_01.txt", "command/notes.txt")
    single = configs(str(root), "single")
    assert [(c.index, c.name, c.file_name, c.exists) for c in single] == [
        (0, "config 1", "command_gpu.txt", True), (1, "config 2", "command_gpu_1.txt", True),
        (10, "config 11", "command_gpu_10.txt", True),
    ]  # fmt: skip
    assert single[1].file_path == str(root / "command/command_gpu_1.txt")
    multi = configs(str(root), "multi")
    assert [(c.index, c.file_name, c.exists) for c in multi] == [(0, "command_gpus.txt", False), (2, "command_gpus_2.txt", True)]


def test_a7_an_empty_workspace_has_a_first_config_that_does_not_exist_yet(root):
    [config] = configs(str(root), "single")
    assert (config.exists, config.file_path) == (False, str(root / "command/command_gpu.txt"))


def test_a7_a_config_is_found_by_mode_and_index(root):
    put(root, "command/command_gpu.txt", "command/command_gpus.txt", "command/command_gpu_1.txt")
    settings(root, "gpu_left: 2\n")
    found = find(str(root), mode="multi")
    assert (found.mode, found.index, found.command_file) == ("multi", 0, str(root / "command/command_gpus.txt"))
    assert (found.settings, found.config_file) == (Settings(gpu_left=2), str(root / "config/gpu_manage.yaml"))
    assert find(str(root), index=1).command_file == str(root / "command/command_gpu_1.txt")
    assert find(str(root)).mode == "single"


def test_a7_the_mode_is_the_one_that_there_is(root):
    put(root, "command/command_gpus.txt", "command/command_gpu_1.txt")
    assert find(str(root)).mode == "multi"
    assert find(str(root), index=1).mode == "single"


def test_a7_the_older_layout_has_its_files_at_the_root(tmp_path):
    put(tmp_path, "command.txt", "command_bk.txt")
    settings(tmp_path, "gpu_left: 1\n", "config.yaml")
    found = find(str(tmp_path))
    assert (found.mode, found.index, found.command_file, found.settings.gpu_left) == (
        "single",
        0,
        str(tmp_path / "command.txt"),
        1,
    )
    assert configs(str(tmp_path), "single")[0].file_name == "command.txt"
    spare = find(str(tmp_path), command_file="command_bk.txt")
    assert (spare.command_file, spare.mode, spare.numbered) == (str(tmp_path / "command_bk.txt"), "single", False)


def test_a9_the_settings_may_name_the_file_of_config_1(root):
    put(root, "mine.txt", "many.txt", "command/command_gpu.txt")
    settings(root, "gpu_command_file: ./mine.txt\ngpus_command_file: many.txt\n")
    assert find(str(root)).command_file == str(root / "mine.txt")
    assert find(str(root), mode="multi").command_file == str(root / "many.txt")
    assert configs(str(root), "single")[0].file_path == str(root / "mine.txt")
    settings(root, "commands_path: mine.txt\n")
    assert find(str(root)).command_file == str(root / "mine.txt")


def test_a9_a_name_without_a_directory_is_also_looked_for_in_command(root):
    put(root, "command/command_gpu.txt", "command/command_gpus.txt", "command/command_gpu_1.txt", "command/older.txt")
    settings(root, "gpu_command_file: command_gpu.txt\ngpus_command_file: command_gpus.txt\n")  # as the source ships it
    assert find(str(root)).command_file == str(root / "command/command_gpu.txt")
    assert find(str(root), mode="multi").command_file == str(root / "command/command_gpus.txt")
    assert [(c.index, c.exists) for c in configs(str(root), "single")] == [(0, True), (1, True)]
    assert find(str(root), command_file="command/command_gpu.txt").index == 0
    settings(root, "commands_path: older.txt\n")
    assert find(str(root)).command_file == str(root / "command/older.txt")
    put(root, "older.txt")
    assert find(str(root)).command_file == str(root / "older.txt"), "paths are relative to the workspace first"


def test_a9_a_key_that_names_no_file_is_told_with_its_line_and_what_exists(root):
    put(root, "command/command_gpu.txt", "command/command_gpu_1.txt")
    settings(root, "gpu_left: 1\ngpu_command_file: tasks.txt\ngpus_command_file: ./command_gpus.txt\n")
    with pytest.raises(NotFound) as caught:
        find(str(root))
    assert str(caught.value) == (
        f"{root}/config/gpu_manage.yaml:2: gpu_command_file: there is no {root}/tasks.txt and no {root}/command/tasks.txt; "
        "there is command/command_gpu.txt, command/command_gpu_1.txt: name that, or remove the key"
    )
    with pytest.raises(NotFound, match=r"gpu_manage.yaml:3: gpus_command_file: there is no [^ ]*/command_gpus.txt; there is"):
        find(str(root), mode="multi")
    settings(root, "commands_path: 'a.txt'\n")
    for file in (root / "command").iterdir():
        file.unlink()
    with pytest.raises(NotFound, match=r"gpu_manage.yaml:1: commands_path: .*; there is no task file at all: write one"):
        find(str(root))


def test_a9_errors_of_settings_and_task_file_come_together_and_unknown_keys_beside_them(root):
    put(root, "command/command_gpu.txt", text="1\ntrue\n")
    settings(root, "gpu_lef: 3\nwork_dir: 7\nlog_dir: [a]\n")
    with pytest.raises(BadFiles) as caught:
        workspace.tasks(str(root))
    told = str(caught.value).split("\n")
    assert [line.removeprefix(f"{root}/").split(" ")[0] for line in told] == [
        "config/gpu_manage.yaml:2:", "config/gpu_manage.yaml:3:", "command/command_gpu.txt:2:", "warning:",
    ]  # fmt: skip
    assert "work_dir: \"7\" is no text; expected a path" in told[0] and "did you mean gpu_left?" in told[3]
    (root / "command/command_gpu.txt").unlink()
    with pytest.raises(BadFiles, match=r"(?s)gpu_manage.yaml:2: work_dir.*would be config 1 of single mode"):
        workspace.tasks(str(root))


def test_a7_a_file_that_is_named_is_found_as_the_shell_finds_it_or_in_the_workspace(root, monkeypatch):
    put(root, "command/command_gpus_1.txt", "command/command_gpu.txt")
    monkeypatch.chdir(root / "command")
    assert find("..", command_file="command_gpus_1.txt").index == 1
    monkeypatch.chdir("/")
    found = find(str(root), command_file="command/command_gpus_1.txt")
    assert (found.mode, found.index, found.key) == ("multi", 1, f"compete:{os.path.realpath(root)}:multi:1")
    assert find(str(root), command_file="command/command_gpus_1.txt", mode="single").numbered is False


def test_a_task_file_stands_for_the_workspace_around_it(root):
    put(root, "command/command_gpus_1.txt", "loose.txt")
    found = find(str(root / "command/command_gpus_1.txt"))
    assert (found.root, found.mode, found.index) == (str(root), "multi", 1)
    assert find(str(root / "loose.txt")).root == str(root)
    assert find(str(root / "command"), index=1).root == str(root)


def test_what_is_missing_is_told_with_what_there_is(root, tmp_path):
    with pytest.raises(
        NotFound, match=r"no .*/command/command_gpu.txt, which would be config 1 of single mode; go to a workspace"
    ):
        find(str(root))
    put(root, "command/command_gpu_1.txt", "command/command_gpus.txt")
    with pytest.raises(NotFound, match=r"--mode single --config-index 1 \(command_gpu_1.txt\), --mode multi --config-index 0"):
        find(str(root), mode="single")
    with pytest.raises(NotFound, match="would be config 8 of single mode"):
        find(str(root), index=7)
    with pytest.raises(NotFound, match="does not exist; expected a workspace"):
        find(str(tmp_path / "none"))
    with pytest.raises(NotFound, match="neither here nor in"):
        find(str(root), command_file="none.txt")
    with pytest.raises(NotFound, match="neither here nor in"):
        find(str(root), config_file="none.yaml")
    with pytest.raises(Usage, match="expected single or multi"):
        find(str(root), mode="double")
    with pytest.raises(Usage, match="the first config has index 0"):
        find(str(root), index=-1)
    with pytest.raises(Usage, match="give one of the two"):
        find(str(root), command_file="command/command_gpu_1.txt", index=2)


def test_a9_bad_settings_stop_the_start_but_not_the_list_of_files(root):
    put(root, "command/command_gpu.txt")
    settings(root, "gpu_left: many\n")
    with pytest.raises(BadFiles, match=r"gpu_manage.yaml:1: gpu_left"):
        find(str(root))
    assert configs(str(root), "single")[0].exists


def test_a9_without_settings_the_defaults_hold_and_it_is_said(root):
    put(root, "command/command_gpu.txt")
    found = find(str(root))
    assert (found.settings, found.config_file) == (Settings(), None)
    assert "no config/gpu_manage.yaml" in found.warnings[0]
    settings(root, "gpu_lef: 3\n")
    assert "did you mean gpu_left?" in find(str(root)).warnings[0]


def test_a9_settings_given_by_name_win(root):
    put(root, "command/command_gpu.txt")
    settings(root, "gpu_left: 1\n")
    settings(root, "gpu_left: 2\n", "config/night.yaml")
    assert find(str(root), config_file="config/night.yaml").settings.gpu_left == 2


# --- A10, A21, A31: the paths


@pytest.mark.parametrize(
    "said, wanted", [("null", "project"), ('"../"', "project"), ("work", "project/compete/work"), ("/data", "/data")]
)
def test_a10_work_dir_is_the_parent_or_relative_to_the_workspace_or_absolute(root, tmp_path, said, wanted):
    put(root, "command/command_gpu.txt")
    settings(root, f"work_dir: {said}\n")
    assert find(str(root)).work_dir == os.path.join(tmp_path, wanted)


def test_a21_each_mode_has_its_file_of_uni_ids_in_the_logs(root):
    put(root, "command/command_gpu.txt", "command/command_gpus.txt")

    def files():
        return [os.path.relpath(find(str(root), mode=mode).uni_id_file, root) for mode in ("single", "multi")]

    assert files() == ["logs/uni_id.json", "logs/uni_id_gpus.json"]
    settings(root, "process_json_path: ./logs/uni_id.json\n")
    assert files() == ["logs/uni_id.json", "logs/uni_id_gpus.json"]
    settings(root, "log_dir: out\n")
    assert files() == ["out/uni_id.json", "out/uni_id_gpus.json"]
    settings(root, "process_json_path: ../script_process/uni_id.json\n")
    assert files() == ["../script_process/uni_id.json"] * 2


def test_a31_a32_logs_and_states_lie_in_the_log_directory(root):
    put(root, "command/command_gpu.txt", "command/command_gpus.txt")
    settings(root, "log_dir: out\n")
    found = find(str(root), mode="multi")
    assert (found.log_dir, found.state_dir) == (str(root / "out"), str(root / "out/state"))
    assert found.scheduler_log == str(root / "out/compete_gpus.log")
    assert find(str(root)).scheduler_log == str(root / "out/compete_gpu.log")


def test_the_key_is_the_same_however_the_workspace_is_reached(root, monkeypatch, tmp_path):
    put(root, "command/command_gpu.txt")
    (tmp_path / "link").symlink_to(root)
    monkeypatch.chdir(root)
    assert find(".").key == find(str(tmp_path / "link")).key == f"compete:{os.path.realpath(root)}:single:0"


def test_the_mode_of_a_file_is_told_by_its_name():
    assert workspace.mode_of("a/command_gpus_3.txt") == "multi"
    assert workspace.mode_of("command_gpu.txt") == workspace.mode_of("multi.txt") == "single"


@pytest.mark.parametrize("root", ["/a", "/a:b", "/a:single:/b", "/a:multi:0", "/a:multi:/b:single", "/a\nb"])
@pytest.mark.parametrize("mode", workspace.STEMS)
@pytest.mark.parametrize("which", ["0", "12", "/c/tasks.txt"])
def test_the_key_of_a_batch_tells_its_workspace_mode_and_config_whatever_the_root_is_called(root, mode, which):
    key = workspace.BatchKey(root=root, mode=mode, which=which)
    assert workspace.BatchKey.read(str(key)) == key
    assert key.index == (int(which) if which.isdecimal() else None)


@pytest.mark.parametrize("text", [None, "", "add", "compete:/x", "compete:/x:other:0", "compete:x:single:0", "run:/a:single:0",
                                  "compete:/a\0:single:0", "compete:/a:multi:/b\0"])  # fmt: skip
def test_what_is_no_key_of_a_workspace_is_none(text):
    assert workspace.BatchKey.read(text) is None
