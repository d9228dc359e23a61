"""Every route of the document, with values that nobody expects: always an answer, none of 5xx, and nothing without the token.

The values are drawn from a seed, so that what failed once fails again.
"""

import http.client
import json
import random
from urllib.parse import quote, urlencode

import pytest

from tests.e2e.instance import PATIENCE
from tests.web.console import Console

CASES = 2000
NASTY = [
    "", "0", "-1", "1", "2", "999999999999999999999", "1e309", "NaN", "null", "true", "single", "multi", "last", "all", "1-3",
    "\0", "a\nb", "../../etc/passwd", "/etc/passwd", "/", "' or 1=1 --", "{uni_id}", "%s%n", "💥", "\u202e", "x" * 5000,
    "\ud800", "logs/x", "3;drop",
]  # fmt: skip
VALUES = [
    None, True, False, 0, 1, -1, 2**31, 2**63, 10**40, 1.5, -0.0, 1e308, "", "a", "x" * 3000, "\0", "../x", "single", [], [1],
    ["a"], [None], {}, {"a": 1}, {"queues": []}, [[[]]], {"before": 1}, "all", "first", "20GiB", "none", "/", "/tmp",
]  # fmt: skip

PROCESSES = tuple(f"/api/v1/{verb}" for verb in ("doctor", "results", "validate", "import", "clean", "run", "uni-id"))
"""Each of these is a process of its own, and takes its time."""


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    root = tmp_path_factory.mktemp("f")
    (root / "w" / "command").mkdir(parents=True)
    (root / "w" / "command" / "command_gpu.txt").write_text("# nothing to start\n")
    made = Console(root / "c", gpus="sim:1x24", workspace=root / "w")
    made.instance.call("exclude", gpus=[0], on=True)  # whatever gets queued does not run
    yield made
    made.close()


class Fuzz:
    def __init__(self, console, seed):
        self.rng = random.Random(seed)
        self.paths = console.get("/api/v1/openapi.json")
        self.routes = [
            (method.upper(), path, about)
            for path, item in self.paths["paths"].items()
            for method, about in item.items()
            if (method, path) != ("get", "/api/v1/stream")
        ]

    def value(self, schema, depth=0):
        """Mostly of the kind that is asked for, with a value that is not."""
        if self.rng.random() < 0.25 or depth > 4:
            return self.rng.choice(VALUES)
        if "$ref" in schema:
            return self.value(self.paths["components"]["schemas"][schema["$ref"].rpartition("/")[2]], depth + 1)
        if "anyOf" in schema:
            return self.value(self.rng.choice(schema["anyOf"]), depth + 1)
        kind = schema.get("type")
        if kind == "object":
            known = [(name, one) for name, one in schema.get("properties", {}).items() if self.rng.random() < 0.8]
            free = [(self.rng.choice(["run", "workdir", "gpu_left", "port", "name"]), {}) for _ in range(3)]
            return {name: self.value(one, depth + 1) for name, one in known or free}
        if kind == "array":
            return [self.value(schema.get("items", {}), depth + 1) for _ in range(self.rng.randrange(3))]
        plain = {"integer": [0, 1, 2, 7, 2**40], "number": [0, 0.5, 3], "boolean": [True, False], "string": NASTY[:-4]}
        return self.rng.choice(plain.get(kind, VALUES))

    def next(self):
        method, path, about = self.rng.choice(self.routes)
        query = []
        for parameter in about.get("parameters", ()):
            drawn = self.rng.choice(NASTY).encode("utf-8", "replace")
            if parameter["in"] == "path":
                path = path.replace("{" + parameter["name"] + "}", quote(drawn, safe="") or "x")
            elif parameter["in"] == "query" and self.rng.random() < 0.6 and parameter["name"] != "within":
                query.append((parameter["name"], drawn))
        body = None
        if "requestBody" in about:
            body = json.dumps(self.value(about["requestBody"]["content"]["application/json"]["schema"])).encode()
        return method, path + "?" + urlencode([*query, ("within", "0")]), body


@pytest.mark.timeout(300)
def test_s31_no_value_breaks_a_route_and_none_opens_one(console):
    fuzz = Fuzz(console, seed=20)
    connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=PATIENCE)
    broken, opened, statuses = [], [], set()
    for case in range(CASES):
        method, path, body = fuzz.next()
        if path.startswith(PROCESSES) and case % 50:
            continue
        known = case % 3 != 0
        heads = {"Authorization": f"Bearer {console.token}"} if known else {}
        heads |= {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, body, heads)
        answer = connection.getresponse()
        answer.read()
        statuses.add(answer.status)
        if answer.status >= 500:
            broken.append((answer.status, method, path[:200], (body or b"")[:200]))
        if not known and answer.status < 300 and not path.startswith(("/api/auth/", "/api/health")):
            opened.append((method, path))
        if path.startswith("/api/settings") and method == "PUT" and known and answer.status == 200:
            console.token = console.instance.ok("web", "--token").strip()
    connection.close()
    assert broken == [] and opened == []
    assert {200, 401, 404, 422} <= statuses
