"""C11 in the console: how notifications stand, and a test of them; S47: where they go is none of a browser's business."""

import json

from tests.notify.receivers import Posts, http_server


def configured(console, port, token="T0KEN-of-the-hook"):
    said = {"allow_private": ["localhost"], "channels": {"hook": {"kind": "webhook", "url": f"http://localhost:{port}/{token}"}}}
    (console.instance.home / "config.yaml").write_text(json.dumps({"notify": said}))
    return token


def test_c11_the_console_shows_channels_and_sends_a_test(make_console):
    console = make_console()
    assert console.get("/api/v1/notify")["channels"] == []
    with http_server(posts := Posts()) as port:
        token = configured(console, port)
        told = console.script("GET", "/api/v1/notify")
        (channel,) = told.json["channels"]
        assert (channel["name"], channel["host"], channel["waiting"], channel["text"]) == ("hook", "localhost", 0, [])
        assert token.encode() not in told.body
        tested = console.script("POST", "/api/v1/notify/test", {"channel": "hook"})
        assert (tested.status, tested.json["channels"]) == (200, [{"name": "hook", "ok": True, "error": None}])
    assert [path for path, _, _ in posts.requests] == [f"/{token}"]
    failed = console.script("POST", "/api/v1/notify/test", {})
    assert failed.json["channels"][0]["error"]["code"] == "unreachable" and token.encode() not in failed.body
    assert console.script("POST", "/api/v1/notify/test", {"channel": "nobody"}).status == 404


def test_s47_no_address_is_taken_from_a_browser_and_a_reader_sees_none(make_console):
    console = make_console()
    with http_server(posts := Posts()) as port:
        configured(console, port)
        for body in ({"url": "http://169.254.169.254/"}, {"channel": "hook", "url": "http://localhost/"}, {"channel": "--help"}):
            assert console.script("POST", "/api/v1/notify/test", body).status in (404, 422)
        assert console.script("PUT", "/api/v1/notify", {"channels": {}}).status == 405
        reader = console.instance.ok("web", "--token", "--read-only").strip()
        assert console.script("GET", "/api/v1/notify", token=reader).status == 403
        assert console.script("POST", "/api/v1/notify/test", {}, token=reader).status == 403
    assert posts.requests == []
