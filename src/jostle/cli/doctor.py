"""`jostle doctor`: says what is wrong with this host or installation, and what to do about it; recovers a damaged database."""

from __future__ import annotations

from jostle.cli import render
from jostle.cli.parse import Namespace, Parser
from jostle.cli.terminal import Terminal
from jostle.store.file import database
from jostle.views.health import health
from jostle.wording.health import worded
from jostle.wording.labels import heads


def doctor_options(p: Parser) -> None:
    p.example("""
        jostle doctor
        jostle doctor --salvage      write what can be read of a damaged database into a new one
        jostle doctor --accept       go on with an older database that was put back on purpose""")
    p.add_argument("--salvage", action="store_true", help="recover a damaged database into a new file beside it")
    p.add_argument("--accept", action="store_true", help="go on with a database that is older than what was recorded")
    p.json_option()


def doctor(args: Namespace, terminal: Terminal) -> int:
    if args.salvage:
        return salvage(terminal)
    if args.accept:
        return accept(terminal)
    checks = [worded(finding, terminal.language) for finding in health(terminal)]
    if args.json:
        terminal.put_json({"schema": 1, "checks": checks})
    else:
        rows = [(c["name"], c["verdict"], c["found"] + (f"; {c['advice']}" if c["advice"] else "")) for c in checks]
        terminal.put(render.table(heads("doctor", terminal.language), rows, paint_column=1, colours=terminal.colours))
    return 1 if any(check["verdict"] == "bad" for check in checks) else 0


def salvage(terminal: Terminal) -> int:
    from jostle.store.salvage import going_on, salvage_beside

    path = database(terminal.home)
    to, counts = salvage_beside(path)
    for table, (saved, gaps) in counts.items():
        terminal.put(f"{table:<8} {saved:>8} rows" + (f", {render.count(gaps, 'gap')}" if gaps else ""))
    terminal.say(f"written to {to}; the damaged file is as it was. To go on with the new one:")
    terminal.say("\n".join(f"  {line}" for line in going_on(path, to)))
    return 0


def accept(terminal: Terminal) -> int:
    """What was recorded after this database was, is given up by a person's word."""
    from jostle.store import seen

    path = database(terminal.home)
    if last := 0 if terminal.engine_runs() else seen.accept(path, terminal.reader.last_seq()):
        terminal.say(f"{path} is taken as it is: events {terminal.reader.last_seq() + 1} to {last} are given up")
    else:
        terminal.say(f"there is nothing to accept: {path} has all that was recorded")
    return 0
