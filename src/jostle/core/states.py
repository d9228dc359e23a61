"""The states of a job, and every way from one to another. Depends on nothing; the diagram in the docs is drawn from it, and the
store takes no other way (store.ways)."""

QUEUED, STARTING, RUNNING, STOPPING = "queued", "starting", "running", "stopping"
SUCCEEDED, FAILED, CANCELLED, SKIPPED = "succeeded", "failed", "cancelled", "skipped"
NORMAL, ABNORMAL = "normal_exit", "abnormal_exit"  # what a program says itself of its end, by the uni_id protocol
READ = ("ok", "mig")  # states of a card that could be read
TO_END = ("cancel", "kill")  # intents of a person: it is to end

# state -> {next state: what brings it about}
TRANSITIONS: dict[str, dict[str, str]] = {
    QUEUED: {
        STARTING: "its GPUs are reserved and the run is recorded",
        CANCELLED: "a person cancels it, takes it out of its batch, or who waited for its cards has ended",
        SKIPPED: "a job it comes after did not succeed, its queue was closed, its allocation ended, or its work is done already",
        FAILED: "it waited longer than its limit",
    },
    STARTING: {
        RUNNING: "its shim has claimed the run",
        STOPPING: "a person cancels it, or its allocation is released",
        QUEUED: "the run was voided, or failed and is tried again",
        SUCCEEDED: "exit code 0",
        FAILED: "it failed and is not tried again",
        CANCELLED: "the run was voided or ended after a cancel",
    },
    RUNNING: {
        STOPPING: "a person cancels it, or its allocation is released",
        QUEUED: "the run failed and is tried again",
        SUCCEEDED: "exit code 0",
        FAILED: "it failed and is not tried again",
        CANCELLED: "the run ended after a cancel",
    },
    STOPPING: {
        CANCELLED: "its processes are gone",
        SUCCEEDED: "it ended with 0 before the signal reached it",
    },
    SUCCEEDED: {},
    FAILED: {},
    CANCELLED: {},
    SKIPPED: {},
}

ALL = tuple(TRANSITIONS)
UNFINISHED = tuple(s for s, ways in TRANSITIONS.items() if ways)
FINAL = tuple(s for s, ways in TRANSITIONS.items() if not ways)
RAN = (SUCCEEDED, FAILED)  # a run of it came to an end that counts
DROPPED = (CANCELLED, SKIPPED)  # it was not to run, or not to go on
UNSUCCESSFUL = tuple(s for s in FINAL if s != SUCCEEDED)
SUMMED = (RUNNING, STARTING, STOPPING, QUEUED, *FINAL)  # the order of a summary
OPEN = frozenset({STARTING, RUNNING, STOPPING})  # a run of it may be alive

OUTCOMES = (SUCCEEDED, FAILED, CANCELLED, "lost", "voided", "yielded")  # of runs

EVENTS = frozenset({
    *FINAL, *OPEN, "submitted", "requeued", "batch_ended", "held", "unheld", "cancel_wanted", "moved", "changed", "retried",
    "misplaced", "intruded", "unsupervised", "background", "republished", "vanished", "excluded", "included", "quarantined",
    "beyond", "idle", "busy_again", "resizing", "grown", "shrunk", "resized", "not_resized", "yielding", "paused", "continued",
    "reloaded", "rules_changed", "limits", "refused", "asked",
})  # fmt: skip
"""Their kinds; docs/json.md says what each is."""
