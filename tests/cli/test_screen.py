"""What reaches a terminal: nothing it would obey but colours, however the text came in."""

import os
import pty
import re
import subprocess
import sys

from hypothesis import example, given
from hypothesis import strategies as st

from jostle.cli import screen

# written from what terminals obey (ECMA-48), not from the filter
OBEYED = re.compile(rb"\x1b(?!\[[0-9;]*[mK])|[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]|\xc2[\x80-\x9f]")
PARTS = [b"\x1b", b"[", b"31m", b"]0;title\x07", b"2J", b"\x9b", b"\xc2", b"\xd0\x9b", b"\xd0", b"a", b";"]


def passed(parts):
    feed = screen.LogFilter().feed
    return b"".join(feed(part) for part in parts)


def test_a_terminal_gets_no_sequence_that_does_more_than_colour():
    assert passed([b"\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b[2J\r\n\t"]) == b"\x1b[31mred\x1b[0m?]0;title\x07?[2J\r\n\t"


@given(st.lists(st.sampled_from(PARTS)))
@example([b"\x1b", b"]0;title\x07"])
@example([b"\xc2", b"\x9b", b"2J"])
def test_where_a_log_is_cut_into_pieces_makes_no_difference(parts):
    whole = b"".join(parts)
    shown = passed(parts)
    assert shown == passed([whole])
    assert not OBEYED.search(shown)


@given(st.text(st.characters(min_codepoint=0x20, exclude_categories=("Cc", "Cs"))))
def test_text_of_any_language_passes_whole(text):
    assert passed([bytes([byte]) for byte in text.encode()]) == text.encode()


def test_controls_of_eight_bits_are_taken_out_and_letters_that_hold_such_bytes_are_not():
    assert passed([b"\x9b2J\x90q\x9d0;t\x07"]) == b"?2J?q?0;t\x07"
    assert passed(["Лес 中文 é".encode()]) == "Лес 中文 é".encode()
    assert passed([b"caf\xe9\n"]) == b"caf\xe9\n", "an older alphabet"


def on_a_terminal(*argv, cwd):
    """What a terminal is given by a command."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, "-m", "jostle", *argv], stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd)
    os.close(theirs)
    shown = b""
    try:
        while data := os.read(ours, 4096):
            shown += data
    except OSError:
        pass  # Linux tells the end of a terminal's other side as EIO
    child.wait()
    os.close(ours)
    return shown


def test_an_error_cannot_make_the_terminal_do_anything(tmp_path):
    name = "\x1b]0;owned\x07\x9b2J\u202egpj.yaml"
    (tmp_path / name).write_text("jobs: 7\n")
    for argv in (("validate", name), ("run", name), ("logs", "\x1b[2J"), ("\x1b[2J",)):
        shown = on_a_terminal(*argv, cwd=tmp_path)
        assert shown and not OBEYED.search(shown) and b"\x07" not in shown and "\u202e".encode() not in shown, argv
