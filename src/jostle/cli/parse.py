"""The parser of one verb, built when the verb is known.

Each verb has, in its module, a function of its name and one `VERB_options(parser)` that adds its options; the example in the help
is the `example` text passed to `describe`.
"""

from __future__ import annotations

import argparse
import os
from argparse import Namespace as Namespace
from collections.abc import Callable, Sequence
from importlib import import_module

from jostle.cli.verbs import VERBS
from jostle.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from jostle.cli.terminal import Terminal

    Command = Callable[[Namespace, Terminal], int]


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help of a known width: argparse would import shutil (and with it three compressors) for each option to learn it."""

    def __init__(self, prog: str, **_: Any) -> None:
        super().__init__(prog, max_help_position=26, width=_width())


def _width() -> int:
    try:
        return max(60, min(110, os.get_terminal_size().columns - 2))
    except OSError:
        return 100


class Parser(argparse.ArgumentParser):
    """Errors are Usage, like any other error of ours."""

    typed: Sequence[str] = ()  # what is parsed
    behind: str | None = None  # the name of what stands behind `--`; None: nothing of its own
    advice: Callable[[Sequence[str]], str] | None = None  # what to say of it besides, when it is wrong

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """What stands behind `--` is a command's own, for verbs that take one in the place of `behind`."""
        words = list(args or ())
        if self.behind is None:
            return super().parse_args(words, namespace)
        at = words.index("--") if "--" in words else len(words)
        parsed = super().parse_args(words[:at], namespace)
        setattr(parsed, self.behind, words[at + 1 :])
        return parsed

    def error(self, message: str) -> NoReturn:
        if self.advice is not None and (advice := self.advice(self.typed)):
            raise Usage(f"{self.prog.removeprefix('jostle ')}: {message}. {advice}")
        message += self._guess(message.removeprefix("unrecognized arguments: ")) if message.startswith("unrecognized") else ""
        raise Usage(f"{self.prog.removeprefix('jostle ')}: {message}. `{self.prog} --help` shows an example")

    def _guess(self, words: str) -> str:
        from difflib import get_close_matches

        options = [name for action in self._actions for name in action.option_strings if name.startswith("--")]
        near = [get_close_matches(word.partition("=")[0], options, 1) for word in words.split() if word.startswith("--")]
        guesses = " ".join(dict.fromkeys(match[0] for match in near if match))
        return f" (did you mean {guesses}?)" if guesses else ""

    def example(self, text: str) -> None:
        self.epilog = "examples:\n" + "\n".join(f"  {line.strip()}" for line in text.strip().split("\n"))

    def number(self, *names: str, to: Any = None, low: int = 0, high: int = 10**12 - 1, **more: Any) -> None:
        """An option that takes a whole number. `to`: a group of this parser."""

        def read(text: str) -> int:
            from jostle.formats import spec  # only where such an option is given

            return spec.integer(text, low, high)

        (to or self).add_argument(*names, type=checked(read), **{"metavar": "N", **more})

    def devices_option(self, what: str, dest: str = "gpus") -> None:
        from jostle.core.devices import FORMS

        self.add_argument("--gpus", dest=dest, metavar="SPEC", help=f"{what}: {FORMS}")

    def mode_option(self, what: str) -> None:
        self.add_argument("--mode", choices=("single", "multi"), help=what)

    def json_option(self) -> None:
        self.add_argument("--json", action="store_true", help="print JSON for programs")


def options(verb: str) -> tuple[Callable[[Parser], None], Command]:
    module = import_module(f"jostle.cli.{VERBS[verb][0]}")
    name = verb.replace("-", "_")
    return getattr(module, f"{name}_options"), getattr(module, name, None) or getattr(module, f"{name}_")  # import is Python's


def parser(verb: str) -> Parser:
    made = Parser(prog=f"jostle {verb}", description=sentence(VERBS[verb][1]), formatter_class=_Help, allow_abbrev=False)
    options(verb)[0](made)
    return made


def sentence(line: str) -> str:
    """`stop the engine` as a sentence."""
    return line[:1].upper() + line[1:] + ("" if line.endswith("…") else ".")


def checked(check: Callable[[str], Any]) -> Callable[[str], Any]:
    """A check of ours as an argparse type: its sentence says what was expected."""

    def convert(text: str) -> Any:
        try:
            return check(text)
        except ValueError as e:
            raise argparse.ArgumentTypeError(f"{text!r} is not understood; expected {e}") from None

    return convert
