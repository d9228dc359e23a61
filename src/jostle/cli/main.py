"""`jostle VERB …`: finds the verb, builds the parser of that verb only, runs it, and turns errors into exit codes.

Rules: nothing is imported before it is needed, for people feel the start of every command. Data goes to stdout, messages to
stderr. Exit codes: 0 ok, 1 failed, 2 usage, 3 no engine, 4 not found, 5 forbidden, 6 invalid input,
124 time limit, 130 interrupted.
"""

from __future__ import annotations

import errno
import gc
import os
import sys

from jostle.cli.verbs import HARMLESS, VERBS
from jostle.errors import INTERRUPTED, JostleError, Usage

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

TYPE_CHECKING = False  # not from typing, which costs more to import than all the rest
if TYPE_CHECKING:
    from typing import NoReturn


def entry() -> NoReturn:
    gc.set_threshold(50_000)  # what a start makes stays: looking through it again and again took 5 % of `jostle ps`
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # whoever read us has seen enough (`jostle ps | head`): no word about it, here or when Python closes its files
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 0
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OSError as e:
        if e.errno not in UNWRITABLE or e.filename is not None:
            raise
        code = _tell(f"the output cannot be written: {e.strerror}; `jostle ps` shows what was done all the same", 1, "jostle: ")
    # what we started is done; tearing the interpreter down piece by piece would only take time
    try:
        sys.stderr.flush()
    finally:
        os._exit(code)


def main(argv: list[str]) -> int:
    """The exit code of one command."""
    try:
        return _run(argv)
    except BrokenPipeError:
        raise
    except JostleError as e:
        if not hasattr(e, "worded"):
            return _tell(str(e), e.exit_code, "jostle: ")
        from jostle.session import Session

        return _tell(e.worded(Session().language), e.exit_code, "")  # errors in files begin with file:line
    except SystemExit as e:  # argparse, after --help
        return e.code if isinstance(e.code, int) else 2


def _run(argv: list[str]) -> int:
    verb = argv[0] if argv else "--help"
    if verb in VERBS:
        return _verb(verb, argv[1:])
    if verb in ("--help", "-h", "help"):
        if len(argv) > 1 and argv[1] in VERBS:
            return _verb(argv[1], ["--help"])
        from jostle.cli.overview import overview

        print(overview())
        return 0
    if verb in ("--version", "-V", "version"):
        from jostle import __version__

        print(f"jostle {__version__}")
        return 0
    raise Usage(_unknown(verb))


def _verb(verb: str, argv: list[str]) -> int:
    from jostle.cli.parse import options, parser
    from jostle.cli.terminal import Terminal

    terminal = Terminal(only_warn=verb in HARMLESS)
    try:
        made = parser(verb)
        made.typed = argv
        return int(options(verb)[1](made.parse_args(argv), terminal))
    finally:
        terminal.close()


ELSEWHERE = {
    "list": "ps", "ls": "ps", "queue": "ps", "stop": "cancel", "kill": "cancel", "rm": "cancel", "submit": "add", "log": "logs",
}  # fmt: skip
"""What other programs call it; the nearest spelling would mislead."""


def _unknown(verb: str) -> str:
    from difflib import get_close_matches

    near = [ELSEWHERE[verb]] if verb in ELSEWHERE else get_close_matches(verb, VERBS, 1, 0.5)
    what = "option" if verb.startswith("-") else "verb"
    hint = f"did you mean `jostle {near[0]}`?" if near else "`jostle --help` lists them"
    return f"there is no {what} {verb!r}: {hint}"


def _tell(text: str, code: int, prefix: str) -> int:
    if not text.isprintable():
        from jostle.cli import screen

        text = screen.message(text)
    try:
        print("\n".join(prefix + line for line in text.split("\n")), file=sys.stderr)
    except OSError:
        pass  # nobody listens; the exit code speaks
    return code
