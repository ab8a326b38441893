"""The line before the write lock: in order, bounded, no longer than it must be, and of this process only."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tenure import Unavailable
from tenure.ids import new_job_id, new_owner
from tenure.protocol.job import Claimer, Enqueued, NewJob, Wanted
from tenure.protocol.lease import Token
from tenure.protocol.op import Op
from tenure.store.sqlite import SqliteStore, forks, turnstile
from tenure.store.sqlite import store as module
from tenure.store.sqlite.turnstile import Place, Turnstile, turnstile_of
from tests.support.processes import wait_for

LONG = 20.0  # longer than any test waits
STALLED = turnstile._STALLED


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(str(tmp_path / "jobs.db"))
    enqueue(opened)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def nobody_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody pass by a thread that was only late: who is lost is the matter of one test, which has its clock."""
    monkeypatch.setattr(turnstile, "_STALLED", 10 * LONG)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


@pytest.fixture
def other(store: SqliteStore) -> Iterator[sqlite3.Connection]:
    """A connection that has the write lock, as another process would."""
    with closing(sqlite3.connect(store.path, isolation_level=None, check_same_thread=False)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


def job() -> NewJob:
    return NewJob(new_job_id(), "work", lease=60.0)


def enqueue(store: SqliteStore, timeout: float = LONG) -> list[Enqueued]:
    return store.connect(timeout=timeout).do(store.verbs.enqueue, [job()])


def in_line(store: SqliteStore, count: int) -> Callable[[], bool]:
    line = turnstile_of(store.path)._line
    return lambda: len(line) == count


def is_inside(store: SqliteStore) -> bool:
    return turnstile_of(store.path)._inside is not None


# -- in the store


def test_a_renewal_is_next_however_fast_another_thread_commits(store: SqliteStore, pool: ThreadPoolExecutor) -> None:
    renewing = SqliteStore(str(store.path))
    keeper, me = renewing.dedicated(timeout=LONG), Claimer(new_owner(), "w")
    (taken,) = keeper.do(renewing.verbs.claim, me, Wanted(("default",), ("work",), 1))
    order: list[str] = []
    began, renewed = threading.Event(), threading.Event()

    def commit() -> Op[None]:
        yield from store.verbs.enqueue([job()])
        order.append("commit")
        if not began.is_set():
            began.set()
            wait_for(in_line(store, 1), LONG, "a thread stands in line")

    def renew() -> Op[None]:
        assert (yield from renewing.verbs.renew(me.owner, [Token(taken.id, taken.generation)])) == []
        order.append("renewal")

    def commit_without_pause() -> None:
        driver = store.connect(timeout=LONG)
        while not renewed.is_set():
            driver.do(commit)

    busy = pool.submit(commit_without_pause)
    assert began.wait(LONG)
    try:
        keeper.do(renew)
    finally:
        renewed.set()
    busy.result()
    assert order[:2] == ["commit", "renewal"]
    renewing.close()


def test_threads_take_the_lock_in_the_order_they_came(
    store: SqliteStore, other: sqlite3.Connection, pool: ThreadPoolExecutor
) -> None:
    order: list[int] = []

    def numbered(number: int) -> Op[None]:
        yield from store.verbs.enqueue([job()])
        order.append(number)

    waiting: list[Future[None]] = []
    for number in range(4):
        waiting.append(pool.submit(store.connect(timeout=LONG).do, numbered, number))
        wait_for(lambda: is_inside(store), LONG, "a thread is inside")
        wait_for(in_line(store, number), LONG, "the next stands in line")
    other.execute("ROLLBACK")
    for done in waiting:
        done.result()
    assert order == [0, 1, 2, 3]


def test_who_gives_up_leaves_the_line(store: SqliteStore, other: sqlite3.Connection, pool: ThreadPoolExecutor) -> None:
    patient = pool.submit(enqueue, store)
    wait_for(lambda: is_inside(store), LONG, "a thread is inside")
    with pytest.raises(Unavailable, match="locked by another writer"):
        enqueue(store, timeout=0.0)
    assert in_line(store, 0)()
    other.execute("ROLLBACK")
    patient.result()
    assert not is_inside(store)


def test_a_lock_that_is_not_let_go_of_is_told_and_the_place_given_up(
    store: SqliteStore, other: sqlite3.Connection
) -> None:
    with pytest.raises(Unavailable, match="locked by another writer"):
        enqueue(store, timeout=0.05)
    assert not is_inside(store)


def test_an_operation_that_asks_again_keeps_its_place(store: SqliteStore, other: sqlite3.Connection) -> None:
    def stubborn() -> Op[list[Enqueued]]:
        try:
            return (yield from store.verbs.enqueue([job()]))
        except Unavailable:
            other.execute("ROLLBACK")
            return (yield from store.verbs.enqueue([job()]))

    (stored,) = store.connect(timeout=0.0).do(stubborn)
    assert stored.created


def test_a_callers_transaction_does_not_stand_in_line(
    store: SqliteStore, other: sqlite3.Connection, pool: ThreadPoolExecutor
) -> None:
    """Who is inside waits for the lock that the caller has: in line, the caller would wait for itself."""
    inside = pool.submit(enqueue, store)
    wait_for(lambda: is_inside(store), LONG, "a thread is inside")
    joined = pool.submit(store.join(other).do, store.verbs.enqueue, [job()])
    assert joined.result(timeout=LONG / 2)
    other.execute("COMMIT")
    inside.result()
    (counts,) = store.connect(timeout=LONG).do(store.verbs.queues)
    assert counts.due == 3


def test_a_caller_that_waits_for_itself_is_told_in_time(store: SqliteStore, other: sqlite3.Connection) -> None:
    store.join(other).do(store.verbs.enqueue, [job()])
    with pytest.raises(Unavailable, match="locked by another writer"):
        enqueue(store, timeout=0.05)
    other.execute("COMMIT")
    enqueue(store)


def test_what_only_reads_does_not_stand_in_line(store: SqliteStore) -> None:
    place = entered(turnstile_of(store.path))
    assert store.connect(timeout=0.0).do(store.verbs.queues)
    turnstile_of(store.path).leave(place)


# -- of one process


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_waits_for_nobody_who_waits_for_the_lock(
    store: SqliteStore, other: sqlite3.Connection, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_QUIET", 2 * LONG)
    waiting = [pool.submit(enqueue, store) for _ in range(2)]
    wait_for(in_line(store, 1), LONG, "a thread stands in line")
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    other.execute("ROLLBACK")
    assert [done.result()[0].created for done in waiting] == [True, True]


def test_a_fork_that_is_over_hurries_nobody() -> None:
    forks._forking.add(-1)  # another thread, which forks at the same time
    pid = os.fork()
    if pid == 0:
        os._exit(1 if forks.under_way() else 0)
    assert os.waitpid(pid, 0)[1] == 0
    assert forks.under_way()
    forks._forking.remove(-1)
    assert not forks.under_way()


def test_a_forked_child_has_a_line_of_its_own(store: SqliteStore) -> None:
    assert turnstile_of(store.path).enter(0.0) is not None  # by a thread that the child does not have
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            place = turnstile_of(store.path).enter(0.0)
            status = 0 if place is not None else 2
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_finds_the_short_lock_free(pool: ThreadPoolExecutor) -> None:
    taken, forked = threading.Event(), threading.Event()

    def hold() -> None:
        with forks.brief:
            taken.set()
            forked.wait(0.3)  # in vain: the fork comes after

    holding = pool.submit(hold)
    assert taken.wait(LONG)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if forks.brief.acquire(blocking=False) else 1)
    forked.set()
    holding.result()
    assert os.waitpid(pid, 0)[1] == 0


def test_every_name_of_a_file_leads_to_one_line(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(store.path)
    assert turnstile_of(tmp_path / "link.db") is turnstile_of(store.path)
    (tmp_path / "another.db").touch()
    assert turnstile_of(tmp_path / "another.db") is not turnstile_of(store.path)


# -- alone


class Moment:
    """A clock that a test moves, and that sleeping moves too."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += seconds

    def turnstile(self) -> Turnstile:
        return Turnstile(self.clock, self.sleep)


def entered(line: Turnstile) -> Place:
    place = line.enter(0.0)
    assert place is not None
    return place


def test_a_lost_place_does_not_stop_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Passing(Moment):
        def clock(self) -> float:
            self.now += 0.1
            return self.now

    monkeypatch.setattr(turnstile, "_STALLED", STALLED)
    line = Passing().turnstile()
    entered(line)  # its thread was interrupted before it could leave
    assert line.enter(0.5) is None
    assert line.enter(20.0) is not None


def test_an_interrupted_thread_leaves_the_line() -> None:
    class Interrupted(Moment):
        def sleep(self, seconds: float) -> None:
            raise KeyboardInterrupt

    moment = Interrupted()
    line = moment.turnstile()
    place = entered(line)
    moment.now += 0.05
    line.leave(place, held=0.05)
    with pytest.raises(KeyboardInterrupt):
        line.enter(0.0)
    assert line._inside is None


def test_a_signals_handler_may_use_the_store_at_any_moment() -> None:
    line = Moment().turnstile()

    def interrupted() -> None:
        with forks.brief:
            line.leave(entered(line))

    thread = threading.Thread(target=interrupted, daemon=True)
    thread.start()
    thread.join(LONG)
    assert not thread.is_alive()


def hold(moment: Moment, line: Turnstile, seconds: float) -> list[float]:
    """Have the lock for so long; return the gaps that were left before."""
    moment.slept.clear()
    place: Any = entered(line)
    moment.now += seconds
    line.leave(place, held=seconds)
    return list(moment.slept)


def test_other_processes_get_a_gap_when_a_tenth_of_the_time_adds_up() -> None:
    moment = Moment()
    line = moment.turnstile()
    assert [hold(moment, line, 0.010) for _ in range(5)] == [[], [], [0.002], [], [0.002]]


def test_time_between_transactions_is_a_gap_already() -> None:
    moment = Moment()
    line = moment.turnstile()
    for _ in range(10):
        assert hold(moment, line, 0.010) == []
        moment.now += 0.001
    hold(moment, line, 0.018)
    moment.now += 0.001
    assert hold(moment, line, 0.010) == []


def test_a_gap_is_short_however_long_the_lock_was_held() -> None:
    moment = Moment()
    line = moment.turnstile()
    hold(moment, line, 10.0)
    assert hold(moment, line, 0.001) == [0.005]
