"""C11, S43: `notify:` of config.yaml. What is wrong is told with file and line, and no secret is repeated."""

import json
import os
from pathlib import Path

import pytest

from jostle import config
from jostle.errors import Invalid, NotFound
from jostle.notify.channels import subscribers
from jostle.notify.deliver import flaw, where
from jostle.notify.secret import revealed
from jostle.notify.trial import chosen
from jostle.notify.trouble import Undelivered

GOOD = """
notify:
  language: zh
  free_gpus: 2
  gather: 1m
  channels:
    me:
      kind: mail
      host: smtp.example.org
      from: jostle@example.org
      to: [me@example.org, you@example.org]
      user: me
      password: {file: smtp-password}
      events: [failed, free]
    lab: {kind: feishu, url: {env: FEISHU_URL}, secret: {file: /etc/feishu}}
    team: {kind: slack, url: https://hooks.example/T/B/X, events: batch}
"""


@pytest.fixture
def home(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


def read(home, text):
    (home / "config.yaml").write_text(text)
    return config.load(str(home)).get("notify")


def flaws(home, text):
    with pytest.raises(Invalid) as caught:
        read(home, text)
    return str(caught.value).replace(f"{home}/", "").splitlines()


def test_c11_settings_are_read_with_their_defaults(home):
    said = read(home, GOOD)
    assert (said["language"], said["free_gpus"], said["gather"], said["keep_for"]) == ("zh", 2, 60.0, 604800.0)
    me, lab, team = (one.channel for one in subscribers(str(home)))
    assert me.options["password"] == {"file": str(home / "smtp-password")} and me.events == ("failed", "free")
    assert me.options["to"] == ["me@example.org", "you@example.org"] and where(me) == "smtp.example.org"
    assert lab.options["url"] == {"env": "FEISHU_URL"} and lab.events == ("failed", "batch", "gpu", "idle")
    assert where(team) == "hooks.example" and team.events == ("batch",)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("notify: yes", "config.yaml:1: notify: a value; expected `channels:` and the like"),
        ("notify:\n  chanels: {}", 'config.yaml:2: unknown key "chanels" in notify; expected channels?'),
        ("notify:\n  channels:\n    a: {}", "config.yaml:3: notify.channels.a has no kind; expected mail or webhook"),
        ("notify:\n  channels:\n    a: {kind: fax}", 'config.yaml:3: notify.channels.a.kind: "fax" is not understood'),
        ("notify:\n  channels:\n    a/b: {kind: slack}", "config.yaml:3: the name of a channel is not understood"),
        ("notify:\n  channels:\n    a: {kind: slack}", "config.yaml:3: notify.channels.a: url is missing"),
        ("notify:\n  channels:\n    a: {kind: mail, host: x, from: y, to: z@z.z}", "config.yaml:3: notify.channels.a.from:"),
        ("notify:\n  channels:\n    a: {kind: slack, url: 'https://x', host: y}", "config.yaml:3: notify.channels.a: a slack"),
        ("notify:\n  channels:\n    a: {kind: slack, url: 'https://x', events: [x]}", "config.yaml:3: notify.channels.a.events"),
        ("notify:\n  free_gpus: 0", 'config.yaml:2: notify.free_gpus: "0" is not understood'),
        ("notify:\n  allow_private: [a/b]", "config.yaml:2: notify.allow_private: a list that is not understood"),
    ],
)
def test_c11_what_is_wrong_is_told_with_its_line_and_what_was_expected(home, text, line):
    told = flaws(home, text)
    assert any(one.startswith(line) for one in told), told
    assert all("expected" in one or "has no" in one for one in told)


@pytest.mark.parametrize("key", ["password", "secret", "url"])
@pytest.mark.parametrize(
    "value", ["hunter2", "[hunter2]", "{file: [hunter2]}", "{file: a, env: hunter2}", "{value: hunter2}", "ftp://hunter2"]
)
def test_s43_a_secret_that_was_written_there_is_refused_and_not_repeated(home, key, value):
    kind = "kind: mail, host: h, from: a@b.c, to: a@b.c, user: u" if key == "password" else "kind: feishu, url: 'https://x'"
    if key == "url":
        kind = "kind: slack"
    told = "\n".join(flaws(home, f"notify:\n  channels:\n    a: {{{kind}, {key}: {value}}}"))
    assert "hunter2" not in told and f"notify.channels.a.{key}" in told


def test_s43_a_password_never_goes_without_tls(home):
    mail = "kind: mail, from: a@b.c, to: a@b.c, user: u, password: {env: P}, security: none"
    assert "in the clear" in flaws(home, f"notify:\n  channels:\n    a: {{{mail}, host: h.example}}")[0]
    assert read(home, f"notify:\n  channels:\n    a: {{{mail}, host: localhost}}")["channels"]["a"]["security"] == "none"


ODD = ["a@b.c\\r\\nBcc: x@y.z", "a b@c.d", "a@b.c>", "@b.c", "a@", "a@b@c", "a@b c", "x" * 300 + "@b.c", "ä@b.c"]


@pytest.mark.parametrize("to", ODD)
def test_s47_an_address_that_could_become_a_header_is_refused(home, to):
    assert "to" in flaws(home, f'notify:\n  channels:\n    a: {{kind: mail, host: h, from: a@b.c, to: ["{to}"]}}')[0]


def secret_file(home, mode=0o600, text="s3cret\n"):
    path = home / "secret"
    path.write_text(text)
    path.chmod(mode)
    return {"file": str(path)}


def refused(where):
    with pytest.raises(Undelivered) as caught:
        revealed(where)
    return caught.value.code


def test_s43_a_secret_is_read_from_a_private_file_or_a_variable(home, monkeypatch):
    assert revealed(secret_file(home)) == "s3cret"
    monkeypatch.setenv("SECRET_OF_MINE", "v")
    assert revealed({"env": "SECRET_OF_MINE"}) == "v"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o601])
def test_s43_a_secret_that_others_could_read_is_refused(home, mode):
    assert refused(secret_file(home, mode)) == "secret_open"


def test_s43_a_secret_that_is_no_private_file_is_refused(home, monkeypatch):
    real = Path(secret_file(home)["file"])
    (home / "link").symlink_to(real)
    os.mkfifo(home / "pipe", 0o600)
    assert refused({"file": str(home / "link")}) == "secret_unread"
    assert refused({"file": str(home / "pipe")}) == "secret_open"
    assert refused({"file": str(home)}) in ("secret_open", "secret_unread")
    assert refused({"file": str(home / "none")}) == "secret_unread"
    assert refused(secret_file(home, text="")) == "secret_odd"
    assert refused(secret_file(home, text="two\nlines\n")) == "secret_odd"
    monkeypatch.delenv("SECRET_OF_MINE", raising=False)
    assert refused({"env": "SECRET_OF_MINE"}) == "secret_unset"


def test_s43_what_is_wrong_with_a_channel_is_told_without_its_secret(home):
    read(home, GOOD.replace("https://hooks.example/T/B/X", "http://hooks.example/T/B/X"))
    me, lab, team = (one.channel for one in subscribers(str(home)))
    assert flaw(me).code == "secret_unread" and flaw(lab).code in ("secret_unread", "secret_unset")
    assert flaw(team).plain == {"code": "url_clear", "params": {"host": "hooks.example"}}
    assert "T/B/X" not in json.dumps(flaw(team).plain)


@pytest.mark.parametrize(("language", "said"), [("en", "there is no channel you; expected me, lab, team"),
                                               ("zh", "没有通道 you；应为 me, lab, team")])  # fmt: skip
def test_c11_a_channel_that_is_not_there_is_told_with_those_that_are(home, language, said):
    read(home, GOOD)
    with pytest.raises(NotFound) as caught:
        chosen(str(home), "you", language)
    assert str(caught.value) == said


def test_s43_the_engine_is_not_given_the_settings_of_notifications():
    """It runs for months, is asked for its settings by nobody, and has no use for them."""
    source = Path(config.__file__).with_name("client.py").read_text("utf-8")
    assert source.count("config.load(home)") == source.count('settings.pop("notify", {})') == 2
