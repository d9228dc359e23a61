"""The shape of the code, held by reading it: who may import whom, that core is pure, and how long files are."""

import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1] / "src" / "jostle"

# package or module -> what of ours it may import (besides itself)
MAY_IMPORT = {
    "core": set(),
    "store": {"core", "errors", "failpoint", "proc"},
    "probes": {"core", "errors", "proc", "units", "formats"},
    "backends": {"core", "errors", "proc", "failpoint", "uniid"},
    "engine": {"core", "store", "errors", "proc", "failpoint", "config", "address", "version"},
    "formats": {"core", "errors", "units"},
    "experiments": {"core", "store", "formats", "errors", "units"},
    "compete": {"core", "formats", "errors", "units", "proc", "uniid"},
    "uniid": {"proc"},
    "cli": {
        "core", "store", "formats", "compete", "experiments", "uniid", "client", "config", "errors", "units", "proc", "probes",
        "address", "daemon", "version", "context",
    },
    "client": {"errors", "config", "address", "store"},
    "config": {"errors", "store", "backends", "formats", "probes"},
    "daemon": {"engine", "store", "backends", "config", "errors"},
    "units": set(),
    "errors": set(),
    "address": set(),
    "proc": set(),
    "failpoint": set(),
    "__main__": {"cli"},
    "context": set(),
    "api": {"client", "config", "context", "errors", "formats", "store"},
    "__init__": {"api"},
}

# what makes a function depend on more than its arguments
IMPURE = {
    "os",
    "time",
    "random",
    "secrets",
    "socket",
    "subprocess",
    "sqlite3",
    "threading",
    "pathlib",
    "io",
    "sys",
    "datetime",
    "signal",
}


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield path, parts[0]


def imports(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            if node.module == "jostle":
                yield from (f"jostle.{a.name}" for a in node.names)
            elif node.module != "__future__":
                yield node.module


def test_every_import_is_allowed_by_the_table():
    wrong = []
    for path, package in modules():
        for name in imports(path):
            first, _, rest = name.partition(".")
            target = rest.partition(".")[0]
            if first == "jostle" and target.startswith("__"):
                target = "version"
            if first == "jostle" and target and target != package and target not in MAY_IMPORT[package] and target != "version":
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


def test_core_is_pure():
    wrong = [f"{path.name}: {name}" for path, package in modules() if package == "core" for name in imports(path)
             if name.partition(".")[0] in IMPURE]  # fmt: skip
    calls = [
        path.name
        for path, package in modules()
        if package == "core" and re.search(r"\b(open|input|print)\(", path.read_text("utf-8"))
    ]
    assert (wrong, calls) == ([], [])


def test_the_engine_needs_the_standard_library_only():
    import sys

    for path, package in modules():
        if package in ("engine", "store", "backends", "core", "daemon", "client", "proc", "failpoint", "errors", "address"):
            foreign = {n.partition(".")[0] for n in imports(path)} - set(sys.stdlib_module_names) - {"jostle"}
            assert foreign == set(), f"{path.relative_to(ROOT)} imports {foreign}"


def test_only_the_store_speaks_sql():
    verbs = re.compile(r"\b(SELECT .+ FROM|INSERT INTO|UPDATE \w+ SET|PRAGMA)\b")
    wrong = [str(path.relative_to(ROOT)) for path, package in modules()
             if package != "store" and verbs.search(path.read_text("utf-8"))]  # fmt: skip
    assert [w for w in wrong if w != "cli/salvage.py"] == []  # salvage reads what the store refuses


def test_no_file_is_longer_than_400_lines():
    assert [str(path.relative_to(ROOT)) for path, _ in modules() if len(path.read_text("utf-8").splitlines()) > 400] == []


def test_nothing_is_called_by_a_name_that_says_nothing():
    vague = {"utils", "helpers", "manager", "common", "misc"}
    assert [str(path) for path, _ in modules() if path.stem in vague] == []
