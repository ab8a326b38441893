"""A claim reads the jobs that it takes, not those that it passes by, however big they are."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tenure.protocol.job import Claimer, NewJob, Wanted
from tenure.store.sqlite import SqliteStore

BIG = 60
MEGABYTE = 1 << 20


def bytes_read() -> int:
    """Tell how much this thread has read so far, whatever other threads do."""
    lines = Path("/proc/thread-self/io").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("rchar:")).split()[1])


def test_b35_big_jobs_of_another_task_are_passed_by_unread(tmp_path: Path) -> None:
    with closing(SqliteStore(str(tmp_path / "jobs.db"))) as store:
        store.migrate()
        driver = store.dedicated(timeout=10.0)
        big = [NewJob(f"big-{number}", "big", arguments=f'"{"x" * MEGABYTE}"') for number in range(BIG)]
        driver.do(store.verbs.enqueue, [*big, NewJob("small", "small")])
        before = bytes_read()
        turn = driver.do(
            store.verbs.turn, Claimer("owner", "A"), [], [Wanted(("default",), ("small",), 1)], careful=False
        )
        assert [row.id for row in turn.claimed] == ["small"]
        assert bytes_read() - before < MEGABYTE
        driver.close()
