from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.notify.scene import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home")
    yield made
    made.close()
