"""Jobs that differ in values only have one key; others have not."""

import resource
import subprocess
import sys

import pytest

from jostle.core import commandkey
from jostle.core.commandkey import COMMANDS, LONGEST, READ, command_key
from tests.e2e.instance import SOURCE

ALIKE = [
    [
        "python train.py --lr 0.1 --seed 3",
        "python train.py --seed=4 --lr .2",
        "python3 ./train.py --lr 1e-3 --seed -1",
        "/opt/env/bin/python3.11 -u /home/me/project/train.py --seed 7 --lr 5",
        "CUDA_VISIBLE_DEVICES=2 python train.py --lr 3 --seed 1",
        "cd project && python train.py --lr 0.1 --seed 3",
        "nohup nice -n 10 python train.py --lr 0.1 --seed 3 > out.log 2>&1 &",
        "source ~/env/bin/activate; conda activate env\npython train.py --lr 0.1 \\\n  --seed 3",
        "timeout 2h python train.py --seed 3 --lr 0.1",
        "bash -c 'python train.py --lr 0.1 --seed 3'",
        "conda run -n env python train.py --lr 0.1 --seed 3",
        "uv run python train.py --lr 1 --seed 2",
        "python train.py --lr 0.1 --seed 3 2>&1 | tee log.txt",
        "stdbuf -oL python -W ignore train.py --lr=0.1 --seed=3",
    ],
    ["python -m pkg.train --epochs 3", "python3 -m pkg.train --epochs=40"],
    ["bash x.sh 3 cifar", "bash ./x.sh 44 cifar", "bash -e /a/b/x.sh 5 cifar"],
    ["bash {work_dir}/train.sh car --uni_id {uni_id}", "bash /home/me/train.sh car --uni_id 0123456789abcdef"],
    ["torchrun --nproc_per_node 2 --master_port 29500 train.py --lr 0.1", "torchrun --nproc_per_node=4 a/train.py --lr 2"],
    ["python -m torch.distributed.run --nproc_per_node 2 train.py --lr 1", "python3 -m torch.distributed.run train.py --lr=2"],
    ["python -m jostle.torchrun --max-restarts 3 train.py --lr 1", "python -m jostle.torchrun train.py --lr 2"],
    ["python main.py model=resnet +optim.lr=0.1 seed=1", "python main.py seed=2 model=vit +optim.lr=3"],
    ["python train.py -lr 0.1 -n5", "python train.py -n 7 -lr 3"],
    ["python -c 'print(1)'", "python -c 'print(22.5)'"],
    ["LR=0.1 SEED=3 bash run.sh", "SEED=4 LR=7 bash run.sh"],
    ["python eval.py runs/a.ckpt", "python eval.py /other/b.pt"],
    ["accelerate launch --num_processes 2 train.py --lr 1", "accelerate launch train.py --lr 2"],
    ["srun --gres gpu:1 python train.py --lr 1", "srun python train.py --lr 3"],
]


@pytest.mark.parametrize("texts", ALIKE, ids=lambda texts: texts[0][:40])
def test_jobs_that_differ_in_values_only_have_one_key(texts: list[str]) -> None:
    assert {text: command_key([text]) for text in texts} == dict.fromkeys(texts, command_key([texts[0]]))


def test_no_two_kinds_of_jobs_have_one_key() -> None:
    keys = [command_key([texts[0]]) for texts in ALIKE]
    others = [
        "python train.py --lr 0.1",
        "python train2.py --lr 1 --seed 2",
        "python train.py --lr 0.1 --seed 3 --amp",
        "python main.py train",
        "python main.py eval",
        "bash x.sh 3 mnist",
        "python prepare.py && python train.py --lr 1 --seed 2",
        "./train.py --lr 1 --seed 2",
        "AMP=1 python train.py --lr 1 --seed 2",
    ]
    keys += [command_key([text]) for text in others]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("commands", "key"),
    [
        (["python train.py --lr 0.1 --seed 3"], "python train.py --lr --seed"),
        ([["python", "train.py", "--name", "a b; c", "--lr", "3"]], "python train.py --lr --name"),
        (["cd /x", "python a.py", "python b.py 3"], "python a.py; python b.py #"),
        (["LR=1 torchrun --nproc_per_node 2 t.py --x 1"], "LR= torchrun t.py --x"),
        (["cd /x"], "cd *"),
        ([], ""),
        ([""], ""),
        (["echo 'unbalanced"], "echo 'unbalanced"),
    ],
)
def test_a_key_can_be_read(commands: list[str], key: str) -> None:
    assert command_key(commands) == key


def test_no_text_is_too_odd_or_too_long() -> None:
    deep = "bash -c 'bash -c \"bash -c \\\"bash -c x\\\"\"'"
    odd = ["((((", "a" * 100_000, deep, "\x00\ud800", "> > >", "--", "-", "=", "env", "bash -c", "$(x) `y`"]
    keys = [command_key([text]) for text in odd]
    assert all(len(key) <= LONGEST for key in keys)
    longs = {command_key(["python " + "x" * 1000 + end]) for end in ("a", "b")}
    assert len(longs) == 2 and all(len(key) <= LONGEST for key in longs)


def test_of_a_huge_job_only_so_much_is_read() -> None:
    many = [f"./x{k} " + "y" * 500 for k in range(10_000)]
    assert command_key(many) == command_key(many[: READ // 500 + 1]) != command_key(many[:10])
    assert command_key([f"./x{k}" for k in range(10_000)]) == command_key([f"./x{k}" for k in range(COMMANDS)])
    assert command_key(["./x " + "y" * 1_000_000]) == command_key(["./x " + "y" * (READ - 4)])
    assert command_key([["./x", "y" * 1_000_000, "z"], "./w"]) == command_key([["./x", "y" * (READ - 4)]])
    ten = ["python train.py --config " + "y" * 500 + f" --step{k}" for k in "abcdefghij"]
    assert len({command_key(ten[:k]) for k in range(10)}) == 10, "what people write is read whole"


HUGE = ["--a" + "1" * 900_000 + "%", "-a" + "1." * 450_000 + "%", "<" * 900_000 + "(", "1" * 900_000 + "%", "a.b/" * 200_000]


@pytest.mark.parametrize("word", HUGE, ids=lambda word: word[:6])
def test_the_time_a_word_takes_grows_with_its_length_and_no_quicker(word: str) -> None:
    """A limit of the kernel on the processor's time, not a clock: what is quadratic would need hours for these."""
    code = f"import sys; sys.path.insert(0, {SOURCE!r}); from jostle.core import commandkey as c; c.READ = 10**7\n"
    code += "c.command_key(['true ' + sys.stdin.read()])"

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (10, 10))

    child = subprocess.run([sys.executable, "-c", code], input=word, text=True, preexec_fn=limited, capture_output=True)
    assert child.returncode == 0, child.stderr[-500:]


@pytest.mark.parametrize(
    ("word", "name"),
    [("-n5", "-n"), ("-n5=3", "-n5"), ("--top5", "--top5"), ("-a1b2", "-a1b"), ("-a%", None)],
)
def test_a_number_behind_a_short_option_is_its_value(word: str, name: str | None) -> None:
    assert commandkey._name(word) == name


@pytest.mark.parametrize(("text", "key"), [("x >|f", "x"), ("x 2>&1 y", "x y"), ("x |& tee f", "x"), ("x && y", "x; y")])
def test_where_output_goes_is_no_part_of_a_key(text: str, key: str) -> None:
    assert command_key([text]) == key


PLAIN = [text for texts in ALIKE for text in texts if not {"'", "\\", "&"} & set(text)]


@pytest.mark.parametrize("text", PLAIN)
def test_with_or_without_a_quote_a_command_is_read_alike(text: str) -> None:
    """The one without is read by a quicker way."""
    assert command_key([f"A='' {text}"]) == f"A= {command_key([text])}" or text.startswith(("LR=", "SEED="))
