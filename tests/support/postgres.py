"""What a PostgreSQL server tells about its sessions."""

from __future__ import annotations

import psycopg

from tests.support.processes import wait_for

_WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


def wait_for_a_lock(url: str, patience: float = 30.0) -> int:
    """Wait until a session of this database waits for a lock, and return its process id."""
    # In a transaction the answer would stay what it was at first.
    with psycopg.connect(url, autocommit=True) as connection:
        row = wait_for(lambda: connection.execute(_WAITING).fetchone(), patience, "a session to wait for a lock")
    assert row is not None
    return int(row[0])
