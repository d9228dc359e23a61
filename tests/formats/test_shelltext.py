"""Values in shell texts: bash sees exactly the value, or the text is refused; no value is ever executed."""

import json
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jostle.experiments.load import load
from jostle.experiments.template import Template
from jostle.formats.flaws import BadFiles
from jostle.formats.shelltext import Unclear, open_end

# what is accepted, and the arguments that a program must see, with the value as <>
ACCEPTED = {
    "{v}": ["<>"],
    '"a{v}b" \'c{v}d\' x={v}y': ["a<>b", "c<>d", "x=<>y"],
    "'it'\\''s' {v} \\' {v}": ["it's", "<>", "'", "<>"],
    "\"it's\" {v} \"'{v}'\" '\"{v}\"'": ["it's", "<>", "'<>'", '"<>"'],
    "\"$(printf '%s.' {v} \"{v}\" '{v}')\" {v}": ["<>.<>.<>.", "<>"],
    '"$(printf %s. "$(printf %s, "{v}")" \')\' {v})"': ["<>,.).<>."],
    "a # it's a comment\nprintf '%s\\0' {v}": ["a", "<>"],
    "a#it\\'s {v} \\ #{v} '' {v}": ["a#it's", "<>", " #<>", "", "<>"],
    '"${HOME:+x}" ${#} $((1 << 2)) {v} "${HOME:+y}{v}" "$?{v}"': ["x", "0", "4", "<>", "y<>", "0<>"],
    "<<<word {v}": ["<>"],
    "{x,{v}} {{v}} ~{v} [{v}] a[{v}b]": ["x", "<>", "{<>}", "~<>", "[<>]", "a[<>b]"],
    "{v} \\\n {v} \\\n\\#{v} 2>&1 {v} &>/dev/stdout": ["<>", "<>", "#<>", "<>"],
    '{v} "`echo x`"': ["<>", "x"],
    "{v} <<'EOF'\nit's $(no) `code`\nEOF\n": ["<>"],
    "{v}</dev/null": ["<>"],
    "\na=(x --y $z 3)\nprintf '%s\\0' \"${a[@]}\" {v}": ["", "x", "--y", "3", "<>"],
}
NASTY = st.sampled_from(
    ["'", '"', "\\", "`touch OWNED`", "$(touch OWNED)", "\n", " ", "#", ";", "|", "&", "$HOME", "${HOME}", "!", "*", "~", "{a,b}",
     "1..3", ",", "=", "(", ")", "]", "[", "2", "a", "a-z", "if", "PATH=x", "EOF", "\ntouch OWNED\n", "esac", "%s", "-", "é",
     "\t", "<", ">", "\r", "root"]
)  # fmt: skip


@given(st.lists(NASTY, max_size=6).map("".join))
@settings(max_examples=25, deadline=None)
@example("'; touch OWNED; '")
@example("x' $(touch OWNED) `touch OWNED`\n\"touch OWNED\n")
@example("1..3")
@example("b,c")
@example("2")
@example("root")
def test_b10_bash_sees_exactly_the_value_in_every_accepted_place(tmp_path_factory, value):
    there = tmp_path_factory.mktemp("empty")
    script, wanted = "", []
    for text, words in ACCEPTED.items():
        script += "\nprintf '%s\\0' " + Template(text, {"v"}, shell=True).filled({"v": value}) + "\n"
        wanted += [word.replace("<>", value) for word in words]
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True, timeout=60, cwd=there)
    # $( ) itself drops newlines at its end; every text in it ends with another character
    assert done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1] == wanted
    assert not list(there.iterdir())


REFUSED = {
    "cat <<EOF\nit's\nEOF\nx {v}": "a here-document",
    "cat <<-EOF\n{v}\nEOF": "a here-document",
    'echo "$(cat <<EOF\n)\nEOF\n)" {v}': "a here-document",
    "x `echo {v}`": "backquotes",
    'x "`echo {v}`"': "backquotes",
    "x `date` {v}": "backquotes",
    '"$(case x in x) cmd {v};; esac)"': "case inside",
    '"$(f() { :; }; cmd {v})"': "parentheses inside",
    '"$([[ x =~ [(] ]] && cmd {v})"': "[[ inside",
    "\"$(x # it's )\n {v})\"": "a comment inside",
    "x # {v}": "a comment",
    "x {args}#{v}": "# directly after",
    "x $'a{v}'": "$'",
    "x $'it\\'s' {v}": "$'",
    'x $"{v}"': '$"',
    '"${X:-{v}}"': "inside of ${",
    "\"${X:-'}\" {v}": "inside of ${",
    "$(({v}+1))": "arithmetic",
    "((x={v}))": "arithmetic",
    "$[{v}]": "arithmetic",
    "[[ 1 -eq {v} ]]": "arithmetic test",
    "x >&{v}": "a redirection",
    "x >& {v}": "a redirection",
    "x 2>&1{v}": "a redirection",
    "cat <\\\n<EOF\nit's\nEOF\n {v}": "in the middle of a word",
    "x \"$\\\n(echo {v})\"": "in the middle of a word",
    "a=(&& {v}": "an array",
    "a=({v})": "an array",
    "x \\{v}": "a backslash",
    'x "\\{v}"': "a backslash",
    'x "$DIR{v}"': "write ${DIR}",
}


@pytest.mark.parametrize("text", REFUSED)
def test_b10_a_place_that_nobody_can_follow_for_certain_is_refused(text):
    with pytest.raises(Unclear) as caught:
        Template(text, {"v", "args"}, shell=True, raw=("args",))
    assert REFUSED[text] in str(caught.value)
    Template(text, {"other"}, shell=True)  # without a place it is nobody's business


def test_b10_a_refusal_names_the_file_the_line_and_what_to_do(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("matrix: {v: [a]}\ncommand: |\n  cat <<EOF\n  {v}\n  EOF\n")
    with pytest.raises(BadFiles) as caught:
        load([str(path)])
    ((file, line, words),) = caught.value.flaws
    assert (file, line) == (str(path), 2) and "a here-document (<<)" in words
    assert "expected a list: a program and its arguments, or a variable of `job: env`" in words


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("printf '%s\\0' {args}", ["--note", "$(touch OWNED)'"]),
        ("printf '%s\\0' \"x {args}\"", ["x --note '$(touch OWNED)'\"'\"''"]),
        ("bash -c \"printf '%s\\0' {args}\"", ["--note", "$(touch OWNED)'"]),
        ("bash -c 'printf \"%s\\0\" {args}'", ["--note", "$(touch OWNED)'"]),
    ],
)
def test_b10_args_inside_of_quotes_are_not_executed_either(tmp_path, text, seen):
    (tmp_path / "s.json").write_text(json.dumps({"command": text, "matrix": {"note": ["$(touch OWNED)'"]}}))
    (batch,) = load([str(tmp_path / "s.json")])
    command = batch["jobs"][0]["commands"][0]
    out = subprocess.run(["bash", "-c", command], capture_output=True, check=True, timeout=60, cwd=tmp_path).stdout
    assert out.decode().split("\0")[:-1] == seen
    assert not (tmp_path / "OWNED").exists()


def test_b10_a_redirection_takes_no_number_from_the_arguments(tmp_path):
    text = Template("echo {args}>out", {"args"}, shell=True, raw=("args",)).filled({"args": "--seed 2"})
    subprocess.run(["bash", "-c", text], check=True, timeout=60, cwd=tmp_path)
    assert (tmp_path / "out").read_text() == "--seed 2\n"


def test_b10_words_are_added_only_where_they_are_words():
    assert [open_end(text) for text in ("x", "x 'a'", "x # y\nz")] == [""] * 3
    assert all(open_end(text) for text in ("x # y", "x 'y", 'x "y', "cat <<EOF\nx\nEOF", "x \\"))
