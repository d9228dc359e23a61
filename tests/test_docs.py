"""The documentation is held to the code: what exists is documented, what is shown is valid, what is linked is there."""

import ast
import dataclasses
import json
import re

import pytest

from jostle import errors
from jostle.cli.parse import parser
from jostle.cli.verbs import VERBS
from jostle.core import kinds, states
from jostle.core.fields import CHANNEL, JOB, NOTIFY, RETRY, RULES, SETTINGS
from jostle.core.fit import CHOICES
from jostle.core.model import Policy
from jostle.engine import checks
from jostle.formats import configfile, jobfile
from jostle.probes import scenario_file
from jostle.store import jobs
from jostle.store.reads import Reader
from jostle.store.store import Store
from jostle.views import historytypes, statustypes, types
from jostle.wording.words import REFUSALS, TEXTS
from tests.fits import misfits
from tests.pages import PAGES, READMES, ROOT, anchors, blocks, headings, links, section, text

SOURCE = ROOT / "src" / "jostle"
RESOURCES = ("docs/resources.md", "docs/resources.zh-CN.md")


def code() -> str:
    return "\n".join(path.read_text("utf-8") for path in sorted(SOURCE.rglob("*.py")))


# --- what exists is documented


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_a_section_with_all_its_options(verb):
    told = section("docs/cli.md", verb)
    options = [name for action in parser(verb)._actions for name in action.option_strings if name not in ("-h", "--help")]
    missing = [name for name in options if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", told)]
    assert not missing, f"docs/cli.md, {verb}: {missing}"
    assert f"jostle {verb}" in told


def test_no_section_tells_of_a_verb_that_does_not_exist():
    assert {title for level, title in headings(text("docs/cli.md")) if level == "###"} == set(VERBS)


def test_the_page_of_settings_tells_of_each_rule_what_the_table_says():
    assert untrue_rules(RULES) == {}


def untrue_rules(table):
    """The rules that the page does not have, or has otherwise: both names, what it is for, and its default."""
    row = r"^\| `(\w+)` \| `(\w+)` \| (.+?) \| ([^|]+) \| [^|]+ \| [^|]+ \|$"
    told = {name: rest for name, *rest in re.findall(row, section("docs/settings.md", "Policy"), re.MULTILINE)}
    return differences(told, {name: [field.key, field.what, as_shown(field)] for name, field in table.items()})


def differences(told, true):
    """What a page says beside what is so; its texts may go on where those of the table end."""
    named = {name: (told.get(name), true.get(name)) for name in {*told, *true}}
    return {name: pair for name, pair in named.items() if None in pair or not all(map(agrees, *pair))}


def agrees(told, true):
    return told == true or (len(true) > 12 and told.startswith(true))


def as_shown(field) -> str:
    value = field.default
    if value is None or value == {} or value == [] or field.kind is kinds.NOTICE_KINDS:
        return field.absent
    if isinstance(value, list):
        return str(value[0])
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`" if isinstance(value, str) else f"{value:g}"


def test_each_rule_of_the_table_has_its_type_and_its_default_in_the_policy():
    assert [field.name for field in dataclasses.fields(Policy) if field.name not in RULES] == []
    assert Policy() == checks.policy({name: field.default for name, field in RULES.items() if name != "retry"})
    assert Policy().retry.max == 0
    assert set(RULES["choice"].kind.words) == set(CHOICES)


def test_each_field_is_explained_in_both_languages():
    for field in [*RULES.values(), *RETRY.values(), *JOB.values(), *SETTINGS.values(), *NOTIFY.values(), *CHANNEL.values()]:
        assert field.what and re.search("[\u4e00-\u9fff]", field.what_zh), field.name


@pytest.mark.parametrize("page", ["docs/notify.md", "docs/notify.zh-CN.md"])
def test_the_pages_of_notifications_tell_of_each_key_what_the_table_says(page):
    zh = page.endswith("zh-CN.md")
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| ([^|]*) \|$", section(page, "设置" if zh else "Settings"), re.MULTILINE)
    fields = [*NOTIFY.values(), *CHANNEL.values()]
    assert [row[0] for row in rows] == [field.key for field in fields]
    for (_, what, default), field in zip(rows, fields, strict=True):
        assert what == (field.what_zh if zh else field.what)
        assert default == (field.absent_zh if zh and as_shown(field) == field.absent else as_shown(field)), field.name
    assert {word for word in kinds.NOTICES if f"| `{word}` |" not in text(page)} == set()
    assert {word for word in kinds.CHANNELS if f"| `{word}` |" not in text(page)} == set()


@pytest.mark.parametrize("choice", CHOICES)
def test_each_choice_of_cards_is_documented(choice):
    assert f"| `{choice}` |" in text("docs/settings.md")


def test_the_page_of_settings_tells_of_each_key_what_the_table_says():
    assert untrue_settings(SETTINGS) == {}


def untrue_settings(table):
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| ([^|]+?) \|$", section("docs/settings.md", "config.yaml"), re.MULTILINE)
    true = {field.key: [field.what, as_shown(field)] for field in table.values()}
    return differences({key: rest for key, *rest in rows}, true)


def test_the_engine_reads_no_setting_that_nobody_may_set():
    read = set(re.findall(r'(?:settings|config\.load\([\w.]+\))\.get\("(\w+)"', code()))
    assert read, "the pattern finds the keys no more"
    assert read <= set(SETTINGS)


def test_both_pages_tell_what_a_plain_number_of_memory_is():
    for page in ("docs/jobfile.md", "docs/simulator.md"):
        (told,) = re.findall(r"^> \*\*A plain number of memory is .*", text(page), re.MULTILINE)
        assert "MiB" in told and "GB" in told


def test_each_variable_of_the_environment_is_documented():
    named = set(re.findall(r"JOSTLE_[A-Z_]*[A-Z]", code()))
    public = {name for name in named if not name.startswith(("JOSTLE_TEST", "JOSTLE_FAILPOINTS"))}
    assert "JOSTLE_HOME" in public
    told = text("docs/settings.md")
    assert {name for name in public | {"NO_COLOR"} if f"| `{name}` |" not in told} == set()


@pytest.mark.parametrize("state", states.ALL)
def test_each_state_is_documented_and_whether_it_is_final(state):
    row = re.search(rf"^\| `{state}` \|.*\|$", text("docs/states.md"), re.MULTILINE)
    assert row and row[0].endswith("| yes |") == (state in states.FINAL)


def test_the_diagram_is_the_table_of_the_code():
    lines = ["stateDiagram-v2", f"    [*] --> {states.QUEUED}"]
    for state, ways in states.TRANSITIONS.items():
        lines += [f"    {state} --> {to}: {why}" for to, why in ways.items()]
        if not ways:
            lines.append(f"    {state} --> [*]")
    assert blocks("docs/states.md", "mermaid") == ["\n".join(lines) + "\n"]


def test_each_intent_and_outcome_of_the_schema_is_documented():
    schema = (SOURCE / "store" / "schema.sql").read_text("utf-8")
    intents = re.search(r"intent IN \(([^)]*)\)", schema)
    outcomes = re.search(r"outcome +TEXT, +-- (.*)", schema)
    assert intents and outcomes
    told = text("docs/states.md")
    for word in [*re.findall(r"'(\w+)'", intents[1]), *outcomes[1].split(" | ")]:
        assert f"| `{word}` |" in told, word


@pytest.mark.parametrize("reason", [*TEXTS, *REFUSALS])
def test_each_reason_and_refusal_is_documented(reason):
    assert f"`{reason}`" in text("docs/reasons.md")


def test_each_exit_code_is_documented():
    codes = {0, 124, 129, 130} | {kind.exit_code for kind in errors.BY_CODE.values()}
    told = re.findall(r"^\| (\d+) \|", section("docs/cli.md", "Exit codes"), re.MULTILINE)
    assert {int(one) for one in told} == codes


def test_the_page_of_job_files_tells_of_each_key_what_the_table_says():
    assert untrue_keys(JOB) == {}


def untrue_keys(table):
    """The keys of a job that the page does not have, or has otherwise."""
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| ?([^|]*?) \|$", section("docs/jobfile.md", "Keys of a job"), re.MULTILINE)
    true = {field.key: [field.what, as_shown(field)] for field in table.values() if field.key}
    return differences({key: rest for key, *rest in rows}, true)


def test_the_page_of_verbs_tells_which_keys_can_be_set():
    told = section("docs/cli.md", "set").partition("Keys: ")[2]
    assert re.findall(r"`(\w+)`[,.]", told) == [JOB[name].key for name in checks.SETTABLE]


# --- what is shown is valid


@pytest.mark.parametrize("page", ["docs/jobfile.md", "docs/settings.md", *RESOURCES, *READMES])
def test_the_job_files_shown_are_good(page, tmp_path):
    shown = [block for block in blocks(page, "yaml") if "jobs:" in block and not block.startswith("# wrong")]
    assert shown
    for number, block in enumerate(shown):
        path = tmp_path / f"{number}.yaml"
        path.write_text(block, "utf-8")
        assert jobfile.load([str(path)])["jobs"]


def test_a_wrong_job_file_gives_the_errors_that_are_shown(tmp_path, monkeypatch):
    (wrong,) = [block for block in blocks("docs/jobfile.md", "yaml") if block.startswith("# wrong")]
    (expected,) = blocks("docs/jobfile.md", "text")
    (tmp_path / "bad.yaml").write_text(wrong, "utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.Invalid) as raised:
        jobfile.load(["bad.yaml"])
    assert str(raised.value) == expected.rstrip("\n")


def test_the_config_shown_is_good(tmp_path):
    shown = [block for block in blocks("docs/settings.md", "yaml") if "jobs:" not in block]
    assert shown
    for block in shown:
        path = tmp_path / "config.yaml"
        path.write_text(block, "utf-8")
        values = configfile.load(str(path))
        assert isinstance(checks.policy(values["policy"]), Policy)


def test_a_wrong_config_gives_the_errors_that_are_shown(tmp_path, monkeypatch):
    (expected,) = blocks("docs/settings.md", "text")
    (tmp_path / "config.yaml").write_text("grase: 5\npolicy:\n  min_free: lots\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.Invalid) as raised:
        configfile.load("config.yaml")
    assert str(raised.value) == expected.rstrip("\n")


@pytest.mark.parametrize("page", RESOURCES)
def test_how_a_program_takes_part_is_shown_as_the_examples_do_it(page):
    """These run in a test of their own: the bash to the letter, of the Python what it asks of `jostle.elastic`."""
    (shown,) = blocks(page, "bash")
    assert without_comments(shown) == without_comments(text("examples/elastic/train.sh").replace('"$@"', "python train.py"))
    (shown,) = [block for block in blocks(page, "python") if "elastic" in block]
    assert asked_of_elastic(shown) == asked_of_elastic(text("examples/elastic/train.py")) != set()


def without_comments(script):
    return [line for line in (re.sub(r"(^|\s+)#.*", "", line) for line in script.splitlines()) if line]


def asked_of_elastic(program):
    calls = [node.func for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Call)]
    return {name for name in map(ast.unparse, calls) if name.partition(".")[0] in ("elastic", "cards")}


def test_the_scenarios_shown_are_good():
    shown = blocks("docs/simulator.md", "yaml")
    assert shown
    for block in shown:
        assert scenario_file.parse(block, "shown.yaml").cards


def test_each_key_of_a_scenario_is_documented():
    source = (SOURCE / "probes" / "scenario_file.py").read_text("utf-8")
    keys = {key for call in re.findall(r"\.mapping\(([^)]*)\)", source) for key in re.findall(r'"(\w+)"', call)}
    told = text("docs/simulator.md")
    assert {key for key in keys if not re.search(rf"\b{key}\b", told)} == set()


def test_each_sample_of_json_is_of_the_type_of_its_view_and_no_key_is_missing(tmp_path):
    samples = [json.loads(block) for block in blocks("docs/json.md", "json")]
    assert all(sample.get("schema", 1) == 1 for sample in samples)
    kinds = (types.Jobs, types.Batches, types.WordedCards, types.Why, types.Story, statustypes.Overview)
    for sample, kind in zip(samples, kinds, strict=False):
        sample.pop("schema")
        assert list(misfits(sample, kind)) == []
    for kind, key in ((types.Log, "text"), (types.Health, "checks"), (types.Results, "groups"), (historytypes.History, "step_s")):
        (sample,) = (sample for sample in samples if key in sample)
        assert list(misfits({key: value for key, value in sample.items() if key != "schema"}, kind)) == []
    row, run = rows_of_a_store(tmp_path)
    assert [*misfits(row, types.Job), *misfits(run, types.Run)] == []


def rows_of_a_store(tmp_path):
    """A job and a run as the reader gives them."""
    tmp_path.chmod(0o700)
    store = Store(str(tmp_path))
    request = checks.request({"jobs": [{"commands": ["true"], "workdir": "/"}]})
    with store.transaction():
        jobs.submit(store, request, at=0.0, now=0.0, rank=lambda: 0.0)
        store.db.execute("INSERT INTO run (job, n, uni_id, state, share, log, clock_at, started_at) "
                         "VALUES (1, 1, 'x', 'starting', 0, '', 0, 0)")  # fmt: skip
    reader = Reader(str(tmp_path))
    row, (run,) = reader.job(1), reader.runs(1)
    store.close()
    assert row is not None
    return row, run


def test_each_verb_that_has_json_is_on_the_page_of_json():
    told = text("docs/json.md")
    have = [verb for verb in VERBS if any("--json" in action.option_strings for action in parser(verb)._actions)]
    assert {"ps", "run", "uni-id", "validate"} <= set(have)
    assert [verb for verb in have if not re.search(rf"`(?:jostle )?{verb}(?: [^`]*)? --json`", told)] == []


def test_each_key_that_json_has_at_its_top_is_on_its_page():
    told = text("docs/json.md")
    keys = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))) if "web" not in path.parts else ():  # it has its own page
            names = {key.value for key in node.keys if isinstance(key, ast.Constant)} if isinstance(node, ast.Dict) else set()
            keys |= names if "schema" in names else set()
    assert {"schema", "jobs", "removed", "ids"} <= keys
    assert {key for key in keys if f'"{key}"' not in told and f"`{key}`" not in told} == set()


def test_each_field_of_a_job_is_explained(tmp_path):
    told = set(re.findall(r"`(\w+)`", section("docs/json.md", "ps")))
    assert set(rows_of_a_store(tmp_path)[0]) <= told


# --- what is linked is there


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_each_relative_link_leads_somewhere(page):
    wrong = []
    for link in links(page.read_text("utf-8")):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            wrong.append(link)
    assert not wrong, f"{page.name}: {wrong}"


@pytest.mark.parametrize("page", READMES)
def test_the_readme_shows_the_two_commands(page):
    assert "make demo" in text(page) and "make test" in text(page)


def test_every_page_is_linked_from_the_readme():
    linked = set(re.findall(r"\]\((docs/[\w.-]+\.md)\)", text("README.md")))
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= linked


def test_no_page_names_a_path_of_one_machine():
    for page in PAGES:
        assert not re.search(r"/(?:home|Users|work)/\w+", page.read_text("utf-8")), page.name


def test_no_decision_is_longer_than_it_may_be():
    for title, body in re.findall(r"^## (.+)\n((?:(?!^## ).*\n)*)", text("docs/decisions.md"), re.MULTILINE):
        assert len(body.strip().splitlines()) <= 15, title
