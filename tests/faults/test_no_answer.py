"""An engine that does not answer: dead after the commit, dead before it, or standing still. Nobody is left in the dark."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable

import pytest

from jostle import client
from jostle.cli.main import main
from jostle.intake import request
from tests.e2e.instance import Instance, until


@pytest.fixture
def here(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> Instance:
    """Verbs may be run in this process, and lose their patience soon."""
    instance.up("sim:1x24")
    instance.ok("down")
    monkeypatch.setattr(request, "SUBMIT_WITHIN", 0.5)
    for key, value in instance.env.items():
        monkeypatch.setenv(key, value)
    monkeypatch.chdir(instance.work)
    return instance


def test_a_submit_that_every_engine_dies_of_after_it_was_taken_is_answered_from_the_store(
    here: Instance, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JOSTLE_FAILPOINTS", "service.after_commit=kill")
    assert (main(["add", "--hold", "--", "true"]), capsys.readouterr().out) == (0, "1\n")
    monkeypatch.setenv("JOSTLE_FAILPOINTS", "")
    assert here.states() == {1: "queued"}


def test_a_submit_whose_answer_cannot_be_learnt_is_perhaps_taken_and_can_be_repeated_by_its_key(
    here: Instance, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JOSTLE_FAILPOINTS", "service.before_commit=kill")
    assert main(["add", "--hold", "--", "true"]) == 3
    said = capsys.readouterr()
    found = re.search(r"perhaps taken.*`(--once [0-9a-f]{32})`", said.err)
    assert found and said.out == "", said
    monkeypatch.setenv("JOSTLE_FAILPOINTS", "")
    again = ["add", *found[1].split(), "--hold", "--", "true"]
    assert (main(again), main(again), capsys.readouterr().out) == (0, 0, "1\n1\n")
    assert here.states() == {1: "queued"}


def test_an_engine_that_was_never_reached_has_taken_nothing(
    here: Instance, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JOSTLE_FAILPOINTS", "engine.recovered=kill")
    assert main(["add", "--hold", "--", "true"]) == 3
    assert "perhaps" not in capsys.readouterr().err
    monkeypatch.setenv("JOSTLE_FAILPOINTS", "")


class Verb:
    """A verb that runs, and what it has said so far."""

    def __init__(self, instance: Instance, *words: str) -> None:
        self.words, self.said = words, ""
        self.child = instance.start(*words)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.child.stderr is not None
        for line in self.child.stderr:
            self.said += line

    def end(self) -> int:
        try:
            return self.child.wait(60)
        finally:
            if self.child.poll() is None:
                self.child.kill()
            self.reader.join()


GO_ON = (["add", "--hold", "--", "true"], ["cancel", "1"], ["wait", "1"], ["run", "--detach", "jobs.yaml"], ["logs", "-f", "1"])
DO_WITHOUT = (["ps"], ["show", "1"], ["why", "1"])
GIVE_UP = (["status"], ["gpus"], ["up"], ["doctor"])


def test_every_verb_says_within_five_seconds_that_the_engine_does_not_answer(
    make_instance: Callable[..., Instance],
) -> None:
    """Then it waits, does without, or ends, as befits the verb."""
    assert client.PATIENCE < 5
    one, other = make_instance("one"), make_instance("other")
    for instance in (one, other):
        instance.up("sim:1x24")
        instance.submit({"intent": "hold"})
    one.file("jobs: [{name: a, run: 'true'}]")
    engines = [one.engine, other.engine]
    for pid in engines:
        os.kill(pid, signal.SIGSTOP)
    try:
        verbs = [Verb(one, *words) for words in (*GO_ON, *DO_WITHOUT, *GIVE_UP)] + [Verb(other, "down")]
        for verb in verbs:
            until(lambda verb=verb: "does not answer" in verb.said and "kill -CONT" in verb.said, f"{verb.words} says so")
        for verb in verbs:
            if list(verb.words) in DO_WITHOUT:
                assert verb.end() == 0, verb.said
            elif list(verb.words) in GIVE_UP:
                assert verb.end() in (1, 3), verb.said
            else:
                assert verb.child.poll() is None, "it waits for the engine"
    finally:
        for pid in engines:
            os.kill(pid, signal.SIGCONT)
    for verb in verbs:
        if list(verb.words) not in (*DO_WITHOUT, *GIVE_UP):
            assert verb.end() == {"wait": 1, "logs": 4}.get(verb.words[0], 0), (verb.words, verb.said)  # job 1 is cancelled
            assert verb.said.count("does not answer") == 1
    added = verbs[0].child.stdout
    assert added is not None
    (held,) = map(int, added.read().split())  # the file's job may have come before it
    assert sorted(one.states()) == [1, 2, 3] and one.states([1, held]) == {1: "cancelled", held: "queued"}
