"""Every hot statement finds its rows by an index, on whatever statistics."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from msgspec.structs import replace

from tenure.protocol.job import Head, NewJob, Wanted
from tenure.store.calls import COMPLETED
from tenure.store.calls import claim as claim_call
from tenure.store.calls import enqueue as enqueue_call
from tenure.store.contract import MAX_GENERATION
from tenure.store.driver import SyncDriver
from tenure.store.postgres import PostgresStore
from tenure.store.postgres.connect import Connection
from tenure.store.postgres.requests import lay_out
from tenure.store.rows import ENQUEUE_COLUMNS
from tenure.store.statements import Call
from tests.postgres.conftest import ADA, claim

TOKEN = {"job": "job", "generation": 1, "owner": "o"}
TOKENS = [(f"job {i}", 1) for i in range(100)]
ENDINGS = [(job, generation, "complete", "completed", False, 0, None, None, None) for job, generation in TOKENS]
JOB = ("job", "{}", "work", "default", 0, None, 0, 1000, None, None, None, None, None, None, False)

HOT = {
    "claim": Call(
        "claim",
        {"owner": "o", "worker": "w", "queues": ("default", "mail"), "tasks": ("work",), "limit": 100}
        | {"takeovers": True, "lease_ms": None, "max_generation": MAX_GENERATION}
        | {"head_queue": ("default",), "head_priority": (0,), "head_run_at_ms": (1_000,)},
    ),
    "outlook": Call("outlook", {"queues": ("default", "mail")}),
    "foremost": Call("foremost", {"queues": ("default", "mail")}),
    "renew": Call("renew", {"owner": "o", "duration_ms": None}, ("job", "generation"), TOKENS),
    "settle": Call(
        "settle",
        {"owner": "o"},
        ("job", "generation", "verb", "target", "counts", "delay_ms", "result", "reason", "failure"),
        ENDINGS,
    ),
    "complete_all": Call(
        "complete_all",
        {"owner": "o", "verb": "complete", "target": "completed"},
        COMPLETED,
        [(job, generation, None) for job, generation in TOKENS],
    ),
    "complete": Call("complete", {**TOKEN, "verb": "complete", "target": "completed", "result": None}),
    "guard": Call("guard", TOKEN),
    "explain": Call("explain", {}, ("job",), [(job,) for job, _ in TOKENS]),
    "enqueue": Call("enqueue", {}, ENQUEUE_COLUMNS, [JOB]),
    "enqueue_alike": enqueue_call([NewJob("job", "work"), NewJob("other", "work")]),
    "enqueue_one": enqueue_call([NewJob("job", "work")]),
    "met": Call("met", {}, ("id", "task", "unique_key"), [("job", "work", "key")]),
    "find_newest": Call(
        "find_newest", {"ids": None, "queue": None, "task": None, "state": None, "limit": 50, "after": "job 5"}
    ),
}

FILL = """
INSERT INTO tenure_jobs (id, task, queue, priority, run_at, lease_ms, enqueued_at, state, finished_at)
SELECT 'x' || i, 'work', 'default', i % 3, clock_timestamp(), 30000, clock_timestamp(),
    CASE WHEN i % 4 = 0 THEN 'available' ELSE 'completed' END, CASE WHEN i % 4 <> 0 THEN clock_timestamp() END
FROM generate_series(1, 200000) AS i
"""


def nodes(plan: dict[str, object]) -> Iterator[dict[str, object]]:
    yield plan
    for part in plan.get("Plans", []):  # type: ignore[attr-defined]
        yield from nodes(part)


def assert_only_index_scans(connection: Connection, call: Call) -> None:
    """Assert that the generic plan of a statement reaches every table through an index, and joins none wholesale."""
    sql, values = lay_out(call, {"shift_ms": 0, "table": None})
    connection.begin()
    row = psycopg.RawCursor(connection).execute(f"EXPLAIN (FORMAT JSON) {sql}", values).fetchone()
    assert row is not None
    plan = row[0] if isinstance(row[0], list) else json.loads(row[0])
    met = [node for top in plan for node in nodes(top["Plan"])]
    kinds = {str(node["Node Type"]) for node in met}
    assert not kinds & {"Seq Scan", "Hash Join", "Merge Join", "Materialize"}, f"{call.name}: {plan}"
    for node in met:
        if node["Node Type"] in {"Index Scan", "Index Only Scan", "Bitmap Index Scan"} and call.name != "explain":
            assert "Index Cond" in node or node["Index Name"] == "tenure_store_pkey", f"{call.name} walks: {node}"


@pytest.fixture(scope="module")
def filling(migrated: str) -> Iterator[Callable[[str], object]]:
    """Run statements on the shared database, which is emptied again at the end."""
    with psycopg.connect(migrated, autocommit=True) as connection:
        yield connection.execute
        connection.execute("TRUNCATE tenure_jobs")
        connection.execute("VACUUM ANALYZE tenure_jobs")


def test_hot_statements_use_indexes_on_any_statistics(store: PostgresStore, filling: Callable[[str], object]) -> None:
    stages = {
        "empty": "VACUUM ANALYZE tenure_jobs",
        "full, statistics from when it was empty": FILL,
        "full": "ANALYZE tenure_jobs",
        "emptied, statistics from when it was full": "DELETE FROM tenure_jobs",
    }
    with store._shared(60.0).connection() as connection:
        for statement in stages.values():
            filling(statement)
            for call in HOT.values():
                assert_only_index_scans(connection, call)


def test_the_checks_of_the_plans_bite(store: PostgresStore) -> None:
    with store._shared(5.0).connection() as connection:
        connection.begin()
        for setting in ("enable_seqscan = on", "enable_indexscan = off"):
            connection.execute(f"SET {setting}")
        with pytest.raises(AssertionError, match="explain"):
            assert_only_index_scans(connection, HOT["explain"])


def blocks_read(connection: Connection, call: Call) -> int:
    """Carry out a statement, undo it, and tell how many blocks it read before it changed anything."""
    sql, values = lay_out(call, {"shift_ms": 0, "table": None})
    connection.begin()
    with connection.transaction(force_rollback=True):
        row = (
            psycopg.RawCursor(connection)
            .execute(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {sql}", values)
            .fetchone()
        )
    assert row is not None
    plan = row[0] if isinstance(row[0], list) else json.loads(row[0])
    scans = [node for top in plan for node in nodes(top["Plan"]) if node.get("Index Name") == "tenure_jobs_due"]
    return sum(int(str(node["Shared Hit Blocks"])) + int(str(node["Shared Read Blocks"])) for node in scans)


def test_under_an_old_snapshot_what_was_claimed_does_not_stand_in_the_way(
    store: PostgresStore, driver: SyncDriver, url: str
) -> None:
    """As long as any transaction could still see them, the entries of claimed jobs stay in the index."""
    with psycopg.connect(url) as holder:
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT FROM pg_class")
        early = datetime.now(UTC) - timedelta(hours=1)
        jobs = [NewJob(f"job {i:04}", "work", run_at=early + timedelta(milliseconds=i)) for i in range(3000)]
        driver.do(store.verbs.enqueue, jobs)
        *_, last = claim(store, driver, 2900)
        wants = Wanted(("default",), ("work",), 1, takeovers=False)
        with store._shared(60.0).connection() as connection:
            knowing = replace(wants, heads=(Head("default", 0, last.run_at_ms),))
            calls = (claim_call(ADA, wants), claim_call(ADA, knowing), HOT["outlook"])
            wading, going_on, outlook = (blocks_read(connection, call) for call in calls)
        *_, last = claim(store, driver, 100)
        with store._shared(60.0).connection() as connection:
            knowing = replace(wants, heads=(Head("default", 0, last.run_at_ms),))
            emptied = blocks_read(connection, claim_call(ADA, knowing))
    assert wading > 60
    assert going_on < 20
    assert outlook < 20
    assert emptied < 20
