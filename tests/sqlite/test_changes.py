"""How the rows of one call are changed."""

from __future__ import annotations

from pathlib import Path

from tenure.ids import new_job_id, new_owner
from tenure.protocol.ending import completed
from tenure.protocol.job import Claimer, NewJob, Verdict, Wanted
from tenure.protocol.lease import Token
from tenure.protocol.op import run
from tenure.store.sqlite import SqliteStore


def test_many_runs_are_settled_without_a_savepoint(tmp_path: Path) -> None:
    """Inside one, SQLite writes each page that is changed aside, for every row anew: most of the writes of a turn."""
    store, claimer = SqliteStore(str(tmp_path / "jobs.db")), Claimer(new_owner(), "w1")
    said: list[str] = []
    with store.session() as execute:
        run(store.verbs.enqueue([NewJob(id=new_job_id(), task="work") for _ in range(3)]), execute)
        held = run(store.verbs.claim(claimer, Wanted(("default",), ("work",), 10)), execute)
    connection = store.take()
    connection.set_trace_callback(said.append)
    store.give_back(connection)
    endings = [completed(Token(job.id, job.generation), None) for job in held]
    endings[1] = completed(Token(held[1].id, 7), None)
    with store.session() as execute:
        answers = run(store.verbs.settle(claimer.owner, endings), execute)
    store.close()
    assert [answer.verdict for answer in answers] == [Verdict.DONE, Verdict.STALE, Verdict.DONE]
    words = {line.split()[0] for line in said}
    assert "UPDATE" in words
    assert "SAVEPOINT" not in words
