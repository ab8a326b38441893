"""Who is told of forks: everybody, in whatever state the others are, and nobody who came too late is left open."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from contextlib import closing
from pathlib import Path

import pytest

from tenure import App, State
from tenure.store.sqlite import SqliteStore, forks
from tests.support.processes import wait_for


class Member:
    """Notes what it is told, and may fail."""

    def __init__(self, *failing: str) -> None:
        self._failing = failing
        self.told: list[str] = []

    def _tell(self, what: str) -> None:
        self.told.append(what)
        if what in self._failing:
            raise OSError(what)

    def before_fork(self) -> None:
        self._tell("before")

    def after_fork(self) -> None:
        self._tell("after")


class Late(Member):
    """Makes another member while it is told."""

    def before_fork(self) -> None:
        super().before_fork()
        self.made = Member()
        forks.watch(self.made)


class Slow(Member):
    """Has another thread fork while it is told for the first time."""

    def before_fork(self) -> None:
        super().before_fork()
        if len(self.told) == 1:
            self.other = threading.Thread(target=fork)
            self.other.start()
            self.other.join(0.5)
            self.overtaken = not self.other.is_alive()


def fork() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def others_go_on(store: SqliteStore) -> bool:
    """Tell whether another thread can use the store, and what is taken for moments."""
    done: list[bool] = []

    def use() -> None:
        store.connect(timeout=1.0).do(store.verbs.queues)
        with forks.brief:
            done.append(True)

    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    thread.join(20.0)
    return done == [True]


@pytest.mark.parametrize("when", ["before", "after"])
def test_every_member_is_told_whatever_another_one_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    raised: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: raised.append(str(unraisable.exc_value)))
    members = [Member(when), Member(), Member(when)]
    with closing(SqliteStore(str(tmp_path / "jobs.db"))) as store:
        for member in members:
            forks.watch(member)
        for count in (1, 2):
            fork()
            assert [member.told for member in members] == [["before", "after"] * count] * 3
            assert raised == [when] * count
        assert others_go_on(store)
    for member in members:
        forks.forget(member)


def test_who_comes_while_a_fork_is_prepared_is_told_too() -> None:
    late = Late()
    forks.watch(late)
    fork()
    assert late.made.told == ["before", "after"]


def test_threads_fork_one_at_a_time() -> None:
    slow, quick = Slow(), Member()
    forks.watch(slow)
    forks.watch(quick)
    fork()
    slow.other.join(20.0)
    assert not slow.overtaken
    assert slow.told == quick.told == ["before", "after"] * 2


def test_who_is_forgotten_is_told_nothing() -> None:
    member = Member()
    forks.watch(member)
    forks.forget(member)
    fork()
    assert member.told == []


def test_b22_handlers_that_fork_leave_the_worker_alone(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")

    @app.task
    def work() -> None:
        fork()

    worker = app.worker(threads=4, retention=None)
    worker.start()
    jobs = [stored.id for stored in work.enqueue_many([{}] * 60)]
    wait_for(
        lambda: not worker.healthy() or all(app.client.get(job).state is State.COMPLETED for job in jobs),
        60.0,
        "the jobs to be done",
    )
    assert worker._crash is None
    worker.stop(grace=0)
    assert {app.client.get(job).generation for job in jobs} == {1}
    app.close()


def test_a_transaction_that_outlasts_the_patience_of_a_fork_is_waited_for_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that was given up as lost, and came back, would have left the count wrong for good."""
    monkeypatch.setattr("tenure.store.sqlite.store._QUIET", 0.0)
    store = SqliteStore(str(tmp_path / "jobs.db"))
    store.migrate()
    with store.session():
        store.before_fork()
        store.after_fork()
        assert store._lent == 1
    assert store._lent == 0
    with store.session():
        store.before_fork()
        monkeypatch.setattr(os, "getpid", lambda: 0)  # in the child, where nobody gives anything back
        store.after_fork()
        assert store._lent == 0
        monkeypatch.undo()
    store.close()
