"""C11: the extra for other services, with the real apprise; and what its process may not do."""

import json
import subprocess
import sys

import pytest

from jostle.notify import apprised
from jostle.notify.deliver import Channel, deliver, flaw
from jostle.notify.message import made
from jostle.notify.trouble import Undelivered
from tests.notify.receivers import Posts, free_port, http_server

MESSAGE = made(0.0, ["failed"], "job 1 (@everyone <b>) failed", "a text with @here and <!channel>")


def channel(tmp_path, url, *allowed):
    path = tmp_path / "url"
    path.write_text(url)
    path.chmod(0o600)
    return Channel(name="a", kind="apprise", events=("failed",), options={"url": {"file": str(path)}}, allow_private=allowed)


def refusal(one):
    with pytest.raises(Undelivered) as caught:
        deliver(one, MESSAGE)
    return caught.value.code


def test_c11_apprise_delivers_and_no_name_is_a_mention(tmp_path):
    with http_server(posts := Posts()) as port:
        deliver(channel(tmp_path, f"json://localhost:{port}/TOKEN", "localhost"), MESSAGE)
    (body,) = posts.bodies()
    assert body["title"].replace("\u200b", "") == "job 1 (@everyone ‹b>) failed"
    assert "@everyone" not in json.dumps(body) and "@here" not in json.dumps(body) and "<" not in body["message"]


def test_s47_apprise_reaches_no_private_address_that_the_settings_do_not_name(tmp_path):
    with http_server(posts := Posts()) as port:
        assert refusal(channel(tmp_path, f"json://localhost:{port}/")) == "apprise_refused"
        assert refusal(channel(tmp_path, f"json://127.0.0.1:{port}/", "elsewhere.invalid")) == "apprise_refused"
    assert posts.requests == []


def test_c11_what_apprise_does_not_know_or_cannot_reach_is_told(tmp_path):
    assert refusal(channel(tmp_path, "nothing://at/all")) == "apprise_odd"
    assert refusal(channel(tmp_path, f"json://localhost:{free_port()}/", "localhost")) == "apprise_refused"
    assert flaw(channel(tmp_path, "json://x")) is None


@pytest.mark.parametrize(
    "act",
    [
        "import subprocess; subprocess.run(['true'])",
        "import os; os.system('true')",
        "import socket; socket.socket(socket.AF_UNIX).connect('/tmp/x')",
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import socket; socket.socket().connect(('localhost', 9))",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('10.0.0.1', 514))",
        "import socket; socket.create_connection(('169.254.169.254', 80))",
    ],
)
def test_s47_the_process_of_apprise_starts_nothing_and_speaks_to_nobody_of_this_host(act):
    code = f"""
import sys
from jostle.notify.apprised import watch
sys.addaudithook(lambda event, args: watch(event, args, frozenset()))
try:
    exec({act!r})
except PermissionError:
    print("refused")
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "refused\n"


def test_c11_where_apprise_is_not_installed_that_is_said(tmp_path):
    code = "import sys; sys.modules['apprise'] = None; from jostle.notify import apprised; sys.exit(apprised.main())"
    given = json.dumps({"url": "json://x", "title": "", "text": "", "allow_private": []})
    assert subprocess.run([sys.executable, "-c", code], input=given, text=True).returncode == apprised.MISSING
