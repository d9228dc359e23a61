"""What kind of failure an end was (SPEC A26), from what is known of it. Light: the shim has it in memory too.

Rules: what the program itself said comes first, then the words of its log, then time limit, signal and exit code; frameworks
exit with 1 for everything, so their words say more than their code.
"""

from __future__ import annotations

import re

from jostle.core.states import ABNORMAL, NORMAL

FACTS = ("error", "tail", "timed_out", "stopped", "signal", "code", "said", "said_type")
"""What of an end says which kind it was."""

_OOM = re.compile(r"out[ _]of[ _]memory|\boom\b", re.IGNORECASE)
_RUNTIME = re.compile(r"runtimeerror|runtime error", re.IGNORECASE)

CARD_WORDS = ("uncorrectable ECC", "ECC_UNCORRECTABLE", "ECCUncorrectable", "GPU is lost", "GPU_IS_LOST", "fallen off the bus")
"""What only a broken card makes CUDA, NVML and the driver say; in docs/reliability.md. An illegal access or a failed assertion
is a program's doing, and never among them."""
_CARD = re.compile("|".join(map(re.escape, CARD_WORDS)), re.IGNORECASE)


def succeeded(code: int | None, said: str = "", stopped: bool = False) -> bool:
    """Whether it went well: its own word, else its exit code (SPEC A22); what was told to end before it had, has not."""
    return not stopped and (said == NORMAL or (said != ABNORMAL and code == 0))


def card_words(tail: str) -> str:
    """The first of CARD_WORDS at the end of a log, as written there; "": none."""
    match = _CARD.search(tail)
    return match.group() if match is not None else ""


def error_type(
    *,
    error: str = "",
    tail: str = "",
    timed_out: bool = False,
    stopped: bool = False,
    signal: int | None = None,
    code: int | None = None,
    said: str = "",
    said_type: str = "",
) -> str:
    if said == ABNORMAL and said_type not in ("", "none", "unknown"):
        return said_type
    if error:
        return "start_failed"
    if _OOM.search(tail):
        return "oom"
    if _RUNTIME.search(tail):
        return "runtime_error"
    if timed_out:
        return "timeout"
    if signal is not None:
        return f"signal_{signal}"
    if stopped and code == 0:
        return "signal_15"  # it heard it and ended in good order
    return "unknown" if code is None or code == 0 else f"exit_code_{code}"
