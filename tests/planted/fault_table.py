"""Faults put into the code on purpose, and the tests that must turn red for each: does a promise's test see the promise broken?

Each fault is one replacement in one file, as somebody might make it. A text that is not there exactly once is stale, which is an
error: then the fault is to be written anew. `promise` is the number in docs/reliability.md, or a row of its table of faults.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Fault:
    promise: str
    file: str  # under src/jostle
    right: str
    wrong: str
    seen_by: tuple[str, ...]  # tests, each of which turns red


FAULTS: dict[str, Fault] = {
    "an_answer_before_the_disk_has_it": Fault(
        promise="1",
        file="store/store.py",
        right="PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}",
        wrong="PRAGMA synchronous = NORMAL",
        seen_by=("tests/store/test_store.py::test_a_commit_waits_for_the_disk_unless_told_not_to",),
    ),
    "a_sync_that_asks_nobody": Fault(
        promise="1",
        file="store/store.py",
        right="                os.fdatasync(self.journal)\n",
        wrong="                pass\n",
        seen_by=("tests/store/test_store.py::test_sync_is_for_what_did_not_wait_and_says_when_the_disk_fails",),
    ),
    "a_run_that_was_taken_is_started_again": Fault(
        promise="2",
        file="backends/local/sparedir.py",
        right="            return False\n        self.path = directory\n",
        wrong="            pass\n        self.path = directory\n",
        seen_by=(
            "tests/backends/test_sparedir.py::test_of_many_processes_exactly_one_gets_the_run",
            "tests/backends/test_sparedir.py::test_void_and_start_exclude_each_other",
        ),
    ),
    "an_exit_record_that_is_not_forced": Fault(
        promise="3",
        file="backends/local/shim.py",
        right="            os.fsync(fd)\n            _sync_directory(directory)\n",
        wrong="            pass\n",
        seen_by=("tests/backends/test_exit_record.py::test_an_end_that_no_engine_confirms_is_forced_to_the_disk",),
    ),
    "a_shim_known_by_its_handle_alone": Fault(
        promise="4",
        file="backends/local/process.py",
        right=" and proc.alive(pid, ticks) and is_shim(pid)\n",
        wrong=" and proc.alive(pid, ticks)\n",
        seen_by=(
            "tests/backends/test_stopping.py::test_a_handle_that_names_a_stranger_is_no_proof",
            "tests/backends/test_stopping.py::test_a_handle_that_names_the_shim_of_another_run_is_no_proof",
        ),
    ),
    "a_shim_known_by_its_pid_alone": Fault(
        promise="4",
        file="backends/local/process.py",
        right="os.geteuid() and proc.alive(pid, ticks) and is_shim(pid)\n",
        wrong="os.geteuid() and is_shim(pid)\n",
        seen_by=(
            "tests/backends/test_proof.py::test_a_shims_pid_with_another_start_is_another_process_and_is_not_signalled",
        ),
    ),
    "a_claim_that_shows_before_its_lock": Fault(
        promise="5",
        file="backends/local/leases.py",
        right="""        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.fchmod(fd, HELD_AUTOMATICALLY if automatic else HELD)
        inode = os.fstat(fd).st_ino
        os.rename(hidden, f"{directory}/{name}")
""",
        wrong="""        os.fchmod(fd, HELD_AUTOMATICALLY if automatic else HELD)
        inode = os.fstat(fd).st_ino
        os.rename(hidden, f"{directory}/{name}")
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
""",
        seen_by=("tests/backends/test_proof.py::test_at_no_line_of_the_code_is_a_claim_visible_without_its_lock",),
    ),
    "cards_of_two_hosts_on_one_table": Fault(
        promise="5",
        file="core/table.py",
        right="self.cards = cards_of(world, node.gpus, runs)",
        wrong="self.cards = cards_of(world, world.gpus, runs)",
        seen_by=(
            "tests/core/test_properties.py::test_cards_of_several_hosts_are_never_mixed",
            "tests/core/test_properties.py::test_what_happens_on_one_host_does_not_depend_on_another",
            "tests/core/test_nodes.py::test_a_job_for_three_cards_is_not_pieced_together_from_two_hosts",
        ),
    ),
    "an_old_reading_is_believed": Fault(
        promise="6",
        file="engine/observe.py",
        right='        if state in ("ok", "starting") and age > FRESH_FOR:\n',
        wrong='        if state in ("ok", "starting") and age > 1e9:\n',
        seen_by=("tests/faults/test_probe.py::test_while_the_probe_hangs_nothing_is_free_and_everything_else_goes_on",),
    ),
    "a_missing_database_is_begun_anew": Fault(
        promise="7",
        file="store/store.py",
        right="    if runs:\n",
        wrong="    if False:\n",
        seen_by=(
            "tests/store/test_store.py::test_a_missing_database_beside_runs_is_refused",
            "tests/e2e/test_errors.py::test_a_missing_database_beside_runs_is_not_begun_anew",
        ),
    ),
    "waits_by_the_wall_clock": Fault(
        promise="8",
        file="engine/clock.py",
        right="        return self.boottime() + self.offset\n",
        wrong="        return self.wall()\n",
        seen_by=("tests/faults/test_clocks.py::test_the_engines_clock_knows_nothing_of_wall_clock_changes",),
    ),
    "a_job_that_waits_without_a_reason": Fault(
        promise="9",
        file="core/decide.py",
        right="                waits[job.shape] = answer\n",
        wrong="                pass\n",
        seen_by=("tests/core/test_properties.py::test_no_plan_breaks_the_laws",),
    ),
    "a_socket_that_hears_everybody": Fault(
        promise="10",
        file="engine/server.py",
        right="        uid = struct.unpack(\"3i\", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]\n",
        wrong="        uid = os.getuid()\n",
        seen_by=("tests/users/test_users.py::test_another_user_is_not_heard_even_where_no_mode_of_a_file_keeps_him_out",),
    ),
    "a_claim_that_vanished_is_forgotten": Fault(
        promise="F14",
        file="backends/local/leasedir.py",
        right="        return live_claims + self._vanished(before.values(), live_claims, inodes) + list(beyond.values())\n",
        wrong="        return live_claims + list(beyond.values())\n",
        seen_by=(
            "tests/users/test_users.py::test_a_claim_deleted_before_its_run_has_allocated_lets_nobody_in",
            "tests/backends/test_leases.py::test_a_claim_that_was_seen_counts_for_as_long_as_it_is_held_whatever_becomes_of_its_file",
        ),
    ),
    "a_lost_journal_is_not_missed": Fault(
        promise="F25",
        file="store/store.py",
        right="            if (newest := seen.last_seq(self.db)) < expected:\n",
        wrong="            if (newest := seen.last_seq(self.db)) < 0:\n",
        seen_by=("tests/store/test_seen.py::test_side_files_missing_after_a_kill_lose_nothing_in_silence",),
    ),
    "out_of_processes_is_the_jobs_fault": Fault(
        promise="F19",
        file="backends/local/commands.py",
        right="                self._unable = first and e.errno in NO_PROCESS\n",
        wrong="                self._unable = False\n",
        seen_by=("tests/backends/test_no_process.py::test_a_run_whose_first_command_gets_no_process_has_not_begun",),
    ),
}

EACH_COMMIT = (
    "an_answer_before_the_disk_has_it", "an_exit_record_that_is_not_forced", "a_shim_known_by_its_pid_alone",
    "a_claim_that_shows_before_its_lock", "waits_by_the_wall_clock", "cards_of_two_hosts_on_one_table",
)  # fmt: skip
