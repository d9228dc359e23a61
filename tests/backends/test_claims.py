from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.backends.local.claims import TAGS, Claim, name_of, parse

_N = r"(?:0|[1-9][0-9]{0,17})"
VERSION_0_2_0 = re.compile(  # as that version has it
    rf"jostle-(?P<uuid>[^~/\s]+)~(?P<alone>x?)(?P<mib>{_N}|(?<=x))~(?P<sid>{_N})~(?P<home>[0-9a-f]{{8}})"
    rf"~(?P<job>{_N})\.(?P<n>{_N})",
    re.ASCII,
)

GOOD = Claim(uuid="GPU-sim-0000-0003", mib=20480, sid=41233, home="a1b2c3d4", run=(17, 1))


def test_a_claims_name_says_all() -> None:
    assert name_of(GOOD) == "jostle-GPU-sim-0000-0003~20480~41233~a1b2c3d4~17.1"


@given(
    st.builds(
        Claim,
        uuid=st.text("GPUMIG-/0123456789abcdef", min_size=1, max_size=60).map(lambda s: s.replace("/", "")).filter(bool),
        mib=st.none() | st.integers(0, 10**6),
        alone=st.booleans(),
        sid=st.integers(0, 2**22),
        home=st.text("0123456789abcdef", min_size=8, max_size=8),
        run=st.tuples(st.integers(0, 10**9), st.integers(0, 10**6 - 1)),
        tag=st.integers(0, TAGS - 1),
    )
)
def test_a_claims_name_can_be_read_back_and_also_by_version_0_2_0(claim: Claim) -> None:
    name = name_of(claim)
    assert parse(name) == claim
    old = VERSION_0_2_0.fullmatch(name)
    assert old is not None and len(name) <= 255
    size = int(old["mib"]) if old["mib"] else None
    assert (old["uuid"], bool(old["alone"]), size, int(old["sid"]), old["home"], int(old["job"])) == (
        claim.uuid, claim.alone, claim.mib, claim.sid, claim.home, claim.run[0])  # fmt: skip


def test_a_name_of_version_0_2_0_is_still_read() -> None:
    assert parse("jostle-GPU-1~x20480~7~a1b2c3d4~17.3") == Claim(
        uuid="GPU-1", mib=20480, alone=True, sid=7, home="a1b2c3d4", run=(17, 3)
    )


@given(st.text(max_size=300))
def test_any_other_name_is_no_claim_and_no_error(name: str) -> None:
    claim = parse(name)
    assert claim is None or name_of(claim) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "jostle-",
        "." + name_of(GOOD),
        name_of(GOOD) + "~",
        name_of(GOOD) + "\n",
        name_of(GOOD).replace("20480", "-1"),
        name_of(GOOD).replace("20480", "07"),
        name_of(GOOD).replace("20480", "²"),
        name_of(GOOD).replace("20480", "9" * 400),
        name_of(GOOD).replace("a1b2c3d4", "A1B2C3D4"),
        name_of(GOOD).replace("GPU-sim", "../x"),
        name_of(GOOD).replace("17.1", "17"),
        name_of(GOOD).replace("17.1", "17.1.1"),
    ],
)
def test_a_name_we_would_not_write_is_not_read(name: str) -> None:
    assert parse(name) is None
