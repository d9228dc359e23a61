"""What a job runs, without the values it is given: jobs with one key differ in numbers, paths and names only.

`python train.py --lr 0.1 --seed 3` and `python3 ./train.py --seed=4 --lr .2` have one key. What is not understood stays in it
as it is: two jobs that are told apart for nothing are better than two that are taken for one.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterator, Sequence

LONGEST = 300  # characters
READ, COMMANDS = 8000, 100  # characters and commands of a job: the engine reads them between two ticks
DEPTH = 3  # of commands within commands

INTERPRETERS = ("python", "bash", "sh", "zsh", "Rscript", "julia", "node", "perl", "ruby", "pypy")
SHELLS = ("bash", "sh", "zsh")
TAKING = {"python": ("-W", "-X", "--check-hash-based-pycs"), "bash": ("-o", "+o", "-O", "--rcfile", "--init-file")}
"""Options of an interpreter that take a value, before its script."""
LAUNCHERS = ("torchrun", "deepspeed", "accelerate", "mpirun", "mpiexec", "srun", "horovodrun", "colossalai", "composer")
"""They start a script, after options of their own."""
AS_MODULES = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "jostle.torchrun")
WRAPPERS = {
    "env": ("-u", "-C", "-S"), "nohup": (), "nice": ("-n",), "time": ("-f", "-o"), "exec": ("-a",), "setsid": (),
    "stdbuf": ("-i", "-o", "-e"), "timeout": ("-s", "-k"), "ionice": ("-c", "-n"), "taskset": ("-c",), "numactl": (),
    "unbuffer": (), "command": (), "eval": (),
}  # fmt: skip
"""They change nothing about what is run; each with its options that take a value."""
WITH_WORD = ("timeout", "taskset")  # and of these the first other word is theirs, too
RUNNERS = {("conda", "run"): ("-n", "-p", "--name", "--prefix"), ("uv", "run"): (), ("poetry", "run"): (), ("pipenv", "run"): ()}
BESIDE = (
    "cd", "pushd", "popd", "source", ".", "export", "unset", "set", "ulimit", "umask", "module", "mkdir", "conda", "mamba",
    "true", ":", "tee",
)  # fmt: skip
"""Commands that prepare for others, or keep what they say."""

_QUOTED = re.compile(r"[\"'\\]")
_WORDS = re.compile(r"[();<>|&]+|[^\s();<>|&]+")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=")
_OPERATOR = re.compile(r"[;&|()\n]+\Z")
_REDIRECTION = re.compile(r"(?=[|&]*[<>])[<>|&]+\Z")
_SCRIPT = re.compile(r".*\.(py|sh|bash|R|r|jl|js|pl|rb)\Z")
_HYDRA = re.compile(r"(\+{0,2}~?[A-Za-z_][\w.@/-]*)=")
_OPTION = re.compile(r"(--?[A-Za-z][\w.-]*)(=.*)?\Z", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\Z")
_DIGITS = re.compile(r"\d+(\.\d+)?")
_PLACE = re.compile(r"[/~${}*]|\.\w{1,5}\Z")


def command_key(commands: Sequence[str | Sequence[str]]) -> str:
    """Of the commands of a job, each a text for a shell or a list of arguments."""
    parts = [part for command in _bounded(commands) for part in _command(command, DEPTH)]
    working = [part for part in parts if part.split(" ", 1)[0] not in BESIDE] or parts
    key = "; ".join(dict.fromkeys(working))
    return key if len(key) <= LONGEST else f"{key[: LONGEST - 20]}…{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def _bounded(commands: Sequence[str | Sequence[str]]) -> Iterator[str | Sequence[str]]:
    """As much of a job as is read."""
    left = READ
    for command in commands[:COMMANDS]:
        words = [command] if isinstance(command, str) else command
        kept = []
        for word in words:
            if left > 0:
                kept.append(word[:left])
            left -= len(word) + 1
        if kept:
            yield kept[0] if isinstance(command, str) else kept


def _command(command: str | Sequence[str], depth: int) -> Iterator[str]:
    if not isinstance(command, str):
        yield from _simple(list(command), depth)
        return
    words: list[str] = []
    for token in [*_tokens(command), ";"]:
        if _OPERATOR.match(token):
            yield from _simple(words, depth)
            words = []
        else:
            words.append(token)


def _tokens(text: str) -> list[str]:
    """The words of a shell, and its operators; a text that it would not understand is one word."""
    if not _QUOTED.search(text):
        return _WORDS.findall(text.replace("\n", " ; "))  # as below, a good deal quicker
    lexer = shlex.shlex(text.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:
        return text.split()


def _simple(words: list[str], depth: int) -> Iterator[str]:
    words = _without_redirections(words)
    names: list[str] = []
    while words:
        if match := _ASSIGNMENT.match(words[0]):
            names.append(match[0])
            words = words[1:]
        elif (shorter := _unwrapped(words)) is not None:
            words = shorter
        else:
            break
    if words:
        variables = sorted({name for name in names if name != "CUDA_VISIBLE_DEVICES="})
        yield from (" ".join([*variables, part]) for part in _program(words, depth))


def _without_redirections(words: list[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif _REDIRECTION.match(word):
            skip = True
            if kept and kept[-1] in ("1", "2"):
                kept.pop()  # 2>
        else:
            kept.append(word)
    return kept


def _unwrapped(words: list[str]) -> list[str] | None:
    """What is run by a command that only runs another; None if it is none."""
    name = _base(words[0])
    if name in WRAPPERS:
        rest = _after_options(words[1:], WRAPPERS[name])
        return rest[1:] if name in WITH_WORD and rest and len(rest) > 1 else rest
    for (tool, verb), taking in RUNNERS.items():
        if name == tool and words[1:2] == [verb]:
            return _after_options(words[2:], taking)
    return None


def _after_options(words: list[str], taking: Sequence[str]) -> list[str]:
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in taking else words[1:]
    return words


def _program(words: list[str], depth: int) -> Iterator[str]:
    name = _base(words[0])
    if name in SHELLS and depth and (inner := _inner(words)) is not None:
        yield from _command(inner, depth - 1)
        return
    if name in LAUNCHERS:
        yield " ".join([name, *_launched(words[1:])])
    elif name in INTERPRETERS:
        yield " ".join([name, *_interpreted(name, words[1:])])
    else:
        yield " ".join([name, *_arguments(words[1:])])


def _inner(words: list[str]) -> str | None:
    """The text of `bash -c TEXT`."""
    for k, word in enumerate(words[1:-1], start=1):
        if re.fullmatch(r"-[a-z]*c", word):
            return words[k + 1]
        if not word.startswith("-"):
            return None
    return None


def _interpreted(name: str, words: list[str]) -> Iterator[str]:
    taking = TAKING.get(name, ())
    while words and words[0].startswith("-"):
        if words[0] == "-m" and len(words) > 1:
            yield from ("-m", words[1])
            yield from _launched(words[2:]) if words[1] in AS_MODULES else _arguments(words[2:])
            return
        if words[0] == "-c" and len(words) > 1:
            yield from ("-c", _DIGITS.sub("#", " ".join(words[1].split())))
            yield from _arguments(words[2:])
            return
        words = words[2:] if words[0] in taking else words[1:]
    if words:
        yield _base(words[0])
        yield from _arguments(words[1:])


def _launched(words: list[str]) -> Iterator[str]:
    """The script of a launcher is the first word that looks like one; what stands before it are the launcher's options."""
    for k, word in enumerate(words):
        if word in ("-m", "--module") and k + 1 < len(words):
            yield from ("-m", words[k + 1])
            yield from _arguments(words[k + 2 :])
            return
        if _SCRIPT.match(word) and not word.startswith("-"):
            yield _base(word)
            yield from _arguments(words[k + 1 :])
            return
        if _base(word) in INTERPRETERS:
            yield _base(word)
            yield from _interpreted(_base(word), words[k + 1 :])
            return
    yield from _arguments(words)


def _arguments(words: Sequence[str]) -> Iterator[str]:
    """The words before the first option, values apart; then the names, each once and in order."""
    names: set[str] = set()
    for word in words:
        if (name := _name(word)) is not None:
            names.add(name)
        elif not names and word != "--":
            yield "#" if _NUMBER.match(word) else "*" if _PLACE.search(word) else word
    yield from sorted(names)


def _name(word: str) -> str | None:
    """Of an option, or of a value with a name; None: it has none."""
    if match := _HYDRA.match(word):
        return match[0]
    if _NUMBER.match(word):
        return None
    match = _OPTION.match(word)
    if match is None:
        return None
    return match[1] if match[2] or word.startswith("--") else match[1].rstrip("0123456789.")  # -n5


def _base(path: str) -> str:
    """`/usr/bin/python3.11` is `python`, `./train.py` is `train.py`."""
    name = path.rstrip("/").rpartition("/")[2] or path
    return re.sub(r"\A(python|pypy)[0-9.]*\Z", r"\1", name)
