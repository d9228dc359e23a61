"""Fixtures of the probes' tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [path for path in (_HERE, os.path.dirname(_HERE)) if path not in sys.path]

from probing import Place, World  # noqa: E402 (found by the line above)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(str(tmp_path))
    yield found
    found.close()


@pytest.fixture(params=["sim", "nvml-v3", "nvml-v2"])
def world(request: pytest.FixtureRequest, place: Place) -> World:
    return World(request.param, place)
