"""What is wrong with files is told in the language of the page."""

import json
import re

import pytest

from jostle.wording.flawwords import FLAWS
from tests.web.console import Console

CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    root = tmp_path_factory.mktemp("l")
    texts = {"command/command_gpu.txt": "1\ntrue\nx\n", "config/gpu_manage.yaml": "gpu_left: x\nxyz: 1\n"}
    for name, text in texts.items():
        (root / "w" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "w" / name).write_text(text)
    made = Console(root / "c", gpus=None, workspace=root / "w")
    yield made
    made.close()


def spoken(console, method, path, body=None):
    """The words of an answer in English and in Chinese."""
    return [console.script(method, f"{path}?lang={lang}", body, **{"If-Match": "x"}).json for lang in ("en", "zh")]


def test_of_rules(console):
    english, chinese = spoken(console, "GET", "/api/v1/rules")
    assert english["flaws"][0] == {"line": 1, "text": 'gpu_left: "x" is not understood; expected a whole number from 0 to 1024'}
    assert chinese["flaws"][0] == {"line": 1, "text": 'gpu_left：无法理解 "x"；应为 0 到 1024 的整数'}
    assert all(CHINESE.search(warning) for warning in chinese["warnings"]) and len(chinese["warnings"]) == 1
    english, chinese = spoken(console, "PUT", "/api/config", {"max_gpu": 1})
    assert "is not understood" in english["detail"]
    assert "无法理解" in chinese["detail"] and "无法理解" in chinese["flaws"][0]["text"]


def test_of_task_files(console):
    for path in ("/api/commands/single", "/api/v1/commands/single"):
        english, chinese = spoken(console, "GET", path)
        assert english["flaws"][0]["line"] == chinese["flaws"][0]["line"] == 3
        assert "the block ends with" in english["flaws"][0]["text"] and CHINESE.search(chinese["flaws"][0]["text"])
    assert CHINESE.search(chinese["broken"][0]["flaws"][0]["text"])
    _, chinese = spoken(console, "PUT", "/api/v1/commands/single", {"text": "1\n2\n"})
    assert CHINESE.search(chinese["flaws"][0]["text"]) and CHINESE.search(chinese["detail"])


def test_on_the_command_line(console):
    words = ("validate", str(console.workspace / "command" / "command_gpu.txt"))
    code, _, err = console.instance.run(*words, env={"JOSTLE_LANG": "zh"})
    assert code == 6 and f"\n{words[1]}:3: 这一块以" in err
    code, out, _ = console.instance.run(*words, "--json", env={"JOSTLE_LANG": "zh"})
    assert code == 6 and "这一块以" in json.loads(out)["errors"][1]["text"]


TASK = {"id": 1, "processes": [{"commands": ["x\\"], "memory": 1}, {"commands": [], "memory": 1}]}
ASKED = [
    ("GET", "/api/v1/wait?ids=7", None, "log_job"),
    ("POST", "/api/log/bind?mode=single&queue_id=1&process_index=0&log_path=/etc/passwd", None, "log_outside"),
    ("POST", "/api/commands/single/reset", None, "config_no_backup"),
    ("DELETE", "/api/commands/single/4", None, "config_none"),
    ("PUT", "/api/v1/commands/single", {"text": "1\ntrue\n1\n"}, "file_changed"),
    ("POST", "/api/v1/commands/single/preview", {"text": "", "queues": [TASK]}, "command_unwritable"),
    ("PUT", "/api/settings", {"secret": "password"}, "secret_weak"),
    ("PUT", "/api/settings", {"port": 0}, "setting_odd"),
    ("GET", "/api/v1/jobfiles/text?path=x.yaml", None, "asked_job_file"),
    ("GET", "/api/v1/limits", None, "needs_engine"),
    ("GET", "/api/commands/single?workspace=/nowhere", None, "workspace_unknown"),
]


@pytest.mark.parametrize(("method", "path", "body", "code"), ASKED, ids=[one[-1] for one in ASKED])
def test_of_what_is_asked_of_the_page(console, method, path, body, code):
    sign = "&" if "?" in path else "?"
    for lang, words in zip(("en", "zh"), FLAWS[code], strict=True):
        answer = console.script(method, f"{path}{sign}lang={lang}", body, **{"If-Match": "x"})
        fixed = max(re.split(r"\{\w*\}", words), key=len)
        assert answer.status >= 400 and fixed in answer.json["detail"], answer


WORDS = [
    ("POST", "hold", {}, "expected `ids` or `batch`"),
    ("GET", "wait?ids=grow", None, "'grow' is no job id; expected ids such as 12, 3-7, 1,4, last or all"),
    ("GET", "wait?ids=5-3", None, "'5-3' runs backwards; expected the smaller id first"),
    ("GET", "wait?ids=70-80", None, "there is no job 70-80"),
    ("GET", "results?target=77", None, "there is no batch 77"),
    ("POST", "hold", {"ids": ["rules"]}, "there is no job named rules"),
    ("POST", "hold", {"ids": ["queue:x"]}, "there is no job in queue x"),
    ("POST", "hold", {"ids": ["batch:x"]}, "batch: 'x' is not understood; expected a number"),
    ("POST", "hold", {"ids": ["1.5"]},
     "'1.5' is no job id; expected ids such as 12, 3-7, 1,4, last, all, a name, queue:Q, tag:T or batch:N; "
     "a job of that name is name:1.5"),
    ("POST", "set", {"ids": [1], "values": {"priority": "x"}},
     "priority: 'x' is not understood; expected a whole number from -2147483648 to 2147483648"),
    ("POST", "set", {"ids": [1], "values": {"share": "x"}}, "share: 'x' is not understood; expected one of true, false"),
    ("POST", "set", {"ids": [1], "values": {"priorty": "3"}}, "there is no setting 'priorty'; expected priority"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "words"), WORDS, ids=[one[-1] for one in WORDS])
def test_of_words_that_mean_jobs_and_of_values(console, method, path, body, words):
    sign = "&" if "?" in path else "?"
    english, chinese = (console.script(method, f"/api/v1/{path}{sign}lang={lang}", body).json["detail"] for lang in ("en", "zh"))
    assert english == words and CHINESE.search(chinese)
    assert not re.search("expected|there is|such as|one of", chinese) and ("rules" in words) == ("rules" in chinese)


def test_of_a_name_with_which_nothing_can_be_done(console):
    id = console.post("/api/v1/add", {"run": "true", "workdir": "/", "name": "rules", "hold": True})["id"]
    answers = [console.script("POST", f"/api/v1/retry?lang={lang}", {"ids": ["rules"]}) for lang in ("en", "zh")]
    english, chinese = (answer.json["detail"] for answer in answers)
    assert english == f"nothing to retry among the jobs named rules: 1 queued; the newest is {id}"
    assert CHINESE.search(chinese) and "rules" in chinese and "nothing" not in chinese
    near = console.script("POST", "/api/v1/hold?lang=zh", {"ids": ["ruels"]}).json["detail"]
    assert "rules" in near and "did you mean" not in near
    console.post("/api/v1/cancel", {"ids": [id]})


def test_who_may_only_look_is_refused_in_their_language_and_learns_no_path(console):
    reader = console.instance.ok("web", "--token", "--read-only").strip()
    answer = console.script("GET", "/api/v1/logs/7?lang=zh", token=reader)
    assert answer.status == 403 and answer.json["detail"] == FLAWS["may_not_prints"][1]
    answer = console.script("GET", "/api/commands/single?workspace=/nowhere&lang=zh", token=reader)
    assert answer.status in (403, 404) and CHINESE.search(answer.json["detail"]) and "/" not in answer.json["detail"]
