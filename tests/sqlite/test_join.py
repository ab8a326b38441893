"""Verbs in the caller's own transaction: which file it leads to, and whether that is still the file that was met."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path

import pytest

from tenure.errors import BadSettings, Misuse
from tenure.protocol.job import Answer, Claimed, Claimer, Ending, NewJob, Verdict, Wanted
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import State, Verb
from tenure.store.contract import Driver
from tenure.store.sqlite import SqliteStore
from tenure.store.sqlite.clocks import Clocks

ADA = Claimer("owner of ada", "ada")
ONE = [NewJob("one", "work", lease=60.0)]
WANTED = Wanted(("default",), ("work",), 10)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(str(tmp_path / "jobs.db"))) as opened:
        yield opened


@pytest.fixture
def token(store: SqliteStore) -> Token:
    """Enqueue and claim the job `one` on connections of the store's own."""
    driver = store.connect(timeout=5)
    driver.do(store.verbs.enqueue, ONE)
    [held] = driver.do(store.verbs.claim, ADA, WANTED)
    return Token(held.id, held.generation)


@pytest.fixture
def caller(store: SqliteStore, token: Token) -> Iterator[sqlite3.Connection]:
    """Open a connection of the caller's, in a transaction, on which the store has met its file."""
    with closing(sqlite3.connect(store.path, isolation_level=None, timeout=5)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        assert guard(store, connection, token).verdict is Verdict.DONE
        yield connection


def guard(store: SqliteStore, connection: sqlite3.Connection, token: Token) -> Answer:
    return store.join(connection).do(store.verbs.guard, ADA.owner, token)


def complete(store: SqliteStore, connection: sqlite3.Connection, token: Token) -> Answer:
    [answer] = store.join(connection).do(store.verbs.settle, ADA.owner, [Ending(token, Verb.COMPLETE)])
    return answer


def claim(store: SqliteStore, driver: Driver) -> list[Claimed]:
    return driver.do(store.verbs.claim, ADA, WANTED)


def floor(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT floor FROM tenure_store").fetchone()[0])


def enqueue_joined(path: Path, job: str) -> None:
    store = SqliteStore(str(path))
    with closing(sqlite3.connect(path)) as connection:
        store.join(connection).do(store.verbs.enqueue, [NewJob(job, "work", lease=60.0)])
        connection.commit()


def jobs(connection: sqlite3.Connection, database: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {database}.tenure_jobs").fetchone()[0])


def other_store(tmp_path: Path) -> Path:
    with closing(SqliteStore(str(tmp_path / "other.db"))) as other:
        other.connect(timeout=5).do(other.verbs.queues)
        return other.path


# -- what is asked, and how often


def test_a_guard_and_a_completion_ask_three_statements_each(
    store: SqliteStore, caller: sqlite3.Connection, token: Token
) -> None:
    asked: list[str] = []
    caller.set_trace_callback(asked.append)
    guard(store, caller, token)
    complete(store, caller, token)
    # A statement is told once more for each trigger that it sets off.
    assert [statement.split()[0] for statement, _ in groupby(asked)] == [
        "PRAGMA",
        "DELETE",
        "SELECT",
        "PRAGMA",
        "DELETE",
        "UPDATE",
    ]


def test_the_callers_rows_may_be_of_any_kind(store: SqliteStore, token: Token) -> None:
    with closing(sqlite3.connect(store.path)) as connection:
        connection.row_factory = lambda cursor, row: {
            column[0]: value for column, value in zip(cursor.description, row, strict=True)
        }
        assert guard(store, connection, token).verdict is Verdict.DONE
        assert store.join(connection).do(store.verbs.get, "one").id == "one"
        connection.commit()


# -- which file


def test_another_stores_file_is_refused_though_ours_is_attached(
    store: SqliteStore, token: Token, tmp_path: Path
) -> None:
    """Statements mean the tables of the main file: another store's job would be written, and its floor raised."""
    with closing(sqlite3.connect(other_store(tmp_path))) as connection:
        connection.execute("ATTACH ? AS ours", (str(store.path),))
        with pytest.raises(Misuse, match="another file"):
            guard(store, connection, token)


def test_a_table_of_the_same_name_in_front_of_ours_is_noticed(
    store: SqliteStore, caller: sqlite3.Connection, token: Token
) -> None:
    caller.execute("CREATE TEMP TABLE something_else (id)")
    assert guard(store, caller, token).verdict is Verdict.DONE
    caller.execute("CREATE TEMP TABLE tenure_jobs AS SELECT * FROM main.tenure_jobs")
    for verb in (guard, complete):
        with pytest.raises(Misuse, match="another file"):
            verb(store, caller, token)


def test_an_attached_file_is_joined_and_what_is_attached_in_its_place_is_not(
    store: SqliteStore, token: Token, tmp_path: Path
) -> None:
    other = other_store(tmp_path)
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as connection:
        for path, fits in ((store.path, True), (other, False), (store.path, True)):
            connection.execute("ATTACH ? AS jobs", (str(path),))
            connection.execute("BEGIN")
            if fits:
                store.join(connection).do(store.verbs.enqueue, ONE)
                assert guard(store, connection, token).verdict is Verdict.DONE
            else:
                with pytest.raises(Misuse, match="another file"):
                    guard(store, connection, token)
            connection.execute("COMMIT")
            assert jobs(connection, "jobs") == int(fits)
            connection.execute("DETACH jobs")


class Autocommit(sqlite3.Connection):
    """A connection as Python 3.12 and newer open it with ``autocommit=True``."""

    autocommit = True


def test_a_connection_whose_commit_would_end_nothing_must_have_begun(store: SqliteStore) -> None:
    with closing(sqlite3.connect(store.path, factory=Autocommit)) as connection:
        with pytest.raises(Misuse, match="is not in a transaction: begin one first"):
            store.join(connection).do(store.verbs.enqueue, ONE)
        assert not connection.in_transaction
        connection.execute("BEGIN")
        store.join(connection).do(store.verbs.enqueue, ONE)
        connection.execute("COMMIT")
        assert jobs(connection, "main") == 1


def test_a_file_under_another_name_is_ours(store: SqliteStore, token: Token, tmp_path: Path) -> None:
    (tmp_path / "linked.db").symlink_to(store.path)
    with closing(sqlite3.connect(tmp_path / "linked.db")) as connection:
        assert guard(store, connection, token).verdict is Verdict.DONE


# -- the file that was met


def test_a_store_that_is_only_ever_joined_leaves_the_floor_alone(store: SqliteStore, token: Token) -> None:
    """It has no connection of its own to tell it which file this is; taking it for another would use up generations."""
    for _ in range(2):
        joined = SqliteStore(str(store.path))
        with closing(sqlite3.connect(store.path)) as connection:
            joined.join(connection).do(joined.verbs.enqueue, ONE)
            connection.commit()
        store.close()
        store.connect(timeout=5).do(store.verbs.queues)
    assert floor(store.path) == 0
    assert token.generation == 1


def test_a_store_that_is_made_and_joined_by_forked_processes_begins_at_generation_one(tmp_path: Path) -> None:
    """Each process opens the store, joins one transaction and is gone; the first of them makes the file."""
    path = tmp_path / "jobs.db"
    for job in ("one", "two", "three"):
        child = os.fork()
        if not child:
            status = 1
            try:
                enqueue_joined(path, job)
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert floor(path) == 0
    with closing(SqliteStore(str(path))) as store:
        claimed = claim(store, store.connect(timeout=5))
        assert {one.id: one.generation for one in claimed} == {"one": 1, "two": 1, "three": 1}


def test_what_was_made_ready_in_a_transaction_that_was_undone_is_made_ready_again(store: SqliteStore) -> None:
    store.path.touch()
    with closing(sqlite3.connect(store.path)) as connection:
        for _ in range(2):
            store.join(connection).do(store.verbs.enqueue, ONE)
            connection.rollback()
        store.join(connection).do(store.verbs.enqueue, ONE)
        connection.commit()
        assert jobs(connection, "main") == 1


@pytest.mark.parametrize("verb", [guard, complete], ids=["guard", "complete"])
def test_a_file_that_was_set_back_to_another_boot_ends_its_leases(
    store: SqliteStore, caller: sqlite3.Connection, token: Token, verb: type
) -> None:
    caller.execute("UPDATE tenure_store SET boot = 'the boot before'")
    assert verb(store, caller, token).verdict is Verdict.DONE  # nobody else has claimed (R6)
    assert caller.execute("SELECT boot FROM tenure_store").fetchone() == (Clocks().boot_id(),)
    assert caller.execute("SELECT count(*) FROM tenure_jobs WHERE lease_until > 0").fetchone() == (0,)


@pytest.mark.parametrize("verb", [guard, complete], ids=["guard", "complete"])
def test_a_file_that_was_overwritten_with_another_raises_its_floor_and_tells(
    store: SqliteStore,
    caller: sqlite3.Connection,
    token: Token,
    verb: type,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caller.execute("UPDATE tenure_store SET identity = 'of another file'")
    with caplog.at_level(logging.WARNING, "tenure"):
        assert verb(store, caller, token).verdict is Verdict.DONE
    assert caller.execute("SELECT floor > 0 FROM tenure_store").fetchone() == (1,)
    [told] = caplog.messages
    assert told.startswith(f"generation floor raised: {store.name}: from 0 to 1000000001, as the store is another one")


def test_verbs_that_do_not_look_by_themselves_are_looked_after(store: SqliteStore, caller: sqlite3.Connection) -> None:
    joined = store.join(caller)
    joined.do(store.verbs.enqueue, [NewJob("two", "work")])
    caller.execute("UPDATE tenure_store SET identity = 'of another file', boot = 'the boot before'")
    assert all(claimed.generation > 1_000_000_000 for claimed in claim(store, joined))


@pytest.mark.parametrize("verb", [guard, complete], ids=["guard", "complete"])
def test_a_file_that_was_set_back_to_an_older_release_is_refused(
    store: SqliteStore, caller: sqlite3.Connection, token: Token, verb: type
) -> None:
    caller.execute("DELETE FROM tenure_migrations")
    with pytest.raises(BadSettings, match="lacks 0001_jobs: run `tenure migrate"):
        verb(store, caller, token)
    caller.execute("COMMIT")
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("SELECT state FROM tenure_jobs").fetchone() == (State.RUNNING,)


def test_another_file_in_the_place_of_the_one_that_was_met_raises_its_floor(
    store: SqliteStore, token: Token, tmp_path: Path
) -> None:
    """A backup put in the place of the file says of itself that it is the file: only the inode tells."""
    with closing(sqlite3.connect(store.path)) as connection:
        guard(store, connection, token)
        connection.commit()
    store.close()
    shutil.copy(store.path, tmp_path / "backup.db")
    (tmp_path / "backup.db").replace(store.path)
    store.shift_clock(120.0)
    with closing(sqlite3.connect(store.path)) as connection:
        [again] = claim(store, store.join(connection))
        assert again.generation > 1_000_000_000


def test_a_stale_guard_says_who_took_over(store: SqliteStore, caller: sqlite3.Connection, token: Token) -> None:
    caller.execute("UPDATE tenure_jobs SET generation = 2, ended = 'takeover', ended_at = 1")
    for answer in (guard(store, caller, token), complete(store, caller, token)):
        assert (answer.verdict, answer.generation) == (Verdict.STALE, 2)
