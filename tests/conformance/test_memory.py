"""What only the store in memory has: its lock, its injected clocks, its bell for several threads."""

import asyncio
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from tenure.errors import LeaseHeld, Misuse, Unavailable
from tenure.protocol.job import Claimer, NewJob, Wanted
from tenure.protocol.lifecycle import State
from tenure.protocol.op import Request, ask, run
from tenure.store.contract import Harness, Store
from tenure.store.memory import Do, MemoryConnection, MemoryStore

JOB = NewJob("1", "work")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_it_is_a_store_with_a_harness(store: MemoryStore) -> None:
    contract: Store = store
    harness: Harness = store
    assert (contract.name, contract.migrate(), contract.pending_migrations()) == ("memory://", [], [])
    assert harness.now().tzinfo is UTC
    contract.check()
    contract.close()


def test_two_stores_share_nothing(store: MemoryStore) -> None:
    store.connect(timeout=1.0).do(store.verbs.enqueue, [JOB])
    other = MemoryStore()
    assert other.connect(timeout=1.0).do(other.verbs.queues) == []


def test_its_clocks_can_be_injected() -> None:
    ticks = [100.0]
    store = MemoryStore(clock=lambda: ticks[0], wall=lambda: datetime(2030, 1, 1, tzinfo=UTC))
    driver = store.connect(timeout=1.0)
    driver.do(store.verbs.enqueue, [JOB])
    [held] = driver.do(store.verbs.claim, Claimer("o", "w"), Wanted(("default",), ("work",), 1))
    assert driver.do(store.verbs.get, held.id).enqueued_at == datetime(2030, 1, 1, tzinfo=UTC)
    ticks[0] += 29.0
    assert driver.do(store.verbs.get, held.id).lease_remaining == 1.0


def test_an_open_transaction_keeps_others_out_for_no_longer_than_their_patience(store: MemoryStore) -> None:
    with store.transaction():
        with pytest.raises(Unavailable, match="locked"):
            store.connect(timeout=0.01).do(store.verbs.queues)
        with pytest.raises(Unavailable, match="locked"):
            asyncio.run(store.aconnect(timeout=0.01).do(store.verbs.queues))
    assert store.connect(timeout=0.01).do(store.verbs.queues) == []


def test_asynchronous_callers_wait_for_each_other(store: MemoryStore) -> None:
    async def enqueue(number: int) -> None:
        async with store.atransaction() as connection:
            await asyncio.sleep(0)
            await store.ajoin(connection).do(store.verbs.enqueue, [NewJob(str(number), "work")])

    async def crowd() -> None:
        await asyncio.gather(*(enqueue(number) for number in range(20)))

    asyncio.run(crowd())
    [counts] = store.connect(timeout=1.0).do(store.verbs.queues)
    assert counts.due == 20


def test_a_cancelled_caller_leaves_nothing_and_no_lock(store: MemoryStore) -> None:
    async def hang() -> None:
        async with store.atransaction() as connection:
            await store.ajoin(connection).do(store.verbs.enqueue, [JOB])
            await asyncio.Event().wait()

    async def cancel() -> None:
        task = asyncio.create_task(hang())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert store.connect(timeout=0.01).do(store.verbs.queues) == []


def test_a_transaction_that_is_over_cannot_be_joined(store: MemoryStore) -> None:
    with store.transaction() as connection:
        driver = store.join(connection)
    with pytest.raises(Misuse, match="over"):
        driver.do(store.verbs.enqueue, [JOB])


def test_another_stores_transaction_cannot_be_joined(store: MemoryStore) -> None:
    with MemoryStore().transaction() as connection, pytest.raises(Misuse, match="this memory store"):
        store.join(connection)


def test_a_request_of_another_store_is_a_misuse(store: MemoryStore) -> None:
    stranger: Request[int] = Request()
    with pytest.raises(Misuse, match="Request"):
        store.connect(timeout=1.0).do(lambda: ask(stranger))


def test_a_verb_is_one_request_that_carries_its_name(store: MemoryStore) -> None:
    asked: list[Request[Any]] = []

    def answer(request: Request[Any]) -> list[Any]:
        asked.append(request)
        return []

    assert run(store.verbs.queues(), answer) == []
    [request] = asked
    assert isinstance(request, Do)
    assert request.verb == "queues"


def test_a_bell_wakes_a_waiting_thread(store: MemoryStore) -> None:
    bell = store.bell()
    heard: list[bool] = []
    thread = threading.Thread(target=lambda: heard.append(bell.wait(30.0)))
    thread.start()
    store.connect(timeout=1.0).do(store.verbs.enqueue, [JOB])
    thread.join(30.0)
    assert heard == [True]


def test_a_bell_stays_silent_for_what_was_rolled_back(store: MemoryStore) -> None:
    bell = store.bell()
    with pytest.raises(LeaseHeld), store.transaction() as connection:
        _enqueue_and_fail(store, connection)
    assert not bell.wait(0.0)


def _enqueue_and_fail(store: MemoryStore, connection: MemoryConnection) -> None:
    store.join(connection).do(store.verbs.enqueue, [JOB])
    raise LeaseHeld("1", holder=None, generation=1, remaining=1.0)


def test_a_bell_stays_silent_for_a_claim(store: MemoryStore) -> None:
    driver = store.connect(timeout=1.0)
    driver.do(store.verbs.enqueue, [JOB])
    bell = store.bell()
    [held] = driver.do(store.verbs.claim, Claimer("o", "w"), Wanted(("default",), ("work",), 1))
    assert held.state is State.RUNNING
    assert not bell.wait(0.0)


def test_every_bell_hears(store: MemoryStore) -> None:
    bells = [store.bell(), store.bell()]
    store.connect(timeout=1.0).do(store.verbs.enqueue, [JOB])
    assert [bell.wait(0.0) for bell in bells] == [True, True]
    assert [bell.wait(0.0) for bell in bells] == [False, False]


def test_a_closed_bell_says_so(store: MemoryStore) -> None:
    bell = store.bell()
    bell.close()
    with pytest.raises(Unavailable, match="closed"):
        bell.wait(0.0)
