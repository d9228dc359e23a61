"""`notify:` of config.yaml: who is told of what, as plain values.

Rules: a secret never stands in the file, only where it lies; and what was written where one is expected is never repeated, for it
may be one. Paths are relative to the file.
"""

from __future__ import annotations

from typing import Any

from jostle.core import kinds
from jostle.core.fields import CHANNEL, NOTIFY, Field
from jostle.core.kinds import Kind
from jostle.formats import spec
from jostle.formats.flaws import Findings
from jostle.formats.nodes import Map, Node, Scalar, Seq
from jostle.formats.wording import null
from jostle.wording.flaws import flaw

KEYS = {field.key: field for field in CHANNEL.values()}
MAIL = frozenset(("host", "port", "security", "ca_file", "user", "password", "sender", "to"))
POST = frozenset(("url",))
# kind of channel -> what it takes beside `kind` and `events`, and what of that it needs
TAKES: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "mail": (MAIL, frozenset(("host", "sender", "to"))),
    "webhook": (POST | {"secret", "ca_file"}, POST),
    "feishu": (POST | {"secret"}, POST),
    "dingtalk": (POST | {"secret"}, POST),
    "wecom": (POST, POST),
    "slack": (POST, POST),
    "apprise": (POST, POST),
}
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def read(node: Node, file: Findings, base: str) -> dict[str, Any]:
    """The settings with every default."""
    if not isinstance(node, Map):
        file.wrong(node.line, flaw("value_shape", key="notify", shape=node.shape, expected="`channels:` and the like"))
        return {}
    values = {field.name: field.fresh() for field in NOTIFY.values()}
    for key, value in file.keys(node, tuple(NOTIFY), " in notify").items():
        if null(value):
            continue
        if key == "channels":
            values[key] = _channels(value, file, base)
        else:
            values[key] = _value(f"notify.{key}", NOTIFY[key], value, file, base)
    return values


def _channels(node: Node, file: Findings, base: str) -> dict[str, Any]:
    if not isinstance(node, Map):
        file.wrong(node.line, flaw("value_shape", key="notify.channels", shape=node.shape, expected=kinds.CHANNEL_TABLE.expected))
        return {}
    channels: dict[str, Any] = {}
    for key, value in node.items:
        where = f"notify.channels.{key.text[:40]}"
        if not kinds.target(key.text) or len(key.text) > 40:
            file.wrong(key.line, flaw("channel_name"))
        elif key.text in channels:
            file.wrong(key.line, flaw("once_twice", key=where))
        elif not isinstance(value, Map):
            expected = "its settings, such as `kind: mail`"
            file.wrong(value.line, flaw("value_shape", key=where, shape=value.shape, expected=expected))
        else:
            channels[key.text] = _channel(where, key.line, value, file, base)
    if len(channels) > kinds.MAX_CHANNELS:
        file.wrong(node.line, flaw("channels_many", n=len(channels), expected=kinds.CHANNEL_TABLE.expected))
    return channels


def _channel(where: str, line: int, node: Map, file: Findings, base: str) -> dict[str, Any]:
    written = {KEYS[key].name: value for key, value in file.keys(node, tuple(KEYS), f" in {where}").items() if not null(value)}
    values = {name: _value(f"{where}.{CHANNEL[name].key}", CHANNEL[name], value, file, base) for name, value in written.items()}
    if "kind" not in values:
        file.wrong(line, flaw("channel_no_kind", key=where, expected=CHANNEL["kind"].kind.expected))
    if values.get("kind") is None:
        return {}
    takes, needs = TAKES[values["kind"]]
    for name in values:
        if name not in takes and name not in ("kind", "events"):
            file.wrong(written[name].line, flaw("channel_not_its", key=where, kind=values["kind"], name=CHANNEL[name].key))
    for name in sorted(needs - set(values)):
        file.wrong(line, flaw("channel_missing", key=where, name=CHANNEL[name].key, expected=CHANNEL[name].kind.expected))
    _check_login(where, line, values, file)
    return {"events": CHANNEL["events"].fresh(), **values}


def _check_login(where: str, line: int, values: dict[str, Any], file: Findings) -> None:
    if ("user" in values) != ("password" in values):
        file.wrong(line, flaw("channel_login", key=where))
    elif "user" in values and values.get("security") == "none" and values.get("host") not in LOOPBACK:
        file.wrong(line, flaw("channel_clear", key=where))


def _value(where: str, field: Field, node: Node, file: Findings, base: str) -> Any:
    kind = field.kind
    if kind.name in ("words", "hosts", "mails", "metrics"):
        value: Any = _listed(node, split=kind.name != "metrics")
    elif kind.name in ("secret", "url"):
        value = _secret(node, base) if isinstance(node, Map) else _text(node) if kind.name == "url" else None
    elif kind.name == "path":
        value = spec.path(node.text, base) if isinstance(node, Scalar) and "\0" not in node.text else None
    elif kind.name in ("host", "mail"):
        value = _text(node)
    else:
        return file.checked(where, node, spec.reader(kind))
    if kind.check(value):
        return value
    file.wrong(node.line, flaw("value_shape", key=where, shape=_shape(node, kind), expected=kind.expected))
    return None


def _shape(node: Node, kind: Kind) -> str:
    """What stands there, without repeating what may be a secret."""
    if kind is kinds.SECRET and isinstance(node, Scalar):
        return "a value; a secret does not belong in this file"
    return f"{node.shape} that is not understood"


def _text(node: Node) -> str | None:
    return node.text.strip() if isinstance(node, Scalar) else None


def _listed(node: Node, *, split: bool) -> list[str] | None:
    """A list, or words with commas between them."""
    if isinstance(node, Scalar):
        return [word.strip() for word in node.text.split(",")] if split else [node.text]
    if isinstance(node, Seq) and all(isinstance(item, Scalar) for item in node.items):
        return [item.text.strip() for item in node.items if isinstance(item, Scalar)]
    return None


def _secret(node: Map, base: str) -> dict[str, str] | None:
    if len(node.items) != 1:
        return None
    (key, value), = node.items
    if key.text == "file" and isinstance(value, Scalar) and value.text.strip() and "\0" not in value.text:
        return {"file": spec.path(value.text.strip(), base)}
    return {"env": value.text.strip()} if key.text == "env" and isinstance(value, Scalar) else None
