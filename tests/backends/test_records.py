"""What a job may have written into its own run directory is read for its shape, and believed only within bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jostle.backends.local.records import RunClaim, exit_of

HONEST = {"pid": 5, "ticks": 7, "boot": "b", "uni_id": "u", "leases": ["jostle-GPU-0~x~5~00000000~1.1"]}


def test_an_honest_claim_is_read() -> None:
    assert RunClaim.of(HONEST) == RunClaim(pid=5, ticks=7, boot="b", uni_id="u", leases=("jostle-GPU-0~x~5~00000000~1.1",))


@pytest.mark.parametrize("forged", [{"pid": 10**30}, {"pid": -1}, {"ticks": 10**30}, {"ticks": -2}, {"pid": "5"}, {"boot": None}])
def test_a_forged_claim_is_of_no_boot_we_know(forged: dict[str, object]) -> None:
    assert RunClaim.of({**HONEST, **forged}) == RunClaim()


@pytest.mark.parametrize("name", ["jostle-\0a~x~1~aaaaaaaa~1.1", "jostle-\ud800~x~1~aaaaaaaa~1.1", "a\nb", 7])
def test_a_lease_that_no_file_could_be_named_is_dropped(name: object) -> None:
    assert RunClaim.of({**HONEST, "leases": [name]}).leases == ()


@pytest.mark.parametrize(
    "forged",
    [
        {"code": 10**30},
        {"ended_at": 1e300},
        {"ended_at": float("nan")},
        {"ended_at": 1 << 61},
        {"started_at": -1e15},
        {"leftovers": [10**30]},
        {"rss_mib": -(10**30)},
        {"code": "0"},
    ],
)
def test_a_forged_exit_is_no_exit(forged: dict[str, object]) -> None:
    assert exit_of({"code": 0, "ended_at": 1.0}) is not None
    assert exit_of({"code": 0, "ended_at": 1.0, **forged}) is None


@pytest.mark.parametrize("text", ["\ud800", "a\x1b[31m\nb", "x" * 10_000, "显存不足\udce6\udc98"])
def test_whatever_a_script_said_can_be_kept_and_shown(text: str) -> None:
    """A message cut in mid-character once ended every engine that read it."""
    end = exit_of({"code": 1, "ended_at": 1.0, "error": text, "tail": text, "said": "abnormal_exit", "said_type": text})
    assert end is not None and end.said == "abnormal_exit"
    for kept in (end.error, end.tail, end.said_type):
        kept.encode("utf-8")
    assert (end.said_type.isprintable() or not end.said_type) and len(end.said_type) <= 64


def test_a_word_that_is_none_is_not_heard() -> None:
    end = exit_of({"code": 1, "ended_at": 1.0, "said": "perhaps", "said_type": "x"})
    assert end is not None and end.said == ""


def test_the_record_of_a_shim_that_knew_less_or_more_is_read() -> None:
    """Shims outlive an upgrade: one of an older version says nothing of a stop or of a word, one of a newer says more."""
    older = {"code": 0, "signal": None, "timed_out": False, "error": "", "tail": "", "started_at": 1.0, "ended_at": 2.0}
    end = exit_of(older)
    assert end is not None and (end.code, end.stopped, end.said, end.leftovers) == (0, False, "", ())
    assert exit_of({**older, "stopped": True, "later": 1}) == replace(end, stopped=True)
    assert end.inputs == "" and exit_of({**older, "inputs": "same"}) == replace(end, inputs="same")
    assert exit_of({**older, "inputs": "perhaps"}) == end
    assert exit_of({**older, "stopped": 1}) is None
