"""The page in the package is the one that its sources make, is small at first, and asks nobody else for anything."""

import gzip
import hashlib
import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
WEB, PAGE = ROOT / "web", ROOT / "src/jostle/web/page"
PARTS = ("index.html", "package-lock.json", "package.json", "public", "src", "stamp.mjs", "tsconfig.json", "vite.config.ts")
FIRST_LOAD = 400_000  # bytes, as they are sent
LOCALE = WEB / "src" / "locale"
TOKEN = re.compile(
    r"""//[^\n]*|\s+|(?P<text>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`)|(?P<word>\w+)|(?P<sign>[{}:,])"""
)
"""Of what the locale files are made of; anything else in them is not understood, and says so."""


def sources() -> list[str]:
    found = [WEB / name for name in PARTS if (WEB / name).is_file()]
    for name in PARTS:
        found += [Path(at, file) for at, _, files in os.walk(WEB / name) for file in files]
    return sorted(str(path.relative_to(WEB)) for path in found if not re.search(r"\.test\.tsx?$", path.name))


def test_the_built_page_is_that_of_its_sources_and_lock_file():
    told = hashlib.sha256()
    for name in sources():
        told.update(f"{name}\n{hashlib.sha256((WEB / name).read_bytes()).hexdigest()}\n".encode())
    assert (PAGE / "built-from").read_text().strip() == told.hexdigest(), "web/ was changed: `make web` builds the page anew"


def packed(path: Path) -> int:
    return len(gzip.compress(path.read_bytes()))


def test_what_is_loaded_at_first_is_small_and_has_no_editor():
    index = (PAGE / "index.html").read_text()
    named = [PAGE / name.removeprefix("/ui/") for name in re.findall(r'(?:src|href)="(/ui/[^"]+)"', index)]
    assert any(path.suffix == ".js" for path in named)
    entry = "".join(path.read_text() for path in named if path.suffix == ".js")
    assert "EditorView" not in entry
    later = [path for path in (PAGE / "assets").iterdir() if path.name.startswith("editor-")]
    assert later
    everything_else = [path for path in (PAGE / "assets").iterdir() if path not in later]
    assert sum(map(packed, everything_else)) <= FIRST_LOAD


def test_nothing_in_the_page_stands_inline_or_comes_from_elsewhere():
    index = (PAGE / "index.html").read_text()
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", index))
    assert "<style" not in index and not re.search(r"\s(style|on\w+)=", index)
    for path in PAGE.rglob("*"):
        if path.suffix in (".html", ".css", ".svg"):
            hosts = set(re.findall(r"https?://([^/\"')\s]+)", path.read_text()))
            assert hosts <= {"www.w3.org"}, path


def test_the_lock_file_names_no_registry():
    assert '"resolved"' not in (WEB / "package-lock.json").read_text()


def tree(tokens: list[tuple[str, str]], known: dict[str, Any]) -> dict[str, Any]:
    """The object whose `{` was read; a key without a value is a name of what was imported."""
    made: dict[str, Any] = {}
    while (token := tokens.pop(0)) != ("sign", "}"):
        kind, key = token
        if token == ("sign", ","):
            continue
        assert kind in ("word", "text"), token
        key = key if kind == "word" else key[1:-1]
        assert key not in made, f"{key} is there twice"
        if tokens[0] != ("sign", ":"):
            made[key] = known[key]
            continue
        tokens.pop(0)
        kind, text = tokens.pop(0)
        assert (kind, text) == ("sign", "{") or kind == "text", (key, text)
        made[key] = tree(tokens, known) if kind == "sign" else text[1:-1]
    return made


def exported(name: str) -> dict[str, Any]:
    """What a file of texts exports, by name: objects of texts and of such objects."""
    source = (LOCALE / f"{name}.ts").read_text()
    known = {}
    for names, file in re.findall(r"^import \{([^}]*)\} from '\./(\w+)'$", source, re.MULTILINE):
        theirs = exported(file)
        for one in names.split(","):
            theirs_is, _, ours = one.strip().partition(" as ")
            known[ours or theirs_is] = theirs[theirs_is]
    made = {}
    for begin in re.finditer(r"^export (?:default|const (\w+) =) \{", source, re.MULTILINE):
        at, tokens = begin.end(), []
        while not source.startswith("\n}", at):
            token = TOKEN.match(source, at)
            assert token, f"{name}.ts: {source[at : at + 60]}"
            at = token.end()
            tokens += [(kind, token[kind]) for kind in ("text", "word", "sign") if token[kind]]
        made[begin[1] or "default"] = tree([*tokens, ("sign", "}")], known)
    return made


def texts(language: str) -> dict[str, str]:
    def flat(tree: dict[str, Any], before: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for key, value in tree.items():
            found |= {before + key: value} if isinstance(value, str) else flat(value, f"{before}{key}.")
        return found

    return flat(exported(language)["default"], "")


def bare(key: str) -> str:
    """English counts in two texts, Chinese in one."""
    return re.sub(r"_(one|other)$", "", key)


def test_both_languages_of_the_page_have_the_same_keys_and_speak_of_the_same_values():
    english, chinese = texts("en"), texts("zh")
    assert len(english) > 700
    assert {bare(key) for key in english} == {bare(key) for key in chinese}
    counted = {bare(key) for key in english if key != bare(key)}
    assert {key for one in counted for key in (f"{one}_one", f"{one}_other")} <= set(english)

    def holes(text: str) -> set[str]:
        return set(re.findall(r"\{\{\w+\}\}", text))

    other = {key: english.get(key) or english[f"{bare(key)}_other"] for key in chinese}
    assert {key: holes(chinese[key]) for key in chinese} == {key: holes(other[key]) for key in chinese}


def test_every_text_that_the_page_asks_for_is_there():
    known = {bare(key) for key in texts("zh")}
    sources = [path.read_text() for path in (WEB / "src").rglob("*.ts*") if ".test." not in path.name and path.parent != LOCALE]
    asked = set(re.findall(r"\bt\('([a-zA-Z_.0-9]+)'", "\n".join(sources)))
    assert len(asked) > 200 and asked <= known
