"""`jostle uni-id set|get|list|wait|clean`: the uni_id file for scripts (SPEC A24), with locks and without inline Python.

Needs no engine: it works in any script, inside a run or not.
"""

from __future__ import annotations

import os

from jostle import proc, units
from jostle.cli import render
from jostle.cli.parse import Namespace, Parser, checked
from jostle.cli.terminal import Terminal
from jostle.errors import JostleError, NotFound, Usage
from jostle.uniid import NORMAL, PLACES, STATES, VARIABLE, UniIdFile, default_path
from jostle.uniid.waiting import awaited, listed, shown
from jostle.wording import rows as table_rows
from jostle.wording.labels import heads

FOR_SET = ("state", "pid", "error_type", "retry_count")
OF = {**dict.fromkeys(FOR_SET, "set"), "timeout": "wait", "all": "clean"}  # option: the action that it belongs to


def uni_id_options(p: Parser) -> None:
    p.example("""
        python train.py & jostle uni-id set "$UNI_ID" --state running --pid $!
        jostle uni-id set "$UNI_ID" --state abnormal_exit --error-type oom
        jostle uni-id wait "$UNI_ID" --timeout 2h
        jostle uni-id list --file logs/uni_id.json""")
    p.add_argument("action", choices=("set", "get", "list", "wait", "clean"))
    p.add_argument("id", nargs="?", metavar="ID", help="set, get: default $JOSTLE_UNI_ID, which each run has")
    p.add_argument("--file", metavar="FILE", help=f"default: ${VARIABLE}, else {' or '.join(PLACES)} if it is there")
    p.add_argument("--state", choices=STATES, help="set: what the entry is to say; the last two are its last word")
    p.number("--pid", help="set: the process to register; 0 is none")
    p.add_argument("--error-type", metavar="TYPE", help="set: why it failed: oom, runtime_error, …")
    p.number("--retry-count", help="set: how often it was tried again")
    p.add_argument("--timeout", type=checked(units.seconds), metavar="TIME", help="wait: give up then, with exit code 124")
    p.add_argument("--all", action="store_true", help="clean: also the records of failures, and what nobody understands")
    p.json_option()


def uni_id(args: Namespace, terminal: Terminal) -> int:
    _refuse_what_does_not_belong(args)
    path = args.file or default_path()
    if not path:
        raise Usage(f"uni-id: which file? Name it with --file or ${VARIABLE}; there is no {' and no '.join(PLACES)} here")
    file = UniIdFile(path, warn=lambda text: terminal.tell("warning", text=text))
    try:
        return int(ACTIONS[args.action](args, terminal, file))
    except OSError as e:
        raise JostleError(f"{path}: {e.strerror or e}") from None


def _refuse_what_does_not_belong(args: Namespace) -> None:
    options = [name for name in OF if getattr(args, name) is not None and getattr(args, name) is not False]
    for name in options:
        if OF[name] != args.action:
            raise Usage(f"uni-id {args.action}: --{name.replace('_', '-')} belongs to `uni-id {OF[name]}`")
    if args.action == "set" and not options:
        raise Usage("uni-id set: say what to set: --state, --pid, --error-type or --retry-count")
    if args.id is not None and args.action in ("list", "clean"):
        raise Usage(f"uni-id {args.action} is about the whole file: it takes no id")


def _id(args: Namespace) -> str:
    uni_id = args.id or (os.environ.get(proc.MARK) if args.action != "wait" else None)
    if not uni_id:
        why = "a run cannot wait for itself" if args.action == "wait" else f"outside of a run there is no ${proc.MARK}"
        raise Usage(f"uni-id {args.action}: which uni_id? Name it: {why}")
    return str(uni_id)


def _set(args: Namespace, terminal: Terminal, file: UniIdFile) -> int:
    file.put(_id(args), complete=True, **{name: getattr(args, name) for name in FOR_SET if getattr(args, name) is not None})
    return 0


def _get(args: Namespace, terminal: Terminal, file: UniIdFile) -> int:
    name = _id(args)
    entry = file.get(name)
    if entry is None:
        raise _unknown(name, file)
    row = shown(name, entry, file)
    if args.json:
        terminal.put_json({"schema": 1, "file": file.path, **row})
    else:
        terminal.put(table_rows.uni_id_line(row))
    return 0


def _list(args: Namespace, terminal: Terminal, file: UniIdFile) -> int:
    view = listed(file)
    if args.json:
        terminal.put_json(view)
    elif not view["entries"]:
        terminal.say(f"{render.plain(file.path)} has no entries")
    else:
        head, rows = heads("uni_id", terminal.language), [table_rows.uni_id(entry) for entry in view["entries"]]
        terminal.put(render.table(head, rows, columns=terminal.width, right=(2, 4), colours=terminal.colours))
    return 0


def _wait(args: Namespace, terminal: Terminal, file: UniIdFile) -> int:
    name = _id(args)
    end = awaited(file, name, args.timeout)
    if end is None:
        raise _unknown(name, file)
    code = 124 if not end.in_time else 0 if end.state == NORMAL else 1
    kind = end.entry.error_type if end.entry is not None else ""
    if args.json:
        terminal.put_json({"schema": 1, "ok": code == 0, "uni_id": name, "state": end.state, "error_type": kind or None})
    elif not end.in_time:
        terminal.say(f"time is up: {render.plain(name)} is still {end.state or 'there'}")
    elif end.wordless and end.entry is not None:
        terminal.say(f"process {end.entry.pid} has ended without a word about how")
    elif code:
        terminal.say(f"{render.plain(name)} failed" + (f": {render.plain(kind)}" if kind else ""))
    return code


def _clean(args: Namespace, terminal: Terminal, file: UniIdFile) -> int:
    gone = file.clean(everything=args.all) if os.path.exists(file.path) else []
    if args.json:
        terminal.put_json({"schema": 1, "file": file.path, "removed": gone})
    else:
        terminal.say(f"removed {render.count(len(gone), 'record')}" + "".join(f"\n  {render.plain(name)}" for name in gone))
    return 0


ACTIONS = {"set": _set, "get": _get, "list": _list, "wait": _wait, "clean": _clean}


def _unknown(name: str, file: UniIdFile) -> NotFound:
    return NotFound(f"there is no entry {render.plain(name)} in {render.plain(file.path)}; `jostle uni-id list` shows all")
