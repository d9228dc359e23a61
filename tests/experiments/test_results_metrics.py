"""Values out of logs: which match counts, which bytes are read, and what a log may do without disturbing anything."""

import os
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.errors import Usage
from jostle.experiments import metrics
from jostle.experiments.metrics import FIRST, LONGEST, default, last_match, number, parsed, read


@pytest.fixture
def log(tmp_path):
    def write(data):
        path = tmp_path / "x.log"
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return str(path)

    return write


def value(path, *texts, **options):
    wanted = parsed(texts)
    return read(path, wanted, **options).values.get(wanted[0].name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The test accuracy of FedAvg: 81.25\n", 81.25),
        ("The test accuracy of round 3: model: 81.5\n", 81.5),
        ("Test Accuracy: 0.91\n", 0.91),
        ("Final Accuracy: 77.1%\n", 77.1),
        ("Accuracy: 66%\n", 66.0),
        ("", None),
    ],
)
def test_b11_the_patterns_of_the_source(log, text, expected):
    assert value(log(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("accuracy: 80.67\n", 80.67),
        ("Accuracy: 66\n", 66.0),
        ("Final Accuracy: 66\n", 66.0),
        ("epoch 3 ACC=0.5, loss=0.1\nepoch 4 ACC=0.91, loss=0.05\n", 0.91),
        ("acc : 80.67%\n", 80.67),
        ("accuracy: 91,5\n", None),
        ("Accuracy: 9801/10000\n", None),
        ("vacc: 1\nval_acc: 2\naccess: 3\naccuracy of 4\naccuracy:\n5\n", None),
        ("Accuracy: 66%\naccuracy: 12\n", 66.0),
        ("Test Accuracy: 7\n" + "acc: 12\n" * 9999, 7.0),
    ],
)
def test_the_plainest_line_is_found_where_no_pattern_of_the_source_matches(log, text, expected):
    assert value(log(text)) == expected


def test_b11_the_last_match_of_the_first_pattern_that_matches(log):
    # the first pattern stands only at the beginning, and later ones match after it
    filler = "nothing to see here\n" * 200_000
    text = "The test accuracy of a: 10\nThe test accuracy of a: 11\n" + filler + "Test Accuracy: 90\nAccuracy: 95%\n"
    assert value(log(text)) == 11.0
    assert value(log("Accuracy: 1%\nTest Accuracy: 2\nAccuracy: 3%\n")) == 2.0


LINES = ["The test accuracy of m: {}", "Test Accuracy: {}", "Final Accuracy: {}%", "Accuracy: {}%", "epoch {}", "loss {}"]


@given(st.lists(st.tuples(st.sampled_from(LINES), st.integers(0, 99)), max_size=60), st.sampled_from("\n\r"), st.integers(1, 40))
def test_b11_reading_from_the_end_finds_what_reading_everything_finds(tmp_path_factory, lines, end, block):
    text = "".join(line.format(n) + end for line, n in lines)
    path = tmp_path_factory.mktemp("h") / "x.log"
    path.write_text(text, newline="")
    whole = path.read_text()  # as the source reads it: \r is a line end
    expected = None
    for pattern in (
        r"The test accuracy of .+?: ([\d.]+)",
        r"Test Accuracy: ([\d.]+)",
        r"Final Accuracy: ([\d.]+)%",
        r"Accuracy: ([\d.]+)%",
    ):
        if found := re.findall(pattern, whole):
            expected = float(found[-1])
            break
    before = metrics.FIRST
    metrics.FIRST = block  # so small that every line lies on a seam
    try:
        assert value(str(path)) == expected
    finally:
        metrics.FIRST = before


def test_b11_of_a_log_of_a_megabyte_only_the_end_is_read(log):
    path = log("epoch 1 loss 0.5\n" * 60_000 + "The test accuracy of x: 91.5\n")
    assert os.path.getsize(path) > 1_000_000
    reading = read(path, default())
    assert reading.values == {"accuracy": 91.5} and reading.bytes_read == FIRST


def test_b11_it_reads_further_back_only_until_each_metric_is_known(log):
    path = log("loss: 0.25\n" + "x" * 99 + "\n" + "epoch\n" * 10_000 + "acc: 5\n" + "epoch\n" * 1_000_000 + "loss: 0.5\nacc: 7\n")
    reading = read(path, parsed(["loss=loss: ([0-9.]+)", r"acc=acc: (\d+)"]))
    assert reading.values == {"loss": 0.5, "acc": 7.0} and reading.bytes_read == FIRST
    assert read(path, parsed(["x=(x{99})"])).bytes_read == os.path.getsize(path)


def test_b11_tail_bounds_what_is_read(log):
    path = log("Test Accuracy: 50\n" + "epoch\n" * 100_000)
    reading = read(path, default(), tail=4096)
    assert reading.values == {} and reading.bytes_read == 4096
    assert "in its last 4,096 bytes" in reading.problems["accuracy"]


def test_b11_a_line_that_tail_cuts_does_not_count(log):
    assert value(log("abc: 12345\nabc: no\n"), r"m=(\d+)", tail=11) is None
    assert value(log("abc: 12345\nabc: 67\n"), r"m=(\d+)", tail=11) == 67


# --- sources


def test_b11_json_lines_by_the_name_of_a_key(log):
    path = log(
        '{"step": 1, "accuracy": 0.8}\n{"step": 2, "accuracy": 0.9, "eval": {"f1": 0.7}}\n{"step": 3}\n{"accuracy": 0.99, "st'
    )
    assert value(path, "accuracy") == 0.9  # the last line is half written
    assert value(path, "eval.f1") == 0.7
    assert value(path, "f1") is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('INFO train: {"loss": 1e-5}', 1e-5),
        ("{'loss': 0.25, 'epoch': 3.0}", 0.25),  # as Hugging Face's trainer prints it
        ('{"loss": "0.5"}', 0.5),
        ('{"loss": true}', None),
        ('{"loss": null}', None),
        ('{"loss": [1]}', None),
        ('"loss" {', None),
        ('{"a.loss": 3, "loss": 4}', 4),
        ('{"loss": ' + "[" * 100_000, None),
        ('{"loss": ' + "9" * 5000 + "}", None),
    ],
)
def test_b11_what_a_json_line_may_look_like(log, line, expected):
    assert value(log(line + "\n"), "loss") == expected


def test_b11_a_key_in_any_alphabet(log):
    assert value(log('{"准确率": 0.5}\n{"\\u51c6\\u786e\\u7387": 0.6}\n'), "准确率") == 0.6


def test_b11_several_metrics_and_several_sources_of_one(log):
    path = log('val: 3\n{"acc": 0.5}\nloss=0.25\n')
    wanted = parsed(["acc=test: ([0-9.]+)", "acc", "loss=loss=(?P<value>[0-9.]+)", r"val=val: \d+|(\d)"])
    assert [metric.name for metric in wanted] == ["acc", "loss", "val"]
    reading = read(path, wanted)
    assert (reading.values["acc"], reading.values["loss"]) == (0.5, 0.25)


def test_b11_without_a_group_the_whole_match_is_the_value(log):
    assert value(log("took 12.5 s\n"), r"t=(?<=took )[\d.]+") == 12.5


def test_b11_a_pattern_sees_one_line_at_a_time(log):
    assert value(log("Accuracy:\n 5\n"), r"a=Accuracy:\s+(\d+)") is None
    assert value(log("Accuracy: 4 Accuracy:\n 5\n"), r"a=Accuracy:\s+(\d+)") == 4
    assert last_match(re.compile("x*"), "axa\n").start() == 4


@pytest.mark.parametrize("text", ["", "=x", "a=", "a=(", "a=*"])
def test_b11_a_bad_metric_is_a_usage_error(text):
    with pytest.raises(Usage, match="metric"):
        parsed([text])


@pytest.mark.parametrize(
    ("text", "expected"), [("91", 91), (" 91.5% ", 91.5), (".5", 0.5), ("-1e-5", -1e-5), ("1_0", None), ("x", None), ("", None)]
)
def test_what_a_number_is(text, expected):
    assert number(text) == expected


# --- what a log may do


@pytest.mark.parametrize("word", ["nan", "NaN", "inf", "-inf", "1e999"])
def test_b11_a_run_that_diverged_has_no_value_rather_than_an_older_one(log, word):
    reading = read(log(f"Test Accuracy: 90\nTest Accuracy: {word}\n"), default())
    assert reading.values == {} and "its last value is" in reading.problems["accuracy"]


def test_b11_a_match_that_is_no_number_is_told(log):
    reading = read(log("acc: 5\nacc: abc\n"), parsed(["acc=acc: (.+)"]))
    assert reading.problems == {"acc": "its last value is no number: 'abc'"}


@pytest.mark.parametrize("text", ["91,5", "1.234,5", "1,234.5", "5 000", "5\u202f000", "5'000", "-3,25", "1.2.3", "12,", "12 00"])
@pytest.mark.parametrize("line", ["Test Accuracy: {}", "The test accuracy of x: {}", "Accuracy: {}%", "Final Accuracy: {}%"])
def test_b11_a_number_that_goes_on_after_a_comma_is_a_problem_and_never_half_of_it(log, line, text):
    reading = read(log(line.format(90) + "\n" + line.format(text)), default())
    if text in ("12,", "12 00"):  # a sentence goes on, not a number
        assert reading.values == {"accuracy": 90.0 if "%" in line else 12.0}
    else:
        assert reading.values == {}
        assert reading.problems["accuracy"] == f"its last value has a decimal comma, or groups of digits: {text!r}"


@pytest.mark.parametrize(
    ("line", "regex", "expected"),
    [
        ("acc 91,5", r"acc ([\d.]+)", None),
        ("acc 1.234,5", r"acc ([\d.]+)", None),
        ("acc 5 000", r"acc (\d+)", None),
        ("acc 91,5%", r"(\d+)%", None),
        ("3,91.5,0.25", r"^\d+,([\d.]+)", 91.5),  # a number with a point is complete: this is a list
        ("3,91,7", r"^\d+,(\d+),", 91),  # the pattern itself says what the comma is
        ("acc 91, 5 to go", r"acc (\d+)", 91),
        ("acc 91 100/200", r"acc (\d+)", 91),
        ("acc 91.5 100", r"acc ([\d.]+)", 91.5),
        ("acc 1e-5,2", r"acc (\S+?),", 1e-5),
    ],
)
def test_b11_with_patterns_of_ones_own_it_is_the_same(log, line, regex, expected):
    assert value(log(line + "\n"), f"acc={regex}") == expected


def test_b11_no_line_takes_quadratic_time(tmp_path):
    """In a process of its own: it could not be interrupted."""
    units = (b"The test accuracy of ", b"The test accuracy of x: ", b"Accuracy: 1,1,1,1", b"Test Accuracy: x1111", b"1")
    for k, unit in enumerate(units):
        (tmp_path / f"{k}.log").write_bytes(b"Test Accuracy: 7\nAccuracy: " + unit * ((3 << 20) // len(unit)) + b"\n")
    code = "import sys; from jostle.experiments.metrics import default, read\n"
    code += "print([read(path, default()).values for path in sys.argv[1:]])"
    words = [sys.executable, "-c", code, *(str(tmp_path / f"{k}.log") for k in range(len(units)))]
    out = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    assert out == f"{[{'accuracy': 7.0}] * len(units)}\n"


def test_b11_bytes_that_are_no_text_do_no_harm(log):
    noise = bytes(range(256)) * 300
    assert value(log(b"Test Accuracy: 1\n" + noise + b"\xff\xfeTest Accuracy: 42.5\x00" + noise)) == 42.5


def test_b11_progress_bars_end_their_lines_with_carriage_returns(log):
    assert value(log("\r".join(f"epoch {k} Accuracy: {k}%" for k in range(5000)))) == 4999


@pytest.mark.parametrize("before", [0, 1, LONGEST - 10, LONGEST, 3 * LONGEST + 7])
def test_b11_a_line_without_end_is_seen_in_pieces(log, before):
    assert value(log(b"y" * before + b"Test Accuracy: 12.75 " + b"z" * (2 * LONGEST))) == 12.75


def test_b11_a_hole_larger_than_any_disk_is_stepped_over(tmp_path):
    path = tmp_path / "x.log"
    with open(path, "wb") as f:
        f.write(b"The test accuracy of x: 33\n")
        f.seek(1 << 40)
        f.write(b"\nthe end\n")
    reading = read(str(path), default())
    assert reading.values == {"accuracy": 33.0} and reading.bytes_read < 1 << 20


def test_b11_a_log_that_was_truncated_under_its_writer(log):
    assert value(log(b"\0" * 100_000 + b"Test Accuracy: 8\n")) == 8


@pytest.mark.parametrize(("end", "cut"), [("", {"accuracy"}), ("\n", set()), ("\r", set()), (" ", set())])
def test_b11_a_value_at_the_very_end_may_be_half_written(log, end, cut):
    assert read(log("Test Accuracy: 91" + end), default()).cut == cut


def test_b11_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "x.log")
    for path in (tmp_path, tmp_path / "x.log", tmp_path / "none"):
        with pytest.raises(OSError):
            read(str(path), default())
