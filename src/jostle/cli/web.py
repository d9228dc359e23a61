"""`jostle web`: the console without the engine, its login, its tokens; `up` opens it, too."""

from __future__ import annotations

from jostle.cli.parse import Namespace, Parser, checked
from jostle.cli.terminal import Terminal
from jostle.errors import JostleError, NoEngine, Usage

EXTRA = "the console needs more packages: pip install 'jostle[web]'"


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
    p.number("--trust-uid", metavar="UID", dest="trusted_uids", action="append", help="of a proxy on this host")
    p.add_argument("--classic", action="store_true", help="let the source system's own page in, which sends a cookie only")
    instead = p.add_mutually_exclusive_group()
    instead.add_argument("--url", action="store_true", help="print a URL for one login within 10 minutes, and leave")
    instead.add_argument("--token", action="store_true", help="print the token, and leave")
    instead.add_argument("--list", "--status", action="store_true", help="print the consoles of this home, and leave")
    instead.add_argument("--stop", action="store_true", help="stop them; the engine goes on")
    p.add_argument("--read-only", action="store_true", help="with --token: the one that may look and change nothing")
    p.add_argument("--new", action="store_true", help="with --token: make another; whoever came in with the old one is out")
    p.number("--count", low=1, help="with --stop: only so many, the oldest first")


def place_options(p: Parser) -> None:
    p.add_argument("directory", nargs="?", metavar="DIR", help="the workspace (default: this directory, or the last one)")
    p.number("--port", high=65535, help="default: the last one, first 29214; 0: any that is free")
    p.number("--multi", low=1, high=20, help="so many new consoles, each on a port of its own")
    p.add_argument("--keep-existing", action="store_true", help="those that run stay, and a new one, or --multi, comes to them")


def _url(text: str) -> str:
    from jostle.web.instances import public_url

    return public_url(text)


def web(args: Namespace, terminal: Terminal) -> int:
    from jostle.web.instances import available
    from jostle.web.secret import ALL, READ, Secrets

    if (args.read_only or args.new) and not args.token:
        raise Usage("web: --read-only and --new are for --token")
    if args.count and not args.stop:
        raise Usage("web: --count is for --stop")
    if args.token:
        secrets, rights = Secrets(terminal.home), READ if args.read_only else ALL
        terminal.put(secrets.rotate(rights) if args.new else secrets.token(rights))
        return 0
    if args.list or args.stop or args.url:
        return those_that_run(args, terminal)
    if not available():
        raise JostleError(EXTRA)
    opened(args, terminal)
    return 0


def those_that_run(args: Namespace, terminal: Terminal) -> int:
    """`--list`, `--stop`, `--url`."""
    from jostle.web import instances

    running = instances.running(terminal.home)[: args.count]
    if args.url and not running:
        raise NoEngine("no console runs: `jostle up` or `jostle web` starts one")
    if args.stop:
        instances.stop(running)
    for one in running:
        line = terminal.message("console_line", **one.facts)
        terminal.put(instances.login_url(terminal.home, one) if args.url else ("stopped: " if args.stop else "") + line)
    if not running:
        terminal.tell("console_none")
    return 0


def opened(args: Namespace, terminal: Terminal) -> None:
    """The consoles that are meant, and how to get there."""
    from jostle.web import instances, opening, place

    choices = {name: value for name in opening.Choices.__dataclass_fields__ if (value := getattr(args, name, None)) is not None}
    for one in opening.opened(terminal.home, opening.Choices(**choices), terminal.tell):
        if one.taken is not None:
            own = any(one.taken == another.port for another in instances.running(terminal.home))
            terminal.tell("console_port_own" if own else "console_port", taken=one.taken, port=one.port)
        terminal.put(instances.login_url(terminal.home, one, args.public_url if "public_url" in args else None))
    if one.bind is None:
        terminal.tell("console_url", tunnel=place.tunnel(one.port))
