"""`jostle completion SHELL`: a script made from the parsers, so it knows every verb and option; ids come from `jostle ps`."""

from __future__ import annotations

from jostle.cli.parse import Namespace, Parser
from jostle.cli.terminal import Terminal
from jostle.cli.verbs import VERBS
from jostle.core.fields import JOB

TAKE_IDS = ("show", "why", "logs", "cancel", "hold", "unhold", "retry", "move", "set", "wait")
TAKE_FILES = ("run", "validate")
KEYS = " ".join(f"{field.key}=" for field in JOB.values() if field.settable)
IDS = "jostle ps --json 2>/dev/null | tr '{' '\\n' | sed -n 's/^\"id\":\\([0-9]*\\),.*/\\1/p'"


def completion_options(p: Parser) -> None:
    p.example("""
        eval "$(jostle completion bash)"            in ~/.bashrc
        jostle completion zsh > ~/.zfunc/_jostle
        jostle completion fish > ~/.config/fish/completions/jostle.fish""")
    p.add_argument("shell", choices=("bash", "zsh", "fish"))


def completion(args: Namespace, terminal: Terminal) -> int:
    terminal.put({"bash": bash, "zsh": zsh, "fish": fish}[args.shell](known_options()))
    return 0


def known_options() -> dict[str, list[tuple[str, str]]]:
    """(option, help) of each verb that is installed."""
    from jostle.cli.parse import parser

    options: dict[str, list[tuple[str, str]]] = {}
    for verb in VERBS:
        try:
            actions = parser(verb)._actions
        except (ImportError, AttributeError):
            options[verb] = [("--help", "")]
            continue
        options[verb] = [(name, (a.help or "").replace("%%", "%")) for a in actions for name in a.option_strings]
    return options


def bash(options: dict[str, list[tuple[str, str]]]) -> str:
    cases = "\n".join(f"    {verb}) options='{' '.join(o for o, _ in opts)}' ;;" for verb, opts in options.items())
    return f"""# completion of jostle for bash
_jostle() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" verb="${{COMP_WORDS[1]}}" options=''
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{" ".join(options)} --help --version' -- "$word"))
    return
  fi
  case "$verb" in
{cases}
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")); return ;;
  esac
  case "$verb" in
    set) COMPREPLY=($(compgen -W "{KEYS} last all $({IDS})" -- "$word"))
      [[ $COMPREPLY == *= ]] && compopt -o nospace 2>/dev/null ;;
    {"|".join(TAKE_IDS)}) COMPREPLY=($(compgen -W "last all $({IDS})" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _jostle jostle"""


def zsh(options: dict[str, list[tuple[str, str]]]) -> str:
    verbs = "\n".join(f"    '{verb}:{_quoted(VERBS[verb][1])}'" for verb in options)
    cases = "\n".join(f"    {verb}) options=({' '.join(o for o, _ in opts)}) ;;" for verb, opts in options.items())
    return f"""#compdef jostle
# completion of jostle for zsh
_jostle() {{
  local -a verbs options ids
  verbs=(
{verbs}
  )
  if (( CURRENT == 2 )); then
    _describe 'verb' verbs
    return
  fi
  case "$words[2]" in
{cases}
  esac
  if [[ "$words[CURRENT]" == -* ]]; then
    compadd -- $options
    return
  fi
  [[ "$words[2]" == set ]] && compadd -S '' -- {KEYS}
  case "$words[2]" in
    {"|".join(TAKE_IDS)}) ids=(last all ${{(f)"$({IDS})"}}); compadd -- $ids ;;
    *) _files ;;
  esac
}}
if [ "$funcstack[1]" = "_jostle" ]; then _jostle "$@"; else compdef _jostle jostle; fi"""


def fish(options: dict[str, list[tuple[str, str]]]) -> str:
    lines = ["# completion of jostle for fish", "complete -c jostle -f"]
    for verb in options:
        lines.append(f"complete -c jostle -n __fish_use_subcommand -a {verb} -d '{_quoted(VERBS[verb][1])}'")
    for verb, opts in options.items():
        condition = f"-n '__fish_seen_subcommand_from {verb}'"
        for option, text in opts:
            kind = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            lines.append(f"complete -c jostle {condition} {kind} -d '{_quoted(text)}'")
    lines.append(f"complete -c jostle -n '__fish_seen_subcommand_from {' '.join(TAKE_IDS)}' -a \"last all ({_fish_ids()})\"")
    lines.append(f"complete -c jostle -n '__fish_seen_subcommand_from set' -a '{KEYS}'")
    lines.append(f"complete -c jostle -n '__fish_seen_subcommand_from {' '.join(TAKE_FILES)} add' -F")
    return "\n".join(lines)


def _fish_ids() -> str:
    return IDS.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")


def _quoted(text: str) -> str:
    """For a single-quoted text of all three shells."""
    return text.replace("'", "").replace("\\", "").replace("\n", " ").replace(":", " -")
