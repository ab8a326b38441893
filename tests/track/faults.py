"""The faults, what each must lead to, and the tests that play them: the source of the page `docs/fault-matrix.md`.

Nothing is said here that no test shows: which store a test plays a fault on is taken from the tests themselves
(`matrix.py`), and a cell without any says "not tested".
"""

from __future__ import annotations

from tests.track.fault import ANYWHERE, Fault

SUITE = "src/tenure/testing/conformance/"
PG, FILE, SYSTEM, WORKER = "tests/postgres/", "tests/sqlite/", "tests/system/", "tests/worker/"
PROVE = "tests/proof/test_prove.py::"
SIMULATED = "tests/simulation/test_histories.py::"
REAL = {"sqlite": "S", "postgres": "S"}

FAULTS = (
    # -- workers
    Fault(
        "a worker stands still for longer than its lease, then goes on",
        "SIGSTOP and SIGCONT of real processes; a simulated pause",
        {"memory": "F", "sqlite": "F", "postgres": "F"},
        (
            f"{SYSTEM}test_zombies.py::test_a_late_worker_changes_nothing",
            "sqlite: tests/demo/test_demo.py::test_a_late_worker_changes_nothing_where_there_is_a_fence",
            f"sqlite: {PROVE}test_late_workers_change_nothing_on_sqlite",
            f"postgres: {PROVE}test_late_workers_change_nothing_on_a_managed_postgres",
            f"{SIMULATED}test_no_history_breaks_a_promise",
        ),
    ),
    Fault(
        "a worker is killed",
        "SIGKILL at any moment and at named points",
        {"sqlite": "L", "postgres": "L"},
        (
            f"{SYSTEM}test_crashes.py::test_b08_killing_workers_at_any_moment_loses_no_job",
            f"{SYSTEM}test_crashes.py::test_b08_a_worker_that_dies_at_a_named_point_loses_no_job",
            f"{SYSTEM}test_zombies.py::test_a_dead_workers_jobs_are_taken_over_whoever_else_stands_still",
        ),
    ),
    Fault(
        "a worker's host sleeps, or its virtual machine stands still",
        "a clock that jumps inside the test; no machine is stopped",
        {ANYWHERE: "F"},
        (
            f"{WORKER}test_context.py::test_r21_the_gate_closes_with_the_lease_whoever_is_asleep",
            f"{WORKER}test_lease.py::test_r14_after_a_jump_of_the_wall_clock_the_store_is_asked_once",
            f"{WORKER}test_context.py::test_r14_after_a_jump_of_the_wall_clock_the_gate_asks_the_store",
        ),
    ),
    Fault(
        "a handler blocks its loop, its processor or, in a child process, the interpreter for several leases",
        "handlers that do so",
        REAL,
        (
            f"{SYSTEM}test_zombies.py::test_b06_a_job_that_blocks_everything_keeps_its_lease",
            f"sqlite: {WORKER}test_process.py::test_a_handler_that_holds_the_interpreter_for_three_leases_runs_once",
        ),
    ),
    Fault(
        "a handler never ends",
        "a handler that waits for ever",
        {"sqlite": "L", "postgres": "L", ANYWHERE: "L"},
        (
            f"{SYSTEM}test_limits.py::test_b36_a_hung_job_gives_up_its_slot_in_every_mode",
            f"{WORKER}test_warden.py::test_b36_a_run_that_does_not_stop_is_left_behind_after_the_patience",
        ),
    ),
    Fault(
        "a job kills every worker that runs it",
        "a handler that kills its process",
        {"memory": "L", "sqlite": "L", "postgres": "L"},
        (
            f"{SYSTEM}test_crashes.py::test_b13_a_job_that_kills_its_workers_is_put_aside_with_their_names",
            f"{SUITE}leases.py::test_a_poison_job_is_discarded_and_its_last_owner_is_stale",
        ),
    ),
    Fault(
        "a process forks while it holds leases and connections",
        "os.fork",
        {"sqlite": "S", "postgres": "S", ANYWHERE: "S"},
        (
            f"{SYSTEM}test_forks.py::test_b22_a_forked_server_loses_nothing_that_its_parents_and_children_stored",
            f"{PG}test_fork.py::test_children_and_parent_use_connections_of_their_own",
            f"{FILE}test_sharing.py::test_b22_forked_children_use_connections_of_their_own",
            f"{WORKER}test_lease.py::test_r24_a_forked_child_does_not_own_the_lease",
            f"{WORKER}test_app_leases.py::test_r24_a_forked_child_is_somebody_else",
        ),
    ),
    Fault("a whole process or virtual machine is cloned", "not brought about", "F", ()),
    Fault(
        "wrong wall clocks of workers, an hour ahead and behind",
        "an offset inside real processes",
        {"sqlite": "S", "postgres": "S", ANYWHERE: "S"},
        (
            f"{SYSTEM}test_zombies.py::test_b38_a_wrong_wall_clock_steals_nothing_and_hides_nothing",
            f"{WORKER}test_lease.py::test_r14_the_wall_clock_never_decides",
        ),
    ),
    Fault(
        "many claim at once",
        "threads and processes that all want one job",
        {"memory": "S", **REAL},
        (
            f"{SUITE}crowd.py::test_a_job_is_claimed_by_one_of_many",
            f"{SUITE}crowd.py::test_a_crowd_keeps_the_invariants",
            f"{SYSTEM}test_crowd.py::test_b34_a_crowd_with_clean_ups_and_bulk_actions_does_not_deadlock",
        ),
    ),
    Fault(
        "a job is cancelled, or taken away, while it runs",
        "operators' verbs",
        {"memory": "F", "sqlite": "F", "postgres": "F"},
        (f"{SUITE}operators.py::test_r2_taking_a_job_away_makes_its_owner_stale_at_once",),
    ),
    # -- between worker and store
    Fault(
        "an answer is lost after the request was carried out",
        "the answer is dropped by the suite, by a proxy, in the simulation",
        {"memory": "U", "sqlite": "U", "postgres": "U"},
        (
            f"{SUITE}crash.py::test_a_lost_answer_leaves_all_of_it_once",
            f"{SUITE}crash.py::test_a_lost_claim_is_found_and_given_back",
            f"{PG}test_faults.py::test_a_lost_answer_is_unknown_and_repeating_makes_one_job",
        ),
    ),
    Fault(
        "a request is carried out twice",
        "repeated by the suite and by the driver",
        {"memory": "S", **REAL},
        (
            f"{SUITE}endings.py::test_r7_a_repeated_end_is_answered_already",
            f"{SUITE}basics.py::test_a_repeated_id_is_stored_once",
            f"{PG}test_faults.py::test_a_driver_that_may_repeat_hides_a_lost_answer",
        ),
    ),
    Fault(
        "a connection is lost, also in the middle of a commit",
        "cut at every place of the exchange; a crash before the commit",
        {"memory": "U", "sqlite": "U", "postgres": "U"},
        (
            f"{SUITE}crash.py::test_a_crash_before_the_commit_leaves_nothing",
            f"{PG}test_faults.py::test_a_cut_request_happens_whole_or_not_at_all",
            f"{PG}test_faults.py::test_an_end_of_the_server_in_the_middle_is_unknown",
        ),
    ),
    Fault(
        "a worker is cut off from its store",
        "a proxy that refuses or swallows; a file that somebody else locks; a scripted store",
        {"sqlite": "L", "postgres": "L", ANYWHERE: "L"},
        (
            f"{SYSTEM}test_connections.py::test_b04_a_worker_that_is_cut_off_claims_nothing_and_lives_on",
            f"sqlite: {SYSTEM}test_connections.py::test_b04_a_file_that_somebody_else_locks_for_long_is_waited_for",
            f"{WORKER}test_warden.py::test_r20_a_run_whose_lease_ended_unrenewed_is_stopped_and_settles_nothing",
            f"{WORKER}test_feeder.py::test_nothing_is_claimed_while_leases_cannot_be_renewed",
        ),
    ),
    Fault(
        "the store's server stands still",
        "SIGSTOP of the server; packets that are swallowed",
        {"postgres": "L"},
        (
            f"{PG}test_faults.py::test_a_frozen_server_holds_nobody",
            f"{PG}test_faults.py::test_swallowed_packets_hold_nobody",
        ),
    ),
    Fault(
        "a pooler lends a connection for one transaction only",
        "a pooler of the tests' own, with the limits of the known ones",
        {"postgres": "S"},
        (
            f"{PG}test_pooler.py::test_many_workers_share_few_connections",
            f"{PG}test_pooler.py::test_nothing_is_left_in_a_shared_session",
        ),
    ),
    # -- the store
    Fault(
        "the store's server is killed and started again",
        "an immediate stop and SIGKILL, with real workers",
        {"postgres": "L"},
        (
            f"postgres: {SYSTEM}test_connections.py::test_b04_a_restarted_server_is_found_again",
            f"postgres: {PROVE}test_late_workers_change_nothing_on_a_managed_postgres",
        ),
    ),
    Fault("power is cut", "not brought about", {"sqlite": "S", "postgres": "S"}, ()),
    Fault(
        "settings under which a power cut could undo an acknowledged commit",
        "`synchronous_commit=off` of the server; what the store sets in its own file is looked at",
        {"sqlite": "S", "postgres": "X"},
        (
            f"{FILE}test_file.py::test_r42_every_commit_is_synced",
            f"{PG}test_admission.py::test_a_weak_commit_is_refused",
        ),
    ),
    Fault(
        "tables that a crash empties",
        "`UNLOGGED`",
        {"postgres": "X"},
        (f"{PG}test_admission.py::test_a_table_that_a_crash_empties_is_refused",),
    ),
    Fault(
        "a commit stops waiting for a synchronous standby",
        "a standby that does not exist; the wait is cancelled",
        {"postgres": "U"},
        (f"{PG}test_faults.py::test_a_commit_whose_standby_did_not_confirm_is_unknown",),
    ),
    Fault(
        "the store's last claim is lost, as in a failover",
        "another identity of the server; a simulated store that forgets",
        {"memory": "S", **REAL},
        (
            f"{PG}test_admission.py::test_a_changed_identity_raises_the_floor_before_any_claim",
            f"{SIMULATED}test_a_store_that_lost_a_claim_goes_on_above_it",
        ),
    ),
    Fault(
        "an older state is put back, or the file is copied",
        "a copied file; `tenure recover`; a destination that is ahead",
        {"memory": "S", **REAL, ANYWHERE: "S"},
        (
            f"{FILE}test_file.py::test_r44_a_copied_file_raises_its_floor_before_anything_is_claimed",
            f"{SUITE}upkeep.py::test_r44_a_recovery_raises_the_floor_above_anything_issued",
            f"{WORKER}test_effects.py::test_r41_a_store_that_was_set_back_follows_its_destination",
        ),
    ),
    Fault(
        "the store's clock is ahead: leases end early",
        "the suite moves the store's clock",
        {"memory": "F", "sqlite": "F", "postgres": "F"},
        (f"{SUITE}leases.py::test_r5_after_a_takeover_the_old_owner_changes_nothing",),
    ),
    Fault(
        "the store's clock is set back",
        "a real server under libfaketime, where that is installed, with real workers",
        {"postgres": "L"},
        (f"postgres: {PROVE}test_jumps_of_the_stores_clock_let_no_late_worker_through",),
    ),
    Fault(
        "the host is started again",
        "another identity of the boot",
        {"sqlite": "S"},
        (f"{FILE}test_file.py::test_a_reboot_ends_every_lease",),
    ),
    Fault(
        "the store's disk is full",
        "a file system without room, where one may be mounted, with real workers; PostgreSQL panics in it",
        {"sqlite": "L", "postgres": "L"},
        (f"{PROVE}test_a_full_disk_of_the_store_is_waited_for",),
    ),
    Fault(
        "the store turns read-only",
        "a server that does so under working workers",
        {"postgres": "L"},
        (
            f"postgres: {SYSTEM}test_connections.py::test_b04_a_server_that_turns_read_only_is_waited_for",
            f"{PG}test_faults.py::test_a_server_that_turns_read_only_is_unavailable",
        ),
    ),
    Fault(
        "a standby is named as the store",
        "a server in recovery",
        {"postgres": "X"},
        (f"{PG}test_admission.py::test_a_standby_is_refused",),
    ),
    Fault(
        "the file lies on a network file system",
        "a table of mounts that says so",
        {"sqlite": "X"},
        (f"{FILE}test_file.py::test_b09_a_network_file_system_is_refused",),
    ),
    Fault(
        "a job's row stays locked until its lease has ended, and is then let go unchanged",
        "a second session; a clock that is read after the lock",
        REAL,
        (
            f"{PG}test_leases.py::test_a_renewal_behind_a_lock_that_outlasts_the_lease_is_refused",
            f"{FILE}test_file.py::test_r12_the_clock_is_read_after_the_lock",
        ),
    ),
    Fault(
        "a caller's transaction stays open",
        "transactions of the callers' own",
        {"memory": "L", "sqlite": "L", "postgres": "S"},
        (
            "tests/conformance/test_memory.py::test_an_open_transaction_keeps_others_out_for_no_longer_than_their_patience",
            f"{FILE}test_sharing.py::test_b09_a_writer_that_never_lets_go_is_told_within_the_limit",
            "postgres: tests/fences/test_same_database.py::test_a_transaction_that_is_left_open_holds_up_no_other_job",
            f"{PG}test_leases.py::test_an_open_transaction_does_not_shorten_a_lease",
        ),
    ),
    Fault(
        "a job's id is removed and comes back",
        "prune, and enqueue again",
        {"memory": "S", **REAL},
        (f"{SUITE}upkeep.py::test_r3_an_id_that_comes_back_goes_on_above_its_old_generations",),
    ),
)

FENCES = "tests/fences/"
KILLED = "test_the_owner_of_a_killed_writer_may_repeat_and_is_told_the_truth"
RULE = "src/tenure/testing/fences/rule.py::"
AT_DESTINATIONS = (
    Fault(
        "an older write comes after a newer one",
        "held back and let go",
        "X",
        (
            f"{RULE}test_r31_an_older_generation_is_refused_and_told_what_it_met",
            f"{RULE}test_r31_without_the_fence_the_late_write_does_its_damage",
        ),
    ),
    Fault(
        "an older write comes when the new owner has read, and not written yet",
        "held back and let go; also between real processes",
        "X",
        (
            f"{RULE}test_r32_a_late_write_before_the_new_owners_first_is_refused",
            f"{RULE}test_r32_without_the_announcement_it_would_have_passed",
        ),
    ),
    Fault("a write comes twice", "repeated", "X", (f"{RULE}test_r33_a_repeated_write_is_applied_once",)),
    Fault(
        "two writes of one run come swapped", "swapped", "X", (f"{RULE}test_r33_a_write_that_was_overtaken_is_refused",)
    ),
    Fault(
        "many write at once",
        "eight writers",
        "S",
        (
            "src/tenure/testing/fences/crowd.py::test_the_highest_write_of_a_crowd_is_what_stays",
            "src/tenure/testing/fences/crowd.py::test_a_write_that_arrives_from_everywhere_is_applied_once",
        ),
    ),
    Fault(
        "what the fence protects is removed",
        "removed, then an older write",
        "X",
        (f"{RULE}test_r35_the_fence_outlives_what_it_protects",),
    ),
    Fault(
        "two jobs write to one place",
        "tokens of two jobs",
        "X",
        (f"{RULE}test_r36_tokens_of_two_jobs_are_never_compared",),
    ),
    Fault(
        "a write comes without a token, or with one that cannot be judged",
        "missing, garbled, negative, too long",
        "X",
        (f"{RULE}test_r37_a_write_without_a_fit_token_is_refused",),
    ),
    Fault(
        "a bogus generation, far too high",
        "999999999999999",
        "X",
        (
            f"{RULE}test_r38_a_leap_of_a_few_restores_passes_and_a_bogus_one_does_not",
            f"{RULE}test_r38_a_reset_frees_a_scope_and_leaves_its_reason",
        ),
    ),
    Fault(
        "the answer to a write is lost",
        "a proxy between real processes; a kill at every step",
        {"http": "U", "files": "U", "sql": "U", "redis": "U", "s3": "U"},
        (
            f"redis: {FENCES}test_redis_marks.py::test_without_retries_a_lost_answer_is_unknown_and_repeating_tells",
            f"http: {FENCES}test_http_network.py::test_a_lost_answer_is_asked_for_again",
            f"files: {FENCES}test_files_processes.py::{KILLED}",
        ),
    ),
    Fault(
        "the destination's disk or memory is full",
        "calls of the system that fail; a server with a limit",
        {"files": "U", "sql": "U", "redis": "X", "s3": "U", "http": "U"},
        (
            f"redis: {FENCES}test_redis_marks.py::test_a_full_server_changes_nothing",
            f"files: {FENCES}test_files_special.py::test_a_disk_that_fails_before_the_decision_changes_nothing",
            f"files: {FENCES}test_files_special.py::test_a_disk_that_fails_after_the_decision_is_told_as_unknown",
        ),
    ),
)
