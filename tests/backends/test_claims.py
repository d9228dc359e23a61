from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.core.claims import Claim, name_of, parse

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
        run=st.tuples(st.integers(0, 10**9), st.integers(0, 10**6)),
    )
)
def test_a_claims_name_can_be_read_back(claim: Claim) -> None:
    assert parse(name_of(claim)) == claim


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
