"""The fault proxy and the pooling stand-in, in front of a real PostgreSQL server."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import errors

from tenure.errors import Misuse
from tenure.testing.proxy import Proxy
from tenure.testing.servers import Postgres
from tests.support.pooler import TransactionPooler
from tests.support.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator


PATIENCE = 30  # seconds: the machine may be busy


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with Postgres.start() as running:
        yield running


@pytest.fixture
def database(server: Postgres) -> str:
    url = server.create_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE note (text text)")
    return url


@pytest.fixture
def proxy(server: Postgres) -> Iterator[Proxy]:
    with Proxy("127.0.0.1", server.port) as running:
        yield running


def notes(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [text for (text,) in connection.execute("SELECT text FROM note ORDER BY text")]


class Echo:
    """A server that answers every piece with the same bytes, for what is easier to see without a protocol."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.received = b""
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        # The proxy's cut may come while an answer is under way.
        with connection, suppress(ConnectionError):
            while data := connection.recv(65_536):
                self.received += data
                connection.sendall(data)

    def close(self) -> None:
        self._thread.join()
        self._listener.close()


@pytest.fixture
def echo() -> Iterator[tuple[Echo, Proxy, socket.socket]]:
    server = Echo()
    with Proxy("127.0.0.1", server.port) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE) as client:
            yield server, proxy, client
        server.close()


def test_the_url_keeps_all_but_host_and_port(proxy: Proxy) -> None:
    url = proxy.url_for("postgresql://me:se%40cret@db.example:5432/jobs?application_name=x")
    assert url == f"postgresql://me:se%40cret@127.0.0.1:{proxy.port}/jobs?application_name=x"
    assert proxy.url_for("redis://localhost/0") == f"redis://127.0.0.1:{proxy.port}/0"
    with pytest.raises(Misuse, match="names a host"):
        proxy.url_for("postgresql:///jobs")


def test_it_carries_both_ways_and_counts(proxy: Proxy, database: str) -> None:
    big = "x" * 3_000_000
    with psycopg.connect(proxy.url_for(database)) as connection:
        assert connection.execute("SELECT %s", (big,)).fetchone() == (big,)
        assert proxy.connections == 1
    wait_for(lambda: proxy.connections == 0, PATIENCE, "the connection to end")
    counts = proxy.counts
    assert (counts.accepted, counts.cut, counts.unreachable) == (1, 0, 0)
    assert counts.bytes_to_server > len(big)
    assert counts.bytes_to_client > len(big)


def test_delay_holds_for_both_directions_and_keeps_order(echo: tuple[Echo, Proxy, socket.socket]) -> None:
    _, proxy, client = echo
    proxy.delay(0.1)
    sent = time.monotonic()
    client.sendall(b"one")
    client.sendall(b"two")
    assert exactly(client, 6) == b"onetwo"
    assert time.monotonic() - sent >= 0.2
    proxy.delay(0)
    client.sendall(b"three")
    assert exactly(client, 5) == b"three"
    with pytest.raises(Misuse, match="-1"):
        proxy.delay(-1)


def exactly(client: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = client.recv(count - len(data))
        assert more, f"the connection ended after {data!r}"
        data += more
    return data


def test_a_request_that_nobody_overtakes_is_let_go(echo: tuple[Echo, Proxy, socket.socket]) -> None:
    _, proxy, client = echo
    proxy.overtake(1, within=0.1)
    sent = time.monotonic()
    client.sendall(b"one")
    assert exactly(client, 3) == b"one"
    assert time.monotonic() - sent >= 0.1
    proxy.overtake(1, within=60.0)
    client.sendall(b"two")
    with pytest.raises(TimeoutError), ThreadPoolExecutor(1) as pool:
        try:
            pool.submit(exactly, client, 3).result(0.1)
        finally:
            proxy.release("server")
    client.sendall(b"three")
    assert exactly(client, 5) == b"three"
    proxy.overtake(1, within=60.0)
    proxy.release()  # which lets the next go as well
    client.sendall(b"four")
    assert exactly(client, 4) == b"four"
    assert proxy.counts.overtaken == 0
    with pytest.raises(Misuse, match="they are 0 and"):
        proxy.overtake(0, within=1.0)


def test_a_proxy_that_behaves_has_forgotten_everything(echo: tuple[Echo, Proxy, socket.socket]) -> None:
    _, proxy, client = echo
    proxy.delay(6.0)
    proxy.hold()
    proxy.drop_reply()
    proxy.cut_after(1, "client")
    proxy.overtake(1, within=60.0)
    proxy.refuse()
    proxy.behave()
    client.sendall(b"one")
    assert exactly(client, 3) == b"one"
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE):
        wait_for(lambda: proxy.counts.accepted == 2, PATIENCE, "another connection")
    assert (proxy.counts.cut, proxy.counts.replies_dropped, proxy.counts.overtaken) == (0, 0, 0)


def test_hold_keeps_a_request_from_the_server_until_release(proxy: Proxy, database: str) -> None:
    with (
        psycopg.connect(proxy.url_for(database), autocommit=True) as connection,
        ThreadPoolExecutor(1) as pool,
    ):
        proxy.hold("server")
        insertion = pool.submit(connection.execute, "INSERT INTO note VALUES ('held')")
        with pytest.raises(TimeoutError):
            insertion.result(0.1)
        assert notes(database) == []
        assert proxy.connections == 1
        proxy.release()
        insertion.result(PATIENCE)
    assert notes(database) == ["held"]


def test_hold_keeps_an_answer_from_the_client(proxy: Proxy, database: str) -> None:
    with (
        psycopg.connect(proxy.url_for(database), autocommit=True) as connection,
        ThreadPoolExecutor(1) as pool,
    ):
        proxy.hold("client")
        insertion = pool.submit(connection.execute, "INSERT INTO note VALUES ('done')")
        wait_for(lambda: notes(database), PATIENCE, "the row to be committed")
        assert not insertion.done()
        proxy.release("client")
        insertion.result(PATIENCE)


def test_a_dropped_reply_leaves_the_client_with_an_error_and_the_change_done(proxy: Proxy, database: str) -> None:
    with psycopg.connect(proxy.url_for(database)) as connection:
        connection.execute("INSERT INTO note VALUES ('committed')")
        proxy.drop_reply()
        with pytest.raises(psycopg.OperationalError):
            connection.commit()
    assert notes(database) == ["committed"]
    assert proxy.counts.replies_dropped == 1
    with psycopg.connect(proxy.url_for(database)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_cut_ends_every_connection_held_or_not(proxy: Proxy, database: str) -> None:
    first, second = (psycopg.connect(proxy.url_for(database), autocommit=True) for _ in range(2))
    proxy.hold()
    proxy.cut()
    assert proxy.connections == 0
    for connection in (first, second):
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
        connection.close()
    assert proxy.counts.cut == 2


@pytest.mark.parametrize("count", [0, 1, 4])
def test_cut_after_delivers_so_many_bytes_to_the_server(echo: tuple[Echo, Proxy, socket.socket], count: int) -> None:
    server, proxy, client = echo
    proxy.cut_after(count, "server")
    client.sendall(b"1234")
    wait_for(lambda: proxy.connections == 0, PATIENCE, "the cut")
    server.close()
    assert server.received == b"1234"[:count]
    assert proxy.counts.cut == 1


def test_cut_after_delivers_so_many_bytes_to_the_client(echo: tuple[Echo, Proxy, socket.socket]) -> None:
    server, proxy, client = echo
    proxy.cut_after(6, "client")
    client.sendall(b"1234")
    assert exactly(client, 4) == b"1234"
    client.sendall(b"5678")
    assert exactly(client, 2) == b"56"
    assert client.recv(1) == b""
    assert server.received == b"12345678"
    with pytest.raises(Misuse, match="-5"):
        proxy.cut_after(-5, "client")


def test_refuse_is_for_new_connections_only(proxy: Proxy, database: str) -> None:
    with psycopg.connect(proxy.url_for(database), autocommit=True) as connection:
        proxy.refuse()
        proxy.refuse()
        with pytest.raises(psycopg.OperationalError, match="refused"):
            psycopg.connect(proxy.url_for(database))
        assert connection.execute("SELECT 1").fetchone() == (1,)
        proxy.accept()
        proxy.accept()
        psycopg.connect(proxy.url_for(database)).close()


def test_an_absent_server_is_counted_and_a_closed_proxy_leaves_nothing() -> None:
    before = set(threading.enumerate())
    with (
        Proxy("127.0.0.1", 1) as proxy,
        socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE) as client,
    ):
        assert client.recv(1) == b""
        assert proxy.counts.unreachable == 1
    proxy.close()
    assert set(threading.enumerate()) <= before  # others may end meanwhile
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", proxy.port))


@pytest.fixture
def pooler(database: str) -> Iterator[TransactionPooler]:
    with TransactionPooler(database, size=1) as running:
        yield running


def test_pooled_clients_share_a_server_connection(pooler: TransactionPooler) -> None:
    with psycopg.connect(pooler.url) as one, psycopg.connect(pooler.url) as other:
        pid = one.execute("SELECT pg_backend_pid()").fetchone()
        one.commit()
        assert other.execute("SELECT pg_backend_pid()").fetchone() == pid
        assert pid != (other.info.backend_pid,)
        assert one.info.backend_pid != other.info.backend_pid


def test_a_transaction_keeps_its_server_connection_and_others_wait(pooler: TransactionPooler, database: str) -> None:
    with psycopg.connect(pooler.url) as one, psycopg.connect(pooler.url) as other, ThreadPoolExecutor(1) as pool:
        one.execute("INSERT INTO note VALUES ('one')")
        waiting = pool.submit(other.execute, "INSERT INTO note VALUES ('other')")
        with pytest.raises(TimeoutError):
            waiting.result(0.1)
        one.commit()
        waiting.result(PATIENCE)
        other.commit()
    assert notes(database) == ["one", "other"]


def test_pooled_simple_extended_pipeline_and_copy(pooler: TransactionPooler, database: str) -> None:
    with psycopg.connect(pooler.url, autocommit=True) as connection:
        assert connection.execute("SELECT 1; SELECT 2").fetchone() == (1,)
        assert connection.execute("SELECT %s::int", (3,), binary=True).fetchone() == (3,)
        with pytest.raises(errors.DivisionByZero):
            connection.execute("SELECT 1 / %s", (0,))
        with connection.pipeline():
            cursors = [connection.execute("SELECT %s::int", (number,)) for number in range(50)]
            assert [cursor.fetchone() for cursor in cursors] == [(number,) for number in range(50)]
        connection.cursor().executemany("INSERT INTO note VALUES (%s)", [("a",), ("b",)])
        with connection.cursor().copy("COPY note FROM STDIN") as copy:
            copy.write_row(("c",))
    with psycopg.connect(pooler.url) as other:
        assert other.execute("SELECT count(*) FROM note").fetchone() == (3,)
    assert notes(database) == ["a", "b", "c"]


def test_prepared_statements_collide_between_pooled_clients(pooler: TransactionPooler) -> None:
    with psycopg.connect(pooler.url, autocommit=True) as one, psycopg.connect(pooler.url, autocommit=True) as other:
        for _ in range(6):
            one.execute("SELECT %s::int", (1,))
        for _ in range(5):
            other.execute("SELECT %s::text", ("x",))
        with pytest.raises(errors.DuplicatePreparedStatement):
            other.execute("SELECT %s::text", ("x",))


def test_listen_does_not_deliver_through_the_pooler(pooler: TransactionPooler, database: str) -> None:
    with (
        psycopg.connect(pooler.url, autocommit=True) as pooled,
        psycopg.connect(database, autocommit=True) as direct,
    ):
        pooled.execute("LISTEN bell")
        direct.execute("LISTEN bell")
        direct.execute("NOTIFY bell, 'ring'")
        assert [note.payload for note in direct.notifies(timeout=PATIENCE, stop_after=1)] == ["ring"]
        assert list(pooled.notifies(timeout=0.1)) == []


def test_settings_leak_but_startup_parameters_follow_their_client(pooler: TransactionPooler) -> None:
    with (
        psycopg.connect(pooler.url, autocommit=True, application_name="one") as one,
        psycopg.connect(pooler.url, autocommit=True, application_name="other") as other,
    ):
        one.execute("SET statement_timeout = '12345ms'")
        assert other.execute("SHOW statement_timeout").fetchone() == ("12345ms",)
        assert other.execute("SHOW application_name").fetchone() == ("other",)
        assert one.execute("SHOW application_name").fetchone() == ("one",)


def test_the_pooler_refuses_what_pgbouncer_refuses(pooler: TransactionPooler) -> None:
    with pytest.raises(psycopg.OperationalError, match="unsupported startup parameter: options"):
        psycopg.connect(pooler.url, options="-c statement_timeout=1")
    with pytest.raises(psycopg.OperationalError, match="does not support SSL"):
        psycopg.connect(pooler.url, sslmode="require")
    with pytest.raises(psycopg.OperationalError, match="no such database: elsewhere"):
        psycopg.connect(pooler.url, dbname="elsewhere")


def test_a_client_that_leaves_in_a_transaction_leaves_no_lock(pooler: TransactionPooler) -> None:
    with psycopg.connect(pooler.url) as one:
        one.execute("LOCK TABLE note")
        one.close()
        with psycopg.connect(pooler.url) as other:
            other.execute("INSERT INTO note VALUES ('free')")


def test_a_query_is_cancelled_through_the_pooler(pooler: TransactionPooler, database: str) -> None:
    with (
        psycopg.connect(pooler.url, autocommit=True) as connection,
        psycopg.connect(database, autocommit=True) as observer,
        ThreadPoolExecutor(1) as pool,
    ):
        sleeping = pool.submit(connection.execute, "SELECT pg_sleep(60)")
        active = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%%pg_sleep(60)' AND state = 'active'"
        wait_for(lambda: observer.execute(active).fetchone() == (1,), PATIENCE, "the query to run")
        connection.cancel_safe(timeout=PATIENCE)
        with pytest.raises(errors.QueryCanceled):
            sleeping.result(PATIENCE)


def test_a_dead_server_connection_is_replaced(pooler: TransactionPooler, database: str) -> None:
    with (
        psycopg.connect(pooler.url, autocommit=True) as pooled,
        psycopg.connect(database, autocommit=True) as direct,
    ):
        row = pooled.execute("SELECT pg_backend_pid()").fetchone()
        direct.execute("SELECT pg_terminate_backend(%s, 30000)", row)
        assert pooled.execute("SELECT pg_backend_pid()").fetchone() != row
