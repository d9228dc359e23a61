"""C11: what each receiver is posted, and how it is signed. Signatures are made here a second time, from the published rules."""

import base64
import hashlib
import hmac
import json
import subprocess
import sys
from urllib.parse import parse_qs, urlsplit

import pytest

from jostle.notify import chat
from jostle.notify.message import LONGEST, made
from jostle.notify.outward import endpoint_of
from jostle.notify.trouble import Undelivered
from tests.notify.receivers import Posts, http_server

NOW = 1_800_000_000.25
HOSTILE = '<at user_id="all">everybody</at> <!channel> <@U123> <https://evil|click> @all *b* `c` [x](https://evil) &amp; <b>\x07'
OK = {"feishu": b'{"code":0}', "dingtalk": b'{"errcode":0,"errmsg":"ok"}', "wecom": b'{"errcode":0}'}


def sent(kind, message, secret="", answer=None, path="/hook"):
    """The request that arrives at a receiver of this kind."""
    posts = Posts(answer or (200, OK.get(kind, b"ok"), {}))
    with http_server(posts) as port:
        chat.send(kind, endpoint_of(f"http://localhost:{port}{path}", ["localhost"]), message, secret, NOW)
    ((path, headers, body),) = posts.requests
    return path, headers, body


def message(title="a title", text="a text"):
    return made(NOW, ["failed"], title, text, [{"job": 1, "name": "x"}])


def keyed(key: str, text: str) -> bytes:
    """HMAC-SHA256 as RFC 2104 writes it, without the module that the code uses for it."""
    block = (hashlib.sha256(key.encode()).digest() if len(key.encode()) > 64 else key.encode()).ljust(64, b"\0")
    inner = hashlib.sha256(bytes(c ^ 0x36 for c in block) + text.encode()).digest()
    return hashlib.sha256(bytes(c ^ 0x5C for c in block) + inner).digest()


def test_the_second_way_to_sign_is_right_by_the_vector_of_rfc_4231():
    vector = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert keyed("Jefe", "what do ya want for nothing?").hex() == vector


def test_c11_feishu_is_signed_by_its_rule():
    """The key is `timestamp\\nsecret`, what is signed is empty; seconds; both stand in the body."""
    _, _, body = sent("feishu", message(), "SECRET秘")
    said = json.loads(body)
    assert said["timestamp"] == "1800000000"
    assert base64.b64decode(said["sign"]) == keyed("1800000000\nSECRET秘", "")
    assert said["msg_type"] == "post"


def test_c11_dingtalk_is_signed_by_its_rule():
    """The key is the secret, what is signed is `timestamp\\nsecret`; milliseconds; both stand in the query, behind the token."""
    path, _, body = sent("dingtalk", message(), "SECsecret", path="/robot/send?access_token=t")
    query = parse_qs(urlsplit(path).query, strict_parsing=True)
    assert query["access_token"] == ["t"] and query["timestamp"] == ["1800000000250"]
    assert base64.b64decode(query["sign"][0]) == keyed("SECsecret", "1800000000250\nSECsecret")
    assert json.loads(body)["msgtype"] == "text"


@pytest.mark.parametrize("secret", ["plain secret", "whsec_" + base64.b64encode(b"0123456789abcdef01234567").decode()])
def test_c11_a_webhook_is_signed_by_the_standard(secret):
    """Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`; the id stays, the timestamp is that of the try."""
    told = message()
    _, headers, body = sent("webhook", told, secret)
    key = "0123456789abcdef01234567" if secret.startswith("whsec_") else secret
    signed = keyed(key, f"{told.id}.1800000000.{body.decode()}")
    assert headers["webhook-signature"] == "v1," + base64.b64encode(signed).decode()
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == (told.id, "1800000000")


def test_c11_without_a_secret_nothing_is_signed():
    _, headers, _ = sent("webhook", message())
    assert "webhook-signature" not in headers and "webhook-id" in headers
    assert "sign" not in json.loads(sent("feishu", message())[2])
    assert sent("dingtalk", message())[0] == "/hook"


def test_c11_a_webhook_has_the_same_for_programs():
    _, headers, body = sent("webhook", message())
    assert headers["content-type"].startswith("application/json")
    said = json.loads(body)
    assert said["type"] == "jostle.notice" and said["timestamp"] == "2027-01-15T08:00:00Z"
    assert said["data"] == {"title": "a title", "text": "a text", "about": ["failed"], "items": [{"job": 1, "name": "x"}]}


def texts(kind, body):
    said = json.loads(body)
    if kind == "feishu":
        post = said["content"]["post"]["zh_cn"]
        parts = [part for line in post["content"] for part in line]
        assert {part["tag"] for part in parts} == {"text"}
        return [post["title"], *(part["text"] for part in parts)]
    return [said["text"]] if kind == "slack" else [said["text"]["content"]]


@pytest.mark.parametrize("kind", ["feishu", "dingtalk", "wecom", "slack"])
def test_c11_hostile_text_mentions_nobody_and_links_nowhere(kind):
    _, _, body = sent(kind, message(HOSTILE, HOSTILE))
    shown = "\n".join(texts(kind, body))
    said = json.loads(body)
    assert {"feishu": "<at" not in shown, "wecom": "<@" not in shown, "slack": "<" not in shown, "dingtalk": True}[kind]
    if kind == "dingtalk":
        assert said["at"] == {"isAtAll": False} and said["msgtype"] == "text"
    if kind == "slack":
        assert said["mrkdwn"] is False and said["parse"] == "none" and said["link_names"] is False
        assert "&lt;!channel&gt;" in shown and "&amp;amp;" in shown
    if kind == "wecom":
        assert "mentioned_list" not in said["text"] and said["msgtype"] == "text"


LIMITS = {"feishu": 20 << 10, "dingtalk": 20_000, "slack": 40_000, "webhook": 64 << 10}


@pytest.mark.parametrize("kind", ["feishu", "dingtalk", "wecom", "slack", "webhook"])
@pytest.mark.parametrize("letter", ["a", "字", "😀", "&", '"', "\n"])
def test_c11_no_text_is_longer_than_its_receiver_takes(kind, letter):
    told = message(letter * 9000, letter * 300_000)
    assert len(told.text.encode()) <= LONGEST
    _, _, body = sent(kind, told)
    if kind == "wecom":
        assert len(json.loads(body)["text"]["content"].encode()) <= 2048
    else:
        assert len(body) <= LIMITS[kind]


@pytest.mark.parametrize(
    ("kind", "status", "said", "code", "whole", "wait"),
    [
        ("feishu", 200, b'{"code":19021,"msg":"sign match fail"}', "said_no", True, None),
        ("feishu", 200, b'{"code":9499,"msg":"too many request"}', "said_no", True, 600.0),
        ("feishu", 200, b"<html>login first</html>", "said_no", True, None),
        ("feishu", 200, b"[" * 30000, "said_no", True, None),
        ("dingtalk", 200, b'{"errcode":310000,"errmsg":"keywords not in content"}', "said_no", True, None),
        ("dingtalk", 200, b'{"errcode":130101}', "said_no", True, 600.0),
        ("wecom", 200, b'{"errcode":93000}', "said_no", True, None),
        ("slack", 404, b"no_service", "http_status", True, None),
        ("slack", 400, b"invalid_payload", "http_status", False, None),
        ("webhook", 500, b"", "http_status", True, None),
        ("webhook", 413, b"", "http_status", False, None),
    ],
)
def test_c11_who_says_no_has_not_taken_it(kind, status, said, code, whole, wait):
    with pytest.raises(Undelivered) as caught:
        sent(kind, message(), answer=(status, said, {}))
    assert (caught.value.code, caught.value.whole, caught.value.wait) == (code, whole, wait)


def test_c11_a_receiver_that_asks_for_patience_gets_it():
    with pytest.raises(Undelivered) as caught:
        sent("slack", message(), answer=(429, b"", {"Retry-After": "120"}))
    assert caught.value.wait == 120.0
    with pytest.raises(Undelivered) as caught:
        sent("slack", message(), answer=(429, b"", {"Retry-After": "99999999"}))
    assert caught.value.wait == 3600.0


@pytest.mark.parametrize("said", ["nan", "-nan", "soon", ""])
def test_a_receiver_whose_patience_is_no_number_gets_the_pause_of_any_other(said):
    with pytest.raises(Undelivered) as caught:
        sent("slack", message(), answer=(429, b"", {"Retry-After": said}))
    assert caught.value.wait is None


def test_c11_what_a_receiver_says_is_never_repeated():
    """It may repeat our secrets."""
    with pytest.raises(Undelivered) as caught:
        sent("feishu", message(), "SECRET", answer=(200, b'{"code":1,"msg":"SECRET"}', {}))
    assert "SECRET" not in repr(caught.value.plain)
    with pytest.raises(Undelivered) as caught:
        sent("dingtalk", message(), "SECRET", answer=(403, b"SECRET", {}), path="/send?access_token=TOKEN")
    assert "SECRET" not in repr(caught.value.plain) and "TOKEN" not in repr(caught.value.plain)


def test_c11_senders_need_the_standard_library_only():
    code = "import sys; import jostle.notify.deliver; print([m for m in ('requests', 'aiosmtpd', 'yaml') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_the_module_that_signs_agrees_with_the_one_here():
    assert hmac.new(b"k", b"text", hashlib.sha256).digest() == keyed("k", "text")
