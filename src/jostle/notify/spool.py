"""What one channel has read and is to send, as a private file of the home.

Rules: how far it has read and what it is to send are one value, replaced as one: whoever is killed leaves the old or the new. A
file that cannot be read is put aside and said, never taken for empty. No secret is ever in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Callable, Mapping
from typing import Any

from jostle.failpoint import failpoint

Kept = dict[str, Any]
VERSION = 1
LARGEST = 16 << 20

FRESH: Mapping[str, Any] = {
    "version": VERSION,
    "position": None,  # the last event that is accounted for: [seq, at]
    "queue": [],  # messages, each with its tries and when the next is due
    "free": {}, "lost": {},  # what watch keeps
    "next_at": 0.0, "failures": 0,  # of the way: when it is tried again, and how often it failed in a row
    "error": None, "error_at": None,  # the last trouble, and when
    "failing_since": None,  # None: the last try went well
    "sent": 0, "sent_at": None,
    "dropped": 0, "dropped_why": None, "dropped_untold": 0,
}  # fmt: skip


def folder(home: str) -> str:
    return os.path.join(home, "notify")


def path_of(home: str, channel: str) -> str:
    return os.path.join(folder(home), f"{channel}.json")


def load(path: str) -> Kept | None:
    """None if there is none yet. ValueError if it is none of ours."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise ValueError(e.strerror) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ValueError("it is no file")
    with os.fdopen(fd, "rb") as f:
        try:
            kept = json.loads(f.read(LARGEST))
        except (OSError, RecursionError) as e:
            raise ValueError(str(e)) from None
    if not isinstance(kept, dict) or kept.get("version") != VERSION or "queue" not in kept:
        raise ValueError("it is not of this version")
    kept = {**FRESH, **kept}
    if odd := next((key for key, fits in SHAPE.items() if not fits(kept[key])), None):
        raise ValueError(f"{odd} is not what we write there")
    return kept


def _number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1 << 53


def _perhaps(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


def _object(value: Any) -> bool:
    return isinstance(value, dict)


def _trouble(value: Any) -> bool:
    return _object(value) and isinstance(value.get("code"), str) and _object(value.get("params"))


def _place(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and type(value[0]) is int and all(map(_number, value))


def _messages(value: Any) -> bool:
    return isinstance(value, list) and all(_object(one) and one.keys() == WAITING.keys() and _each(one, WAITING) for one in value)


def _cards(value: Any) -> bool:
    if not _object(value) or not _object(cards := value.get("cards") or {}):
        return False
    return all(_object(card) and card.keys() == CARD.keys() and _each(card, CARD) for card in cards.values())


def _each(value: Mapping[str, Any], shape: Mapping[str, Callable[[Any], bool]]) -> bool:
    return all(fits(value[key]) for key, fits in shape.items())


def _kind(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


WAITING: Mapping[str, Callable[[Any], bool]] = {
    "id": _kind(str), "made_at": _number, "about": _kind(list), "title": _kind(str), "text": _kind(str), "items": _kind(list),
    "tries": _number, "next_at": _number,
}  # fmt: skip
CARD = {"gpu": _perhaps(_number), "out": _perhaps(_number), "back": _perhaps(_number), "told": _kind(bool)}
SHAPE: Mapping[str, Callable[[Any], bool]] = {
    "position": _perhaps(_place), "queue": _messages,
    "free": lambda value: _object(value) and all(map(_perhaps(lambda one: _number(one) or one in (True, False)), value.values())),
    "lost": _cards, "next_at": _number, "failures": _number, "error": _perhaps(_trouble), "error_at": _perhaps(_number),
    "failing_since": _perhaps(_number), "sent": _number, "sent_at": _perhaps(_number), "dropped": _number,
    "dropped_why": _perhaps(_trouble), "dropped_untold": _number,
}  # fmt: skip
"""What each of FRESH may be: one channel's file must not end the process that serves all."""


def put_aside(path: str) -> str:
    """A file that cannot be read, under another name."""
    aside = f"{path}.damaged-{time.strftime('%Y%m%d-%H%M%S')}"
    with contextlib.suppress(OSError):
        os.rename(path, aside)
    return aside


def save(path: str, kept: Mapping[str, Any]) -> None:
    """On the disk when it returns; OSError and the old one stays."""
    fresh = f"{path}.new"
    failpoint("notify.before_save")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(fresh)
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as f:
        json.dump(kept, f, ensure_ascii=True)
        f.flush()
        os.fsync(f.fileno())
    failpoint("notify.before_rename")
    os.replace(fresh, path)
    _sync(os.path.dirname(path))
    failpoint("notify.saved")


def _sync(directory: str) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
