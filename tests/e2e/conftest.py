from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.instance import Instance


@pytest.fixture
def make_instance(tmp_path: Path) -> Iterator[Callable[..., Instance]]:
    """Instances of a test; all are closed, whatever happens."""
    made: list[Instance] = []

    def make(name: str = "", **env: Any) -> Instance:
        made.append(Instance(tmp_path / (name or f"i{len(made)}"), **env))
        return made[-1]

    yield make
    for instance in made:
        instance.close()


@pytest.fixture
def instance(make_instance: Callable[..., Instance]) -> Instance:
    """A home of its own; no engine yet."""
    return make_instance("i")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """One engine with four cards of 24 GiB for the tests of a module that do not get in each other's way."""
    instance = Instance(tmp_path_factory.mktemp("shared"))
    instance.up("sim:4x24")
    instance.see_cards()
    yield instance
    instance.close()


@pytest.fixture(scope="module")
def jostle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """One engine with eight cards of 24 GiB for a module; a test's workspace says which of them it uses."""
    instance = Instance(tmp_path_factory.mktemp("eight"))
    instance.up("sim:8x24")
    instance.see_cards()
    yield instance
    instance.close()
