"""The file: where it may lie, that it is durable, copied, rebooted, too old, or no SQLite file at all."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tenure import App, BadSettings, TenureError
from tenure.ids import new_job_id, new_owner
from tenure.protocol.job import Claimer, NewJob, Wanted
from tenure.protocol.lifecycle import check_constraint
from tenure.store.address import open_store
from tenure.store.migrate import load_migrations
from tenure.store.sqlite import SqliteStore
from tenure.store.sqlite.clocks import Clocks, file_identity, refuse_network
from tenure.store.sqlite.connect import open_connection

WANTED = Wanted(("default",), ("work",), 10)
Make = Callable[..., SqliteStore]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    opened: list[SqliteStore] = []

    def open_one(name: str = "jobs.db", clocks: Clocks | None = None) -> SqliteStore:
        opened.append(SqliteStore(str(tmp_path / name), clocks=clocks))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


def claim(store: SqliteStore) -> list[int]:
    taken = store.connect(timeout=5).do(store.verbs.claim, Claimer(new_owner(), "w"), WANTED)
    return [claimed.generation for claimed in taken]


def enqueue(store: SqliteStore) -> None:
    store.connect(timeout=5).do(store.verbs.enqueue, [NewJob(new_job_id(), "work", lease=1.0)])


def test_the_schema_carries_the_tables_condition_verbatim() -> None:
    (first, *_) = load_migrations("tenure.store.sqlite")
    assert check_constraint().replace("\n", "\n    ") in first.sql


def test_r42_every_commit_is_synced(make: Make) -> None:
    store = make()
    enqueue(store)
    with closing(open_connection(store.path)) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_r44_a_copied_file_raises_its_floor_before_anything_is_claimed(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    original = make()
    enqueue(original)
    assert claim(original) == [1]
    original.shift_clock(5.0)
    original.close()
    with closing(sqlite3.connect(original.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(original.path, tmp_path / "copy.db")
    copy = make("copy.db")
    copy.shift_clock(5.0)
    assert claim(original) == [2]
    (generation,) = claim(copy)
    assert generation > 1_000_000_000
    copy.close()
    copy.shift_clock(5.0)
    assert claim(copy) == [generation + 1]  # raised once
    [told] = [message for message in caplog.messages if "floor" in message]
    assert told.startswith(f"generation floor raised: {copy.name}: from 0 to {generation - 1}, as the store is another")


def test_looking_at_the_file_keeps_the_locks_on_it(make: Make) -> None:
    """A descriptor of the file that is opened and closed drops every lock of this process on it (POSIX).

    The next process to leave would then believe that it is the last, and remove the log under our connections.
    """
    store = make()
    enqueue(store)
    assert file_identity(store.path) == file_identity(store.path)
    make().connect(timeout=5).do(store.verbs.queues)
    visit = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM tenure_jobs').fetchone()"
    subprocess.run([sys.executable, "-c", visit, store.path], check=True)
    assert store.path.with_name("jobs.db-wal").exists()


def test_a_file_made_anew_has_another_identity(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    path.touch()
    first = file_identity(path)
    path.unlink()
    path.touch()
    assert file_identity(path) != first


def test_a_reboot_ends_every_lease(make: Make) -> None:
    before = make(clocks=Clocks(boot=lambda: 5000.0, boot_id=lambda: "first"))
    enqueue(before)
    assert claim(before) == [1]
    assert claim(before) == []
    after = make(clocks=Clocks(boot=lambda: 3.0, boot_id=lambda: "second"))
    assert claim(after) == [2]


def test_r12_the_clock_is_read_after_the_lock(make: Make) -> None:
    now = [100.0]
    store = make(clocks=Clocks(boot=lambda: now[0]))
    enqueue(store)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        class Released(sqlite3.Connection):
            """A connection that gets the lock only after a long wait."""

            def execute(self, sql: str, *args: object) -> sqlite3.Cursor:
                if sql == "BEGIN IMMEDIATE":
                    other.execute("ROLLBACK")
                    now[0] += 60.0
                return super().execute(sql, *args)  # type: ignore[arg-type]

        with closing(sqlite3.connect(store.path, isolation_level=None, factory=Released)) as slow:
            store.give_back(slow)
            assert claim(store) == [1]
            store.take()
    record = store.connect(timeout=5).do(store.verbs.queues)
    assert [counts.running for counts in record] == [1]  # the lease counts from after the wait, so it lives


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "fuse.sshfs"])
def test_b09_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"22 1 0:20 / / rw - ext4 /dev/root rw\n30 22 0:40 / {tmp_path}/share rw shared:1 - {kind} host:/export rw\n",
        encoding="utf-8",
    )
    (tmp_path / "share").mkdir()
    monkeypatch.setattr("tenure.store.mounts._MOUNTS", mounts)
    with pytest.raises(BadSettings, match=f"network file system \\({kind}"):
        refuse_network(tmp_path / "share" / "jobs.db")
    refuse_network(tmp_path / "jobs.db")


def test_b09_the_file_system_is_looked_at_before_the_first_write(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise BadSettings(f"{path} lies on a network file system")

    monkeypatch.setattr("tenure.store.sqlite.store.refuse_network", refuse)
    store = make()
    with pytest.raises(BadSettings, match="network"):
        enqueue(store)
    assert not store.path.exists()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/nowhere/jobs.db")
    with pytest.raises(BadSettings, match=r"there is no folder .*nowhere"):
        app.client.queues()


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "jobs.db").write_text("these are no pages of a database, but a longer text", encoding="utf-8")
    with pytest.raises(BadSettings, match="not a healthy SQLite file"):
        enqueue(SqliteStore(str(tmp_path / "jobs.db")))


def test_a_file_of_an_older_release_says_what_to_do(make: Make) -> None:
    store = make()
    enqueue(store)
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("DELETE FROM tenure_migrations")
        connection.commit()
    with pytest.raises(BadSettings, match="lacks 0001_jobs: run `tenure migrate"):
        enqueue(make())


def test_migrating_twice_is_harmless(make: Make) -> None:
    store = make()
    assert [name for name, _ in store.pending_migrations()] == ["0001_jobs"]
    assert not store.path.exists()
    assert store.migrate() == ["0001_jobs"]
    assert store.migrate() == []
    assert store.pending_migrations() == []


@pytest.mark.parametrize("address", ["", "shop.db", "sqlite://shop.db", "sqlite:///", "mysql://host/db"])
def test_an_address_that_names_no_store_is_refused(address: str) -> None:
    with pytest.raises(TenureError, match=r"sqlite:///"):
        open_store(address)


def test_a_backup_made_while_working_is_a_whole_store(make: Make, tmp_path: Path) -> None:
    store = make()
    enqueue(store)
    with closing(sqlite3.connect(store.path)) as source, closing(sqlite3.connect(tmp_path / "backup.db")) as target:
        source.backup(target)
    assert claim(make("backup.db")) == [1_000_000_001]


def test_a_folder_or_a_place_without_the_right_to_write_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadSettings, match="is a folder: name a file in it"):
        SqliteStore(str(tmp_path)).check()
    monkeypatch.setattr("tenure.store.sqlite.store.os.access", lambda *_: False)
    with pytest.raises(BadSettings, match="cannot be written by this user"):
        SqliteStore(str(tmp_path / "jobs.db")).check()
