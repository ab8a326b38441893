"""The bell of a SQLite file: it rings for others' commits, sleeps otherwise, and can be woken."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tenure.store.sqlite import SqliteStore
from tenure.store.sqlite import bell as module
from tenure.store.sqlite.bell import FileBell

LONG = 20.0


@pytest.fixture(params=["inotify", "polling"])
def bell(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileBell]:
    if request.param == "polling":
        monkeypatch.setattr(module, "_watch", lambda _log: None)
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
    synced_at = time.monotonic() + 4 * module._ALERT
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


def test_it_can_be_woken(bell: FileBell) -> None:
    bell.wake()
    assert not bell.wait(10.0)


def test_it_hardly_works_while_nothing_happens(bell: FileBell) -> None:
    before = time.thread_time()
    assert not bell.wait(0.5)
    assert time.thread_time() - before < 0.1
