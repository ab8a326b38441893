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


def test_it_rings_for_a_commit_while_it_waits(bell: FileBell) -> None:
    timer = threading.Timer(0.05, commit, (bell,))
    timer.start()
    began = time.monotonic()
    assert bell.wait(10.0)
    assert time.monotonic() - began < 5.0
    timer.join()
    assert not bell.wait(0.01)


def test_it_rings_for_a_commit_before_it_waited(bell: FileBell) -> None:
    commit(bell)
    assert bell.wait(0.0)
    assert not bell.wait(0.0)


def test_it_can_be_woken(bell: FileBell) -> None:
    bell.wake()
    assert not bell.wait(10.0)


def test_it_hardly_works_while_nothing_happens(bell: FileBell) -> None:
    before = time.thread_time()
    assert not bell.wait(0.5)
    assert time.thread_time() - before < 0.1
