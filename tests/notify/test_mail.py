"""C11: mail to real servers, good and bad. What was not taken is told with its reason, and never in the server's words."""

import time

import pytest

from jostle.notify import mail
from jostle.notify.mail import mailbox, send
from jostle.notify.message import LONGEST, made
from jostle.notify.trouble import Undelivered
from tests.notify.receivers import (
    CERTIFICATE,
    PASSWORD,
    Letters,
    free_port,
    mail_server,
    server_side,
    socket_server,
)

MESSAGE = made(1_800_000_000.0, ["failed"], "job 1 failed", "a text\nof two lines", [])


def box(port, **options):
    return mailbox({"host": "localhost", "port": port, "security": "none", "sender": "jostle@lab.example",
                    "to": ["me@lab.example"], **options})  # fmt: skip


def refusal(*args):
    with pytest.raises(Undelivered) as caught:
        send(*args)
    return caught.value


def test_c11_a_letter_arrives_as_it_was_meant():
    letters = Letters()
    with mail_server(letters) as port:
        send(box(port, to=["me@lab.example", "you@lab.example"]), MESSAGE, "")
    (letter,) = letters.taken
    assert letter["Subject"] == "job 1 failed" and letter["From"] == "jostle@lab.example"
    assert letter["To"] == "me@lab.example, you@lab.example" and letters.recipients == [["me@lab.example", "you@lab.example"]]
    assert letter["Message-ID"] == f"<{MESSAGE.id}@lab.example>" and letter["Auto-Submitted"] == "auto-generated"
    assert letter["Date"].datetime.timestamp() == 1_800_000_000
    assert letter.get_content_type() == "text/plain" and letter.get_content() == "a text\r\nof two lines\r\n"


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_c11_login_and_letter_go_over_tls(security):
    letters = Letters()
    starttls = {"tls_context": server_side(), "auth_required": True}
    options = {"tls": True, "auth_require_tls": False} if security == "tls" else starttls
    with mail_server(letters, authenticator=letters.login, **options) as port:
        send(box(port, security=security, user="me", ca_file=CERTIFICATE), MESSAGE, PASSWORD)
    assert letters.logins == [(b"me", PASSWORD.encode())] and len(letters.taken) == 1
    if security == "starttls":
        assert letters.tls == [True]


def test_c11_where_no_tls_is_offered_nothing_is_sent():
    letters = Letters()
    with mail_server(letters, authenticator=letters.login, auth_require_tls=False) as port:
        assert refusal(box(port, security="starttls", user="me"), MESSAGE, PASSWORD).code == "no_starttls"
    assert letters.logins == [] and letters.taken == []


def test_c11_a_server_that_offers_tls_and_refuses_it_hears_no_password():
    heard = []

    def serve(connection):
        connection.sendall(b"220 hello\r\n")
        while line := connection.recv(4096):
            heard.append(line)
            tls = line.upper().startswith(b"STARTTLS")
            connection.sendall(b"454 not now\r\n" if tls else b"250-hello\r\n250-AUTH PLAIN LOGIN\r\n250 STARTTLS\r\n")

    with socket_server(serve) as port:
        assert refusal(box(port, security="starttls", user="me"), MESSAGE, PASSWORD).code == "no_starttls"
    assert not any(b"AUTH" in line or b"MAIL" in line for line in heard)


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_c11_a_server_that_cannot_prove_itself_hears_no_password(security):
    letters = Letters()
    options = {"tls": True, "auth_require_tls": False} if security == "tls" else {"tls_context": server_side()}
    with mail_server(letters, authenticator=letters.login, **options) as port:
        trouble = refusal(box(port, security=security, user="me"), MESSAGE, PASSWORD)
    assert trouble.code == "untrusted" and letters.logins == []


def test_c11_a_wrong_password_is_told_by_its_code_alone():
    letters = Letters()
    with mail_server(letters, authenticator=letters.login, auth_require_tls=False) as port:
        trouble = refusal(box(port, user="me"), MESSAGE, "wrong-password")
    assert trouble.plain == {"code": "login_refused", "params": {"host": "localhost", "user": "me", "number": 535}}
    assert trouble.whole


def test_c11_a_server_without_login_is_told():
    with mail_server(Letters()) as port:
        assert refusal(box(port, user="me"), MESSAGE, PASSWORD).code == "no_login"


def test_c11_four_hundred_is_tried_again_and_five_hundred_is_about_the_message():
    letters = Letters("451 later", "554 never", "250 taken")
    with mail_server(letters) as port:
        busy, never = refusal(box(port), MESSAGE, ""), refusal(box(port), MESSAGE, "")
        send(box(port), MESSAGE, "")
    assert (busy.code, busy.whole, busy.params["number"]) == ("message_refused", True, 451)
    assert (never.code, never.whole, never.params["number"]) == ("message_refused", False, 554)
    assert len(letters.taken) == 1


@pytest.mark.parametrize("when", ["greeting", "ehlo", "mail", "rcpt", "data"])
@pytest.mark.parametrize("how", ["hang up", "hang"])
def test_c11_a_server_that_hangs_or_hangs_up_anywhere_is_left(monkeypatch, when, how):
    if how == "hang":
        monkeypatch.setattr(mail, "WITHIN", 0.5)

    def serve(connection):
        order = {"greeting": b"", "ehlo": b"EHLO", "mail": b"MAIL", "rcpt": b"RCPT", "data": b"DATA"}
        if when == "greeting":
            return stop(connection)
        connection.sendall(b"220 hello\r\n")
        while line := connection.recv(1 << 16):
            if line.upper().startswith(order[when]):
                return stop(connection)
            connection.sendall(b"354 go on\r\n" if line.upper().startswith(b"DATA") else b"250 fine\r\n")
        return None

    def stop(connection):
        while how == "hang" and connection.recv(1 << 16):
            pass

    with socket_server(serve) as port:
        trouble = refusal(box(port), MESSAGE, "")
    assert (trouble.code, trouble.whole) == ("too_slow" if how == "hang" else "no_answer", True)


def test_c11_a_server_that_drops_the_line_after_the_letter_may_have_it_twice_with_one_message_id():
    got = []

    def serve(connection):
        stream = connection.makefile("rb")
        connection.sendall(b"220 hello\r\n")
        for line in stream:
            if line.upper().startswith(b"DATA"):
                connection.sendall(b"354 go on\r\n")
                got.append(b"".join(iter(stream.readline, b".\r\n")))
                if len(got) == 1:
                    return  # taken, and nobody was told
            connection.sendall(b"250 fine\r\n")

    with socket_server(serve) as port:
        assert refusal(box(port), MESSAGE, "").code == "no_answer"
        send(box(port), MESSAGE, "")
    ids = [line for letter in got for line in letter.split(b"\r\n") if line.lower().startswith(b"message-id")]
    assert len(ids) == 2 and len(set(ids)) == 1


def test_c11_a_server_that_drips_is_left_when_the_time_is_over(monkeypatch):
    monkeypatch.setattr(mail, "WITHIN", 0.5)

    def serve(connection):
        while connection.sendall(b"2") is None:
            time.sleep(0.02)

    with socket_server(serve) as port:
        assert refusal(box(port), MESSAGE, "").code == "too_slow"


def test_c11_nobody_there_and_nobody_known():
    assert refusal(box(free_port()), MESSAGE, "").code == "unreachable"
    assert refusal(box(25, host="nobody.invalid"), MESSAGE, "").code == "unresolved"


def test_s47_mail_goes_to_no_metadata_either():
    assert refusal(box(25, host="169.254.169.254"), MESSAGE, "").code == "address_never"


def test_c11_recipients_that_are_refused():
    def serve(connection):
        connection.sendall(b"220 hello\r\n")
        while line := connection.recv(1 << 16):
            bad = line.upper().startswith(b"RCPT") and (every or b"bad" in line)
            data = line.upper().startswith(b"DATA")
            connection.sendall(b"550 nobody\r\n" if bad else b"354 go on\r\n" if data else b"250 fine\r\n")

    every = False
    with socket_server(serve) as port:
        send(box(port, to=["bad@lab.example", "good@lab.example"]), MESSAGE, "")  # taken for one is taken
        every = True
        trouble = refusal(box(port), MESSAGE, "")
    assert (trouble.code, trouble.whole) == ("recipients_refused", False)


HOSTILE = [
    "a\r\nBcc: evil@evil.example\r\n\r\n<h1>x</h1>", "a\nSubject: b", "\x00\x07\x1b[2J", "\u202eevil\u2066", "\udcff\ud800",
    "😀字" * 500, "a" * 100_000, "",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_s47_c11_no_name_gets_into_the_headers_or_breaks_the_letter(name):
    letters = Letters()
    with mail_server(letters) as port:
        send(box(port), made(0.0, ["failed"], f"job ({name}) failed", f"job ({name}) failed\n.\n.\n{name}"), "")
    (letter,) = letters.taken
    assert letters.recipients == [["me@lab.example"]]
    assert sorted(letter.keys()) == sorted(
        ["From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "X-Mailer", "Content-Type", "Content-Transfer-Encoding",
         "MIME-Version", *[key for key in letter if key in ("X-Peer", "X-MailFrom", "X-RcptTo")]])  # fmt: skip
    assert letter["Subject"].startswith("job (") and len(letter["Subject"]) <= 200 and letter["Subject"].isprintable()
    assert letter.get_content_type() == "text/plain"
    assert "\n.\n.\n" in letter.get_content().replace("\r\n", "\n") or len(name) > LONGEST
    assert max(map(len, letter.as_bytes().splitlines())) <= 998
