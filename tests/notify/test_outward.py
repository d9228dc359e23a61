"""S47: where messages may go. Refused before a byte is sent, whatever a name leads to and whoever wants us elsewhere."""

import socket
import threading
import time

import pytest

from jostle.notify import chat, outward
from jostle.notify.message import made
from jostle.notify.outward import Endpoint, addresses, connected, endpoint_of, judged
from jostle.notify.post import LARGEST, post
from jostle.notify.trouble import Undelivered
from tests.notify.receivers import CERTIFICATE, Posts, free_port, http_server, socket_server

MESSAGE = made(0.0, ["test"], "a title", "a text")


def refusal(act, *args, **options):
    with pytest.raises(Undelivered) as caught:
        act(*args, **options)
    return caught.value.code


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("file:///etc/passwd", "url_scheme"),
        ("gopher://host/", "url_scheme"),
        ("ftp://host/", "url_scheme"),
        ("//host/", "url_scheme"),
        ("https:///path", "url_odd"),
        ("https://user:secret@host/", "url_odd"),
        ("https://host@169.254.169.254/", "url_odd"),
        ("https://host\\@evil/", "url_odd"),
        ("https://host/a b", "url_odd"),
        ("https://host/\r\nX: y", "url_odd"),
        ("https://höst/", "url_odd"),
        ("https://host:70000/", "url_odd"),
        ("https://[::1/", "url_odd"),
        ("https://host:22/", "url_port"),
        ("https://host:25/", "url_port"),
        ("http://host/", "url_clear"),
    ],
)
def test_s47_an_address_that_is_none_for_us_is_refused(url, code):
    assert refusal(endpoint_of, url) == code


@pytest.mark.parametrize("port", [80, 443, 1024, 8443, 65535])
def test_s47_ports_of_http_and_high_ones_are_taken(port):
    assert endpoint_of(f"https://host:{port}/x?y=z") == Endpoint(host="host", port=port, tls=True, path="/x?y=z")


NEVER = [
    "169.254.169.254", "169.254.0.1", "fe80::1", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "0.0.0.0", "0.1.2.3",
    "224.0.0.1", "ff02::1", "255.255.255.255", "240.0.0.1", "::", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::", "fec0::1", "64:ff9b:1::a9fe:a9fe", "::ffff:0:a9fe:a9fe", "::a9fe:a9fe", "2001::5601:5601",
]  # fmt: skip
PRIVATE = [
    "127.0.0.1", "127.255.0.9", "::1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fc00::1", "fd12::1",
    "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "198.18.0.1", "192.0.2.1", "64:ff9b:1::7f00:1", "64:ff9b:1::808:808",
    "::ffff:0:7f00:1", "::7f00:1", "2001::80ff:fffe", "2001::f7f7:f7f7",
]  # fmt: skip


@pytest.mark.parametrize("address", NEVER)
def test_s47_some_addresses_are_never_sent_to_even_if_the_settings_name_the_host(address):
    assert judged(address, named=True) == judged(address, named=False) == "never"


@pytest.mark.parametrize("address", PRIVATE)
def test_s47_private_addresses_only_where_the_settings_name_the_host(address):
    assert judged(address, named=False) == "private" and judged(address, named=True) == ""


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_s47_public_addresses_are_sent_to(address):
    assert judged(address, named=False) == ""


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_s47_loopback_is_refused_however_it_is_written_and_nobody_is_connected_to(host):
    posts = Posts()
    with http_server(posts, tls=True) as port:
        endpoint = endpoint_of(f"https://{host}:{port}/", ca_file=CERTIFICATE)
        assert refusal(chat.send, "webhook", endpoint, MESSAGE, "", 0.0) in ("address_private", "unresolved")
    assert posts.requests == []


@pytest.mark.parametrize("host", ["169.254.169.254", "[fd00:ec2::254]"])
def test_s47_the_metadata_of_a_cloud_is_refused_even_if_it_is_named(host):
    endpoint = endpoint_of(f"http://{host}/latest/meta-data", [host.strip("[]")])
    assert endpoint.named and refusal(addresses, endpoint) == "address_never"


def test_s47_a_name_with_one_bad_address_among_good_ones_is_refused(monkeypatch):
    """What a name server says is not ours to make; its answer is put in the place of the system's."""
    answers = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in ("8.8.8.8", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers)
    assert refusal(addresses, endpoint_of("https://host.example/")) == "address_private"


def test_s47_a_name_is_looked_up_once_and_what_was_judged_is_connected_to(monkeypatch):
    """A name server that answers otherwise the second time (DNS rebinding) changes nothing."""
    asked = []

    def answer(host, port, **options):
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1" if len(asked) == 1 else "127.0.0.9", port))]

    posts = Posts()
    with http_server(posts) as port:
        monkeypatch.setattr(socket, "getaddrinfo", answer)
        chat.send("webhook", endpoint_of(f"http://rebound.example:{port}/", ["rebound.example"]), MESSAGE, "", 0.0)
    assert asked == ["rebound.example"] and len(posts.requests) == 1
    assert posts.requests[0][1]["host"] == f"rebound.example:{port}"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_s47_a_redirect_is_a_refusal_and_is_not_followed(status):
    inside = Posts()
    with http_server(inside) as target:
        posts = Posts((status, b"", {"Location": f"http://localhost:{target}/latest/meta-data"}))
        with http_server(posts) as port:
            endpoint = endpoint_of(f"http://localhost:{port}/", ["localhost"])
            assert refusal(chat.send, "webhook", endpoint, MESSAGE, "", 0.0) == "redirected"
    assert len(posts.requests) == 1 and inside.requests == []


def test_s47_only_the_host_that_is_named_is_allowed():
    assert refusal(addresses, endpoint_of("https://localhost:8443/", ["127.0.0.1", "other"])) == "address_private"


def test_s47_an_answer_without_end_is_read_to_a_bound():
    def serve(connection):
        connection.recv(1 << 16)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"x" * (1 << 16))

    with socket_server(serve) as port:
        answer = post(endpoint_of(f"http://localhost:{port}/", ["localhost"]), b"{}", {})
    assert (answer.status, len(answer.body)) == (200, LARGEST)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"])
def test_s47_whoever_answers_a_byte_now_and_then_is_left_when_the_time_is_over(said):
    def serve(connection):
        connection.recv(1 << 16)
        connection.sendall(said)
        while connection.sendall(b"x") is None:
            time.sleep(0.05)

    def slow():
        with connected(endpoint_of(f"http://localhost:{port}/", ["localhost"]), 1.0) as way:
            way.sock.sendall(b"POST / HTTP/1.1\r\n\r\n")
            while way.sock.recv(1):
                pass
            raise ConnectionError("it hung up")

    with socket_server(serve) as port:
        assert refusal(slow) == "too_slow"


def test_s47_a_host_that_nobody_answers_for_and_a_name_that_nobody_knows_are_told():
    endpoint = endpoint_of(f"http://localhost:{free_port()}/", ["localhost"])
    assert refusal(chat.send, "webhook", endpoint, MESSAGE, "", 0.0) == "unreachable"
    assert refusal(addresses, endpoint_of("https://nobody.invalid/")) == "unresolved"


def test_s47_tls_is_checked_and_a_host_that_cannot_prove_itself_hears_nothing():
    posts = Posts()
    with http_server(posts, tls=True) as port:
        trusted = endpoint_of(f"https://localhost:{port}/", ["localhost"], CERTIFICATE)
        stranger = endpoint_of(f"https://localhost:{port}/", ["localhost"])
        assert refusal(chat.send, "webhook", stranger, MESSAGE, "", 0.0) == "untrusted"
        assert posts.requests == []
        chat.send("webhook", trusted, MESSAGE, "", 0.0)
    assert len(posts.requests) == 1


def test_s47_an_environment_that_names_a_proxy_changes_nothing(monkeypatch):
    proxy = Posts()
    with http_server(proxy) as elsewhere, http_server(posts := Posts()) as port:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://localhost:{elsewhere}")
        chat.send("webhook", endpoint_of(f"http://localhost:{port}/", ["localhost"]), MESSAGE, "", 0.0)
    assert len(posts.requests) == 1 and proxy.requests == []


def test_c11_a_name_that_is_looked_up_without_end_is_left_when_the_time_is_over(monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(60) and [])

    def through():
        with connected(endpoint_of("https://slow.example/"), 0.2):
            pass

    try:
        assert refusal(through) == "unresolved_yet" and not over.is_set()
    finally:
        over.set()


def test_c11_a_host_with_many_addresses_that_do_not_answer_costs_no_more_time_than_one(monkeypatch):
    passed, shares = [0.0], []

    class Deaf:
        def __init__(self, *_):
            self.within = 0.0

        def settimeout(self, within):
            self.within = within

        def connect(self, to):
            passed[0] += self.within
            shares.append(self.within)
            raise TimeoutError

        def close(self):
            pass

    many = [(socket.AF_INET, (f"203.0.113.{k}", 443)) for k in range(100)]
    monkeypatch.setattr(outward, "addresses", lambda endpoint, within: many)
    monkeypatch.setattr(outward.time, "monotonic", lambda: passed[0])
    monkeypatch.setattr(outward.socket, "socket", Deaf)
    with pytest.raises(Undelivered) as caught, connected(endpoint_of("https://many.example/")):
        pass
    monkeypatch.undo()
    assert caught.value.code == "unreachable"
    assert len(shares) == len(many) and sum(shares) <= outward.CONNECT_WITHIN + 0.001


def test_c11_a_handshake_that_outlasts_its_time_is_the_end_of_it(monkeypatch):
    """The socket that is closed when time is up is not the one that TLS has made of it."""
    closed = threading.Event()
    end = outward.Way.end
    monkeypatch.setattr(outward.Way, "end", lambda way: (end(way), closed.set()))

    class Slow:
        def wrap_socket(self, sock, server_hostname):
            made = socket.socket(fileno=sock.detach())
            assert closed.wait(60)
            return made

    monkeypatch.setattr(outward, "trust", lambda endpoint: Slow())
    with socket_server(lambda connection: connection.recv(1)) as port:

        def through():
            with connected(endpoint_of(f"https://localhost:{port}/", ["localhost"]), 0.2):
                raise AssertionError("it goes on without a bound")

        assert refusal(through) == "too_slow"
