"""A connection is admitted only to the right server, set up so that no acknowledged generation can be lost."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator

import psycopg
import pytest

from tenure.errors import BadSettings, Unavailable
from tenure.protocol.op import run
from tenure.store.postgres import PostgresStore
from tenure.store.postgres.admission import NotPrimary, check_version, greet
from tenure.store.postgres.target import Target
from tenure.store.statements import Row
from tenure.testing.servers import Postgres
from tests.postgres.conftest import TIMEOUT, claim, enqueue

Open = Callable[[str], PostgresStore]

GOOD: Row = (False, "on", "on", [], [1], "identity", False, "UTF8", 9)


@pytest.fixture
def standby(server: Postgres, release: str, url: str) -> Iterator[str]:
    """Start a standby of the server, in its folder, and return the url of the same database there."""
    folder = server.folder / "standby"
    server.run("pg_basebackup", "-D", folder / "data", "-R", "-X", "stream", "-c", "fast")
    shutil.copy(server.folder / "password", folder)
    try:
        with Postgres.start(release, folder=folder) as started:
            yield f"{started.url.rpartition('/')[0]}/{url.rpartition('/')[2]}"
    finally:
        shutil.rmtree(folder)


def test_a_sound_database_is_admitted(store: PostgresStore) -> None:
    store.check()
    assert not store.pooled


@pytest.mark.parametrize("commit", ["off", "local", "remote_write"])
def test_a_weak_commit_is_refused(url: str, open_store: Open, commit: str) -> None:
    weak = open_store(f"{url}?options=-csynchronous_commit%3D{commit}")
    with pytest.raises(BadSettings, match=rf"synchronous_commit = {commit}.*ALTER ROLE"):
        weak.check()


def test_a_table_that_a_crash_empties_is_refused(fresh: Callable[[], str], open_store: Open) -> None:
    url = fresh()
    open_store(url).migrate()
    with psycopg.connect(url) as connection:
        connection.execute("ALTER TABLE tenure_jobs SET UNLOGGED")
    with pytest.raises(BadSettings, match=r"tenure_jobs not logged.*SET LOGGED"):
        open_store(url).check()


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_store_every_text_is_refused(
    server: Postgres, fresh: Callable[[], str], open_store: Open, encoding: str
) -> None:
    url = fresh()
    name = url.rpartition("/")[2]
    made = f"TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
    server.run("psql", "-Xqc", f'DROP DATABASE "{name}"')
    server.run("psql", "-Xqc", f'CREATE DATABASE "{name}" {made}')
    store = open_store(url)
    store.migrate()
    with pytest.raises(BadSettings, match=rf"has the encoding {encoding}.*ENCODING 'UTF8'"):
        store.check()
    with psycopg.connect(url) as connection, pytest.raises(BadSettings, match="encoding"):
        store.join(connection).do(store.verbs.queues)


def test_missing_tables_are_named_with_the_command(fresh: Callable[[], str], open_store: Open) -> None:
    url = fresh()
    with pytest.raises(BadSettings, match=r"no tables of Tenure.*tenure migrate --store postgresql://127\.0\.0\.1"):
        open_store(url).check()


def test_a_missing_migration_is_named(fresh: Callable[[], str], open_store: Open) -> None:
    url = fresh()
    open_store(url).migrate()
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM tenure_migrations")
    with pytest.raises(BadSettings, match="lacks the migrations 0001_jobs"):
        open_store(url).check()


def test_a_standby_is_refused(standby: str, open_store: Open) -> None:
    store = open_store(standby)
    with pytest.raises(BadSettings, match="is a standby"):
        store.check()
    with pytest.raises(NotPrimary):
        store.connect(timeout=TIMEOUT).do(store.verbs.queues)


@pytest.mark.parametrize(
    ("changed", "says"),
    [({2: "off"}, "fsync = off"), ({0: True}, "standby"), ({1: "off"}, "synchronous_commit"), ({4: []}, "0001_jobs")],
)
def test_what_a_greeting_refuses(store: PostgresStore, changed: dict[int, object], says: str) -> None:
    row = tuple(changed.get(i, value) for i, value in enumerate(GOOD))
    with pytest.raises((BadSettings, Unavailable), match=says):
        run(greet(store.verbs, Target.parse("postgresql://db/x"), backend=1, version=160000), lambda _: [[row]])


def test_an_old_server_is_refused() -> None:
    check_version(Target.parse("postgresql://db/x"), 140000)
    with pytest.raises(BadSettings, match="PostgreSQL 13; Tenure needs 14"):
        check_version(Target.parse("postgresql://db/x"), 130014)


def test_a_changed_identity_raises_the_floor_before_any_claim(
    store: PostgresStore, sql: psycopg.Connection, open_store: Open, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    driver = store.connect(timeout=TIMEOUT)
    enqueue(store, driver, 2)
    assert claim(store, driver, 1)[0].generation == 1
    sql.execute("UPDATE tenure_store SET identity = 'before the restore'")
    with caplog.at_level(logging.WARNING, "tenure"):
        again = open_store(url)
        [taken] = claim(again, again.connect(timeout=TIMEOUT), 1)
    assert taken.generation > 1_000_000_000
    [told] = [message for message in caplog.messages if "floor" in message]
    assert told.startswith(f"generation floor raised: {again.name}: from 0 to {taken.generation - 1}, as the store is")


def test_the_identity_names_cluster_timeline_database_and_table(sql: psycopg.Connection) -> None:
    [told] = sql.execute("SELECT tenure_identity()").fetchone() or ()
    [meant] = (
        sql.execute(
            "SELECT (SELECT system_identifier FROM pg_control_system()) || ':00000001:'"
            " || (SELECT oid FROM pg_database WHERE datname = current_database())"
            " || ':' || 'tenure_jobs'::regclass::oid"
        ).fetchone()
        or ()
    )
    assert told == meant


def test_an_owner_without_special_rights_can_do_everything(
    server: Postgres, fresh: Callable[[], str], open_store: Open
) -> None:
    url = fresh()
    name = url.rpartition("/")[2]
    server.run("psql", "-Xqc", f"CREATE ROLE plain_{name} LOGIN PASSWORD 'plain'")
    server.run("psql", "-Xqc", f"ALTER DATABASE {name} OWNER TO plain_{name}")
    store = open_store(f"postgresql://plain_{name}:plain@127.0.0.1:{server.port}/{name}")
    assert store.migrate() == ["0001_jobs"]
    driver = store.connect(timeout=TIMEOUT)
    enqueue(store, driver)
    assert len(claim(store, driver)) == 1
    assert driver.do(store.verbs.recover).raised
    with psycopg.connect(url) as connection:
        assert "?" not in str(connection.execute("SELECT identity FROM tenure_store").fetchone())


def test_a_forbidden_part_of_the_identity_is_left_open(
    server: Postgres, fresh: Callable[[], str], open_store: Open
) -> None:
    url = fresh()
    name = url.rpartition("/")[2]
    server.run("psql", "-Xqc", f"CREATE ROLE barred_{name} LOGIN PASSWORD 'barred'")
    server.run("psql", "-Xqc", f"ALTER DATABASE {name} OWNER TO barred_{name}")
    with psycopg.connect(url) as connection:
        connection.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
    store = open_store(f"postgresql://barred_{name}:barred@127.0.0.1:{server.port}/{name}")
    store.migrate()
    store.check()
    with psycopg.connect(url) as connection:
        [told] = connection.execute("SELECT identity FROM tenure_store").fetchone() or ()
    assert told.startswith("?:00000001:")


def test_a_role_without_rights_is_told_what_it_lacks(
    server: Postgres, fresh: Callable[[], str], open_store: Open
) -> None:
    url = fresh()
    open_store(url).migrate()
    name = url.rpartition("/")[2]
    server.run("psql", "-Xqc", f"CREATE ROLE nobody_{name} LOGIN PASSWORD 'nobody'")
    with pytest.raises(BadSettings, match=r"permission denied for table.*grant this role"):
        open_store(f"postgresql://nobody_{name}:nobody@127.0.0.1:{server.port}/{name}").check()


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_the_databases_default_isolation_does_not_matter(url: str, open_store: Open, isolation: str) -> None:
    escaped = isolation.replace(" ", "%5C%20")
    store = open_store(f"{url}?options=-cdefault_transaction_isolation%3D{escaped}")
    driver = store.connect(timeout=TIMEOUT)
    enqueue(store, driver)
    with store._shared(TIMEOUT).connection() as connection:
        connection.begin()
        assert connection.execute("SHOW transaction_isolation").fetchone() == ("read committed",)
    assert len(claim(store, driver)) == 1


@pytest.mark.parametrize("given", ["?client_encoding=SQL_ASCII", "?options=-cclient_encoding%3DSQL_ASCII", ""])
def test_text_is_text_in_whatever_encoding_a_client_was_set_up_with(
    fresh: Callable[[], str], open_store: Open, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "SQL_ASCII" if not given else "LATIN1")
    store = open_store(fresh() + given)
    store.migrate()
    store.check()
    driver = store.connect(timeout=TIMEOUT)
    (job,) = enqueue(store, driver, queue="naïve 🐢")
    assert driver.do(store.verbs.get, job).queue == "naïve 🐢"


def test_a_role_whose_arrays_know_no_nulls_does_not_matter(fresh: Callable[[], str], open_store: Open) -> None:
    url = fresh()
    with psycopg.connect(url) as connection:
        connection.execute(f'ALTER DATABASE "{url.rpartition("/")[2]}" SET array_nulls = off')
    store = open_store(url)
    store.migrate()
    driver = store.connect(timeout=TIMEOUT)
    enqueue(store, driver)
    assert len(claim(store, driver)) == 1
