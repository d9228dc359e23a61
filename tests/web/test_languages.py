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


def test_who_may_only_look_is_refused_in_their_language_and_learns_no_path(console):
    reader = console.instance.ok("web", "--token", "--read-only").strip()
    answer = console.script("GET", "/api/v1/logs/7?lang=zh", token=reader)
    assert answer.status == 403 and answer.json["detail"] == FLAWS["may_not_prints"][1]
    answer = console.script("GET", "/api/commands/single?workspace=/nowhere&lang=zh", token=reader)
    assert answer.status in (403, 404) and CHINESE.search(answer.json["detail"]) and "/" not in answer.json["detail"]
