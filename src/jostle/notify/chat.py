"""What each kind of receiver wants to be posted, how it wants it signed, and how it says no.

Rules: texts are hostile. They are sent as plain text wherever there is such a kind, and what a receiver would take for a mention
or a link is made harmless. None is longer than its receiver takes. The signatures follow the published rules:

- webhook: Standard Webhooks 1.0: `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`; a key `whsec_…` is base64.
- Feishu: base64 of HMAC-SHA256 over nothing, with `timestamp\\nsecret` as the key; timestamp in seconds, both in the body.
- DingTalk: base64 of HMAC-SHA256 over `timestamp\\nsecret` with the secret as the key; milliseconds; both in the query.
- WeCom and Slack: none; their address is the secret.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote_plus

from jostle.notify.message import Message, cut
from jostle.notify.outward import Endpoint
from jostle.notify.post import HttpAnswer, check_status, post
from jostle.notify.trouble import Undelivered

Posted = tuple[Endpoint, bytes, dict[str, str]]
BUSY = 600.0  # s to wait where too much was sent


def signature(key: bytes, text: bytes) -> str:
    return base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def webhook(endpoint: Endpoint, message: Message, secret: str, now: float) -> Posted:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(message.made_at))
    data = {"title": message.title, "text": message.text, "about": list(message.about), "items": list(message.items)}
    body = _json({"type": "jostle.notice", "timestamp": at, "data": data})
    headers = {"webhook-id": message.id, "webhook-timestamp": f"{now:.0f}"}
    if secret:
        signed = f"{message.id}.{now:.0f}.".encode() + body
        headers["webhook-signature"] = f"v1,{signature(webhook_key(secret), signed)}"
    return endpoint, body, headers


def webhook_key(secret: str) -> bytes:
    if not secret.startswith("whsec_"):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        raise Undelivered("secret_base64") from None


def fitting(written: Callable[[str], Mapping[str, Any]], text: str, most: int) -> bytes:
    """What is written of a text, or of its beginning: at most so many bytes, however long its letters become."""
    body = _json(written(text))
    room = len(text.encode())
    while len(body) > most and room > 1:
        room = min(room - 1, room * most // len(body))
        body = _json(written(cut(text, room)))
    return body


def feishu(endpoint: Endpoint, message: Message, secret: str, now: float) -> Posted:
    stamp = f"{now:.0f}"
    signed = {"timestamp": stamp, "sign": signature(f"{stamp}\n{secret}".encode(), b"")} if secret else {}

    def written(text: str) -> dict[str, Any]:
        lines = [[{"tag": "text", "text": line}] for line in _no_mention(text).split("\n")]
        content = {"post": {"zh_cn": {"title": _no_mention(message.title), "content": lines}}}
        return {**signed, "msg_type": "post", "content": content}

    return endpoint, fitting(written, message.text, MOST["feishu"]), {}


def _no_mention(text: str) -> str:
    return text.replace("<at", "‹at").replace("<@", "‹@")


def dingtalk(endpoint: Endpoint, message: Message, secret: str, now: float) -> Posted:
    if secret:
        stamp = f"{now * 1000:.0f}"
        sign = quote_plus(signature(secret.encode(), f"{stamp}\n{secret}".encode()))
        endpoint = replace(endpoint, path=f"{endpoint.path}{'&' if '?' in endpoint.path else '?'}timestamp={stamp}&sign={sign}")

    def written(text: str) -> dict[str, Any]:
        return {"msgtype": "text", "text": {"content": text}, "at": {"isAtAll": False}}

    return endpoint, fitting(written, _both(message), MOST["dingtalk"]), {}


def wecom(endpoint: Endpoint, message: Message, secret: str, now: float) -> Posted:
    content = cut(_no_mention(_both(message)), MOST["wecom"])
    return endpoint, _json({"msgtype": "text", "text": {"content": content}}), {}


def slack(endpoint: Endpoint, message: Message, secret: str, now: float) -> Posted:
    def written(text: str) -> dict[str, Any]:
        shown = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return {"text": shown, "mrkdwn": False, "parse": "none", "link_names": False, "unfurl_links": False}

    return endpoint, fitting(written, _both(message), MOST["slack"]), {}


def _both(message: Message) -> str:
    return f"{message.title}\n\n{message.text}"


MOST = {"feishu": 19_000, "dingtalk": 19_000, "wecom": 2048, "slack": 38_000}
"""Bytes that they take, and a little less: of a request, at WeCom of the text in it."""

POSTS: dict[str, Callable[[Endpoint, Message, str, float], Posted]] = {
    "webhook": webhook, "feishu": feishu, "dingtalk": dingtalk, "wecom": wecom, "slack": slack,
}  # fmt: skip

CODES = {"feishu": ("code", "StatusCode"), "dingtalk": ("errcode",), "wecom": ("errcode",)}
"""Where these say no in an answer of 200; 0 is yes."""
TOO_MANY = {"feishu": (9499, 11232), "dingtalk": (130101, 130102, 90030, 660026), "wecom": (45009, 45033)}


def send(kind: str, endpoint: Endpoint, message: Message, secret: str, now: float) -> None:
    to, body, headers = POSTS[kind](endpoint, message, secret, now)
    answer = post(to, body, headers)
    check_status(endpoint, answer)
    _check_code(kind, endpoint, answer)


def _check_code(kind: str, endpoint: Endpoint, answer: HttpAnswer) -> None:
    if kind not in CODES:
        return
    reply = answer.json()
    code = next((reply[key] for key in CODES[kind] if key in reply), None)
    if code == 0:
        return
    number = code if isinstance(code, int) and abs(code) < 10**9 else None
    wait = BUSY if number in TOO_MANY[kind] else None
    raise Undelivered("said_no", wait=wait, host=endpoint.host, number="?" if number is None else number)
