"""The page in the package is the one that its sources make, is small at first, and asks nobody else for anything."""

import gzip
import hashlib
import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WEB, PAGE = ROOT / "web", ROOT / "src/jostle/web/page"
PARTS = ("index.html", "package-lock.json", "package.json", "public", "src", "stamp.mjs", "tsconfig.json", "vite.config.ts")
FIRST_LOAD = 400_000  # bytes, as they are sent


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
