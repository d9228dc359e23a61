"""Mail by SMTP: plain text, with a Message-ID that stays the same however often it is tried.

Rules: where TLS is asked for, nothing is said without it, and a login never without it. Names and texts come from anybody: no
header has a line break, no line is too long. What a server says is never repeated: of its answer only the code is kept.
"""

from __future__ import annotations

import contextlib
import smtplib
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate
from typing import Any

from jostle import __version__
from jostle.notify.message import Message
from jostle.notify.outward import Endpoint, Way, connected, reason_of, trust
from jostle.notify.trouble import Undelivered
from jostle.printable import one_line

WITHIN = 60.0  # s for a whole conversation
PORTS = {"starttls": 587, "tls": 465, "none": 25}
LONGEST_TITLE = 200


@dataclass(frozen=True, kw_only=True)
class Mailbox:
    endpoint: Endpoint
    security: str
    sender: str
    to: tuple[str, ...]
    user: str | None = None


def mailbox(options: Mapping[str, Any]) -> Mailbox:
    """The server stands in the owner's own settings, so that it may be private."""
    security = options.get("security") or "starttls"
    port = options.get("port") or PORTS[security]
    endpoint = Endpoint(
        host=options["host"].lower(), port=port, tls=security == "tls", named=True, ca_file=options.get("ca_file")
    )  # fmt: skip
    return Mailbox(
        endpoint=endpoint, security=security, sender=options["sender"], to=tuple(options["to"]), user=options.get("user")
    )  # fmt: skip


def letter(box: Mailbox, message: Message) -> EmailMessage:
    mail = EmailMessage(policy=SMTP)
    mail["From"] = box.sender
    mail["To"] = ", ".join(box.to)
    mail["Subject"] = one_line(message.title)[:LONGEST_TITLE]
    mail["Date"] = formatdate(message.made_at)
    mail["Message-ID"] = message_id(box, message)
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Mailer"] = f"jostle {__version__}"
    mail.set_content(message.text, charset="utf-8", cte="base64")
    return mail


def message_id(box: Mailbox, message: Message) -> str:
    return f"<{message.id}@{box.sender.rpartition('@')[2]}>"


def send(box: Mailbox, message: Message, password: str) -> None:
    with connected(box.endpoint, WITHIN) as way:
        try:
            _converse(way, box, message, password)
        except smtplib.SMTPServerDisconnected:
            raise Undelivered("too_slow" if way.late else "no_answer", host=box.endpoint.host) from None
        except smtplib.SMTPResponseException as e:
            if way.late:
                raise Undelivered("too_slow", host=box.endpoint.host) from None
            raise Undelivered("smtp_refused", host=box.endpoint.host, number=e.smtp_code) from None


class Conversation(smtplib.SMTP):
    """One over a way that is there already."""

    def __init__(self, way: Way, box: Mailbox) -> None:
        self.way, self.box = way, box
        super().__init__(box.endpoint.host, box.endpoint.port, local_hostname=_own_name(), timeout=WITHIN)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        return self.way.sock


def _own_name() -> str:
    """What we call ourselves, without asking any server for it."""
    name = socket.gethostname()
    return name if name.isascii() and name.replace("-", "").replace(".", "").isalnum() else "localhost"


def _converse(way: Way, box: Mailbox, message: Message, password: str) -> None:
    smtp = Conversation(way, box)
    try:
        smtp.ehlo_or_helo_if_needed()
        if box.security == "starttls":
            _secure(smtp, way, box)
        if box.user is not None:
            _log_in(smtp, box, password)
        _hand_over(smtp, box, message)
        with contextlib.suppress(smtplib.SMTPException, OSError):
            smtp.quit()  # it has been taken; whatever comes of this
    finally:
        smtp.close()


def _secure(smtp: smtplib.SMTP, way: Way, box: Mailbox) -> None:
    if not smtp.has_extn("starttls"):
        raise Undelivered("no_starttls", host=box.endpoint.host)
    try:
        smtp.starttls(context=trust(box.endpoint))
    except ssl.SSLError as e:
        raise Undelivered("untrusted", host=box.endpoint.host, error=reason_of(e)) from None
    except smtplib.SMTPResponseException:
        raise Undelivered("no_starttls", host=box.endpoint.host) from None
    way.sock = smtp.sock  # type: ignore[assignment]
    way.check()
    smtp.ehlo_or_helo_if_needed()


def _log_in(smtp: smtplib.SMTP, box: Mailbox, password: str) -> None:
    assert box.user is not None
    try:
        smtp.login(box.user, password)
    except smtplib.SMTPAuthenticationError as e:
        raise Undelivered("login_refused", host=box.endpoint.host, user=box.user, number=e.smtp_code) from None
    except (smtplib.SMTPNotSupportedError, smtplib.SMTPException) as e:
        if isinstance(e, smtplib.SMTPServerDisconnected | smtplib.SMTPResponseException):
            raise
        raise Undelivered("no_login", host=box.endpoint.host) from None
    except UnicodeEncodeError:
        raise Undelivered("login_ascii", host=box.endpoint.host) from None


def _hand_over(smtp: smtplib.SMTP, box: Mailbox, message: Message) -> None:
    """Taken for some is taken; for none it is refused. A 4xx is about the way, for it passes; a 5xx about the message."""
    host = box.endpoint.host
    try:
        smtp.send_message(letter(box, message), box.sender, list(box.to))
    except smtplib.SMTPRecipientsRefused as e:
        number = max(code for code, _ in e.recipients.values())
        raise Undelivered("recipients_refused", whole=number < 500, host=host, number=number) from None
    except (smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as e:
        raise Undelivered("message_refused", whole=e.smtp_code < 500, host=host, number=e.smtp_code) from None
