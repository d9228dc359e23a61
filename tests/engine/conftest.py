from collections.abc import Iterator

import pytest

from tests.engine.fakes import HOSTS


@pytest.fixture(autouse=True)
def nothing_is_held_open() -> Iterator[None]:
    """Descriptors of hosts that nobody needs any more would run out before the tests do."""
    yield
    for host in list(HOSTS):
        host.let_go()
