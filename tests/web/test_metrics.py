"""`/metrics`: a text that Prometheus reads, of what is true, without a name that people gave; and a dashboard that fits it."""

import json
import re
from pathlib import Path

import pytest

from jostle.views.metrics import Sample
from jostle.wording.metrics import METRICS, exposition, family
from tests.e2e.instance import until
from tests.pages import section

ROOT = Path(__file__).parents[2]
LINE = re.compile(
    r'(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (?P<value>[0-9.e+-]+)'
)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def parsed(text):
    """{(name, labels): value}, by the grammar of the format; each family in one piece, with help and type before it."""
    samples, families, kinds = {}, [], {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            families.append(line.split()[2])
            assert families.count(families[-1]) == 1, line
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name == families[-1] and kind in ("gauge", "counter", "histogram"), line
            kinds[name] = kind
        else:
            whole = LINE.fullmatch(line)
            assert whole, line
            assert family(whole["name"]) == families[-1] in kinds, line
            key = (whole["name"], frozenset(LABEL.findall(whole["labels"] or "")))
            assert key not in samples, line
            samples[key] = float(whole["value"])
    return samples


def scrape(console, token=None):
    told = console.script("GET", "/metrics", token=token)
    assert told.status == 200 and told.heads["content-type"] == "text/plain; version=0.0.4; charset=utf-8", told
    return parsed(told.body.decode())


def value(samples, name, **labels):
    (one,) = [v for (n, have), v in samples.items() if n == name and set(labels.items()) <= have]
    return one


def test_a_scrape_needs_a_token_and_the_one_that_may_only_look_is_enough(console):
    bare = console.ask("GET", "/metrics")
    assert bare.status == 401 and not bare.body
    assert console.script("GET", "/metrics", token="x" * 43).status == 401
    reader = console.instance.ok("web", "--token", "--read-only").strip()
    assert value(scrape(console, reader), "jostle_engine_up") == 1


def test_the_numbers_are_those_of_the_command_line(make_console):
    console = make_console()
    jostle = console.instance
    done = jostle.add("-g", "0", "--", "true")
    bad = jostle.add("-g", "0", "--", "exit 3")
    assert jostle.end(done, bad) == ["succeeded", "failed"]
    running = jostle.add("-g", "2", "-m", "20GiB", "--", "sleep 600")
    jostle.reach(running, "running")
    too_many = jostle.add("-g", "3", "-m", "20GiB", "--", "true")
    jostle.reason(too_many, "gpus")
    held = jostle.add("--hold", "-q", "line", "-n", "secret-name", "--", "secret-command")
    behind = jostle.add("-q", "line", "--", "true")
    after = jostle.add("--after", str(held), "--", "true")
    later = jostle.add("--begin", "+1h", "--", "true")
    jostle.ok("gpus", "--exclude", "3")
    samples = scrape(console)
    assert value(samples, "jostle_jobs", state="running") == 1 and value(samples, "jostle_jobs", state="failed") == 1
    assert value(samples, "jostle_jobs", state="skipped") == 0
    rows = {row["id"]: row["reason"]["code"] for row in jostle.json("ps")["jobs"] if row["state"] == "queued"}
    assert rows == {too_many: "gpus", held: "held", behind: "behind", after: "after", later: "begin"}
    for code in rows.values():
        assert value(samples, "jostle_jobs_waiting", reason=code) == 1
    assert value(samples, "jostle_runs_started_total") == 3
    assert value(samples, "jostle_runs_ended_total", outcome="succeeded") == 1
    assert value(samples, "jostle_runs_ended_total", outcome="failed") == 1
    ticks = [v for (name, _), v in samples.items() if name == "jostle_tick_seconds_bucket"]
    assert ticks == sorted(ticks) and ticks[-1] == value(samples, "jostle_tick_seconds_count") > 0
    for gpu in jostle.json("gpus")["gpus"]:
        card = {"gpu": str(gpu["index"]), "uuid": gpu["uuid"]}
        assert value(samples, "jostle_gpu_info", **card, model=gpu["name"]) == 1
        assert value(samples, "jostle_gpu_memory_total_bytes", **card) == gpu["total_mib"] << 20
        assert value(samples, "jostle_gpu_free", **card) == (gpu["refusal"] is None)
        assert value(samples, "jostle_gpu_excluded", **card) == gpu["excluded"]
        assert value(samples, "jostle_gpu_runs", **card) == len(gpu["runs"])
    assert sum(v for (name, _), v in samples.items() if name == "jostle_gpu_runs") == 2
    text = console.script("GET", "/metrics").body.decode()
    assert "secret" not in text and str(jostle.home) not in text
    jostle.ok("cancel", "--now", str(running))


def test_without_an_engine_what_the_store_knows_is_told_and_no_card(make_console):
    console = make_console()
    console.instance.add("--hold", "--", "true")
    waiting = console.instance.add("-m", "900GiB", "--", "true")
    console.instance.kill_engine()
    samples = scrape(console)
    assert value(samples, "jostle_engine_up") == 0 and value(samples, "jostle_jobs", state="queued") == 2
    assert value(samples, "jostle_jobs_waiting", reason="held") == 1
    assert value(samples, "jostle_jobs_waiting", reason="no_engine") == 1
    assert not [name for name, _ in samples if name.startswith(("jostle_gpu_", "jostle_runs_"))]
    console.instance.up("sim:4x24")
    console.instance.ok("cancel", str(waiting))


def test_open_streams_are_counted(console):
    from tests.web.test_stream import Heard

    stream = Heard(console, "?after=0")
    until(lambda: value(scrape(console), "jostle_console_streams") >= 1, "the stream is counted")
    stream.close()


@pytest.mark.parametrize("name", ['a "quoted" \\ name', "two\nlines", "显卡"])
def test_a_label_is_one_text_whatever_a_driver_calls_its_card(name):
    ((_, labels),) = parsed(exposition([Sample("jostle_gpu_info", 1, {"gpu": "0", "model": name})]))
    told = dict(labels)["model"]
    assert re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), told) == name


@pytest.fixture
def limited(console):
    """With a limit, which is among the metrics only then."""
    console.post("/api/v1/limits", {"set": {"max_total_gpus": 4}})
    yield console
    console.post("/api/v1/limits", {"clear": ["max_total_gpus"]})


NOT_DRAWN = {"jostle_gpu_info", "jostle_engine_uptime_seconds"}
"""To be joined with others: a label of it is the model; when the counters began."""


def test_every_metric_is_scraped_and_documented_and_all_but_those_two_are_on_the_dashboard_and_no_other(limited):
    console = limited
    scraped = {family(name) for name, _ in scrape(console)}
    console.instance.add("--hold", "--", "true")
    scraped |= {family(name) for name, _ in scrape(console)}
    assert scraped == set(METRICS)
    documented = dict(re.findall(r"^\| `(jostle_\w+)[^`]*` \| (\w+)", section("docs/api.md", "Metrics"), re.MULTILINE))
    assert documented == {name: kind for name, (kind, _) in METRICS.items()}
    board = json.loads((ROOT / "examples" / "grafana.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked += [variable.get("definition", "") for variable in board["templating"]["list"]]
    used = {family(name) for text in asked for name in re.findall(r"\bjostle_\w+", text)}
    assert used == scraped - NOT_DRAWN


def test_each_label_that_the_dashboard_asks_for_is_there(limited):
    console, board = limited, json.loads((ROOT / "examples" / "grafana.json").read_text())
    console.instance.add("--hold", "--", "true")
    labels = {}
    for name, have in scrape(console):
        labels.setdefault(name, set()).update(have)
    for panel in board["panels"]:
        for target in panel["targets"]:
            asked = re.findall(r"(jostle_\w+)\{([^}]*)\}", target["expr"])
            assert asked, target
            for name, wanted in asked:
                for key, how, text in re.findall(r'(\w+)(=~|=)"([^"]*)"', wanted):
                    if key != "instance":  # which Prometheus adds
                        there = {v for k, v in labels[name] if k == key}
                        assert set(text.split("|")) <= there, (panel["title"], key, how, text)
            shown = re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
            assert set(shown) <= {key for name, _ in asked for key, _ in labels.get(name, ())}, panel["title"]
