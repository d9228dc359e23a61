"""NVIDIA GPUs through NVML (nvidia-ml-py). Every driver call goes through `_call`.

Rules: nothing that the driver says becomes an exception of `read`. What fails for one GPU is that GPU's state, one that does
not answer is late by itself (relay.py), and the others stay readable. NVML that is missing is tried again at each later reading.
After every other failure of the whole this process is spent: a library that was loaded once stays what it was, even if the file
has been replaced since. GPUs are listed anew each time, for they come, go and change places; what never changes of one (name,
where it sits) is remembered by its UUID.
"""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable
from typing import Any

import pynvml as n

from jostle.core.states import READ
from jostle.probes.holders import Holders
from jostle.probes.loads import Loads
from jostle.probes.relay import Relay, all_silent
from jostle.probes.snapshot import MIB, MISMATCH, NO_NVML, GpuReading, Hung, Proc, Reading, blind, failed

_MISSING = (n.NVML_ERROR_LIBRARY_NOT_FOUND, n.NVML_ERROR_DRIVER_NOT_LOADED)
_LOST = (n.NVML_ERROR_GPU_IS_LOST, n.NVML_ERROR_RESET_REQUIRED)
_START_OVER = (n.NVML_ERROR_UNINITIALIZED, n.NVML_ERROR_LIB_RM_VERSION_MISMATCH, n.NVML_ERROR_DRIVER_NOT_LOADED)
# what an older driver answers to a newer call
_TOO_NEW = (n.NVML_ERROR_FUNCTION_NOT_FOUND, n.NVML_ERROR_ARGUMENT_VERSION_MISMATCH, n.NVML_ERROR_NOT_SUPPORTED)
_VERSIONS = ("_v3", "_v2", "")
_NO_MEMORY_FIGURE = (1 << 64) - 1
# Records of a process list begin with pid and memory, but their size is not what the version says: drivers 535.43 to
# 535.86 fill longer ones for the same version 3 (nvitop#79). So there is room for the longest, and what was written is
# looked at.
_RECORDS = (16, 24, 32)
_UNTOUCHED = b"\xa5"
_SENSORS_EVERY = 1.0  # s
_HEALTH_EVERY = 60.0  # s
_LOADS_OF = 5.0  # s back to which a sample of what a process does is taken for now
_COMPUTE_MODES = {
    n.NVML_COMPUTEMODE_EXCLUSIVE_THREAD: "exclusive_process",  # what newer drivers make of it
    n.NVML_COMPUTEMODE_PROHIBITED: "prohibited",
    n.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS: "exclusive_process",
}

_Sensors = dict[str, Any]  # by the names of a reading
_Health = tuple[int | None, bool | None]  # uncorrected errors, a failed remap


class _DriverError(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def _call(function: Callable[..., Any], *args: Any) -> Any:
    """The funnel: each call of the driver, with each of its failures as one kind of error."""
    try:
        return function(*args)
    except n.NVMLError as e:
        raise _DriverError(e.value, str(e)) from None
    except (OSError, ValueError, UnicodeError, ctypes.ArgumentError) as e:
        raise _DriverError(n.NVML_ERROR_UNKNOWN, f"{type(e).__name__}: {e}") from None


def _maybe(function: Callable[..., Any], *args: Any) -> Any:
    """None where this GPU or driver does not say; a GPU that is gone is still an error."""
    try:
        return _call(function, *args)
    except _DriverError as e:
        if e.code in _LOST + _START_OVER:
            raise
        return None


class Nvml:
    def __init__(self) -> None:
        self.spent = False
        self.relay = Relay(self._card)
        self._ready = False
        self._look = 0  # the newest look that was asked for
        self._waited_for = False
        self._driver: str | None = None
        self._holders = Holders()
        self._names: dict[str, str] = {}
        self._places: dict[str, str] = {}
        self._loads = Loads(_loads)
        self._sensors: dict[str, tuple[float, _Sensors]] = {}
        self._health: dict[str, tuple[float, _Health]] = {}
        self._last: dict[int, tuple[str, str]] = {}  # index: uuid and name when it could last be read

    def read(self, asked: int | None = None, again: bool = True) -> Reading:
        self._look, self._waited_for = max(self._look, asked or 0), asked is not None
        try:
            if not self._ready:
                _call(n.nvmlInit)
                self._ready = True
                self._driver = _maybe(n.nvmlSystemGetDriverVersion)
            gpus = self._gpus(again)
        except _DriverError as e:
            self.spent = e.code != n.NVML_ERROR_LIBRARY_NOT_FOUND
            return _whole_failure(e)
        if all_silent(gpus):
            raise Hung  # then it is no card, it is the driver
        self._holders.forget_dead({who["pid"] for gpu in gpus for who in gpu["procs"]})
        return {"driver": self._driver, "error": None, "hold": None, "gpus": gpus}

    def _gpus(self, again: bool) -> list[GpuReading]:
        count = _call(n.nvmlDeviceGetCount)
        cards = [self.relay.card(index, self._look, count, again=again) for index in range(count)]
        gpus = [card[0] for card in cards] + [gpu for card in cards for gpu in card[1:]]
        for index, gpu in enumerate(gpus):
            gpu["index"] = index  # slices follow the cards
        _name_nameless(gpus)
        self._last = {gpu["index"]: (gpu["uuid"], gpu["name"]) for gpu in gpus if not gpu["mig_slice"]}
        return gpus

    def _card(self, index: int) -> list[GpuReading]:
        """The card and its slices."""
        handle: Any = None
        slices: list[Any] = []
        try:
            handle = _call(n.nvmlDeviceGetHandleByIndex, index)
            gpu = self._gpu(index, handle, slices)
        except _DriverError as e:
            gpu = self._blind(index, e)
            if handle is None:
                gpu["no_handle"] = True
        return [gpu, *map(self._slice, slices)]

    def _gpu(self, index: int, handle: Any, slices: list[Any]) -> GpuReading:
        uuid = _call(n.nvmlDeviceGetUUID, handle)
        name = self._name(uuid, handle)
        self._last[index] = (uuid, name)  # if the rest fails, it fails for this one
        own_slices = _mig_slices(handle)
        if own_slices is not None:
            slices += own_slices
            memory = _maybe(n.nvmlDeviceGetMemoryInfo, handle)
            return blind(index, uuid, name, "mig", "", memory.total // MIB if memory else 0)
        gpu = self._memory(index, uuid, name, handle)
        utilization = _maybe(n.nvmlDeviceGetUtilizationRates, handle)
        gpu["utilization"] = None if utilization is None else utilization.gpu
        gpu["pci"] = self._place(uuid, handle)
        loads = self._loads.of(uuid)
        for who in gpu["procs"]:
            if who["pid"] in loads:
                who["sm"] = loads[who["pid"]]
        gpu.update(self._sensors_of(uuid, handle))  # type: ignore[typeddict-item]
        gpu["ecc_uncorrected"], gpu["remap_failed"] = self._health_of(uuid, handle)
        return gpu

    def _sensors_of(self, uuid: str, handle: Any) -> _Sensors:
        """For showing only, so once a second will do: a look must be quick."""
        now = time.monotonic()
        last = self._sensors.get(uuid)
        if last is None or now - last[0] >= _SENSORS_EVERY:
            last = self._sensors[uuid] = (now, _sensors(handle))
        return last[1]

    def _health_of(self, uuid: str, handle: Any) -> _Health:
        """Slow to ask and slow to change: never while a run waits for the answer."""
        now = time.monotonic()
        read_at, health = self._health.get(uuid, (-_HEALTH_EVERY, (None, None)))
        if not self._waited_for and now - read_at >= _HEALTH_EVERY:
            health = _health(handle)
            self._health[uuid] = (now, health)
        return health

    def _slice(self, handle: Any) -> GpuReading:
        uuid = ""
        try:
            uuid = _call(n.nvmlDeviceGetUUID, handle)
            gpu = self._memory(0, uuid, self._name(uuid, handle), handle)
        except _DriverError as e:
            if e.code in _START_OVER:
                raise
            return blind(0, uuid, self._names.get(uuid, ""), _state(e), str(e), mig_slice=True)
        gpu["mig_slice"] = True
        return gpu

    def _memory(self, index: int, uuid: str, name: str, handle: Any) -> GpuReading:
        """A readable GPU with what must be known of it: memory and processes."""
        total, used, free, reserved = _memory_mib(handle)
        gpu = blind(index, uuid, name, "ok", "", total)
        gpu["used_mib"], gpu["free_mib"], gpu["reserved_mib"] = used, free, reserved
        gpu["procs"] = self._procs(handle)
        return gpu

    def _procs(self, handle: Any) -> list[Proc]:
        """Compute and graphics processes as one list; a process that is in both counts once, as one that computes."""
        by_pid: dict[int, tuple[int | None, str]] = {}
        for kind in ("Graphics", "Compute"):
            for pid, used in _process_list(kind, handle):
                before = by_pid.get(pid, (None, ""))[0]
                by_pid[pid] = used if before is None else max(before, used or 0), kind.lower()
        return [self._holders.describe(pid, used, kind) for pid, (used, kind) in sorted(by_pid.items())]

    def _name(self, uuid: str, handle: Any) -> str:
        if uuid not in self._names:
            self._names[uuid] = _maybe(n.nvmlDeviceGetName, handle) or ""
        return self._names[uuid]

    def _place(self, uuid: str, handle: Any) -> str:
        if uuid not in self._places:
            info = _maybe(n.nvmlDeviceGetPciInfo, handle)
            self._places[uuid] = _pci(info.busId) if info is not None else ""
        return self._places[uuid]

    def watch(self, seconds: float) -> None:
        self._loads.watch(seconds)

    def _blind(self, index: int, e: _DriverError) -> GpuReading:
        if e.code in _START_OVER:
            raise e
        uuid, name = self._last.get(index, ("", ""))
        return blind(index, uuid, name, _state(e), str(e))


def _whole_failure(e: _DriverError) -> Reading:
    if e.code == n.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return failed(MISMATCH, "driver_mismatch")
    if e.code in _MISSING:
        return failed(NO_NVML)
    return failed(f"NVML does not work: {e}")


def _state(e: _DriverError) -> str:
    return "lost" if e.code in _LOST else "unreadable"


def _name_nameless(gpus: list[GpuReading]) -> None:
    """Each GPU has a UUID of its own: one that cannot be asked may have had one that another has by now."""
    sure = {gpu["uuid"] for gpu in gpus if _sure(gpu)}
    for gpu in gpus:
        if not _sure(gpu) and (not gpu["uuid"] or gpu["uuid"] in sure):
            if gpu["state"] in READ:  # late, and another card has its place by now
                gpu.update(blind(gpu["index"], "", "", "unreadable", "no answer", 0, gpu["mig_slice"]))
            gpu["uuid"], gpu["name"] = f"GPU-unreadable-{gpu['index']}", ""


def _sure(gpu: GpuReading) -> bool:
    return gpu["state"] in READ and "read_at" not in gpu


def _mig_slices(handle: Any) -> list[Any] | None:
    """The slices of a GPU in MIG mode; None for one that is not."""
    try:
        mode = _call(n.nvmlDeviceGetMigMode, handle)
    except _DriverError as e:
        if e.code in _TOO_NEW or e.code == n.NVML_ERROR_INVALID_ARGUMENT:
            return None
        raise  # not knowing is no reason to hand out what may be a parent
    if mode[0] != n.NVML_DEVICE_MIG_ENABLE:
        return None
    count = _maybe(n.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
    handles = (_maybe(n.nvmlDeviceGetMigDeviceHandleByIndex, handle, i) for i in range(count))
    return [slice_of for slice_of in handles if slice_of is not None]


def _memory_mib(handle: Any) -> tuple[int, int, int, int]:
    """Total, used, free and reserved. Version 2 tells what the driver keeps for itself from what is used."""
    reserved = 0
    try:
        memory = _call(n.nvmlDeviceGetMemoryInfo, handle, n.nvmlMemory_v2)
        reserved = memory.reserved
    except _DriverError as e:
        if e.code not in _TOO_NEW:
            raise
        memory = _call(n.nvmlDeviceGetMemoryInfo, handle)
    total, used, free = memory.total, memory.used, memory.free  # once each: the binding takes its time
    if not 0 < used + free <= total:
        numbers = f"total {total}, used {used}, free {free}"
        raise _DriverError(n.NVML_ERROR_UNKNOWN, f"the driver reports memory that cannot be: {numbers}")
    return total // MIB, -(-used // MIB), free // MIB, -(-reserved // MIB)


def _process_list(kind: str, handle: Any) -> list[tuple[int, int | None]]:
    """(pid, MiB or None) by the newest version of the call that the driver has."""
    last = _DriverError(n.NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found")
    for version in _VERSIONS:
        try:
            return _call(_processes, f"nvmlDeviceGet{kind}RunningProcesses{version}", handle)  # type: ignore[no-any-return]
        except _DriverError as e:
            if e.code not in _TOO_NEW:
                raise
            last = e
    if kind == "Graphics":
        return []  # cards without graphics say "not supported"
    raise last


def _processes(function: str, handle: Any) -> list[tuple[int, int | None]]:
    call = n._nvmlGetFunctionPointer(function)
    room = 32
    while True:
        count, raw = ctypes.c_uint(room), bytearray(_UNTOUCHED * (room * _RECORDS[-1]))
        code = call(handle, ctypes.byref(count), (ctypes.c_char * len(raw)).from_buffer(raw))
        if code != n.NVML_ERROR_INSUFFICIENT_SIZE or room > 1 << 16:
            break
        room = 2 * max(room, count.value)  # others may come between two calls
    n._nvmlCheckReturn(code)
    if not count.value:
        return []
    size = record_size(raw, count.value, 24 if function.endswith(("_v2", "_v3")) else 16)
    records = (struct.unpack_from("=I4xQ", raw, i * size) for i in range(count.value))
    return [(pid, _used_mib(used)) for pid, used in records]


def record_size(raw: bytes | bytearray, count: int, expected: int) -> int:
    """How far apart the driver wrote its records: the smallest size that holds all it wrote."""
    written = len(raw.rstrip(_UNTOUCHED))
    return next((size for size in _RECORDS if written <= size * count), expected)


def _used_mib(used: int) -> int | None:
    return None if used == _NO_MEMORY_FIGURE else -(-used // MIB)


def _sensors(handle: Any) -> _Sensors:
    return {
        "temperature": _maybe(n.nvmlDeviceGetTemperature, handle, n.NVML_TEMPERATURE_GPU),
        "power_w": _watts(_maybe(n.nvmlDeviceGetPowerUsage, handle)),
        "power_limit_w": _watts(_maybe(n.nvmlDeviceGetEnforcedPowerLimit, handle)),
        "fan": _maybe(n.nvmlDeviceGetFanSpeed, handle),
        "sm_mhz": _maybe(n.nvmlDeviceGetClockInfo, handle, n.NVML_CLOCK_SM),
        "memory_mhz": _maybe(n.nvmlDeviceGetClockInfo, handle, n.NVML_CLOCK_MEM),
        "compute_mode": _COMPUTE_MODES.get(_maybe(n.nvmlDeviceGetComputeMode, handle), "default"),
    }


def _health(handle: Any) -> _Health:
    errors = _maybe(n.nvmlDeviceGetTotalEccErrors, handle, n.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, n.NVML_VOLATILE_ECC)
    rows = _maybe(n.nvmlDeviceGetRemappedRows, handle)  # corrected, uncorrected, pending, failed
    return errors, None if rows is None else bool(rows[3])


def _pci(address: bytes | str) -> str:
    """`00000000:41:00.0` as the kernel writes it."""
    text = address.decode("ascii", "replace") if isinstance(address, bytes) else address
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:]}:{rest}" if rest and domain.startswith("0000") else text.lower()


def _loads() -> dict[str, dict[int, int]]:
    """Of all cards that tell it."""
    loads = {}
    try:
        for index in range(_call(n.nvmlDeviceGetCount)):
            handle = _maybe(n.nvmlDeviceGetHandleByIndex, index)
            uuid = handle and _maybe(n.nvmlDeviceGetUUID, handle)
            if uuid:
                loads[uuid] = _loads_of(handle)
    except _DriverError:
        pass  # a look will say so
    return loads


def _loads_of(handle: Any) -> dict[int, int]:
    since = int((time.time() - _LOADS_OF) * 1e6)
    samples = _maybe(n.nvmlDeviceGetProcessUtilization, handle, since) or ()  # "not found": none did anything
    newest = sorted((s.timeStamp, s.pid, s.smUtil) for s in samples)
    return {pid: load for at, pid, load in newest if pid and at > since and load <= 100}


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000
