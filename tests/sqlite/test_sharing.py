"""One file, many users: threads, forked children, a writer that does not let go, and callers' own connections."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy.orm import Session

from tenure import App, Misuse, Task, TenureError, Unavailable
from tenure.store.sqlite import SqliteStore


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    made = App(f"sqlite:///{tmp_path}/shop.db", timeout=60.0)
    yield made
    made.close()


@pytest.fixture
def charge(app: App) -> Task[..., ..., None]:
    @app.task
    def charge(order: int) -> None:
        """Charge an order."""

    return charge


def waiting(app: App) -> int:
    return sum(counts.due for counts in app.client.queues())


@pytest.mark.parametrize("act", ["migrate", "pending_migrations", "bell"])
def test_a_file_that_another_process_is_making_is_waited_for(tmp_path: Path, act: str) -> None:
    path = tmp_path / "jobs.db"
    maker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    maker.execute("BEGIN EXCLUSIVE")
    let_go = threading.Timer(0.2, lambda: maker.execute("ROLLBACK"))
    let_go.start()
    store = SqliteStore(str(path))
    made = getattr(store, act)()
    let_go.join()
    maker.close()
    if act == "bell":
        made.close()
    else:
        assert made
    store.close()


def test_b09_many_threads_share_one_file(app: App, charge: Task[..., ..., None]) -> None:
    errors: list[TenureError] = []

    def enqueue() -> None:
        try:
            for order in range(25):
                charge.enqueue(order=order)
        except TenureError as error:
            errors.append(error)

    threads = [threading.Thread(target=enqueue) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert waiting(app) == 200


def test_b09_a_writer_that_lets_go_in_time_is_waited_for(app: App, charge: Task[..., ..., None]) -> None:
    charge.enqueue(order=0)
    with closing(sqlite3.connect(app.store.path, isolation_level=None, check_same_thread=False)) as other:  # type: ignore[attr-defined]
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.3, other.execute, ("COMMIT",))
        timer.start()
        charge.enqueue(order=1)
        timer.join()
    assert waiting(app) == 2


def test_b09_a_writer_that_never_lets_go_is_told_within_the_limit(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/shop.db", timeout=0.3)

    @app.task
    def charge(order: int) -> None:
        """Charge an order."""

    charge.enqueue(order=0)
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="locked by another writer"):
            charge.enqueue(order=1)
    assert waiting(app) == 1


def test_b22_forked_children_use_connections_of_their_own(app: App, charge: Task[..., ..., None]) -> None:
    charge.enqueue(order=0)
    with app.lease("mine") as lease:
        children = []
        for number in range(4):
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    for order in range(10):
                        charge.enqueue(order=100 * number + order)
                    with pytest.raises(Misuse, match="forked child"):
                        lease.check()
                    status = 0
                finally:
                    os._exit(status)
            children.append(pid)
        for order in range(10):
            charge.enqueue(order=order)
        assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 4
        lease.check()
    assert waiting(app) == 51


def test_b27_a_job_lives_and_dies_with_the_callers_transaction(app: App, charge: Task[..., ..., None]) -> None:
    charge.enqueue(order=0)
    with closing(sqlite3.connect(app.store.path)) as connection:  # type: ignore[attr-defined]
        connection.execute("CREATE TABLE orders (id INTEGER)")
        joined = charge.options(connection=connection)
        for end in (connection.rollback, connection.commit):
            connection.execute("INSERT INTO orders VALUES (7)")
            joined.enqueue(order=7)
            assert waiting(app) == 1
            end()
        assert waiting(app) == 2
        connection.execute("INSERT INTO orders VALUES (8)")
        connection.execute("SAVEPOINT s")
        joined.enqueue(order=8)
        connection.execute("ROLLBACK TO s")
        connection.commit()
    assert waiting(app) == 2


def test_b27_a_first_enqueue_may_be_inside_the_callers_transaction(app: App, charge: Task[..., ..., None]) -> None:
    with closing(sqlite3.connect(app.store.path)) as connection:  # type: ignore[attr-defined]
        charge.options(connection=connection).enqueue(order=7)
        connection.commit()
    assert waiting(app) == 1


def test_a_connection_without_a_transaction_is_refused(app: App, charge: Task[..., ..., None]) -> None:
    charge.enqueue(order=0)
    with (
        closing(sqlite3.connect(app.store.path, isolation_level=None)) as connection,  # type: ignore[attr-defined]
        pytest.raises(Misuse, match="not in a transaction"),
    ):
        charge.options(connection=connection).enqueue(order=7)


def test_a_connection_to_another_file_is_refused(charge: Task[..., ..., None], tmp_path: Path) -> None:
    with (
        closing(sqlite3.connect(tmp_path / "other.db")) as connection,
        pytest.raises(Misuse, match="another file"),
    ):
        charge.options(connection=connection).enqueue(order=7)
    with pytest.raises(Misuse, match=r"got builtins\.str"):
        charge.options(connection="shop.db").enqueue(order=7)


def test_sqlalchemy_connections_and_sessions_are_joined(app: App, charge: Task[..., ..., None]) -> None:
    charge.enqueue(order=0)
    engine = sqlalchemy.create_engine(f"sqlite:///{app.store.path}")  # type: ignore[attr-defined]
    with engine.begin() as connection:
        charge.options(connection=connection).enqueue(order=1)
    with Session(engine) as session:
        charge.options(connection=session).enqueue(order=2)
        session.rollback()
        charge.options(connection=session).enqueue(order=3)
        session.commit()
    engine.dispose()
    assert waiting(app) == 3
