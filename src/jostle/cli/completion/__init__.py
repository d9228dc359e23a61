"""`jostle completion SHELL`: the script of a shell, filled from the parsers, so it knows every verb and option; ids and names
come from `jostle ps`.

The scripts are the files beside this one; what stands there between two @ is filled in by the function of their shell.
"""

from __future__ import annotations

import os

from jostle.cli.parse import Namespace, Parser, parser
from jostle.cli.terminal import Terminal
from jostle.cli.verbs import VERBS
from jostle.core.fields import JOB

TAKE_IDS = ("show", "why", "logs", "cancel", "hold", "unhold", "retry", "move", "set", "wait")
TAKE_FILES = ("run", "validate")
KEYS = " ".join(f"{field.key}=" for field in JOB.values() if field.settable)
IDS = (
    r"jostle ps --json 2>/dev/null | tr '{' '\n' | sed -nE "
    r"""'s/^"id":([0-9]+),"name":"([[:alpha:]][[:alnum:]_.-]*)",.*/\1\n\2/p; t; s/^"id":([0-9]+),.*/\1/p' | sort -u"""
)
"""And names, but those only that no shell could take for more."""

Known = dict[str, list[tuple[str, str]]]  # (option, help) of each verb


def completion_options(p: Parser) -> None:
    p.example("""
        eval "$(jostle completion bash)"            in ~/.bashrc
        jostle completion zsh > ~/.zfunc/_jostle
        jostle completion fish > ~/.config/fish/completions/jostle.fish""")
    p.add_argument("shell", choices=("bash", "zsh", "fish"))


def completion(args: Namespace, terminal: Terminal) -> int:
    with open(os.path.join(os.path.dirname(__file__), f"jostle.{args.shell}"), encoding="utf-8") as f:
        script = f.read().removesuffix("\n")
    for name, text in {"bash": bash, "zsh": zsh, "fish": fish}[args.shell](known_options()).items():
        script = script.replace(f"@{name}@", text)
    terminal.put(script)
    return 0


def known_options() -> Known:
    return {
        verb: [(name, (a.help or "").replace("%%", "%")) for a in parser(verb)._actions for name in a.option_strings]
        for verb in VERBS
    }


def bash(options: Known) -> dict[str, str]:
    cases = [f"    {verb}) options='{' '.join(o for o, _ in opts)}' ;;" for verb, opts in options.items()]
    return {"VERBS": " ".join(options), "OPTIONS": "\n".join(cases), "TAKE_IDS": "|".join(TAKE_IDS), "KEYS": KEYS, "IDS": IDS}


def zsh(options: Known) -> dict[str, str]:
    verbs = [f"    '{verb}:{_quoted(VERBS[verb][1])}'" for verb in options]
    cases = [f"    {verb}) options=({' '.join(o for o, _ in opts)}) ;;" for verb, opts in options.items()]
    return {**bash(options), "VERBS": "\n".join(verbs), "OPTIONS": "\n".join(cases)}


def fish(options: Known) -> dict[str, str]:
    verbs = [f"complete -c jostle -n __fish_use_subcommand -a {verb} -d '{_quoted(VERBS[verb][1])}'" for verb in options]
    lines = []
    for verb, opts in options.items():
        for option, text in opts:
            kind = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            lines.append(f"complete -c jostle -n '__fish_seen_subcommand_from {verb}' {kind} -d '{_quoted(text)}'")
    ids = IDS.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    take = {"TAKE_IDS": " ".join(TAKE_IDS), "TAKE_FILES": " ".join(TAKE_FILES)}
    return {"VERBS": "\n".join(verbs), "OPTIONS": "\n".join(lines), **take, "KEYS": KEYS, "IDS": ids}


def _quoted(text: str) -> str:
    """For a single-quoted text of all three shells."""
    return text.replace("'", "").replace("\\", "").replace("\n", " ").replace(":", " -")
