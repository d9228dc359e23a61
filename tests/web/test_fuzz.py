"""Every operation of the API's document, with values that fit and values that do not: schemathesis draws them, each time alike.

Always an answer, none of 5xx, and nothing without the token, before the real gate. What a drawn value breaks once is written as a
test of its own where it belongs.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from jostle.web.gate import OPEN
from tests.e2e.instance import PATIENCE
from tests.web.console import Console
from tests.web.walk import STREAM, document

CASES = 2000
EACH = 20  # of each kind, for each operation
THERE = {"mode": "single", "id": 1, "index": 1}
WHO = st.sampled_from((True, True, True, False))
FEW = 3  # of one that takes its time: a process of its own, or a pause
VERBS = ("doctor", "results", "validate", "import", "clean", "run", "uni-id", "notify/test")
SLOW = {"/api/auth/login", *(f"/api/v1/{verb}" for verb in VERBS)}


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    root = tmp_path_factory.mktemp("f")
    (root / "w" / "command").mkdir(parents=True)
    (root / "w" / "command" / "command_gpu.txt").write_text("# nothing to start\n")
    made = Console(root / "c", gpus="sim:1x24", workspace=root / "w")
    made.instance.end(made.instance.add("-g", "0", "--", "echo printed"))
    made.instance.call("exclude", gpus=[0], on=True)  # whatever gets queued does not run
    yield made
    made.close()


class Fuzz:
    def __init__(self, console: Console) -> None:
        self.console, self.session = console, requests.Session()
        self.session.trust_env = False
        self.statuses: Counter[int] = Counter()
        self.broken: list[Any] = []
        self.opened: list[Any] = []

    def send(self, case: Any, known: bool, there: bool) -> None:
        if there:
            self.settle(case)
        told = case.as_transport_kwargs(base_url=f"http://127.0.0.1:{self.console.port}")
        told["headers"] = {**(told.get("headers") or {}), **self.proof(known)}
        if not known:
            told["headers"].pop("Authorization", None)
        self.hurry(told)
        with self.session.request(**told, timeout=PATIENCE, stream=True, allow_redirects=False) as answer:
            if case.path != STREAM or answer.status_code != 200:
                _ = answer.content
            status = answer.status_code
        self.statuses[status] += 1
        if status >= 500 and not (status == 503 and answer.json().get("code") == "no_engine"):  # that it lives is seen below
            self.broken.append((status, case.as_curl_command()[:500]))
        if not known and status < 300 and (case.method.upper(), case.path) not in OPEN:
            self.opened.append(case.as_curl_command()[:500])

    def proof(self, known: bool) -> dict[str, str]:
        """The token as it is now: one of the operations changes it."""
        token = (self.console.instance.home / "web" / "token").read_text().strip()
        return {"Authorization": f"Bearer {token}"} if known else {}

    @staticmethod
    def settle(case: Any) -> None:
        """About something that exists, so that it gets further than to the question which one is meant."""
        case.path_parameters.update({name: value for name, value in THERE.items() if name in case.path_parameters})
        for name in ("mode", "workspace", "config_index"):
            if isinstance(case.query, dict):
                case.query.pop(name, None)

    @staticmethod
    def hurry(told: dict[str, Any]) -> None:
        """A call that waits for jobs does not wait for them here."""
        within = (told.get("params") or {}).get("within")
        with contextlib.suppress(TypeError, ValueError):
            if math.isfinite(float(within)):
                told["params"]["within"] = "0" if 0 <= float(within) <= 60 else within


@pytest.mark.timeout(900)  # a minute, on a host that has nothing else to do
def test_s31_no_value_breaks_an_operation_and_none_opens_one(console: Console) -> None:
    fuzz, engine = Fuzz(console), console.instance.engine
    schema = schemathesis.openapi.from_dict(document())
    for result in schema.get_all_operations():
        operation = result.ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            how = settings(
                max_examples=FEW if operation.path in SLOW else EACH, derandomize=True, deadline=None, database=None,
                phases=[Phase.generate], suppress_health_check=list(HealthCheck),
            )  # fmt: skip
            with contextlib.suppress(Unsatisfiable):  # it takes nothing, so nothing can be wrong
                how(given(case=operation.as_strategy(generation_mode=mode), known=WHO, there=st.booleans())(fuzz.send))()
    print(f"{fuzz.statuses.total()} cases: {dict(sorted(fuzz.statuses.items()))}")
    assert fuzz.broken == [] and fuzz.opened == [] and console.instance.engine == engine
    assert fuzz.statuses.total() >= CASES and {200, 401, 404, 422} <= set(fuzz.statuses)
