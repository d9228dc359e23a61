"""The shape of the code, held by reading it: who may import whom, that core is pure, and how long files are."""

import ast
import collections
import functools
import pathlib
import re

from jostle.core import states

REPOSITORY = pathlib.Path(__file__).parents[1]
ROOT = REPOSITORY / "src" / "jostle"
PAGE = REPOSITORY / "docs" / "architecture.md"

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


def documented():
    """The table of the page: room -> what of ours it may import besides itself."""
    rows = re.findall(r"^\| \[[^]]+\]\(\.\./src/(?:jostle/)?([^)]+)\) \|.*\| ([^|]+) \|$", PAGE.read_text("utf-8"), re.M)
    return {name.removesuffix("/").removesuffix(".py"): set(re.findall(r"\w+", allowed)) for name, allowed in rows}


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield path, parts[0]
    for path in sorted((ROOT.parent / "hydra_plugins").rglob("*.py")):
        yield path, "hydra_plugins"


@functools.cache
def imports(path):
    return list(_imports(path))


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            if node.module == "jostle":
                yield from (f"jostle.{a.name}" for a in node.names)
            elif node.module != "__future__":
                yield node.module


def uses():
    """(file, room, other room of ours that it imports)"""
    for path, room in modules():
        for name in imports(path):
            first, _, rest = name.partition(".")
            other = rest.partition(".")[0] or "__init__"
            if first == "jostle" and other not in (room, "__version__"):
                yield str(path.relative_to(ROOT.parent)), room, other


def test_every_room_stands_in_the_table_of_the_page():
    assert sorted(documented()) == sorted({room for _, room in modules()})


def test_every_import_is_allowed_by_the_table_of_the_page():
    allowed = documented()
    assert [f"{file} imports {other}" for file, room, other in uses() if other not in allowed[room]] == []


def test_the_table_of_the_page_allows_nothing_that_is_not_used():
    used = {(room, other) for _, room, other in uses()}
    assert [(room, other) for room, allowed in documented().items() for other in allowed if (room, other) not in used] == []


def test_core_is_pure():
    wrong = [f"{path.name}: {name}" for path, package in modules() if package == "core" for name in imports(path)
             if name.partition(".")[0] in IMPURE]  # fmt: skip
    calls = [
        path.name
        for path, package in modules()
        if package == "core" and re.search(r"\b(open|input|print)\(", path.read_text("utf-8"))
    ]
    assert (wrong, calls) == ([], [])


FACES = ("cli", "__main__")


def test_only_the_command_line_knows_argparse_and_writes_to_a_terminal():
    """What terminal, page and notebooks share is given values, and says what it has to say through its session."""
    told = re.compile(r"^\s*(?:from argparse|import argparse)|(?<!\w)print\(|\bsys\.stdout\b|\bos\.write\(1\b|\.isatty\(", re.M)
    rooms = {"follow", "intake", "compete", "views", "wording", "formats", "experiments", "session", "api"}
    rooms |= {"store", "client", "config", "cleaning", "demo", "uniid"}
    assert rooms <= {room for _, room in modules()}
    wrong = [str(path) for path, room in modules() if room in rooms and told.search(path.read_text("utf-8"))]
    namespaces = [str(path) for path, room in modules() if room not in FACES and "Namespace" in path.read_text("utf-8")]
    assert (wrong, namespaces) == ([], [])


def test_the_engine_needs_the_standard_library_only():
    import sys

    for path, package in modules():
        if package in ("engine", "store", "backends", "core", "daemon", "client", "proc", "failpoint", "errors", "address"):
            foreign = {n.partition(".")[0] for n in imports(path)} - set(sys.stdlib_module_names) - {"jostle"}
            assert foreign == set(), f"{path.relative_to(ROOT.parent)} imports {foreign}"


def test_only_the_store_speaks_sql():
    verbs = re.compile(r"\b(SELECT .+ FROM|INSERT INTO|UPDATE \w+ SET|PRAGMA|SAVEPOINT|ROLLBACK|BEGIN IMMEDIATE)\b")
    wrong = [str(path.relative_to(ROOT.parent)) for path, package in modules()
             if package != "store" and verbs.search(path.read_text("utf-8"))]  # fmt: skip
    assert wrong == []


def test_only_proc_reads_what_linux_shows_of_a_process():
    reads = re.compile(r"/proc/\{(?!.*oom_score_adj)")  # which is written, not read
    assert [str(path.relative_to(ROOT.parent)) for path, room in modules()
            if room != "proc" and reads.search(path.read_text("utf-8"))] == []  # fmt: skip


def test_no_file_is_longer_than_400_lines():
    assert [str(path.relative_to(ROOT.parent)) for path, _ in modules() if len(path.read_text("utf-8").splitlines()) > 400] == []


def test_the_command_line_parses_and_renders_and_is_small():
    """What a page would need as well stands outside of it: what is judged, asked for and waited for. (The completion scripts
    beside it are shell, 53 lines, and not counted.)"""
    assert sum(len(path.read_text("utf-8").splitlines()) for path, room in modules() if room == "cli") < 3000


def test_who_has_the_engine_asks_it_or_a_part_of_it_and_reaches_no_further():
    """`engine.carried.idle(now)`, not `engine.carried.runs.values()`; and nobody else assigns what the engine knows."""
    trees = {path.name: ast.parse(path.read_text("utf-8")) for path, room in modules() if room == "engine"}
    nodes = [(file, node) for file, tree in trees.items() for node in ast.walk(tree)]
    methods = {node.name for _, node in nodes if isinstance(node, ast.FunctionDef)}
    chains = [(f"{file}:{node.lineno}", ast.unparse(node), node) for file, node in nodes if isinstance(node, ast.Attribute)]
    data = {node.attr for _, text, node in chains if text == f"self.{node.attr}" and isinstance(node.ctx, ast.Store)} - methods
    of_engine = re.compile(r"(?:self\._?engine|engine|e)\.\w+(?:\.(\w+))?(\.\w+)?")
    reached = [(f"{where} {text}", node, *found.groups()) for where, text, node in chains if (found := of_engine.fullmatch(text))]
    assert [where for where, *_ in reached if where.endswith(".carried.claims")], "the names by which one has the engine"
    wrong = [where for where, node, part, more in reached if more or part in data or isinstance(node.ctx, ast.Store)]
    assert wrong == []


def test_nothing_is_called_by_a_name_that_says_nothing():
    vague = {"utils", "helpers", "manager", "common", "misc"}
    assert [str(path) for path, _ in modules() if path.stem in vague] == []


def test_no_two_classes_bear_one_name():
    """But for what is JSON, which is called as what it is the form of: `views/*types.py`, and what a route of `web` takes."""
    named, taken = collections.defaultdict(list), {"BaseModel"}
    for path, room in modules():
        if not path.stem.endswith("types"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef) and room == "web" and taken & {ast.unparse(base) for base in node.bases}:
                    taken.add(node.name)
                elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    named[node.name].append(str(path.relative_to(ROOT.parent)))
    assert {name: files for name, files in named.items() if len(files) > 1} == {}


def test_no_group_of_states_is_typed_anywhere_else():
    groups = [set(group) for group in (states.UNFINISHED, states.FINAL, states.UNSUCCESSFUL, states.OPEN, states.ALL)]
    typed = []
    for path, _ in modules():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Tuple | ast.List | ast.Set) and path.stem != "states":
                words = {item.value for item in node.elts if isinstance(item, ast.Constant)}
                typed += [f"{path.name}:{node.lineno}"] if len(words) == len(node.elts) and words in groups else []
    assert typed == []


# --- the ways that the page draws


def ways():
    """title -> (borders it says it crosses, its lines as (depth, by message, file, function))"""
    drawings = re.findall(r"^### ([^\n]+): (\d+) borders\n+```\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    line = re.compile(r"^( *)(~ )?([\w/]+\.py) ([\w.]+)(?:  .*)?$")
    drawn = {}
    for title, borders, text in drawings:
        matches = [line.match(each) for each in text.splitlines()]
        assert all(matches), f"{title}: {[each for each, m in zip(text.splitlines(), matches, strict=True) if not m]}"
        drawn[title] = int(borders), [(len(m[1]), bool(m[2]), m[3], m[4]) for m in matches]
    return drawn


def steps():
    """(title, by message, caller's file and function, callee's file and function): a line is called by the nearest one above it
    that stands further to the left."""
    for title, (_, lines) in ways().items():
        above = []
        for depth, by_message, file, function in lines:
            above = [entry for entry in above if entry[0] < depth]
            if above:
                yield title, by_message, above[-1][1:], (file, function)
            above.append((depth, file, function))


@functools.cache
def tree(file):
    return ast.parse((ROOT / file).read_text("utf-8"))


def named(file, name):
    """A function or class in a file, or a method as Class.method; None: there is none."""
    node = tree(file)
    for part in name.split("."):
        inside = ast.walk(node) if node is not None else ()
        node = next((n for n in inside if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name == part), None)
    return node


def dotted(file, name):
    return f"jostle.{file.removesuffix('.py').replace('/', '.')}.{name}"


@functools.cache
def called(file, function):
    """What it calls, as far as that can be read: `jostle.room.file.name` of what is imported, stands in its file or class, or is
    of an object that its class makes, else `.name`; and all that is in the table from which it picks by a key."""
    caller = named(file, f"{function}.__init__") or named(file, function)
    statements = [each for each in (*tree(file).body, *ast.walk(caller)) if isinstance(each, ast.ImportFrom)]
    imported = {a.asname or a.name: f"{each.module}.{a.name}" for each in statements for a in each.names}
    own, names = function.partition(".")[0], set()
    made = {}  # attribute of its class -> class of what is in it
    for each in ast.walk(named(file, own)):
        match each:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.Call(func=ast.Name(id=of))):
                made[name] = imported.get(of, dotted(file, of))
    for call in ast.walk(caller):
        match call:
            case ast.Call(func=ast.Name(id=name)):
                names.add(imported.get(name, dotted(file, name)))
            case ast.Call(func=ast.Attribute(value=ast.Name(id=of), attr=name)) if of in imported:
                names.add(f"{imported[of]}.{name}")
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)) if named(file, f"{own}.{name}") is not None:
                names.add(dotted(file, f"{own}.{name}"))
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr=of), attr=name)) if of in made:
                names.add(f"{made[of]}.{name}")
            case ast.Call(func=ast.Attribute(attr=name)):
                names.add(f".{name}")
            case ast.Call(func=ast.Subscript(value=ast.Name(id=table))) if table in imported:
                home = imported[table].split(".")[1:-1]
                names |= in_table("/".join(home) + ".py", table)
    return names


def in_table(file, table):
    """The methods of classes of this file that a table in it has."""
    value = next(node.value for node in tree(file).body if isinstance(node, ast.AnnAssign) and node.target.id == table)
    return {dotted(file, ast.unparse(entry)) for entry in value.values}


def calls(caller, callee):
    file, function = callee
    method = "." in function and f".{function.rpartition('.')[2]}" in called(*caller)
    return method or dotted(file, function) in called(*caller)


def test_the_page_draws_five_ways():
    assert len(ways()) == 5 and all(len(lines) > 5 for _, lines in ways().values())


def test_every_function_on_a_way_is_there_and_calls_the_next():
    lines = [(file, function) for _, lines in ways().values() for _, _, file, function in lines]
    assert [line for line in lines if named(*line) is None] == []
    lost = [f"{title}: {a} does not call {b}" for title, by_message, a, b in steps() if not by_message and not calls(a, b)]
    assert lost == []
    assert [f"{title}: {a} calls {b}" for title, by_message, a, b in steps() if by_message and calls(a, b)] == []


def test_a_way_crosses_as_many_borders_as_it_says():
    def room(file):
        return file.removesuffix(".py").partition("/")[0]

    crossed = {title: sum(room(a[0]) != room(b[0]) for of, _, a, b in steps() if of == title) for title in ways()}
    assert crossed == {title: borders for title, (borders, _) in ways().items()}
