"""Every error a person may meet, each with the exit code of the command line.

An error says what happened, to which thing, and what can be done about it.
"""

TIME_IS_UP, INTERRUPTED = 124, 130
"""Exit codes of what is no error: a limit of time, and Ctrl-C."""


class JostleError(Exception):
    """Something that a person is told in one sentence, without a traceback."""

    exit_code = 1
    code = "failed"


class Usage(JostleError):
    exit_code = 2
    code = "usage"


class Unfit(Usage):
    """One thing of those that a person gave is not to be had so. Whoever took it from them knows what it is called there."""

    def __init__(self, what: str, text: str = "", **params: object) -> None:
        super().__init__(f"{what} {text}")
        self.what, self.text, self.params = what, text, params


class NoEngine(JostleError):
    exit_code = 3
    code = "no_engine"


class Stopped(NoEngine):
    """A person has stopped it, so nobody starts it by the way."""


class NotFound(JostleError):
    exit_code = 4
    code = "not_found"


class Forbidden(JostleError):
    exit_code = 5
    code = "forbidden"


class Invalid(JostleError):
    """Bad input; nothing of it was taken."""

    exit_code = 6
    code = "invalid"


class Declined(JostleError):
    """What is asked for is not to be had now: a code and its numbers, of which wording.declined has the sentence."""

    code = "declined"

    def __init__(self, text: str, why: str = "", params: dict[str, object] | None = None) -> None:
        super().__init__(text)
        self.why: dict[str, object] = {"code": why, "params": params or {}}

    @property
    def about(self) -> dict[str, object]:
        return {"declined": self.why}


class Damaged(JostleError):
    """State that must not be touched until a person has looked at it."""

    code = "damaged"


class Unwritten(JostleError):
    """Nothing could be recorded. It is tried again, and may pass by itself; the code is also the name of the hold."""

    code = "unwritten"


class DiskFull(Unwritten):
    code = "disk_full"


class DiskError(Unwritten):
    code = "disk_error"


BY_CODE: dict[str, type[JostleError]] = {
    kind.code: kind
    for kind in (JostleError, Usage, NoEngine, NotFound, Forbidden, Invalid, Declined, Damaged, Unwritten, DiskFull, DiskError)
}
