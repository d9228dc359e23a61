"""`jostle web`: the console without the engine, its login, its tokens; and what `up` and `down` do of it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from jostle.cli.parse import checked
from jostle.errors import JostleError, NoEngine, Usage

if TYPE_CHECKING:
    from argparse import Namespace

    from jostle.cli.parse import Parser
    from jostle.cli.terminal import Terminal
    from jostle.web.instances import Instance

EXTRA = "the console needs more packages: pip install 'jostle[web]'"
KEPT = ("public_url", "classic", "trusted_uids")  # options of `web` that a console has until others are said


def web_options(p: Parser) -> None:
    p.example("""
        jostle web                      the console of this directory's workspace
        jostle web --url                another URL for one login
        jostle web --token              the token, for scripts: Authorization: Bearer TOKEN
        jostle web --list
        jostle web --stop""")
    place_options(p)
    p.add_argument("--bind", metavar="ADDRESS", help="listen there instead of on this host only; needs --allow-lan")
    p.add_argument("--allow-lan", action="store_true", help="--bind is meant")
    p.add_argument("--insecure-http", action="store_true", help="--bind without TLS, too: everybody on the way sees the token")
    p.add_argument(
        "--public-url", metavar="URL", type=checked(_url), help="what browsers call it behind a proxy with TLS: https://…"
    )
    p.add_argument(
        "--trust-uid", metavar="UID", dest="trusted_uids", type=checked(_uid), action="append", help="of a proxy on this host"
    )
    p.add_argument("--classic", action="store_true", help="let the source system's own page in, which sends a cookie only")
    p.add_argument("--url", action="store_true", help="print a URL for one login within 10 minutes, and leave")
    p.add_argument("--token", action="store_true", help="print the token, and leave")
    p.add_argument("--read-only", action="store_true", help="with --token: the one that may look and change nothing")
    p.add_argument("--new", action="store_true", help="with --token: make another; whoever came in with the old one is out")
    p.add_argument("--list", action="store_true", help="print the consoles of this home, and leave")
    p.add_argument("--stop", action="store_true", help="stop them; the engine goes on")


def place_options(p: Parser) -> None:
    p.add_argument("directory", nargs="?", metavar="DIR", help="the workspace (default: this directory, or the last one)")
    p.add_argument("--port", metavar="N", type=checked(_port), help="default: the last one, first 29214; 0: any that is free")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) < 65536):
        raise ValueError("a port such as 29214")
    return int(text)


def _url(text: str) -> str:
    from urllib.parse import urlsplit

    parts = urlsplit(text)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("what browsers call it, such as https://gpus.example")
    return text


def _uid(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError("the number of a user")
    return int(text)


def web(args: Namespace, terminal: Terminal) -> int:
    from jostle.web import instances
    from jostle.web.secret import ALL, READ, Secrets

    if args.read_only or args.new:
        _needs(args.token, "web: --read-only and --new are for --token")
    if args.token:
        secrets, rights = Secrets(terminal.home), READ if args.read_only else ALL
        terminal.put(secrets.rotate(rights) if args.new else secrets.token(rights))
        return 0
    if args.list or args.stop:
        listed = instances.running(terminal.home)
        if args.stop:
            instances.stop(listed)
        for instance in listed:
            terminal.put(("stopped: " if args.stop else "") + described(instance))
        if not listed:
            terminal.tell("console_none")
        return 0
    if args.url:
        running = instances.running(terminal.home)
        if not running:
            raise NoEngine("no console runs: `jostle up` or `jostle web` starts one")
        for instance in running:
            terminal.put(instances.login_url(terminal.home, instance))
        return 0
    if not instances.available():
        raise JostleError(EXTRA)
    opened(args, terminal)
    return 0


def _needs(holds: bool, text: str) -> None:
    if not holds:
        raise Usage(text)


def described(one: Instance) -> str:
    at = f"{one.bind or 'localhost'}:{one.port}"
    return f"{at}  pid {one.pid}  workspace {one.workspace or '-'}  socket {one.socket or '-'}"


def opened(args: Namespace, terminal: Terminal) -> None:
    """The console that is meant, and how to get there. One of another workspace or with other options gives way to it, unless
    `--port` names a port that it does not have: logins lie in the home and outlive it."""
    from jostle.web import instances, place

    space = place.workspace(terminal.home, args.directory)
    said = {name: value for name in KEPT if (value := getattr(args, name, None))}  # `up` has no such options
    bind = getattr(args, "bind", None)
    found = [one for one in instances.running(terminal.home) if args.port in (None, one.port) and one.bind == bind]
    for one in found:
        if space in (None, one.workspace) and all(getattr(one, name) == value for name, value in said.items()):
            told(one, args, terminal)
            return
    kept = place.settings(space, terminal.tell)
    port = args.port if args.port is not None else kept.get("port")
    before = min(found, key=lambda one: (one.port != port, one.workspace != space), default=None)
    wanted = instances.Wanted(home=terminal.home, workspace=space, port=port, bind=bind)
    if before:
        as_before = {name: getattr(before, name) for name in KEPT}
        wanted = replace(wanted, workspace=space or before.workspace, port=port or before.port, **as_before)
    if bind:
        wanted = replace(wanted, allow_lan=args.allow_lan, insecure_http=args.insecure_http)
    wanted = replace(wanted, **said, log_level=kept.get("log-level", wanted.log_level))
    instances.check(wanted)
    if before:
        instances.stop([before])
    one = instances.start(wanted)
    if before:
        terminal.tell("console_anew", port=one.port, path=one.workspace or "-")
    told(one, args, terminal)


def told(one: Instance, args: Namespace, terminal: Terminal) -> None:
    from jostle.web import instances, place

    if one.taken is not None:
        own = any(one.taken == another.port for another in instances.running(terminal.home))
        terminal.tell("console_port_own" if own else "console_port", taken=one.taken, port=one.port)
    terminal.put(instances.login_url(terminal.home, one, getattr(args, "public_url", None)))
    if one.bind is None:
        terminal.tell("console_url", tunnel=place.tunnel(one.port))


def with_engine(args: Namespace, terminal: Terminal) -> None:
    """What `up` does after the engine answers. JOSTLE_WEB=off is for those who never want it."""
    from jostle.web import instances

    if args.no_web or os.environ.get("JOSTLE_WEB") == "off":
        return
    if not instances.available():
        terminal.tell("console_missing")
        return
    opened(args, terminal)


def closed(terminal: Terminal) -> None:
    """What `down` does before the engine goes."""
    if os.path.isdir(os.path.join(terminal.home, "web")):
        from jostle.web import instances

        living = instances.running(terminal.home)
        if living:
            instances.stop(living)
            terminal.tell("console_down")
