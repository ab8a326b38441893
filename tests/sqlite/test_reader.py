"""Looking at a file: nothing is made, and another user than the workers' may look while one of them has it open."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tenure import BadSettings, Unavailable
from tenure.ids import new_job_id
from tenure.protocol.job import NewJob
from tenure.store.sqlite import SqliteStore
from tenure.store.sqlite.clocks import Clocks

# Looks at a file of its own first, so that all is imported while this user may read it.
LOOK = """
import os, sys, tempfile
from tenure import TenureError
from tenure.store.sqlite import SqliteStore

def look(store):
    return [count.due for count in store.reader(timeout=5).do(store.verbs.queues)]

with tempfile.TemporaryDirectory() as folder:
    own = SqliteStore(folder + "/jobs.db")
    own.migrate()
    look(own)
    own.close()
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
assert not os.access(sys.argv[1], os.W_OK)
try:
    print(*look(SqliteStore(sys.argv[1])))
except TenureError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder of its own that others can enter; those of `tmp_path` are closed to them."""
    with tempfile.TemporaryDirectory() as made:
        place = Path(made) / "jobs"
        place.mkdir()
        for opened in (place.parent, place):
            opened.chmod(0o755)
        yield place
        place.chmod(0o755)


@pytest.fixture
def store(folder: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(str(folder / "jobs.db"))
    made.migrate()
    yield made
    made.close()


def enqueue(store: SqliteStore) -> None:
    store.connect(timeout=5).do(store.verbs.enqueue, [NewJob(new_job_id(), "work")])


def close_to_writing(folder: Path, *, files: int = 0o444) -> None:
    for file in folder.iterdir():
        file.chmod(files)
    folder.chmod(0o555)


def look(path: Path) -> str:
    """Look at a file as a user who may not write to it."""
    command = [sys.executable, "-c", LOOK, str(path)]
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=here)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_file_that_is_not_there_is_not_made(folder: Path) -> None:
    with pytest.raises(BadSettings, match="there is no store"):
        SqliteStore(str(folder / "typo.db")).reader(timeout=5)
    with pytest.raises(BadSettings, match="there is no folder"):
        SqliteStore(str(folder / "no" / "typo.db")).reader(timeout=5)
    with pytest.raises(BadSettings, match="is a folder"):
        SqliteStore(str(folder)).reader(timeout=5)
    assert list(folder.iterdir()) == []


def test_the_database_of_another_program_is_left_as_it_is(folder: Path) -> None:
    path = folder / "ledger.db"
    with closing(sqlite3.connect(path)) as ledger, ledger:
        ledger.execute("CREATE TABLE charges (cents INTEGER)")
    before = path.read_bytes()
    with pytest.raises(BadSettings, match="holds no tables of Tenure"):
        SqliteStore(str(path)).reader(timeout=5)
    assert path.read_bytes() == before
    assert [file.name for file in folder.iterdir()] == ["ledger.db"]


def test_who_may_write_looks_as_ever(store: SqliteStore) -> None:
    enqueue(store)
    assert store.reader(timeout=5).do(store.verbs.queues)[0].due == 1


def test_another_user_looks_while_the_file_is_open_and_sees_what_is_new(store: SqliteStore, folder: Path) -> None:
    enqueue(store)
    close_to_writing(folder)
    assert look(store.path) == "1"
    for count in (2, 3, 4):
        enqueue(store)
        assert look(store.path) == str(count)
    assert sorted(file.name for file in folder.iterdir()) == ["jobs.db", "jobs.db-shm", "jobs.db-wal"]


def test_another_user_looks_at_what_a_killed_process_left(store: SqliteStore, folder: Path) -> None:
    enqueue(store)
    left = folder.parent / "left"
    shutil.copytree(folder, left)
    store.close()
    close_to_writing(left)
    assert look(left / "jobs.db") == "1"
    left.chmod(0o755)


def test_a_file_that_nobody_has_open_is_refused_with_the_reason(store: SqliteStore, folder: Path) -> None:
    store.close()
    close_to_writing(folder)
    told = look(store.path)
    assert told.startswith(f"BadSettings {store.path} can be read by this user but not written")
    assert "needs its -wal and -shm files" in told


def test_no_files_are_made_that_would_lock_the_workers_out(store: SqliteStore, folder: Path) -> None:
    store.close()
    store.path.chmod(0o444)
    folder.chmod(0o777)
    if os.getuid() == 0:  # otherwise the folder's owner is also the file's
        assert "can be read by this user but not written" in look(store.path)
    assert [file.name for file in folder.iterdir()] == ["jobs.db"]


def test_a_file_that_cannot_be_read_is_refused(store: SqliteStore, folder: Path) -> None:
    enqueue(store)
    close_to_writing(folder, files=0o000)
    assert "cannot be read by this user" in look(store.path)


def test_leases_of_another_boot_are_not_told_as_if_they_lived(
    store: SqliteStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.store.sqlite.store.may_write", lambda _: False)
    later = SqliteStore(str(store.path), clocks=Clocks(boot_id=lambda: "another"))
    with pytest.raises(Unavailable, match="has opened it since this host started"):
        later.reader(timeout=5).do(later.verbs.queues)


def test_a_file_of_an_older_release_is_not_migrated_by_a_look(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.store.sqlite.store.may_write", lambda _: False)
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("DELETE FROM tenure_migrations")
    with pytest.raises(BadSettings, match="lacks 0001_jobs"):
        store.reader(timeout=5).do(store.verbs.queues)
