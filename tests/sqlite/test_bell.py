"""The bell of a SQLite file: it rings for others' commits, sleeps otherwise, can be woken, and outlives forks."""

import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tenure import Unavailable
from tenure.store.sqlite import SqliteStore, forks
from tenure.store.sqlite import bell as module
from tenure.store.sqlite.bell import FileBell
from tenure.store.sqlite.turnstile import turnstile_of

LONG = 20.0


@pytest.fixture(params=["inotify", "polling"])
def bell(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileBell]:
    if request.param == "polling":
        monkeypatch.setattr(module, "inotify", lambda: None)
    store = SqliteStore(str(tmp_path / "jobs.db"))
    with closing(store), closing(store.bell()) as opened:
        yield opened


def commit(bell: FileBell) -> None:
    with closing(sqlite3.connect(bell._path)) as connection:
        connection.execute("UPDATE tenure_store SET floor = floor + 1")
        connection.commit()


def rings_soon(bell: FileBell) -> bool:
    """Tell whether it rings long before it is asked to be done; it looks once more at the end, which shows nothing."""
    began = time.monotonic()
    return bell.wait(LONG) and time.monotonic() - began < LONG / 2


def test_it_rings_for_a_commit_while_it_waits(bell: FileBell) -> None:
    timer = threading.Timer(0.05, commit, (bell,))
    timer.start()
    assert rings_soon(bell)
    timer.join()
    assert not bell.wait(0.01)


def test_it_rings_for_a_commit_before_it_waited(bell: FileBell) -> None:
    commit(bell)
    assert bell.wait(0.0)
    assert not bell.wait(0.0)


def test_it_rings_for_a_commit_that_a_slow_disk_syncs_late(bell: FileBell, monkeypatch: pytest.MonkeyPatch) -> None:
    before, asked = bell._seen, bell._version
    synced_at = time.monotonic() + 1000 * module._SOON
    monkeypatch.setattr(bell, "_version", lambda: before if time.monotonic() < synced_at else asked())
    commit(bell)
    assert rings_soon(bell)


def test_it_rings_for_a_commit_whose_write_was_seen_with_the_one_before(
    bell: FileBell, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = bell._seen
    versions = iter([before, before, *[before + 1] * 5])  # each becomes visible when it has been asked for a few times
    monkeypatch.setattr(bell, "_version", lambda: next(versions, before + 2))
    commit(bell)
    commit(bell)
    assert [rings_soon(bell), rings_soon(bell)] == [True, True]
    assert not bell.wait(0.01)


def test_it_leaves_this_process_alone_after_a_commit_of_its_own(tmp_path: Path) -> None:
    """To ask, and to claim for what it rings for, would keep the jobs waiting that the commit has claimed."""
    with closing(SqliteStore(str(tmp_path / "jobs.db"))) as store, closing(store.bell()) as bell:
        place = turnstile_of(store.path).enter(0.0)
        assert place is not None
        bell._stirred_at = now = time.monotonic()
        assert bell._pause(now) == module._OWN
        turnstile_of(store.path).leave(place)
        assert 0.0 <= bell._pause(now) <= module._OWN
        bell._empty_for = lambda: module._OWN
        assert [bell._pause(now), bell._pause(now + 1.0)] == [module._SOON, pytest.approx(module._PATIENT)]


def test_it_can_be_woken(bell: FileBell) -> None:
    bell.wake()
    assert not bell.wait(10.0)


def test_it_hardly_works_while_nothing_happens(bell: FileBell) -> None:
    before = time.thread_time()
    assert not bell.wait(0.5)
    assert time.thread_time() - before < 0.1


def fork(child: Callable[[], bool] = lambda: True) -> bool:
    """Fork, and tell whether `child` was true there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = 0 if child() else 1
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1] == 0


def test_a_fork_under_a_waiting_thread_takes_no_descriptor_from_it(
    bell: FileBell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a fork closes between the poll and the read would fail the read, or let it read what is somebody else's."""
    read, forked = os.read, list[bool]()

    def read_late(descriptor: int, size: int) -> bytes:
        if not forked:
            forked.append(fork())
        return read(descriptor, size)

    monkeypatch.setattr(os, "read", read_late)
    commit(bell)
    bell._seen = bell._version()
    threading.Timer(0.05, commit, (bell,)).start()
    bell.wake()
    bell.wait(LONG)
    assert forked == [True]
    while not bell.wait(LONG):
        pass


def test_it_rings_for_commits_after_a_fork_though_the_log_was_removed_meanwhile(bell: FileBell) -> None:
    assert fork()
    while bell.wait(LONG):  # a ring too many, until it notes that the fork has woken it
        pass
    threading.Timer(0.05, commit, (bell,)).start()
    assert rings_soon(bell)


def test_a_fork_finds_no_connection_of_it_open(bell: FileBell) -> None:
    assert bell._connection is not None
    assert fork(lambda: bell._connection is None)


def test_a_closed_bell_is_told_of_no_fork_and_wakes_nobody(tmp_path: Path) -> None:
    with closing(SqliteStore(str(tmp_path / "jobs.db"))) as store:
        bell = store.bell()
        bell.close()
        bell.close()
        assert bell not in forks._members
        bell.wake()
        bell.before_fork()
        bell.after_fork()
        with pytest.raises(Unavailable, match="closed"):
            bell.wait(0.0)


def open_descriptors() -> set[str]:
    """Name the open descriptors of this process, and the one that lists them."""
    return {path.name for path in Path("/dev/fd").iterdir()}


def test_a_bell_that_cannot_be_opened_leaves_nothing_behind(tmp_path: Path) -> None:
    opened = open_descriptors()
    before = set(forks._members)
    with pytest.raises(Unavailable):
        FileBell(tmp_path / "no folder" / "jobs.db")
    assert set(forks._members) == before
    assert open_descriptors() <= opened


def test_a_forked_child_has_no_bell_of_its_parents(bell: FileBell) -> None:
    assert fork(lambda: bell._closed and bell not in forks._members)
    assert not bell._closed


def test_wakes_that_nobody_hears_hold_nobody_up(bell: FileBell) -> None:
    for _ in range(70_000):  # more than a pipe holds
        bell.wake()
    assert not bell.wait(LONG)
