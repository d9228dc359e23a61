from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import instance, make_instance
from tests.web.console import Console

__all__ = ["instance", "make_instance"]


@pytest.fixture(scope="session")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """One for all tests that do not get in each other's way; who ends its engine or its process starts it again."""
    made = Console(tmp_path_factory.mktemp("c"))
    yield made
    made.close()


@pytest.fixture
def make_console(tmp_path: Path) -> Iterator[Callable[..., Console]]:
    made: list[Console] = []

    def make(**options: Any) -> Console:
        made.append(Console(tmp_path / f"c{len(made)}", **options))
        return made[-1]

    yield make
    for one in made:
        one.close()
