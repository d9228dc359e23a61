"""Who is at the other end of a connection (S45, S50): known by its uid, and cheaply, for anybody may knock."""

import os
import socket

import pytest

from jostle import proc
from jostle.web import peer, sockdiag

FAMILIES = {"ipv4": (socket.AF_INET, "127.0.0.1", "127.0.0.1"), "ipv6": (socket.AF_INET6, "::1", "::1"),
            "mapped": (socket.AF_INET6, "127.0.0.1", "::ffff:127.0.0.1")}  # fmt: skip


@pytest.fixture(params=FAMILIES)
def ends(request):
    family, here, there = FAMILIES[request.param]
    listening = socket.create_server((here, 0), family=socket.AF_INET6 if ":" in here else socket.AF_INET)
    client = socket.socket(family)
    client.connect((there, listening.getsockname()[1]))
    served, _ = listening.accept()
    yield served, client
    for each in (served, client, listening):
        each.close()


def test_s50_the_holder_of_the_other_end_is_told_by_its_uid(ends):
    served, client = ends
    theirs, ours = served.getpeername()[:2], served.getsockname()[:2]
    assert sockdiag.owner(theirs, ours) == proc.tcp_owner(theirs, ours) == os.getuid()
    client.close()
    assert sockdiag.owner(theirs, ours) is None
    served.close()  # the kernel remembers it for a while, as nobody's
    assert sockdiag.owner(theirs, ours) is None and sockdiag.owner(ours, theirs) is None


def test_s45_no_table_of_all_connections_is_read_for_one(ends, monkeypatch):
    def read(*_):
        raise AssertionError("the whole table was read")

    monkeypatch.setattr(proc, "tcp_owner", read)
    served, client = ends
    assert peer.allowed(served, frozenset(), lan=False)
    client.close()
    assert not peer.allowed(served, frozenset(), lan=False)


def test_s50_where_the_kernel_does_not_answer_the_table_is_read(ends, monkeypatch):
    def silent(*_):
        raise OSError

    monkeypatch.setattr(sockdiag, "owner", silent)
    served, client = ends
    assert peer.allowed(served, frozenset(), lan=False)
    client.close()
    assert not peer.allowed(served, frozenset(), lan=False)
