"""Copies of config files with some values of their own (SPEC B2): `configs/temp/X_seed42.yaml` is X.yaml with `seed: 42`.

Rules: the copy is the author's text, comments and spelling of numbers included, with nothing changed but these values, written as
the sweep spells them. A line at its top says whence it comes. The original is never written. A file at the copy's place is
replaced only if it is such a copy, or says the same; the same copy is not written again. Each is written in one step.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jostle.formats import plaintext, processyaml, yamledit, yamlfile
from jostle.formats.flaws import BadFiles
from jostle.formats.nodes import TRUTHS, Flaw, Scalar
from jostle.printable import one_line
from jostle.wording.flaws import flaw

MARK = "# a copy made by jostle"
LONGEST = 240  # bytes of a file's name, of the 255 that there are: `.1` is put behind that of an older log
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\Z", re.ASCII)
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?\Z", re.ASCII)
_POWER = re.compile(r"([-+]?)(\d[\d_]*)?(?:\.(\d*))?[eE]([-+]?)(\d+)\Z", re.ASCII)
_UNSAFE = re.compile(r"[^\w.+=@,-]+")


class Original:
    """A config file that is read once, for any number of copies."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.text, _ = plaintext.decoded(yamlfile.bytes_of(path, "a config file"))
        self.values = processyaml.values(self.text, path)  # BadFiles if it is no mapping
        self._cut: dict[tuple[str, ...], list[str]] = {}

    def cut(self, keys: tuple[str, ...]) -> list[str]:
        """The text in pieces: between them stand the values of the keys, by their number: text, "0", text, "1", text."""
        if keys not in self._cut:
            self._cut[keys] = self._cut_at(keys)
        return self._cut[keys]

    def _cut_at(self, keys: tuple[str, ...]) -> list[str]:
        """The places are found with words that stand nowhere else, and what was made is read back: checked once, not per job."""
        word = "Jostle" + hashlib.sha256(self.text.encode("utf-8", "replace")).hexdigest()[:16]
        expected = processyaml.values(self.text, self.path)
        text = self.text
        try:
            for k, key in enumerate(keys):
                words = processyaml.parts(self.values, key)
                processyaml.put(expected, words, f"{word}x{k}x")
                text = yamledit.updated(text, words, f"{word}x{k}x")
            same = processyaml.values(text, self.path) == expected
        except (BadFiles, ValueError):
            same = False
        pieces = re.split(rf"[\"']?{word}x(\d+)x[\"']?", text)
        if not same or len(pieces) != 2 * len(keys) + 1:
            raise Flaw(0, flaw("copy_yaml", keys=", ".join(keys), path=self.path))
        if self.path.endswith(".json"):
            self._json(pieces, keys)
        return pieces

    def _json(self, pieces: list[str], keys: tuple[str, ...]) -> None:
        try:
            json.loads("".join(piece if k % 2 == 0 else "0" for k, piece in enumerate(pieces)))
        except ValueError:
            raise Flaw(0, flaw("copy_json", keys=", ".join(keys), path=self.path)) from None

    def copy(self, values: Mapping[str, str]) -> str:
        """The text with these values, as spelled() spells them."""
        spellings = [self._number(key, value) for key, value in values.items()]
        text = "".join(piece if k % 2 == 0 else spellings[int(piece)] for k, piece in enumerate(self.cut(tuple(values))))
        if self.path.endswith(".json"):
            return text
        why = ", ".join(f"{key}: {value}" for key, value in zip(values, spellings, strict=True))
        return f"{MARK} of {one_line(os.path.basename(self.path))} with {one_line(why)}\n{text}"


    def _number(self, key: str, value: str) -> str:
        """`1e-3` is a text for PyYAML: over what it reads as a number it is spelled 1.0e-3."""
        match = None if self.path.endswith(".json") else _POWER.match(value)
        if match is None:
            return value
        value_now = self._as_pyyaml
        for word in processyaml.parts(self.values, key):
            value_now = value_now.get(word) if isinstance(value_now, dict) else None
        if isinstance(value_now, bool) or not isinstance(value_now, int | float):
            return value
        sign, digits, fraction, up, power = match.groups()
        return f"{sign}{digits or 0}.{fraction or 0}e{up or '+'}{power}"

    @functools.cached_property
    def _as_pyyaml(self) -> Any:
        import yaml

        try:
            return yaml.load(self.text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except (yaml.YAMLError, ValueError, RecursionError):
            return None  # it reads nothing there


class Originals:
    """Config files by their paths, each read once."""

    def __init__(self) -> None:
        self.by_path: dict[str, Original] = {}

    def text(self, copy: Mapping[str, Any]) -> str:
        """What this copy (`job["copy"]`) is to hold. Flaw, or BadFiles."""
        if copy["of"] not in self.by_path:
            self.by_path[copy["of"]] = Original(copy["of"])
        return self.by_path[copy["of"]].copy(copy["values"])

    def copy(self, copy: Mapping[str, Any]) -> str | None:
        """The same; None if it cannot be made any more."""
        try:
            return self.text(copy)
        except (Flaw, BadFiles):
            return None


def spelled(value: Scalar, path: str = "") -> str:
    """A value as the author of the sweep wrote it: without quotes what had none, whatever its reader takes it for (`yes`, `0x1F`,
    a date); texts in quotes where they need them."""
    if path.endswith(".json"):
        as_it_is = value.plain and _JSON_NUMBER.match(value.text)
        return value.text if as_it_is else json.dumps(yamlfile.value_of(value))
    if value.plain and (_NUMBER.match(value.text) or value.text in TRUTHS or _stands(value.text)):
        return value.text
    return "null" if value.null else yamledit.shown(value.text)


@functools.lru_cache(maxsize=10_000)
def _stands(text: str) -> bool:
    """Whether a text without quotes is itself wherever a value stands: `a, b` is not inside of braces."""
    import yaml

    try:
        return text != "" and all(
            yaml.load(line.format(text), Loader=yaml.BaseLoader) == {"k": text} for line in ("k: {}  # x\n", "{{k: {}}}\n")
        )
    except yaml.YAMLError:
        return False


def safe(text: str) -> str:
    """A text as part of a file's name."""
    return _UNSAFE.sub("-", text).strip("-") or "-"


def fitting(name: str) -> str:
    """A name of a file, cut (and told apart from others by its end) where a file system would not take it."""
    stem, extension = os.path.splitext(name)
    if len(name.encode("utf-8", "replace")) <= LONGEST:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:10]
    room = LONGEST - len(extension.encode("utf-8", "replace")) - len(digest) - 1
    return f"{stem.encode('utf-8', 'replace')[:room].decode('utf-8', 'ignore')}-{digest}{extension}"


def too_long(path: str) -> bool:
    return any(len(part.encode("utf-8", "replace")) > LONGEST for part in path.split("/"))


def default_place(config: str, values: Mapping[str, Scalar], folder: str | None = None) -> str:
    """`configs/temp/{stem}_seed{N}.yaml`, in the folder or in `temp` beside the config file."""
    stem, extension = os.path.splitext(os.path.basename(config))
    name = stem + "".join(f"_{safe(key)}{safe(value.text)}" for key, value in values.items()) + extension
    name = fitting(name)
    return os.path.join(folder if folder is not None else os.path.join(os.path.dirname(config), "temp"), name)


def told_apart(place: str, text: str) -> str:
    """A place of its own for each content: JSON has no line that says that a file is a copy, so it is never written over."""
    stem, extension = os.path.splitext(place)
    return f"{stem}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}{extension}"


def _nobody(places: Mapping[str, str]) -> Mapping[str, int]:
    return {}


def write(
    batches: Iterable[Mapping[str, Any]], moved: Callable[[str], str] = str,
    needed: Callable[[Mapping[str, str]], Mapping[str, int]] = _nobody,
) -> int:  # fmt: skip
    """Writes the copies that the jobs of these batches need (`job["copy"]`) and says how many were new or changed.

    To be called right before the submit. `moved` says where a path of the work tree lies now (frozen code); `needed` which of
    these places (with the directories of the jobs) unfinished jobs use. BadFiles names every place that is taken by something
    else; nothing is written then.
    """
    originals = Originals()
    todo: dict[str, str] = {}
    workdirs: dict[str, str] = {}
    flaws: list[tuple[str, int, str]] = []
    for job in (job for batch in batches for job in batch["jobs"] if job.get("copy")):
        place = moved(job["copy"]["to"])
        try:
            todo[place] = originals.text(job["copy"])
            workdirs[place] = job["workdir"]
        except Flaw as e:
            flaws.append((job["copy"]["of"], e.line, e.text))
        except BadFiles as e:
            flaws += e.flaws
    new = {}
    own = {os.path.realpath(path) for path in originals.by_path}
    for place, text in todo.items():
        original = os.path.realpath(place) in own
        why = "is a config file that copies are made of; choose another place" if original else taken(place, text)
        if why is None:
            new[place] = text
        elif why:
            flaws.append((place, 0, why))
    for place, id in needed({place: workdirs[place] for place in new}).items():
        if not _same(place, new[place]):
            hint = "run this when it has ended, or choose another place with `config_copy:`"
            flaws.append((place, 0, f"is the config copy of job {id}, which has not ended, and would say something else; {hint}"))
    if flaws:
        raise BadFiles(list(dict.fromkeys(flaws)))
    for place, text in new.items():
        put(place, text)
    return len(new)


def _opened(path: str, flags: int) -> int:
    """A pipe in place of a file is not waited for."""
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is no file", path)
    return fd


def _read(place: str) -> str:
    with open(place, encoding="utf-8", errors="replace", newline="", opener=_opened) as f:
        return f.read(yamlfile.MAX_BYTES + 1)


def _same(place: str, text: str) -> bool:
    """Whether what stands there says the same, in whatever words."""
    try:
        return bool(processyaml.values(_read(place), place) == processyaml.values(text, place))
    except (OSError, BadFiles):
        return False


def taken(place: str, text: str) -> str | None:
    """Why a copy is not written there: "" if it stands there already, a sentence if something else does, None if it can be."""
    try:
        old = _read(place)
    except FileNotFoundError:
        return None
    except OSError as e:
        return f"cannot be read ({e.strerror}), and a copy of a config file goes here; choose another place with `config_copy:`"
    if old == text:
        return ""
    if not old or old.startswith(MARK):  # empty: the host went down before its disk had it
        return None
    if _same(place, text):
        return ""  # made by the source system, or by hand
    return "is no copy made by jostle and says something else; move it away, or choose another place with `config_copy:`"


def put(place: str, text: str) -> None:
    """The file with this content, in one step."""
    folder = os.path.dirname(place)
    os.makedirs(folder, exist_ok=True)
    umask = os.umask(0)
    os.umask(umask)
    fd, temporary = tempfile.mkstemp(prefix=".jostle-", dir=folder)
    try:
        with os.fdopen(fd, "w", encoding="utf-8", newline="") as f:
            f.write(text)
            os.fchmod(f.fileno(), 0o666 & ~umask)
        os.replace(temporary, place)
    except BaseException:
        os.unlink(temporary)
        raise
