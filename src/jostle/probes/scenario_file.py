"""Reads a scenario file (YAML or JSON); scenario.py says what may stand in it.

A value is checked where it is used, together with its path in the file. Only an error pays for finding the line of a
path.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from jostle import units
from jostle.core.kinds import MAX_GPUS
from jostle.errors import Invalid
from jostle.formats.nodes import Flaw, Map, Seq
from jostle.probes.scenario import FAKE_PIDS, Mishap, Runs, Scenario, ScenarioCard, Stranger, Window, card


def parse(text: str, file: str) -> Scenario:
    """The scenario of a file's text; `file` is for messages and tells YAML from JSON."""
    data = _json(text, file) if file.endswith(".json") else _yaml(text, file)
    try:
        return _scenario(_At(data, ()))
    except _BadValue as e:
        raise Invalid(f"{file}:{_line_of(text, e.path)}: {e}") from None


def _json(text: str, file: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as e:
        raise Invalid(f"{file}:{e.lineno}: not JSON: {e.msg}") from None


def _yaml(text: str, file: str) -> object:
    from jostle.formats import yamlfile  # only for those who need it

    try:
        root = yamlfile.parse(text)
        return None if root is None else yamlfile.value_of(root)
    except Flaw as e:
        raise Invalid(f"{file}:{e.line}: {e.text}" if e.line else f"{file}: {e.text}") from None


def _line_of(text: str, path: tuple[str | int, ...]) -> int:
    """Where the value at this path stands. JSON is YAML enough for that."""
    from jostle.formats import yamlfile

    node, line = yamlfile.parse(text), 1
    for step in path:
        if isinstance(node, Map):
            entry = next(((key.line, value) for key, value in node.items if key.text == str(step)), None)
        elif isinstance(node, Seq) and isinstance(step, int) and step < len(node.items):
            entry = node.items[step].line, node.items[step]
        else:
            entry = None
        if entry is None:
            break
        line, node = entry
    return line


class _BadValue(Exception):
    def __init__(self, path: tuple[str | int, ...], text: str) -> None:
        super().__init__(text)
        self.path = path


@dataclass(frozen=True, slots=True)
class _At:
    """A value of the file and where it stands."""

    value: Any
    path: tuple[str | int, ...]

    def bad(self, expected: str) -> _BadValue:
        return _BadValue(self.path, f"{_where(self.path) or 'the file'} is {_shown(self.value)}: expected {expected}")

    def mapping(self, *keys: str) -> dict[str, _At]:
        if not isinstance(self.value, dict):
            raise self.bad("a mapping with " + ", ".join(keys))
        for key in self.value:
            if key not in keys:
                inside = f" in {_where(self.path)}" if self.path else ""
                raise _BadValue((*self.path, key), f"unknown key {key!r}{inside}: expected one of {', '.join(keys)}")
        return {key: _At(value, (*self.path, key)) for key, value in self.value.items()}

    def items(self) -> list[_At]:
        if not isinstance(self.value, list):
            raise self.bad("a list")
        return [_At(value, (*self.path, i)) for i, value in enumerate(self.value)]

    def number(self, low: float, high: float, what: str) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not low <= self.value <= high:
            raise self.bad(what)
        return float(self.value)

    def integer(self, low: int, high: int, what: str) -> int:
        if not isinstance(self.value, int):
            raise self.bad(what)
        return int(self.number(low, high, what))

    def mib(self) -> int:
        return round(self._measure(lambda text: units.in_mib(text, "M"), 1 << 40, "MiB, like 6000, 500MiB or 24GiB"))

    def seconds(self) -> float:
        return self._measure(units.seconds, math.inf, "seconds, like 30, 90s, 5m or 2h")

    def _measure(self, read: Callable[[str], float], high: float, what: str) -> float:
        """A number, or a text with a unit as people write it everywhere."""
        if not isinstance(self.value, str):
            return self.number(0, high, what)
        try:
            return read(self.value)
        except ValueError:
            raise self.bad(what) from None

    def text(self, what: str) -> str:
        if not isinstance(self.value, str) or not self.value:
            raise self.bad(what)
        return self.value

    def one_of(self, *words: str) -> str:
        if self.value not in words:
            raise self.bad(" or ".join(filter(None, (", ".join(words[:-1]), words[-1]))))
        return str(self.value)

    def truth(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.bad("true or false")
        return self.value


def _where(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".")


def _shown(value: object) -> str:
    text = "empty" if value is None else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


_TIMES = ("from", "to", "for")
_FAULTS = ("lost", "unreadable", "ecc", "remap")
_COMPUTE_MODES = ("default", "exclusive_process", "prohibited")


def _scenario(top: _At) -> Scenario:
    keys = top.mapping("gpus", "repeat", "runs", "strangers", "faults", "missing", "reorder", "mig", "hang", "mismatch")
    if "gpus" not in keys:
        raise top.bad("the key gpus, like gpus: {count: 8, total: 24GiB}")
    gpus = _gpus(keys["gpus"])
    repeat = keys["repeat"].seconds() if "repeat" in keys else None
    if repeat == 0:
        raise keys["repeat"].bad("a period above 0 s")
    slices = [s for entry in _list(keys, "mig") for s in _slices(entry, gpus, repeat)]
    cards = (*gpus, *slices)
    return Scenario(
        cards=cards,
        strangers=tuple(_strangers(_list(keys, "strangers"), len(cards), repeat)),
        runs=_runs(keys["runs"]) if "runs" in keys else Runs(),
        mishaps=tuple(_mishaps(keys, len(gpus), repeat)),
        hang=tuple(_window(_times(entry), repeat) for entry in _list(keys, "hang") if "gpu" not in entry.mapping("gpu", *_TIMES)),
        mismatch=tuple(_window(_times(entry), repeat) for entry in _list(keys, "mismatch")),
        repeat=repeat,
    )


def _times(at: _At) -> dict[str, _At]:
    return at.mapping(*_TIMES)


def _list(keys: dict[str, _At], key: str) -> list[_At]:
    return keys[key].items() if key in keys and keys[key].value is not None else []


def _gpus(at: _At) -> list[ScenarioCard]:
    if isinstance(at.value, list):
        cards = [_one_gpu(entry, place) for place, entry in enumerate(at.items())]
    else:
        keys = at.mapping("count", "total", "name", "compute_mode")
        if "count" not in keys:
            raise at.bad("how many (count), like {count: 8, total: 24GiB}")
        count = keys["count"].integer(1, MAX_GPUS, f"a number of GPUs from 1 to {MAX_GPUS}")
        cards = [_one_gpu(at, place) for place in range(count)]
    if not 0 < len(cards) <= MAX_GPUS:
        raise at.bad(f"1 to {MAX_GPUS} GPUs")
    return cards


def _one_gpu(at: _At, place: int) -> ScenarioCard:
    keys = at.mapping("count", "total", "name", "compute_mode")
    if "total" not in keys:
        raise at.bad("its memory (total), like {total: 24GiB}")
    total = keys["total"].mib()
    if total < 128:
        # 24 is what people write for 24 GiB, because specs like sim:8x24 are in GiB
        raise keys["total"].bad("at least 128 MiB (a plain number is MiB: write 24GiB)")
    mode = keys["compute_mode"].one_of(*_COMPUTE_MODES) if "compute_mode" in keys else "default"
    return card(place, total, keys["name"].text("a name") if "name" in keys else "Simulated GPU", mode)


def _slices(at: _At, gpus: list[ScenarioCard], repeat: float | None) -> Iterable[ScenarioCard]:
    keys = at.mapping("gpu", "slices", *_TIMES)
    window = _window({k: v for k, v in keys.items() if k in _TIMES}, repeat)
    if "slices" not in keys:
        raise at.bad("its slices: a number, or a list of sizes")
    for parent in _places(at, keys, len(gpus)):
        sizes = _slice_sizes(keys["slices"], gpus[parent].total_mib)
        for n, mib in enumerate(sizes):
            name = f"{gpus[parent].name} MIG {mib}MiB"
            yield ScenarioCard(uuid=f"MIG-sim-{parent:04d}-{n}", total_mib=mib, name=name, parent=parent, window=window)


def _slice_sizes(at: _At, total: int) -> list[int]:
    if isinstance(at.value, list):
        sizes = [size.mib() for size in at.items()]
    else:
        count = at.integer(1, 7, "1 to 7 slices, or a list of their sizes")
        sizes = [total // count] * count
    if sum(sizes) > total:
        raise at.bad(f"at most the {total} MiB of the GPU in all")
    return sizes


def _window(keys: dict[str, _At], repeat: float | None) -> Window:
    start = keys["from"].seconds() if "from" in keys else 0.0
    if repeat is not None and start >= repeat:
        raise keys["from"].bad(f"a time before the script repeats ({repeat:g} s)")
    if "to" in keys and "for" in keys:
        raise keys["for"].bad("either to or for, not both")
    end = math.inf
    if "to" in keys:
        end = keys["to"].seconds()
    elif "for" in keys:
        end = start + keys["for"].seconds()
    if end <= start:
        raise keys["to" if "to" in keys else "for"].bad(f"an end after the start ({start:g} s)")
    return Window(start=start, end=end)


def _places(at: _At, keys: dict[str, _At], count: int) -> list[int]:
    if "gpu" not in keys:
        raise at.bad("the key gpu")
    gpu = keys["gpu"]
    if gpu.value == "all":
        return list(range(count))
    what = f"a GPU from 0 to {count - 1}, a list of them, or all"
    return [place.integer(0, count - 1, what) for place in (gpu.items() if isinstance(gpu.value, list) else [gpu])]


def _strangers(entries: list[_At], count: int, repeat: float | None) -> Iterable[Stranger]:
    users: dict[str, int] = {}
    pid = FAKE_PIDS
    for at in entries:
        keys = at.mapping("user", "uid", "gpu", "used", "ramp", "utilization", "hidden", "pid", "kind", "name", "exe", *_TIMES)
        if "used" not in keys:
            raise at.bad("the memory it takes (used), like 8GiB")
        window = _window({k: v for k, v in keys.items() if k in _TIMES}, repeat)
        user = keys["user"].text("a user's name") if "user" in keys else "stranger"
        real = "pid" in keys
        uid = _uid(keys, user, users)
        exe = "python3" if uid == os.getuid() else ""  # of other people's processes it cannot be seen
        pid += 1
        for place in _places(at, keys, count):
            yield Stranger(
                user=user,
                uid=uid,
                pid=keys["pid"].integer(1, 1 << 30, "a pid") if real else pid,
                real=real,
                card=place,
                window=window,
                used_mib=keys["used"].mib(),
                ramp=keys["ramp"].seconds() if "ramp" in keys else 0.0,
                utilization=_percent(keys, 0),
                hidden=keys["hidden"].truth() if "hidden" in keys else False,
                kind=keys["kind"].one_of("compute", "graphics") if "kind" in keys else "compute",
                name=keys["name"].text("a name") if "name" in keys else "python",
                exe=keys["exe"].text("a file's name") if "exe" in keys else exe,
            )


def _uid(keys: dict[str, _At], user: str, users: dict[str, int]) -> int:
    if "uid" in keys:
        return keys["uid"].integer(0, (1 << 32) - 2, "a user's number")
    if user in ("me", "root"):
        return os.getuid() if user == "me" else 0
    return users.setdefault(user, 60001 + len(users))


def _percent(keys: dict[str, _At], default: int) -> int:
    return keys["utilization"].integer(0, 100, "percent, 0 to 100") if "utilization" in keys else default


def _runs(at: _At) -> Runs:
    keys = at.mapping("use", "ramp", "lag", "free_lag", "utilization")

    def seconds(key: str) -> float:
        return keys[key].seconds() if key in keys else 0.0

    return Runs(
        use=_share(keys["use"]) if "use" in keys else 1.0,
        ramp=seconds("ramp"),
        lag=seconds("lag"),
        free_lag=seconds("free_lag"),
        utilization=_percent(keys, 90),
    )


def _share(at: _At) -> float | int:
    if isinstance(at.value, int | float) and not isinstance(at.value, bool) and 0 <= at.value <= 1:
        return float(at.value)
    return at.mib()


def _mishaps(keys: dict[str, _At], count: int, repeat: float | None) -> Iterable[Mishap]:
    for kind in ("faults", "missing", "reorder", "hang"):
        for at in _list(keys, kind):
            if kind == "hang" and "gpu" not in at.mapping("gpu", *_TIMES):
                continue  # all of it
            fields = at.mapping("gpu", "state", *_TIMES) if kind == "faults" else at.mapping("gpu", *_TIMES)
            name = _fault_state(at, fields) if kind == "faults" else kind
            window = _window({k: v for k, v in fields.items() if k in _TIMES}, repeat)
            for place in _places(at, fields, count):
                yield Mishap(card=place, kind=name, window=window)


def _fault_state(at: _At, fields: dict[str, _At]) -> str:
    if "state" not in fields:
        raise at.bad("the key state, like state: lost")
    return fields["state"].one_of(*_FAULTS)
