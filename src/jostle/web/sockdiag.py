"""Who holds the other end of a TCP connection on this host, asked of the kernel for that one connection.

The tables in /proc/net would do, too, but to read them the kernel walks through all it has: some 30 ms, for each stranger who
knocks. See sock_diag(7).
"""

from __future__ import annotations

import socket
import struct

SOCK_DIAG, BY_FAMILY, ERROR, REQUEST = 4, 20, 2, 1  # the protocol, its one request, and what netlink(7) calls them
ANY = 0xFFFFFFFF  # cookie of a socket that we have not seen before
ESTABLISHED = 1
HEAD = struct.Struct("=IHHII")
ABOUT = struct.Struct("=BBBB")  # family, state, timer, retransmissions
ENDS = struct.Struct("!HH16s16s")  # ports and addresses, each the holder's first
REST = struct.Struct("=III")  # interface, cookie
COUNTS = struct.Struct("=IIII")  # expiry, queues, uid


def owner(theirs: tuple[str, int], ours: tuple[str, int]) -> int | None:
    """Its uid; None if nobody holds it. OSError where the kernel does not answer such questions.

    One that is closed, and known for a while yet, is told as root's: only an established one counts.
    """
    family = socket.AF_INET6 if ":" in theirs[0] else socket.AF_INET
    their_address, our_address = (socket.inet_pton(family, address.partition("%")[0]) for address, _ in (theirs, ours))
    ends = ENDS.pack(theirs[1], ours[1], their_address, our_address)
    question = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, 1 << ESTABLISHED) + ends + REST.pack(0, ANY, ANY)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, SOCK_DIAG) as kernel:
        kernel.settimeout(1.0)
        kernel.send(HEAD.pack(HEAD.size + len(question), BY_FAMILY, REQUEST, 1, 0) + question)
        answer = kernel.recv(8192)
    kind = HEAD.unpack_from(answer)[1]
    if kind == ERROR:
        number = -struct.unpack_from("=i", answer, HEAD.size)[0]
        if number == 2:  # no such connection
            return None
        raise OSError(number, "the kernel does not tell who holds a connection")
    at = HEAD.size
    state = ABOUT.unpack_from(answer, at)[1]
    ports = ENDS.unpack_from(answer, at + ABOUT.size)[:2]
    if kind != BY_FAMILY or state != ESTABLISHED or ports != (theirs[1], ours[1]):
        return None
    uid: int = COUNTS.unpack_from(answer, at + ABOUT.size + ENDS.size + REST.size)[3]
    return uid
