"""YAML is read as YAML says, with lines, and nothing a file holds can hurt."""

import os
import threading
import time

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.formats import yamlfile
from jostle.formats.nodes import Flaw, Map, Seq, plain_data

PIECES = [
    "a",
    "key",
    "- ",
    "-",
    "-1",
    ": ",
    ":",
    "\n",
    "\n  ",
    "\n    ",
    "\n  - ",
    "\n- ",
    "# c",
    " # c",
    '"q"',
    "'s'",
    '"a\\n"',
    "[",
    "]",
    "{",
    "}",
    ", ",
    "|\n",
    "|-\n",
    "|+\n",
    "  ",
    "x y",
    "1e-5",
    "null",
    "~",
    "\t",
    "---",
    "...",
    "&a",
    "*a",
    "!t",
    "? ",
    ">",
    '"',
    "'",
    "{a: 1}",
    "[1, b]",
    "a: 1",
    "b:",
    "run: |\n    x\n    y\n",
    "\n\n",
    " ",
    "%",
    "@",
    "é",
    "a:b",
    "http://x",
    "-- x",
    "x#y",
    "[]",
    "{}",
    "[a,]",
    "{a: }",
    "[- a]",
    '{"a": 1}',
    '"a" b',
    "<<: ",
    "\n  x",
    "\u2028",
    "\x07",
]


@settings(max_examples=1500, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=14).map("".join))
def test_no_text_makes_the_reader_crash_and_what_it_reads_is_what_yaml_says(text):
    try:
        root = yamlfile.parse(text)
    except Flaw as e:
        assert e.text
        return
    try:
        assert_same(root, yaml.compose(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError:
        pass  # the C reader takes some texts that the one in Python refuses


def assert_same(ours, theirs):
    """Node by node; `<<` aside, which we resolve."""
    if ours is None:
        assert theirs is None or theirs.value in ("", "~", "null", "Null", "NULL")
    elif isinstance(ours, Seq):
        for a, b in zip(ours.items, theirs.value, strict=True):
            assert_same(a, b)
    elif isinstance(ours, Map) and not any(key.value == "<<" for key, _ in theirs.value):
        for (key, a), (their_key, b) in zip(ours.items, theirs.value, strict=True):
            assert key.text == their_key.value
            assert_same(a, b)
    elif not isinstance(ours, Map):
        assert ours.text == theirs.value


VALUES = st.recursive(
    st.sampled_from(["1", "x", "true", "~", "a b", "'q: #'", '"d\\n"', "1e-5", "-3", "/p/q", "a:b", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=12,
)


def written(value, indent):
    """Block YAML of a value; scalars are given as they stand in the file."""
    pad = " " * indent
    if isinstance(value, dict):
        return "".join(f"\n{pad}{key}:{written(child, indent + 2)}" for key, child in value.items()) or " {}"
    if isinstance(value, list):
        return "".join(f"\n{pad}-{written(child, indent + 2)}" for child in value) or " []"
    return f" {value}"


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.dictionaries(st.sampled_from(["jobs", "defaults", "x-y", "p_q"]), VALUES, min_size=1))
def test_block_files_read_as_yaml_says(value):
    text = written(value, 0).lstrip("\n") + "\n"
    assert_same(yamlfile.parse(text), yaml.compose(text, Loader=yaml.SafeLoader))


def test_a_block_text_keeps_its_lines():
    root = yamlfile.parse("run: |\n  if true; then\n    echo a: b # no comment\n  fi\n\nnext: 1\n")
    assert plain_data(root) == {"run": "if true; then\n  echo a: b # no comment\nfi\n", "next": "1"}


def test_numbers_keep_the_authors_text():
    assert plain_data(yamlfile.parse("lr: 1e-5\nseed: 007\nv: 1.10\n")) == {"lr": "1e-5", "seed": "007", "v": "1.10"}


def test_anchors_and_merges_are_read():
    text = "base: &b {gpus: 1, memory: 2}\njobs:\n  - <<: *b\n    memory: 3\n"
    assert plain_data(yamlfile.parse(text)) == {"base": {"gpus": "1", "memory": "2"}, "jobs": [{"memory": "3", "gpus": "1"}]}


def test_as_many_anchors_as_anybody_writes_are_read():
    text = "\n".join(f"- &a{n} {n}" for n in range(yamlfile.MAX_ANCHORS)) + "\n- *a7"
    assert plain_data(yamlfile.parse(text))[-1] == "7"


def bomb():
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    lines += [f"{c}: &{c} [{','.join(['*' + p] * 9)}]" for p, c in zip("abcdefgh", "bcdefghi", strict=True)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: !!python/object/apply:os.system [ls]\n", 2, "tag !!python/object"),
        ("a: &a [*a]\n", 1, "stands inside what it names"),
        ("a: *nothing\n", 1, "no anchor"),
        ("a:\n\tb: 1\n", 2, "tab"),
        ("a: [1,\n", 2, "not YAML"),
        ('a: "x\n', 2, "not YAML"),
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        ("a: b: c\n", 1, "not YAML"),
        ("a: 1\nb: \x07\n", 2, "does not allow"),
        ("? [a]\n: b\n", 1, "as a key"),
        ("a: " + "[" * 60 + "]" * 60, 1, "deeper than"),
        (bomb(), 6, "aliases counted"),
        ("\n".join(f"- &a{n} x" for n in range(100_000)), yamlfile.MAX_ANCHORS + 1, "more than 1,000 anchors"),
        ("\n".join(["- &a {}"] * 100_000), yamlfile.MAX_ANCHORS + 1, "more than 1,000 anchors"),
    ],
)
def test_bad_yaml_is_refused_at_its_line(text, line, words):
    with pytest.raises(Flaw, match=words) as caught:
        yamlfile.parse(text)
    assert caught.value.line == line


@pytest.mark.parametrize("text", [bomb(), "[" * 100_000, "- " * 50_000, "a: &a\n  - *a\n", "{" * 50_000, "? " * 5_000])
def test_an_attack_is_answered_quickly(text):
    began = time.process_time()
    with pytest.raises(Flaw):
        yamlfile.parse(text)
    assert time.process_time() - began < 3


def test_a_big_file_may_use_all_of_yaml():
    text = "base: &b {gpus: 1}\njobs:\n" + "  - <<: *b\n    run: echo 1234567890\n" * 40_000
    assert len(text) > 1_000_000
    assert len(yamlfile.parse(text).items[1][1].items) == 40_000


def test_a_file_of_many_jobs_is_read_quickly():
    text = "jobs:\n" + "".join(f"  - name: j{i}\n    run: echo {i}\n    env: {{SEED: {i}}}\n" for i in range(10_000))
    began = time.process_time()
    root = yamlfile.parse(text)
    assert isinstance(root, Map) and time.process_time() - began < 3  # some 0.25 s on a quiet machine


def test_a_bom_and_crlf_are_accepted(tmp_path):
    path = tmp_path / "f.yaml"
    path.write_bytes("\ufeffa: 1\r\nb: |\r\n  x\r\n  y\r\n".encode())
    assert plain_data(yamlfile.parse(yamlfile.text_of(str(path)))) == {"a": "1", "b": "x\ny\n"}


def test_bytes_that_are_not_utf8_are_refused_at_their_line(tmp_path):
    path = tmp_path / "f.yaml"
    path.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(Flaw, match="UTF-8") as caught:
        yamlfile.text_of(str(path))
    assert caught.value.line == 2


def test_a_file_over_the_limit_is_not_read(tmp_path):
    path = tmp_path / "f.yaml"
    path.write_bytes(b"a" * (yamlfile.MAX_BYTES + 1))
    with pytest.raises(Flaw, match="larger than 5 MB"):
        yamlfile.text_of(str(path))


def test_a_directory_a_fifo_and_nothing_are_refused_without_waiting(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path, words in ((tmp_path, "directory"), (fifo, "regular"), (tmp_path / "none", "cannot be read")):
        with pytest.raises(Flaw, match=words):
            yamlfile.text_of(str(path))


def test_a_pipe_of_the_persons_own_is_read():
    read, write = os.pipe()
    threading.Thread(target=lambda: (os.write(write, b"a: 1\n"), os.close(write))).start()
    assert yamlfile.text_of(f"/dev/fd/{read}") == "a: 1\n"
    os.close(read)
