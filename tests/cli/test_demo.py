"""The demo shows what is so at one moment."""

from jostle.cli import demo


def test_a_job_that_starts_while_the_picture_is_taken_is_not_said_to_wait(capsys):
    class World:
        started = False

        def call(self, op, **_):
            self.started = self.started or op == "reasons"
            return {"gpus": []} if op == "gpus" else {"shapes": {"1": {"code": "its own", "text": "it waits for itself"}}}

        def events(self, after):
            return [{"seq": 1, "kind": "batch_ended", "job": None, "data": {}}]

        def jobs(self):
            state = "running" if self.started else "queued"
            return [{"id": 1, "name": "a", "queue": None, "shape": 1, "ready": 1, "state": state}]

    class Terminal:
        interactive, language, colours, width = True, "en", False, 80

    demo.follow(World(), World(), Terminal())
    first = capsys.readouterr().out
    world = World()
    demo.follow(world, world, Terminal())
    assert "why a waits" in first and "why a waits" not in capsys.readouterr().out
