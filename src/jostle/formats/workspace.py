"""A workspace: a directory with `command/`, `config/` and `logs/`, or the older layout with `command.txt` and `config.yaml`.

Rules (SPEC A7, A9, A10, A21): config N of a mode is `command/command_gpu.txt`, `command_gpu_1.txt` … (multi: `command_gpus…`);
its index is N − 1. Config 1 is what `gpu_command_file` (`gpus_command_file`, older `commands_path`) names, if it is set. Paths in
the settings are relative to the workspace; a task file named there without a directory may also lie in `command/`, as the shipped
settings have it. What is wrong with settings and tasks is told at once. Nothing is created here.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from typing import Any

from jostle.errors import NotFound, Usage
from jostle.formats import gpumanage, spec, taskfile, workdir
from jostle.formats.filemark import Mark, mark
from jostle.formats.flaws import BadFiles
from jostle.formats.gpumanage import Settings
from jostle.formats.taskfile import Block

STEMS = {"single": "command_gpu", "multi": "command_gpus"}
SETTINGS = ("config/gpu_manage.yaml", "config/config.yaml", "gpu_manage.yaml", "config.yaml")
OLD_FILE = "command.txt"
KEY = re.compile(rf"compete:(?P<root>/[^\0]*):(?P<mode>{'|'.join(STEMS)}):(?P<which>\d+|/[^\0]*)", re.ASCII)  # no path has a NUL


@dataclass(frozen=True, kw_only=True)
class BatchKey:
    """What makes it the same batch: its text is the key that the store has. Roots may hold colons, and what looks like a mode."""

    root: str  # as the disk has it, without links
    mode: str
    which: str  # the index of a config, or a file that is none

    @classmethod
    def of(cls, root: str, mode: str, which: int | str) -> BatchKey:
        return cls(root=os.path.realpath(root), mode=mode, which=str(which))

    @classmethod
    def read(cls, text: str | None) -> BatchKey | None:
        """None: the batch is no workspace's."""
        match = KEY.fullmatch(text or "")
        return cls(**match.groupdict()) if match else None

    def __str__(self) -> str:
        return f"compete:{self.root}:{self.mode}:{self.which}"

    @property
    def index(self) -> int | None:
        return int(self.which) if self.which.isdecimal() else None


@dataclass(frozen=True, kw_only=True)
class Config:
    """One task file of a mode."""

    index: int
    name: str  # "config 1"
    file_path: str
    file_name: str
    exists: bool


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """One config of a workspace, with its settings. All paths are absolute."""

    root: str
    mode: str  # single | multi
    index: int
    command_file: str
    config_file: str | None
    settings: Settings
    warnings: tuple[str, ...] = ()
    numbered: bool = field(default=True)  # False: a file given by name that is no config of this workspace
    config_mark: Mark | None = None  # of the settings as they were read …
    command_mark: Mark | None = None  # … and of the tasks; None: they were not

    @property
    def work_dir(self) -> str:
        if self.settings.work_dir is None:
            return os.path.dirname(self.root)
        return spec.path(self.settings.work_dir, self.root)

    @property
    def log_dir(self) -> str:
        return spec.path(self.settings.log_dir, self.root)

    @property
    def uni_id_file(self) -> str:
        """Multi mode has a file of its own, unless the settings name one that is not the usual one of single mode."""
        usual = os.path.join(self.log_dir, "uni_id.json")
        path = self.settings.process_json_path
        chosen = spec.path(path, self.root) if path is not None else usual
        return os.path.join(self.log_dir, "uni_id_gpus.json") if self.mode == "multi" and chosen == usual else chosen

    @property
    def state_dir(self) -> str:
        return os.path.join(self.log_dir, "state")

    @property
    def state_dirs(self) -> tuple[str, str]:
        """Where its state is told: as the documents have it, and where the source's code and page look for it."""
        return self.state_dir, os.path.join(self.log_dir, "status")

    @property
    def scheduler_log(self) -> str:
        return os.path.join(self.log_dir, "compete_gpus.log" if self.mode == "multi" else "compete_gpu.log")

    @property
    def key(self) -> str:
        """What makes it the same batch."""
        return str(BatchKey.of(self.root, self.mode, self.index if self.numbered else os.path.realpath(self.command_file)))

    def shown(self, path: str) -> str:
        """A path as people know it: relative inside the workspace, absolute elsewhere."""
        inside = os.path.commonpath([self.root, path]) == self.root
        return os.path.relpath(path, self.root) if inside else path

    @property
    def label(self) -> str:
        """`config 1`, or the name of the file."""
        return f"config {self.index + 1}" if self.numbered else os.path.basename(self.command_file)


def find(
    directory: str,
    *,
    mode: str | None = None,
    command_file: str | None = None,
    config_file: str | None = None,
    index: int | None = None,
) -> Workspace:  # fmt: skip
    """The workspace of a directory (or of a task file), with the config that is asked for."""
    workspace, flaws = _read(directory, mode, command_file, config_file, index)
    if flaws:
        raise BadFiles(flaws, workspace.warnings)
    return workspace


def tasks(directory: str, *, lenient: bool = False, **which: Any) -> tuple[Workspace, list[Block], list[str]]:
    """The workspace, its tasks, and the warnings about both; `which` as for `find`."""
    workspace, flaws = _read(directory, **{"mode": None, "command_file": None, "config_file": None, "index": None, **which})
    workspace = replace(workspace, command_mark=mark(workspace.command_file))
    blocks, about_tasks, bad = taskfile.read(workspace.command_file, workspace.mode, lenient=lenient)
    bad += workdir.flaws(workspace.work_dir, blocks, workspace.command_file)
    warnings = [*workspace.warnings, *about_tasks]
    if flaws or bad:
        raise BadFiles([*flaws, *sorted(bad, key=lambda flaw: flaw[1])], warnings)
    return workspace, blocks, warnings


def _read(
    directory: str, mode: str | None, command_file: str | None, config_file: str | None, index: int | None
) -> tuple[Workspace, list[tuple[str, int, str]]]:
    """The workspace under its settings as far as they are understood, and what is wrong with those."""
    if mode is not None and mode not in STEMS:
        raise Usage(f"there is no mode {mode}; expected single or multi")
    if index is not None and index < 0:
        raise Usage(f"config index {index}: the first config has index 0")
    if command_file is None and os.path.isfile(directory):
        directory, command_file = _around(directory), os.path.abspath(directory)
    if not os.path.isdir(directory):
        what = "is neither a directory nor a file of tasks" if os.path.exists(directory) else "does not exist"
        raise NotFound(f"{directory} {what}; expected a workspace or a task file")
    root = os.path.abspath(directory)
    if os.path.basename(root) == "command" and not os.path.isdir(os.path.join(root, "command")):
        root = os.path.dirname(root)  # whoever stands in command/ means the workspace around it
    path = _settings_file(root, config_file)
    config_mark = mark(path) if path is not None else None
    settings, warnings, flaws = gpumanage.read(path) if path is not None else (Settings(), _without_settings(root), [])
    try:
        mode, at, file = _chosen(root, mode, command_file, index, settings, path)
    except NotFound as e:
        if not flaws:
            raise
        raise BadFiles([*flaws, (root, 0, str(e))], warnings) from None
    workspace = Workspace(
        root=root, mode=mode, index=at or 0, command_file=file, config_file=path, settings=settings, numbered=at is not None,
        config_mark=config_mark,
    )  # fmt: skip
    return replace(workspace, warnings=(*warnings, *_outside(workspace))), flaws


def _outside(workspace: Workspace) -> list[str]:
    """The places that are written to by the word of the settings alone: somebody's copied file may name any."""
    written = {"log_dir": workspace.log_dir, "process_json_path": workspace.uni_id_file}
    return [
        f"{workspace.config_file}:{gpumanage.line_of(workspace.config_file, key)}: {key} lies outside of the workspace and of "
        f"work_dir: {path} will be written"
        for key, path in written.items()
        if workspace.config_file is not None and getattr(workspace.settings, key) != getattr(Settings(), key)
        and not any(os.path.commonpath([place, path]) == place for place in (workspace.root, workspace.work_dir))
    ]  # fmt: skip


def _chosen(
    root: str, mode: str | None, command_file: str | None, index: int | None, settings: Settings, settings_file: str | None
) -> tuple[str, int | None, str]:
    """The mode, the index (None: a file that is no config of the workspace) and the task file."""
    if command_file is not None:
        file = _file_named(root, command_file)
        mode = mode or mode_of(file)
        at = _place(root, mode, file, settings)
        if index is not None and index != at:
            raise Usage(f"{command_file} is not the config with index {index}; give one of the two")
        return mode, at, file
    at = index or 0
    mode = mode or _usual_mode(root, at, settings)
    for config in _configs(root, mode, settings):
        if config.index == at and config.exists:
            return mode, at, config.file_path
    raise NotFound(_missing(root, mode, at, settings, settings_file))


def configs(root: str, mode: str) -> list[Config]:
    """Config 1, whether it exists or not, and all further ones that do."""
    path = _settings_file(root, None)
    settings = gpumanage.read(path)[0] if path is not None else Settings()
    return _configs(os.path.abspath(root), mode, settings)


def mode_of(file: str) -> str:
    """The mode that the name of a task file tells."""
    return "multi" if os.path.basename(file).startswith(STEMS["multi"]) else "single"


def _around(file: str) -> str:
    """The workspace that a task file belongs to."""
    directory = os.path.dirname(os.path.abspath(file))
    return os.path.dirname(directory) if os.path.basename(directory) == "command" else directory


def _settings_file(root: str, named_file: str | None) -> str | None:
    if named_file is not None:
        return _file_named(root, named_file)
    return next((path for name in SETTINGS if os.path.exists(path := os.path.join(root, name))), None)


def _without_settings(root: str) -> list[str]:
    return [f"{root} has no {SETTINGS[0]}: the defaults hold, and no GPU is left for others"]


def _file_named(root: str, file: str) -> str:
    """A file that a person named: as the shell would find it, else in the workspace."""
    from_shell, in_workspace = os.path.abspath(os.path.expanduser(file)), spec.path(file, root)
    if os.path.exists(from_shell) or not os.path.exists(in_workspace):
        if not os.path.exists(from_shell):
            raise NotFound(f"there is no file {file}, neither here nor in {root}")
        return from_shell
    return in_workspace


def _named(mode: str, settings: Settings) -> tuple[str, str | None]:
    """The key of the settings that names config 1, and what it says."""
    key = "gpus_command_file" if mode == "multi" else "gpu_command_file" if settings.gpu_command_file else "commands_path"
    return key, getattr(settings, key)


def _first(root: str, mode: str, settings: Settings) -> str:
    """The file of config 1."""
    _, name = _named(mode, settings)
    if name is not None:
        path, usual = spec.path(name, root), os.path.join(root, "command", name)
        return usual if not os.path.dirname(name) and not os.path.isfile(path) and os.path.isfile(usual) else path
    usual, old = os.path.join(root, "command", STEMS[mode] + ".txt"), os.path.join(root, OLD_FILE)
    return old if mode == "single" and not os.path.exists(usual) and os.path.exists(old) else usual


def _configs(root: str, mode: str, settings: Settings) -> list[Config]:
    by_index = {0: _first(root, mode, settings)}
    pattern = re.compile(re.escape(STEMS[mode]) + r"_([1-9]\d{0,8})\.txt", re.ASCII)
    directory = os.path.join(root, "command")
    for name in _listed(directory):
        if match := pattern.fullmatch(name):
            by_index[int(match[1])] = os.path.join(directory, name)
    return [
        Config(index=k, name=f"config {k + 1}", file_path=path, file_name=os.path.basename(path), exists=os.path.isfile(path))
        for k, path in sorted(by_index.items())
    ]


def _place(root: str, mode: str, file: str, settings: Settings) -> int | None:
    """The index of the config that this file is; None: it is none of the workspace's."""
    real = os.path.realpath(file)
    return next((c.index for c in _configs(root, mode, settings) if os.path.realpath(c.file_path) == real), None)


def _usual_mode(root: str, index: int, settings: Settings) -> str:
    """Single, unless only multi mode has this config."""
    modes = [mode for mode in STEMS if any(c.index == index and c.exists for c in _configs(root, mode, settings))]
    return modes[0] if modes else "single"


def _missing(root: str, mode: str, index: int, settings: Settings, settings_file: str | None) -> str:
    key, name = _named(mode, settings)
    if index == 0 and name is not None and settings_file is not None:
        return _misnamed(root, key, name, settings_file)
    usual = _first(root, mode, settings) if index == 0 else os.path.join(root, "command", f"{STEMS[mode]}_{index}.txt")
    others = [
        f"--mode {m} --config-index {c.index} ({c.file_name})" for m in STEMS for c in _configs(root, m, settings) if c.exists
    ]
    missing = f"there is no {usual}, which would be config {index + 1} of {mode} mode"
    if others:
        return f"{missing}; there is {', '.join(others[:5])}" + (" …" if len(others) > 5 else "")
    named = "`jostle compete --command-file F`, `jostle run F`"
    return f"{missing}; go to a workspace (a directory with command/{STEMS[mode]}.txt), or name a task file ({named})"


def _misnamed(root: str, key: str, named: str, settings_file: str) -> str:
    """What is wrong with a key that names a task file which is not there."""
    tried = [spec.path(named, root), *([os.path.join(root, "command", named)] if not os.path.dirname(named) else [])]
    files = [
        name
        for name in (OLD_FILE, *(os.path.join("command", file) for file in sorted(_listed(os.path.join(root, "command")))))
        if name.endswith(".txt") and os.path.isfile(os.path.join(root, name))
    ]
    listing = f"there is {', '.join(files[:5])}" + (" …" if len(files) > 5 else "") if files else "there is no task file at all"
    what = "name that, or remove the key" if files else "write one, or name a task file with --command-file"
    line = gpumanage.line_of(settings_file, key)
    return f"{settings_file}:{line}: {key}: there is no {' and no '.join(tried)}; {listing}: {what}"


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []
