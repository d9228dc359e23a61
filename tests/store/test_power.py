"""Power cuts (F26): what the disk had not been asked to make sure of may be lost, torn or written out of order."""

import contextlib
import os
import random
import shutil
import sqlite3

import pytest

from jostle.core.model import Exit, Lease
from jostle.engine import checks
from jostle.store import jobs, runs
from jostle.store.file import NAME
from jostle.store.store import Store

SECTOR = 512


def everything(db):
    return [db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in ("job", "run", "lease", "event")]


class Film:
    """A store at work, with what is on its disk at each moment."""

    def __init__(self, home):
        self.store, self.home = Store(home), home
        self.commits = []  # all that the store says after each
        self.told = 0  # so many of them were told to somebody
        self.frames = []  # journal, safe bytes of it, commits told, commits made
        self.shoot()

    def commit(self, act, durable):
        with self.store.transaction(durable=durable):
            act()
        self.commits.append(everything(self.store.db))
        if durable:
            self.told = len(self.commits)
        self.shoot()

    def sync(self):
        self.store.sync()
        self.told = len(self.commits)
        self.shoot()

    def shoot(self):
        with open(f"{self.home}/{NAME}-wal", "rb") as f:
            journal = f.read()
        safe = len(journal) if self.told == len(self.commits) else self.frames[-1][1]
        self.frames.append((journal, safe, self.told, len(self.commits)))

    def submit(self, n):
        request = checks.request({"jobs": [{"commands": [f"echo {i}"], "workdir": "/"} for i in range(n)]})
        self.commit(lambda: jobs.submit(self.store, request, at=1.0, now=1.0, rank=lambda: 0.5), durable=True)

    def hand_over(self, ended, started):
        def act():
            if ended:
                how = {"state": "succeeded", "exit": Exit(code=0, ended_at=2.0), "error_type": None, "reason": None}
                runs.finish(self.store, (ended, 1), batch=1, peak_mib=0, at=2.0, now=2.0, **how)
            card = [Lease(uuid="GPU-0", index=0, mib=None)]
            about = {"batch": 1, "uni_id": f"u{started}", "memory_mib": None, "share": False}
            runs.begin(self.store, (started, 1), log="l", leases=card, at=2.0, now=2.0, **about)

        self.commit(act, durable=False)


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    home = tmp_path_factory.mktemp("power") / "home"
    home.mkdir(mode=0o700)
    film, rng = Film(str(home)), random.Random(7)
    film.submit(20)
    for id in range(1, 21):
        film.hand_over(id - 1, id)
        if rng.random() < 0.4:
            film.sync()
        if rng.random() < 0.2:
            film.submit(2)
    return film


def cut(journal, safe, rng):
    """What is left of the journal: all that is safe, and of the rest some sectors, in whatever order they were written."""
    sectors = [bytearray(journal[at : at + SECTOR]) for at in range(safe, len(journal), SECTOR)]
    for sector in sectors:
        if rng.random() < 0.3:
            sector[:] = bytes(len(sector)) if rng.random() < 0.5 else rng.randbytes(len(sector))
    left = journal[:safe] + b"".join(sectors)
    return left[: rng.randint(safe, len(left))] if rng.random() < 0.5 else left


def test_whatever_of_the_journal_a_power_cut_takes_nothing_that_was_told_is_lost(film, tmp_path):
    rng, lost = random.Random(11), 0
    for n in range(60):
        journal, safe, told, made = rng.choice(film.frames)
        home = tmp_path / f"after-{n}"
        home.mkdir(mode=0o700)
        shutil.copy(f"{film.home}/{NAME}", home / NAME)  # nothing was moved into it yet
        (home / f"{NAME}-wal").write_bytes(cut(journal, safe, rng))
        os.chmod(home / f"{NAME}-wal", 0o600)
        store = Store(str(home))
        assert store.db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        found = everything(store.db)
        allowed = [[[]] * 4, *film.commits][told : made + 1]
        assert found in allowed, "it is as it was at some commit, and at none before the last that was told"
        lost += found != allowed[-1]
        store.close()
    assert lost >= 5, "the cuts did take something"


def test_the_test_itself_finds_a_lost_answer(film, tmp_path):
    """A journal without its safe part is not taken for whole."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    shutil.copy(f"{film.home}/{NAME}", home / NAME)
    (home / f"{NAME}-wal").write_bytes(film.frames[-1][0][:40])
    os.chmod(home / f"{NAME}-wal", 0o600)
    with pytest.raises(AssertionError), contextlib.closing(sqlite3.connect(home / NAME)) as db:
        assert everything(db) == film.commits[-1]
