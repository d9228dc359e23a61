"""The uni_id file (SPEC A21–A24): a JSON object that says of each start of a task its process, its state and its last word.

The functions are those that people's scripts know. Shims have this package in memory: it imports little, and nothing after
the start.
"""

from __future__ import annotations

import os
import time

from jostle.core.runvariables import UNI_ID_FILE
from jostle.core.states import ABNORMAL, NORMAL
from jostle.uniid.entries import RUNNING, STATES, WORDS, Data, Entry, entry_of, lives
from jostle.uniid.file import UniIdFile

__all__ = [
    "ABNORMAL", "NORMAL", "RUNNING", "STATES", "WORDS", "Entry", "UniIdFile", "default_path", "entry_of", "get_all_processes",
    "get_running_processes", "is_process_running", "lives", "wait_for_completion",
]  # fmt: skip

VARIABLE = UNI_ID_FILE
PLACES = ("logs/uni_id.json", "script_process/uni_id.json")
"""Where the file is looked for when nobody names it."""


def default_path() -> str | None:
    """The file that is meant when none is named."""
    return os.environ.get(VARIABLE) or next((place for place in PLACES if os.path.exists(place)), None)


def _file(path: str | None) -> UniIdFile:
    return UniIdFile(path or default_path() or PLACES[0])


def get_all_processes(path: str | None = None) -> Data:
    """The file's content: uni_id -> record, or the bare pid where an older script wrote that."""
    return _file(path).raw()


def get_running_processes(path: str | None = None) -> dict[str, int]:
    """uni_id -> pid of those whose process runs and that have not said how they ended."""
    file = _file(path)
    entries = file.read().items()
    return {u: entry.pid for u, entry in entries if entry.state == RUNNING and lives(u, entry, file.written_at)}


def is_process_running(uni_id: str, path: str | None = None) -> bool:
    return uni_id in get_running_processes(path)


def wait_for_completion(uni_id: str, check_interval: float = 10, path: str | None = None) -> None:
    while is_process_running(uni_id, path):
        time.sleep(check_interval)
