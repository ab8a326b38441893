"""How the values of the hot verbs are laid out: what is alike goes once, and everybody locks in one order."""

from __future__ import annotations

import pytest

from tenure.protocol.job import Ending, NewJob
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import Verb
from tenure.store.calls import enqueue, settle


@pytest.mark.parametrize("key", [None, "key"])
def test_b34_jobs_are_stored_in_one_order_whatever_the_callers(key: str | None) -> None:
    jobs = [NewJob(id_, "work", unique_key=key and f"{key} {id_}") for id_ in ("b", "c", "a")]
    call = enqueue(jobs)
    assert [row[0] for row in call.rows or ()] == ["a", "b", "c"]
    assert call.name == ("enqueue_alike" if key is None else "enqueue")


def test_b34_runs_are_ended_in_one_order_whatever_the_callers() -> None:
    call = settle("owner", [Ending(Token(job, 1), Verb.COMPLETE) for job in ("b", "c", "a")])
    assert [row[0] for row in call.rows or ()] == ["a", "b", "c"]


def test_b34_of_jobs_with_keys_the_keys_say_the_order() -> None:
    """Two enqueues of other ids under the same keys wait for each other at the keys."""
    call = enqueue([NewJob("a", "work", unique_key="z"), NewJob("b", "work", unique_key="y"), NewJob("c", "work")])
    assert [row[0] for row in call.rows or ()] == ["c", "b", "a"]
