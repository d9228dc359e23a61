"""Task files: what each format means, that a mixed file reads as a person would, that all errors are told with their lines, and
that writing and editing lose nothing."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jostle.errors import Invalid
from jostle.formats import taskfile
from jostle.formats.flaws import BadFiles
from jostle.formats.taskfile import Block

CAR = ("rm -rf {work_dir}/kb", "bash {work_dir}/set.sh -n 8", "bash {work_dir}/run_pipeline.sh car --uni_id {uni_id}")

A1 = """\
# 汽车数据集任务
rm -rf {work_dir}/kb
bash {work_dir}/set.sh -n 8
bash {work_dir}/run_pipeline.sh car --uni_id {uni_id}
1,20
"""
A2 = """\
# 任务1：队列1
1 #队列ID
"rm -rf {work_dir}/kb"
"bash {work_dir}/set.sh -n 8"
"bash {work_dir}/run_pipeline.sh car --uni_id {uni_id}"
20 #剩余显存
"""
A3 = """\
# 队列ID
1
# 命令
python script.py --arg1 value1
# GPU数量需求
2
# 显存需求(GB)
20
"""


def read(text, mode="single"):
    blocks, flaws = taskfile.parse(text, mode)
    assert flaws == []
    return blocks


def only(text, mode="single"):
    [block] = read(text, mode)
    return block


def flaw(text, mode="single"):
    blocks, flaws = taskfile.parse(text, mode)
    assert blocks == []
    [(line, words)] = flaws
    return line, words


# --- A1


def test_a1_the_standard_format_ends_with_queue_and_memory():
    assert only(A1) == Block(queue=1, commands=CAR, memory_gb=20)


@pytest.mark.parametrize(
    "last", ["1,20", "1, 20", " 1 ,20 ", "1，20", "1,20 # x", "1,20#x", "1,20GB", "１，２０", "1、20", "1,20.0", "1,20480MiB"]
)
def test_a1_the_last_line_may_be_written_in_many_ways(last):
    assert only(f"python a.py\n{last}") == Block(queue=1, commands=("python a.py",), memory_gb=20)


def test_a1_blank_and_white_space_lines_separate_and_comments_do_not():
    text = "# head\n\n# alone\n \t \npython a.py\n# between\n  # indented\n1,20\n\u3000\n\npython b.py\n1,5.5\n#end"
    assert read(text) == [
        Block(queue=1, commands=("python a.py",), memory_gb=20), Block(queue=1, commands=("python b.py",), memory_gb=5.5)
    ]  # fmt: skip


def test_a1_a_file_of_comments_or_of_nothing_has_no_blocks():
    assert read("") == read("\ufeff") == read("# a\n\n# b\n") == read(" \n\t\n") == []


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\r\r\n"])
def test_a1_line_ends_of_every_system_and_a_bom_are_accepted(end):
    text = "\ufeff" + (A1 + "\n" + A2).replace("\n", end)
    assert [block.commands for block in read(text)] == [CAR, CAR]
    assert [block.line for block in read(text)] == [2, 8]


def test_a1_decimals_are_kept_as_they_are():
    assert only("a\n1,0.5").memory_gb == 0.5
    assert isinstance(only("a\n1,20").memory_gb, int)
    assert only("a\n1,0").memory_gb == 0


# --- A2


def test_a2_the_queue_first_format_with_comments_behind_numbers_and_quotes_around_commands():
    assert only(A2) == Block(queue=1, commands=CAR, memory_gb=20)


@pytest.mark.parametrize(
    "said", ["2", "2 #queue", "2# queue 7", "2 // seven", "2 queue", "2 (the second)", "2（二）", "2号队列", "02", "2.0", " 2 "]
)
def test_a2_the_first_number_of_the_line_is_the_value(said):
    assert only(f"{said}\npython a.py\n20") == Block(queue=2, commands=("python a.py",), memory_gb=20)


@pytest.mark.parametrize("line, command", [
    ('"python a.py"', "python a.py"),
    ('"python a.py --name "a b""', 'python a.py --name "a b"'),
    ('"python a.py --name=\\"a b\\" "', 'python a.py --name=\\"a b\\" '),
    ('"my program" --name "a b"', '"my program" --name "a b"'),
    ('"a" "b"', '"a" "b"'),
    ('"python a.py" # why # indeed', "python a.py"),
    ('"my program" --name "a" # why', '"my program" --name "a" # why'),
    ('"python a.py"#why', '"python a.py"#why'),
    ('"a # b', '"a # b'),
    ("“python a.py”", "python a.py"),
    ("“a” “b”", "“a” “b”"),
    ('""my program" --x"', '"my program" --x'),
    ('python -c "print(1)"', 'python -c "print(1)"'),
    ('"half', '"half'),
    ("'single'", "'single'"),
    ("  python a.py\t", "python a.py"),
    ("7z x a.7z", "7z x a.7z"),
    ("2>/dev/null make", "2>/dev/null make"),
    ('"20"', "20"),
    ('"# 20"', "# 20"),
    ("awk '{print $1}' a # why", "awk '{print $1}' a # why"),
])  # fmt: skip
def test_a2_only_a_pair_of_quotes_that_wraps_the_command_is_removed(line, command):
    assert only(f"1\n{line}\n20").commands == (command,)
    assert only(f"{line}\n1,20").commands == (command,)


def test_a2_a_line_that_ends_with_a_backslash_goes_on_as_in_a_shell():
    text = "1\npython a.py \\\n    --lr 1e-3 \\\n# not this one: --lr 1\n    --n 5\nnext\\\\\n20"
    assert only(text).commands == ("python a.py --lr 1e-3 --n 5", "next\\\\")
    assert only("1\npython a.py --n \\\n20").commands == ("python a.py --n",)


@pytest.mark.parametrize("line, number", [
    ("队列 3", 3), ("队列3", 3), ("队列ID: 3", 3), ("队列：3", 3), ("queue 3", 3), ("Queue: 3 # the third", 3), ("显存 5 GB", 5),
    ("显存需求(GB) 5", 5), ("剩余 显存 5G", 5), ("memory 5GB", 5), ("mem 5", 5), ("gpu 5 GB", 5), ("GPU 显存 5", 5),
    ("mem 5120 MiB", 5),
])  # fmt: skip
def test_a2_a_label_may_stand_before_the_number_where_a_number_must_stand(line, number):
    block = Block(queue=1, commands=("python a.py",), memory_gb=number)
    assert only(f"1\npython a.py\n{line}") == only(f"队列 1\npython a.py\n{line}") == block
    assert only(f"1\npython a.py \\\n{line}") == block, "nor does a line go on in it"
    if "G" not in line.replace("GPU", "") and "B" not in line:
        assert only(f"{line}\npython a.py\n20") == Block(queue=number, commands=("python a.py",), memory_gb=20)
        assert only(f"1\na\n{line}\n显存 20", "multi") == Block(queue=1, commands=("a",), gpus=number, memory_gb=20)


LABELS = ["队列 3", "显存 5 GB", "queue 3", "mem 20", "gpu 2", "队列3", "memory: 7", "显存需求(GB) 20"]
SMALL = ["sleep 20", "训练.sh 3", "./训练 3", "队列 3 4", "queue 3, 4", "queue3", "mem 20 x", "gpu 2 && ls", "gpus 2"]


@pytest.mark.parametrize("line", SMALL)
def test_a2_what_is_no_label_and_one_number_stays_a_command_everywhere(line):
    assert "the block ends with" in flaw(f"1\npython a.py\n{line}")[1]
    assert "no queue" in flaw(f"{line}\npython a.py\n20")[1]


@given(st.lists(st.sampled_from([*LABELS, *SMALL, "a"]), min_size=1, max_size=4), st.sampled_from(["single", "multi"]))
def test_a1_a2_a3_no_command_of_a_block_with_its_numbers_is_eaten_as_a_label(lines, mode):
    commands = tuple(line.strip('"') for line in lines)
    text = "\n".join(lines)
    assert only(f"{text}\n1,20", mode) == Block(queue=1, commands=commands, memory_gb=20)
    count = "2\n" if mode == "multi" else ""
    assert only(f"7\n{text}\n{count}20", mode) == Block(queue=7, commands=commands, memory_gb=20, gpus=2 if count else 1)


def test_a2_a_number_behind_a_label_is_edited_in_its_place():
    text = "队列 3\npython a.py\n  显存 5 GB # much\n"
    [block] = read(text)
    changed = Block(queue=4, commands=block.commands, memory_gb=6.5)
    assert taskfile.edited(text, [changed], "single") == "队列 4\npython a.py\n  显存 6.5 GB # much\n"


@pytest.mark.parametrize("text", ['"python a.py",\n1,\n20', '"a",\n"b",\n1,\n20,', '1,\n"python a.py",\n20'])
def test_a7_a_list_with_commas_between_its_lines_is_refused_with_how_to_write_it(text):
    line, words = flaw(f"# command_bk.txt\n\n{text}\n")
    assert (line, words) == (3, 'a list of the form `"cmd",` `1,` `20`; expected, without commas at the ends of lines, '
                                "the commands, then queue and memory as `1,20`")  # fmt: skip
    assert "the queue, the commands, the count of GPUs and the memory on the last two lines" in flaw(text, "multi")[1]


# --- A3, A4


def test_a3_the_multi_format_has_a_count_of_gpus():
    assert only(A3, "multi") == Block(queue=1, commands=("python script.py --arg1 value1",), memory_gb=20, gpus=2)
    assert only("1\na\nb\n2张卡\n20 GB", "multi") == Block(queue=1, commands=("a", "b"), memory_gb=20, gpus=2)


def test_a4_the_format_is_recognised_per_block_and_a_mixed_file_reads_as_a_person_would():
    text = A1 + "\n" + A2 + "\n3\nlast\n7.5"
    assert [(b.queue, len(b.commands), b.memory_gb) for b in read(text)] == [(1, 3, 20), (1, 3, 20), (3, 1, 7.5)]
    assert [(b.queue, b.gpus) for b in read(A3 + "\n\n" + A1, "multi")] == [(1, 2), (1, 1)]


def test_a4_a_multi_block_in_single_mode_says_which_mode_it_wants():
    line, words = flaw(A3)
    assert (line, "--mode multi" in words, "count of GPUs" in words) == (6, True, True)


def test_a4_a_single_block_in_multi_mode_says_which_mode_it_wants():
    line, words = flaw(A2, "multi")
    assert (line, "--mode single" in words, "no count of GPUs" in words) == (6, True, True)


# --- A6


@pytest.mark.parametrize("text, mode, line, words", [
    ("python a.py", "single", 1, "the block ends with \"python a.py\""),
    ("1,20", "single", 1, "without a command"),
    ("1", "single", 1, "without a command"),
    ("1\n20", "single", 1, "without a command"),
    ("1\n2\n20", "multi", 1, "without a command"),
    ("1\n2\n20", "single", 1, "without a command"),
    ('1\n""\n20', "single", 2, "a command that is not empty"),
    ("1\npython a.py", "single", 2, "the memory in GB on the last line"),
    ("1\npython a.py", "multi", 2, "the count of GPUs and the memory"),
    ("python a.py\n20", "single", 1, "no queue"),
    ("1,20\npython a.py", "single", 1, "stands before the commands"),
    ("1\npython a.py\n1,20", "single", 1, "is no command"),
    ("a\n1,2,20", "multi", 2, "too many numbers"),
    ("a\n1,20\nb\n2,20", "single", 2, "a blank line between blocks"),
    ("1\na\n20\n2\nb\n20", "single", 3, "a blank line between blocks"),
    ("a\n1,-20", "single", 2, "less than nothing"),
    ("1\na\n-0.5", "single", 3, "less than nothing"),
    ("a\n-1,20", "single", 2, "the number of a queue"),
    ("1.5\na\n20", "single", 1, "the number of a queue"),
    ("1GB\na\n20", "single", 1, "the number of a queue"),
    ("1\na\n0\n20", "multi", 3, "a count of GPUs from 1"),
    ("1\na\n1.5\n20", "multi", 3, "a count of GPUs from 1"),
    ("1\na\n99999\n20", "multi", 3, "a count of GPUs from 1"),
    ("a\n1,nan", "single", 2, "a number of GB"),
    ("a\n1,inf", "single", 2, "a number of GB"),
    ("a\n1,1e999", "single", 2, "a number of GB"),
    ("1\na\n1e9", "single", 3, "a number of GB"),
    ("nan\na\n20", "single", 1, "the number of a queue"),
    ("9" * 9999 + "\na\n20", "single", 1, "the number of a queue"),
    ("a\n1,20 30", "single", 2, "the block ends with"),
    ("a\n1,", "single", 2, "the block ends with"),
    ("a\0b\n1,20", "single", 1, "NUL"),
])  # fmt: skip
def test_a6_a_bad_block_is_told_with_its_line_and_what_was_expected(text, mode, line, words):
    told = flaw("# head\n\n" + text, mode)
    assert told[0] == line + 2
    assert words in told[1]
    assert "expected" in told[1]


def test_a6_all_errors_of_a_file_are_told_at_once(tmp_path):
    path = tmp_path / "command_gpu.txt"
    path.write_text("a\n\nb\n1,20\n\n-1\nc\n-5\n")
    with pytest.raises(BadFiles) as caught:
        taskfile.load(str(path), "single")
    assert [line for _, line, _ in caught.value.flaws] == [1, 6, 8]
    assert str(caught.value).startswith(f"{path}:1: the block ends with")


def test_a6_lenient_skips_bad_blocks_with_a_warning(tmp_path):
    path = tmp_path / "command_gpu.txt"
    path.write_text("a\n\nb\n1,20\n\n-1\nc\n-5\n")
    blocks, warnings = taskfile.load(str(path), "single", lenient=True)
    assert blocks == [Block(queue=1, commands=("b",), memory_gb=20)]
    assert [w.removeprefix(f"{path}:").partition(":")[0] for w in warnings] == ["1", "6", "8"]
    assert all("skipped" in w for w in warnings)


def test_a6_files_that_cannot_be_read_are_told_and_never_crash(tmp_path):
    def told(path):
        with pytest.raises(BadFiles) as caught:
            taskfile.load(str(path), "single", lenient=True)
        return str(caught.value)

    assert "cannot be read" in told(tmp_path / "none")
    assert "is a directory; expected a task file" in told(tmp_path)
    (tmp_path / "big").write_bytes(b"#" * 5_000_001)
    assert "larger than 5 MB" in told(tmp_path / "big")
    (tmp_path / "bytes").write_bytes(b"a\n\xff\xff\xff\n")
    assert "bytes:2: is neither UTF-8 nor GB18030 here" in told(tmp_path / "bytes")
    (tmp_path / "broken").write_bytes("# 花卉数据集\npython 训练.py\n1,20\n".encode() + "# 花".encode()[:-1] + b"!\n")
    assert "broken:4: is not UTF-8 here; save the file as UTF-8" in told(tmp_path / "broken")


@pytest.mark.parametrize("encoding, warned", [("utf-8", 0), ("utf-8-sig", 0), ("gbk", 1), ("utf-16", 1)])
def test_a1_files_of_chinese_and_windows_systems_are_read_with_a_warning(tmp_path, encoding, warned):
    path = tmp_path / "command.txt"
    path.write_bytes("# 花卉数据集\r\npython 训练.py\r\n1，20\r\n".encode(encoding))
    blocks, warnings = taskfile.load(str(path), "single")
    assert blocks == [Block(queue=1, commands=("python 训练.py",), memory_gb=20)]
    assert len(warnings) == warned


# --- writing

texts = st.text(alphabet=st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
hard = st.sampled_from(
    ["20", "1,20", "# c", '"', '"a"', '"a" "b"', "a\\", " a ", "\ufeffa", "１",
     "nan", "7z", '"a', '\\"', "＃", "1 a", "a#", *LABELS]
)  # fmt: skip
numbers = st.one_of(st.integers(0, 1000), st.floats(0, 1000))
blocks = st.builds(
    Block, queue=st.integers(0, 10**12), commands=st.lists(st.one_of(texts, hard), min_size=1, max_size=4).map(tuple),
    memory_gb=numbers,
)  # fmt: skip
tame = st.builds(
    Block, queue=st.integers(0, 3), memory_gb=st.sampled_from([1, 20, 2.5]),
    commands=st.lists(st.sampled_from(["a", "b", "c d", "# x", "20", '"q"']), min_size=1, max_size=3).map(tuple),
)  # fmt: skip
modes = st.sampled_from(["single", "multi"])
scraps = st.lists(
    st.sampled_from(["1", "20", "2", "1,20", "a", "b", "c d", '"e"', "# c", "", " ", "1 # q", "-1", "x \\", "  y", "1，5",
                     *LABELS]),
    max_size=14,
)  # fmt: skip
files = st.builds(
    lambda lines, end, final: end.join(lines) + final, scraps, st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["", "\n"])
)


@given(st.lists(blocks, max_size=4), modes, st.integers(1, 1024))
def test_a1_a2_a3_any_blocks_that_are_written_read_back_equal(wanted, mode, gpus):
    if mode == "multi":
        wanted = [Block(queue=b.queue, commands=b.commands, memory_gb=b.memory_gb, gpus=gpus) for b in wanted]
    try:
        text = taskfile.text_of(wanted, mode)
    except Invalid as e:
        assert any(c.endswith("\\") or any(k in c for k in '\n\r\0"') or not c.strip() for b in wanted for c in b.commands), e
    else:
        assert taskfile.parse(text, mode) == (wanted, [])


@pytest.mark.parametrize("block", [
    Block(queue=1, commands=(), memory_gb=1), Block(queue=1, commands=("a\nb",), memory_gb=1),
    Block(queue=1, commands=("a\\",), memory_gb=1), Block(queue=-1, commands=("a",), memory_gb=1),
    Block(queue=1, commands=("a",), memory_gb=float("nan")), Block(queue=1, commands=("a",), memory_gb=-1),
    Block(queue=1, commands=("a",), memory_gb=1, gpus=2),
])  # fmt: skip
def test_what_a_task_file_cannot_say_is_refused(block):
    with pytest.raises(Invalid, match="cannot be written"):
        taskfile.text_of([block], "single")


@given(st.text(max_size=200), modes)
@example("\r" * 3000 + '"' * 3000 + "1" * 3000, "single")
def test_a6_no_text_makes_the_reader_crash(text, mode):
    blocks, flaws = taskfile.parse(text, mode)
    assert all(line > 0 and "expected" in words for line, words in flaws)
    assert taskfile.edited(text, blocks, mode) == text


@given(files, modes)
def test_an_edit_that_changes_nothing_keeps_every_character(text, mode):
    assert taskfile.edited(text, taskfile.parse(text, mode)[0], mode) == text


@given(files, modes, st.data())
@settings(max_examples=400)
def test_an_edited_file_reads_as_the_blocks_that_were_asked_for(text, mode, data):
    old, flaws = taskfile.parse(text, mode)
    new = data.draw(st.lists(st.one_of(tame, st.sampled_from(old)) if old else tame, max_size=5))
    result = taskfile.edited(text, new, mode)
    assert taskfile.parse(result, mode)[0] == new
    assert [words for _, words in taskfile.parse(result, mode)[1]] == [words for _, words in flaws]


@pytest.mark.parametrize("unit", ["\r", '"', "1", "a\\\n", "1,", "#\n", "(", "1\na\n20\n\n", "\\", '" "', "nan ",
                                  "\u3000", "队 ", "é("])  # fmt: skip
def test_a6_a_file_of_the_largest_size_takes_no_time_that_grows_faster_than_it(unit):
    text = unit * (1_000_000 // len(unit))  # a reader that looks back at each step would need hours: the test's own limit ends it
    blocks, flaws = taskfile.parse(text, "single")
    assert isinstance(blocks, list) and isinstance(flaws, list)
    blocks, flaws = taskfile.parse('"' + text + '"\n1,20', "multi")
    assert blocks or flaws, "the last line makes it a block, good or bad"


# --- editing

KEPT = """\
# my experiments

# car
1 # the first queue
"python car.py"   
"python eval.py"
20 # GB

# alone

# bird
python bird.py
2, 30   # much
"""  # noqa: W291


def test_an_edit_of_a_number_leaves_the_comment_behind_it():
    car, bird = read(KEPT)
    changed = [Block(queue=3, commands=car.commands, memory_gb=24), Block(queue=4, commands=bird.commands, memory_gb=0.5)]
    wanted = KEPT.replace("1 # the", "3 # the").replace("20 # GB", "24 # GB").replace("2, 30 ", "4, 0.5 ")
    assert taskfile.edited(KEPT, changed, "single") == wanted


def test_an_edit_of_commands_keeps_the_other_lines_and_the_quotes():
    bird = read(KEPT)[1]
    changed = Block(queue=1, commands=("python prepare.py", "python car.py", "python eval.py --all"), memory_gb=20)
    wanted = KEPT.replace('"python car.py"', '"python prepare.py"\n"python car.py"').replace("eval.py", "eval.py --all")
    assert taskfile.edited(KEPT, [changed, bird], "single") == wanted


def test_an_edit_that_removes_a_block_removes_its_comments_and_no_others():
    car, bird = read(KEPT)
    assert taskfile.edited(KEPT, [bird], "single") == "# my experiments\n\n# alone\n\n# bird\npython bird.py\n2, 30   # much\n"
    assert taskfile.edited(KEPT, [car], "single") == KEPT[: KEPT.index("# bird")]


def test_an_edit_that_moves_a_block_moves_its_comments():
    car, bird = read(KEPT)
    result = taskfile.edited(KEPT, [bird, car], "single")
    assert result.index("# bird\npython bird.py\n2, 30   # much") < result.index("# car\n1 # the first queue")


def test_an_edit_writes_new_blocks_in_the_style_of_the_file():
    new = Block(queue=9, commands=("python new.py",), memory_gb=9)
    assert taskfile.edited(A1, [*read(A1), new], "single") == A1 + "\npython new.py\n9,9\n"
    assert taskfile.edited(A2, [*read(A2), new], "single") == A2 + '\n9\n"python new.py"\n9\n'
    assert taskfile.edited(A3, [*read(A3, "multi"), new], "multi") == A3 + "\n9\npython new.py\n1\n9\n"
    windows = A1.replace("\n", "\r\n")
    assert taskfile.edited(windows, [new, *read(A1)], "single") == "python new.py\r\n9,9\r\n\r\n" + windows
    assert taskfile.edited("# only\n", [new], "single") == "# only\n\n9\npython new.py\n9\n"
    assert taskfile.edited("", [new], "single") == "9\npython new.py\n9\n"


def test_an_edit_keeps_blocks_that_are_not_understood():
    text = "broken\n\n" + A1 + "\nalso broken\n"
    assert taskfile.edited(text, [], "single").split() == ["broken", "also", "broken"]


def test_an_edit_gives_a_standard_block_more_gpus_by_writing_it_queue_first():
    [block] = read(A1, "multi")
    more = Block(queue=1, commands=block.commands, memory_gb=20, gpus=2)
    assert taskfile.edited(A1, [more], "multi") == "# 汽车数据集任务\n1\n" + "\n".join(CAR) + "\n2\n20\n"


def test_an_editor_is_given_the_blocks_that_are_not_understood_where_they_stand_and_belong():
    text = "# a\necho one\n1,20\n\nbash flower\n2,twelve\n\n3\nbash bird\n-4\n\necho lost\n"
    found = taskfile.broken(text, "single")
    assert [(one.line, one.last, one.queue) for one in found] == [(5, 6, 2), (8, 10, 3), (12, 12, None)]
    assert found[1].text == "3\nbash bird\n-4" and [line for line, _ in found[1].flaws] == [10]
    assert [flaw for one in found for flaw in one.flaws] == taskfile.parse(text, "single")[1]
    assert taskfile.broken("x\n1,2\n", "single") == []
