"""The parts of the process executor, each alone: a lease's shared end, a job's requests, a process hard to kill."""

from __future__ import annotations

import os
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from tenure import App, Job, Lease, LeaseLost, Misuse, OutcomeUnknown, State, TenureError, Token, Unavailable
from tenure.clock import boot_clock
from tenure.protocol.job import Answer, Claimed, Ending, Verdict
from tenure.protocol.lifecycle import Verb
from tenure.worker.channel import Begin, Channel, Ended, Place, Told, from_child, from_worker
from tenure.worker.child import Requests
from tenure.worker.process import ProcessExecutor
from tenure.worker.run import Run, Stop
from tenure.worker.shared import SharedEnd, SharedLease, shared_memory
from tenure.worker.spawn import Spawned
from tests.support.processes import wait_for
from tests.worker import process_tasks as tasks
from tests.worker.processes import PATIENCE

TOKEN = Token("j1", 7)
CLAIMED = Claimed("j1", 7, State.RUNNING, "add", "default", 0, '{"a":1,"b":2}', 0, 0, None, 30.0, None, None)
DONE = Answer(TOKEN, Verdict.DONE)


def held(duration: float = 30.0, clock: Callable[[], float] = boot_clock) -> Lease:
    """Return a lease as its worker holds it."""
    return Lease(TOKEN, "owner", duration, clock(), renew=lambda *_: None, clock=clock)


@pytest.fixture
def ends() -> tuple[SharedEnd, SharedEnd]:
    """Return the same shared end twice: as the worker and as the child see it."""
    fd = shared_memory()
    try:
        return SharedEnd(fd), SharedEnd(fd)
    finally:
        os.close(fd)


# -- the end of the lease


def shared_lease(end: SharedEnd) -> SharedLease:
    return SharedLease(TOKEN, "owner", 30.0, end, renew=lambda *_: None)


def test_a_lease_whose_end_was_never_written_is_lost(ends: tuple[SharedEnd, SharedEnd]) -> None:
    assert shared_lease(ends[1]).lost


def test_the_childs_lease_follows_what_the_worker_writes(ends: tuple[SharedEnd, SharedEnd]) -> None:
    ours, theirs = ends
    lease, child = held(), shared_lease(theirs)
    left = lease.remaining()
    ours.put(lease)
    assert 0 < child.remaining() <= left
    child.check()
    lease.lose("another worker has it")
    ours.put(lease)
    assert child.lost
    with pytest.raises(LeaseLost, match="its time ran out"):
        child.check()


def test_a_child_cannot_move_the_end(ends: tuple[SharedEnd, SharedEnd]) -> None:
    ours, theirs = ends
    ours.put(held(2.0))
    child = shared_lease(theirs)
    child.renewed(boot_clock(), 3600.0)
    assert child.remaining() < 2.0


def test_only_what_remains_counts_on_another_clock(ends: tuple[SharedEnd, SharedEnd]) -> None:
    ours, theirs = ends
    ours.put(held(600.0, clock=lambda: 5_000_000_000.0))
    assert 500.0 < shared_lease(theirs).remaining() < 600.0


def test_the_shared_end_follows_the_lease_while_its_run_lasts(ends: tuple[SharedEnd, SharedEnd]) -> None:
    ours, theirs = ends
    lease, child = held(), shared_lease(theirs)
    lease.observe(ours.put)
    lease.renewed(lease.now(), 600.0)
    assert child.remaining() > 30.0
    lease.observe(None)
    lease.lose("the run ended")
    assert not child.lost
    lease.observe(ours.put)
    assert child.lost


# -- what a job asks for


@contextmanager
def asking(end: SharedEnd, *answers: Told, lease: Lease | None = None) -> Iterator[Requests]:
    """Give a job's requests to a worker that answers the first question with `answers`."""
    ours, theirs = socket.socketpair()
    told: queue.SimpleQueue[Told] = queue.SimpleQueue()
    end.put(lease or held())
    begin = Begin(Place((), "app", ()), CLAIMED, "owner", None)
    channel = Channel(ours.fileno(), from_child)

    def answer() -> None:
        if channel.receive() is not None:
            for each in answers:
                told.put(each)

    worker = threading.Thread(target=answer)
    worker.start()
    with ours, theirs:
        yield Requests(Channel(theirs.fileno(), from_worker), told, begin, end)
        theirs.shutdown(socket.SHUT_RDWR)
        worker.join()


def test_a_late_answer_is_not_taken_for_another_question(ends: tuple[SharedEnd, SharedEnd]) -> None:
    with asking(ends[0], Told(0, value="late"), Told(1, value='"paid"')) as requests:
        assert requests.recall_step("j1", "pay") == '"paid"'


@pytest.mark.parametrize("kind", [Unavailable, OutcomeUnknown, Misuse, TenureError])
def test_an_error_of_the_store_is_raised_in_the_job(ends: tuple[SharedEnd, SharedEnd], kind: type[TenureError]) -> None:
    with (
        asking(ends[0], Told(1, error=(kind.__name__, "the words"))) as requests,
        pytest.raises(kind, match=r"^the words$"),
    ):
        requests.progress("owner", TOKEN, "1")


def test_a_refused_extension_is_a_lost_lease(ends: tuple[SharedEnd, SharedEnd]) -> None:
    with (
        asking(ends[0], Told(1, error=("LeaseLost", "generation 8 took over"))) as requests,
        pytest.raises(LeaseLost, match="j1: the lease of generation 7 is lost: generation 8 took over"),
    ):
        requests.lease.extend(60.0)


def test_an_answer_is_awaited_as_long_as_the_lease_lasts(ends: tuple[SharedEnd, SharedEnd]) -> None:
    with asking(ends[0], lease=held(0.2)) as requests, pytest.raises(LeaseLost, match="its time ran out"):
        requests.record_step("owner", TOKEN, "pay", '"paid"')


# -- a process that is not gone after it was killed


class Defiant:
    """A process in a system call that nothing interrupts, until `interrupt` is called."""

    def __init__(self, end: SharedEnd) -> None:
        self.end = end
        self.kills = 0
        self.interrupted = threading.Event()

    def send(self, message: object) -> None:
        assert isinstance(message, Begin)

    def receive(self) -> None:
        self.interrupted.wait()

    def kill(self) -> None:
        self.kills += 1

    def reap(self) -> int:
        return -9


class Obedient(Defiant):
    """A process that answers at once."""

    def receive(self) -> Ended:  # type: ignore[override]
        return Ended(Ending(TOKEN, Verb.COMPLETE, result="3"))

    def idle(self) -> bool:
        return True

    def retire(self) -> None:
        self.kills += 1


def new_run(app: App, executor: ProcessExecutor) -> Run:
    lease = held()
    return Run(CLAIMED, lease, Job(CLAIMED, lease, app), app.tasks["add"], executor)


def test_a_slot_is_freed_when_its_process_defies_being_killed(ends: tuple[SharedEnd, SharedEnd]) -> None:
    finished: list[tuple[Run, Ending | None]] = []
    executor = ProcessExecutor(1, tasks.app)
    executor.open(lambda run, ending: finished.append((run, ending)))
    defiant, obedient = Defiant(ends[0]), Obedient(ends[1])
    coming = iter([defiant, obedient])
    executor._spawner.spawn = lambda: cast("Spawned", next(coming))  # type: ignore[method-assign]
    hung, healthy = new_run(tasks.app, executor), new_run(tasks.app, executor)
    executor.start([hung])
    wait_for(lambda: executor._processes[hung] is not None, PATIENCE, "the run to begin")
    assert list(executor._processes) == [hung]
    hung.stop = Stop("its lease is lost", None)
    executor.stop(hung)
    assert executor.abandon(hung)
    assert not executor.abandon(hung)
    assert defiant.kills == 2
    assert not executor._processes
    executor.start([healthy])
    wait_for(lambda: [run for run, _ in finished] == [healthy], PATIENCE, "the healthy run to end")
    defiant.interrupted.set()
    executor.close()
    assert [run for run, _ in finished] == [healthy]


def test_a_run_that_was_stopped_before_it_began_does_not_begin(ends: tuple[SharedEnd, SharedEnd]) -> None:
    finished: list[Ending | None] = []
    executor = ProcessExecutor(1, tasks.app)
    executor.open(lambda _run, ending: finished.append(ending))
    executor._spawner.spawn = lambda: cast("Spawned", Obedient(ends[0]))  # type: ignore[method-assign]
    run = new_run(tasks.app, executor)
    run.stop = Stop("the worker is shutting down", Verb.RELEASE)
    executor.start([run])
    wait_for(lambda: finished, PATIENCE, "the run to be reported")
    assert finished == [Ending(TOKEN, Verb.RELEASE, reason="the worker is shutting down")]
    executor.close()
