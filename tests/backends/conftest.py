from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from local_bench import Bench, MakeBench

from jostle.port import Adopted


@pytest.fixture
def make_bench(tmp_path: Path) -> Iterator[MakeBench]:
    made: list[Bench] = []

    def make(name: str = "home", leases: str = "leases", rows: Sequence[Adopted] = ()) -> Bench:
        home, lease_dir = tmp_path / name, tmp_path / leases
        home.mkdir(exist_ok=True)
        lease_dir.mkdir(exist_ok=True)
        made.append(Bench(home, lease_dir, rows))
        return made[-1]

    yield make
    for bench in made:
        for run_dir in sorted((bench.home / "runs").glob("[0-9]*")):
            job, _, n = run_dir.name.partition(".")
            bench.stop((int(job), int(n)), kill=True)
        bench.local.close()


@pytest.fixture
def bench(make_bench: MakeBench) -> Bench:
    return make_bench()
