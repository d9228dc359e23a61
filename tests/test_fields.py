"""A further setting, rule or resource is one entry of the table: it is taken, refused when wrong, kept, and missed in the docs.

What is made from the table is made when it is imported, so the entries come first, in a process of their own.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jostle.core import courtesy, kinds
from jostle.core.fields import JOB, RETRY, RULES, SETTINGS, Field
from jostle.formats import spec
from tests import test_docs

WEB = Path(__file__).parents[1] / "web" / "src"

NEW = """
import dataclasses, json, sys
from jostle.core import fields, kinds
from jostle.core.fields import Field

fields.SETTINGS["nice"] = Field("nice", kinds.count(0, 19), 0, "how much a job gives way", "让步")
fields.RULES["quiet_mib"] = Field("quiet_mib", kinds.size(0), 7, "what counts as quiet", "安静", key="quiet")
fields.JOB["cores"] = Field("cores", kinds.count(0, 512), 1, "cores of the host", "核数", shape=7, settable=True)

from jostle.core import model  # the types that decide reads: the one line beside the entry

new = lambda of, name, kind, default: dataclasses.make_dataclass(
    of.__name__, [(name, kind, default)], bases=(of,), frozen=True, kw_only=True, slots=True)
model.Policy = new(model.Policy, "quiet_mib", int, 7)
model.Job = new(model.Job, "cores", int, 1)

from jostle.intake.intents import setting
from jostle.engine import checks
from jostle.errors import JostleError
from jostle.formats import configfile, jobfile

def tried(act, *args):
    try:
        return act(*args)
    except JostleError as e:
        return str(e)

def read(reader, text):
    with open("said.yaml", "w") as f:
        f.write(text)
    return reader("said.yaml")
"""


KEPT = """
from jostle.store import intents, jobs
from jostle.store.store import Store

def said(text):
    return read(lambda path: jobfile.load([path])["jobs"], text)

def kept():
    \"\"\"Of each job that waits, what a decision sees: one was changed since, and one is a copy of a job that ended.\"\"\"
    store = Store(".")
    with store.transaction():
        store.db.execute("ALTER TABLE job ADD COLUMN cores INTEGER NOT NULL DEFAULT 1")
        some = checks.request({"jobs": said("jobs: [{run: x, cores: 4}, {run: y}, {run: z, cores: 16}]")})
        jobs.submit(store, some, at=0.0, now=0.0, rank=lambda: 0.0)
        intents.change(store, 1, {"cores": 8}, at=0.0, now=0.0)
        intents.cancel(store, [3], at=0.0, now=0.0, kill=False)
        intents.retry(store, [3], at=0.0, now=0.0)
        return {job.id: job.cores for lane in store.lanes.read(8) for job in lane}
"""


def with_new_entries(tmp_path, answers, more=""):
    """The answers of these expressions, where the table has one entry more of each sort."""
    tmp_path.chmod(0o700)
    code = f"{NEW}{more}\nprint(json.dumps([{answers}]))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_setting_is_one_entry(tmp_path):
    taken, wrong, unknown, gate = with_new_entries(
        tmp_path,
        """read(configfile.load, "nice: 5"), tried(read, configfile.load, "grace: 5\\nnice: 20"),
        tried(read, configfile.load, "nic: 5"), tried(checks.settings, {"nice": -1})""",
    )
    assert taken == {"nice": 5}
    assert wrong == 'said.yaml:2: nice: "20" is not understood; expected a whole number from 0 to 19'
    assert unknown == 'said.yaml:1: unknown key "nic"; expected nice?'
    assert gate == "the setting nice must be a whole number, not -1"


def test_a_rule_is_one_entry_and_its_type(tmp_path):
    taken, wrong, value, default, gate = with_new_entries(
        tmp_path,
        """read(lambda path: jobfile.load([path])["policy"], "policy: {quiet: 2GiB}\\njobs: [{run: x}]"),
        tried(read, lambda path: jobfile.load([path]), "policy:\\n  quiet: much\\njobs: [{run: x}]"),
        checks.policy({"quiet_mib": 9}).quiet_mib, checks.policy({}).quiet_mib, tried(checks.policy, {"quiet_mib": -1})""",
    )
    assert (taken, value, default) == ({"quiet_mib": 2048}, 9, 7)
    assert wrong == 'said.yaml:2: policy.quiet: "much" is not understood; expected a size such as 20GiB, 500MiB or 20 (GB)'
    assert gate == "the setting quiet_mib cannot be -1"


def test_a_resource_of_a_job_is_one_entry_its_type_and_its_column(tmp_path):
    taken, wrong, back, set_to, none, gate, seen = with_new_entries(
        tmp_path,
        """[job["cores"] for job in said("jobs: [{run: x, cores: 4}, {run: y}]")],
        tried(said, "jobs:\\n- run: x\\n  cores: many"),
        said("defaults: {cores: 9}\\njobs: [{run: x, cores: null}]")[0]["cores"], setting("cores", "4"),
        setting("cores", "none"), tried(checks.settable, {"cores": True}), kept()""",
        KEPT,
    )
    assert (taken, back, set_to, none) == ([4, 1], 1, ["cores", 4], ["cores", 1])
    assert wrong == 'said.yaml:3: cores: "many" is not understood; expected a whole number from 0 to 512'
    assert gate == "job 1: cores must be a whole number"
    assert seen == {"1": 8, "2": 1, "4": 16}


def test_an_entry_that_no_page_tells_of_is_found():
    new = Field("new", kinds.TRUTH, False, "what it is for", "用途")
    true = ["what it is for", "`false`"]
    assert test_docs.untrue_settings({**SETTINGS, "new": new}) == {"new": (None, true)}
    assert test_docs.untrue_keys({**JOB, "new": new}) == {"new": (None, true)}
    assert test_docs.untrue_rules({**RULES, "new": new}) == {"new": (None, ["new", *true])}


def test_what_a_page_says_otherwise_is_found():
    other = Field("grace", kinds.DURATION, 6.0, SETTINGS["grace"].what, "…")
    assert list(test_docs.untrue_settings({**SETTINGS, "grace": other})) == ["grace"]


def test_people_may_write_every_whole_number_that_the_gate_takes_and_no_other():
    for name, field in [*JOB.items(), *RULES.items(), *SETTINGS.items()]:
        if field.kind.name == "whole":
            for number in (field.kind.low, field.kind.high):
                assert field.check(number) and spec.reader(field.kind)(str(number)) == number, name
            for number in (field.kind.low - 1, field.kind.high + 1):
                assert not field.check(number), name
                with pytest.raises(ValueError):
                    spec.reader(field.kind)(str(number))
    assert spec.counters("licence=2000000") == {"licence": 2000000} and kinds.COUNTERS.check({"licence": 2000000})


def test_the_page_has_no_bounds_of_its_own():
    for form in (WEB / "newjob").glob("*.tsx"):
        assert re.findall(r"\b(?:least|most)=\{\d", form.read_text("utf-8")) == [], form
    (least,) = re.findall(r"USUAL_LEAST = (\d+)", (WEB / "model" / "rules.ts").read_text("utf-8"))
    assert int(least) == courtesy.DEFAULT_MIN
    assert JOB["gpus"].check([JOB["gpus"].kind.low, JOB["gpus"].kind.high])
    assert RETRY["max"].check(JOB["retry"].kind.high) and not JOB["gpus"].check([0, JOB["gpus"].kind.high + 1])
