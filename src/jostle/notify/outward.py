"""Where messages may go (RELIABILITY S47): the one door to the network.

Rules: http and https only, no name or password in an address, ports 80, 443 or 1024 and above. A name is looked up once, each of
its addresses is judged, and it is one of those that is connected to: no second look-up can bring another. This host and private
networks only where the settings name the host; link-local addresses, those of clouds' metadata, multicast and the like never.
Without TLS only where the settings name the host. Nobody is followed elsewhere: a redirect is a refusal. What is done there is
over within a time, whatever the other side does.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from jostle.notify.trouble import Undelivered

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
METADATA = frozenset(
    map(ipaddress.ip_address, ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"))
)
NOWHERE = ipaddress.ip_network("0.0.0.0/8")
OWN_NAT64, TEREDO = map(ipaddress.ip_network, ("64:ff9b:1::/48", "2001::/32"))
AT_THE_END = (*map(ipaddress.ip_network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")), OWN_NAT64)
"""Addresses of IPv6 whose last 32 bits are one of IPv4: compatible, mapped, translated, NAT64, NAT64 of a network's own."""
CONNECT_WITHIN = 15.0  # s; and as long for the look-up before it
WITHIN = 30.0  # s for all of it


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A host and port that was named, and what may be done there."""

    host: str
    port: int
    tls: bool
    path: str = "/"
    named: bool = False  # the settings name it: it may be private
    ca_file: str | None = None


def endpoint_of(url: str, allowed: Collection[str] = (), ca_file: str | None = None) -> Endpoint:
    """What an address says; Undelivered if it is none that may be used. The address itself is told nobody: it may be a secret."""
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise Undelivered("url_odd")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise Undelivered("url_odd") from None
    if parts.scheme not in ("http", "https"):
        raise Undelivered("url_scheme")
    if not host or parts.username is not None or parts.password is not None:
        raise Undelivered("url_odd")
    tls = parts.scheme == "https"
    named = host in {name.lower() for name in allowed}
    if not tls and not named:
        raise Undelivered("url_clear", host=host)
    port = (443 if tls else 80) if port is None else port
    if port not in (80, 443) and port < 1024:
        raise Undelivered("url_port", host=host, port=port)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Endpoint(host=host, port=port, tls=tls, path=path, named=named, ca_file=ca_file)


def judged(address: str, *, named: bool) -> str:
    """What is against an address: `never`, `private`, or nothing."""
    literal = ipaddress.ip_address(address)
    ip = bare(literal)
    if ip in METADATA or ip in NOWHERE or ip.is_link_local or ip.is_multicast or ip.is_unspecified:
        return "never"
    if ip.is_reserved if isinstance(ip, ipaddress.IPv4Address) else ip.is_site_local:
        return "never"
    public = ip.is_global and literal not in OWN_NAT64 and literal not in TEREDO
    return "" if public or named else "private"


def bare(ip: Address) -> Address:
    """The address that is meant: one of IPv4 may lie in one of IPv6."""
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.sixtofour is not None:
            return ip.sixtofour
        if ip.teredo is not None:
            return ip.teredo[1]
        if any(ip in network for network in AT_THE_END) and not ip.is_loopback:
            return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip


def addresses(endpoint: Endpoint, within: float = CONNECT_WITHIN) -> list[tuple[int, tuple[str, int]]]:
    """Family and address, as they were looked up once; Undelivered if any of them is not to be sent to."""
    answers = _looked_up(endpoint, within)
    families = (socket.AF_INET, socket.AF_INET6)
    peers = [(int(family), (str(to[0]), endpoint.port)) for family, _, _, _, to in answers if family in families]
    for _, (address, _) in peers:
        if against := judged(address, named=endpoint.named):
            raise Undelivered(f"address_{against}", host=endpoint.host, address=address)
    if not peers:
        raise Undelivered("unresolved", host=endpoint.host)
    return list(dict.fromkeys(peers))


def _looked_up(endpoint: Endpoint, within: float) -> list[Any]:
    """The system's look-up knows no time of ours: one that takes longer is left to itself."""
    answers: list[Any] = []

    def ask() -> None:
        with contextlib.suppress(OSError, UnicodeError):
            answers.extend(socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(within)
    if asking.is_alive():
        raise Undelivered("unresolved_yet", host=endpoint.host)
    return answers


class Way:
    """A connection that is over when its time is: whoever reads or writes then finds it closed."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.late = False

    def end(self) -> None:
        self.late = True
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    def check(self) -> None:
        """For who has put another socket here: the one that was closed when time was up may have been the one before."""
        if self.late:
            raise TimeoutError


@contextlib.contextmanager
def connected(endpoint: Endpoint, within: float = WITHIN) -> Iterator[Way]:
    """A way to the place; with TLS if that is said of it."""
    began = time.monotonic()
    peers = addresses(endpoint, min(CONNECT_WITHIN, within))
    way = Way(_reached(endpoint, peers, min(CONNECT_WITHIN, began + within - time.monotonic())))
    timer = threading.Timer(max(0.0, began + within - time.monotonic()), way.end)
    timer.daemon = True
    timer.start()
    try:
        way.sock.settimeout(within + 5.0)  # the timer is the one that counts
        if endpoint.tls:
            secured(way, endpoint)
        yield way
    except TimeoutError:
        raise Undelivered("too_slow", host=endpoint.host) from None
    except OSError as e:
        if way.late:
            raise Undelivered("too_slow", host=endpoint.host) from None
        raise Undelivered("broken_off", host=endpoint.host, error=e.strerror or type(e).__name__) from None
    finally:
        timer.cancel()
        with contextlib.suppress(OSError):
            way.sock.close()


def _reached(endpoint: Endpoint, peers: Collection[tuple[int, tuple[str, int]]], within: float) -> socket.socket:
    """However many addresses it has: each gets its share of the time that is left."""
    error, end = "", time.monotonic() + within
    for k, (family, to) in enumerate(peers):
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.settimeout(max(0.01, (end - time.monotonic()) / (len(peers) - k)))
        try:
            sock.connect(to)
            return sock
        except OSError as e:
            sock.close()
            error = "timeout" if isinstance(e, TimeoutError) else e.strerror or type(e).__name__
    raise Undelivered("unreachable", host=endpoint.host, port=endpoint.port, error=error)


def trust(endpoint: Endpoint) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=endpoint.ca_file)
    except (OSError, ssl.SSLError) as e:
        raise Undelivered("ca_unread", path=endpoint.ca_file or "", error=getattr(e, "strerror", None) or "?") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def secured(way: Way, endpoint: Endpoint) -> None:
    """From here on what is said there is private, and it is that host whom we speak to."""
    try:
        way.sock = trust(endpoint).wrap_socket(way.sock, server_hostname=endpoint.host)
    except ssl.SSLError as e:
        raise Undelivered("untrusted", host=endpoint.host, error=reason_of(e)) from None
    way.check()


def reason_of(e: ssl.SSLError) -> str:
    if isinstance(e, ssl.SSLCertVerificationError):
        return str(e.verify_message)
    return str(e.reason or "TLS").lower().replace("_", " ")
