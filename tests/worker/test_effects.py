"""What guards a handler's effects: numbers, keys, fences that are raised before it runs; with a whole worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tenure import App, BadSettings, Effect, Job, LeaseLost, OutOfSequence, StaleToken, State, Token
from tenure.fences.rule import Mark
from tenure.protocol.events import Event, Kind
from tenure.protocol.job import JobRecord
from tenure.store.memory import MemoryStore
from tenure.testing.job import FakeJob
from tenure.worker.fencing import FURTHEST
from tests.fences.memory import MemoryDestination
from tests.support.processes import wait_for

Run = Callable[..., JobRecord]


class Fenced:
    """A memory destination as a task declares it: it knows its scope, and notes who announced himself.

    It has met generation `met` of the job already, before the store was set back.
    """

    def __init__(self, met: int = 0) -> None:
        self.destination = MemoryDestination()
        self.raised: list[Token] = []
        self._met = met

    def raise_to(self, token: Token) -> None:
        if self._met and not self.raised:
            self.destination.marks["ledger"] = Mark(token.job, self._met, 1)
        self.raised.append(token)
        self.destination.raise_to(token, "ledger")


class AsyncFenced(Fenced):
    """The same with an asynchronous way in."""

    async def raise_to_async(self, token: Token) -> None:
        await asyncio.sleep(0)
        self.raise_to(token)


def done(app: App, job: str, *, times: int = 1) -> JobRecord:
    """Run a worker until the job is over, and return what became of it."""
    worker = app.worker(retention=None)
    worker.start()
    try:
        wait_for(lambda: app.client.get(job).state in {"completed", "discarded", "cancelled"}, 20.0, "the job to end")
    finally:
        worker.stop(grace=0)
    return app.client.get(job)


@pytest.fixture
def app() -> App:
    return App(MemoryStore())


def test_r33_effects_of_a_run_are_numbered(app: App) -> None:
    seen: list[Effect] = []

    @app.task
    def work(job: Job) -> None:
        for _ in range(3):
            with job.effect() as token:
                seen.append(token)

    job = work.enqueue().id
    assert done(app, job).state is State.COMPLETED
    assert seen == [Effect(job, 1, number) for number in (1, 2, 3)]


def test_r33_a_named_lease_and_a_hold_number_theirs_too(app: App) -> None:
    with app.lease("report") as lease, lease.effect() as first, lease.effect(1.0) as second:
        assert (first, second) == (Effect("report", 1, 1), Effect("report", 1, 2))
        with pytest.raises(LeaseLost, match="may take 60 s"), lease.effect(60):
            pytest.fail("an effect started for which the lease is too short")
    hold = app.claim("thing", owner="ada")
    with hold.effect() as only:
        assert only == Effect("thing", 1, 1)
    hold.release()
    with pytest.raises(LeaseLost), hold.effect():
        pytest.fail("an effect started after the release")


def test_r40_a_step_hands_the_same_key_to_every_run(app: App) -> None:
    keys: list[tuple[str, str]] = []

    def charge(cents: int, *, idempotency_key: str = "") -> None:
        keys.append((idempotency_key, f"{cents}"))
        if len(keys) == 1:
            raise ConnectionError

    @app.task(max_attempts=3)
    def work(job: Job) -> None:
        if job.attempt == 1:
            with pytest.raises(ConnectionError):
                job.step("charge", charge, 7)
        job.step("charge", charge, 7)
        assert job.idempotency_key("charge") == f"{job.id}:charge"

    job = work.enqueue().id
    assert done(app, job).state is State.COMPLETED
    assert keys == [(f"{job}:charge", "7")] * 2


def test_r40_no_two_effects_share_a_key() -> None:
    pairs = [("a:b", "c"), ("a", "b:c"), ("a%3Ab", "c"), ("a", "b%3Ac")]
    assert len({FakeJob(id=job).idempotency_key(step) for job, step in pairs}) == len(pairs)


def test_the_header_fields_of_a_request(app: App) -> None:
    written: list[dict[str, str]] = []

    @app.task
    def work(job: Job) -> None:
        written.extend([job.headers("charge"), job.headers("mail", scope="account/7", seconds=1)])
        with pytest.raises(LeaseLost):
            job.headers("late", seconds=3600)

    job = work.enqueue().id
    assert done(app, job).state is State.COMPLETED
    common = {"Fencing-Token": "1", "Fencing-Job": job}
    assert written == [
        {**common, "Fencing-Scope": job, "Fencing-Sequence": "1", "Idempotency-Key": f'"{job}:charge"'},
        {**common, "Fencing-Scope": "account/7", "Fencing-Sequence": "2", "Idempotency-Key": f'"{job}:mail"'},
    ]


def test_r40_a_key_that_is_given_is_not_replaced(app: App) -> None:
    keys: list[str] = []

    async def charge(idempotency_key: str = "") -> None:
        keys.append(idempotency_key)

    @app.task
    async def work(job: Job) -> None:
        await job.step_async("a", charge, idempotency_key="mine")
        await job.step_async("b", charge)
        await job.step_async("c", asyncio.sleep, 0)

    job = work.enqueue().id
    assert done(app, job).state is State.COMPLETED
    assert keys == ["mine", f"{job}:b"]


@pytest.mark.parametrize("kind", [Fenced, AsyncFenced])
@pytest.mark.parametrize("is_async", [False, True])
def test_r32_declared_fences_are_raised_before_the_handler(app: App, kind: type[Fenced], is_async: bool) -> None:
    first, second = kind(), kind()
    seen: list[int] = []

    if is_async:

        @app.task(name="work", fences=[first, second])
        async def work() -> None:
            seen.append(len(first.raised) + len(second.raised))
    else:

        @app.task(name="work", fences=[first, second])
        def work() -> None:
            seen.append(len(first.raised) + len(second.raised))

    job = work.enqueue().id
    assert done(app, job).state is State.COMPLETED
    assert (seen, first.raised, second.raised) == ([2], [Token(job, 1)], [Token(job, 1)])


@pytest.mark.parametrize("is_async", [False, True])
def test_r41_a_store_that_was_set_back_follows_its_destination(app: App, is_async: bool) -> None:
    fence = Fenced(met=4711)
    told: list[Event] = []
    app.events.subscribe(told.append)
    ran: list[int] = []

    if is_async:

        @app.task(name="work", fences=[fence], max_attempts=1)
        async def work(job: Job) -> None:
            ran.append(job.generation)
    else:

        @app.task(name="work", fences=[fence], max_attempts=1)
        def work(job: Job) -> None:
            ran.append(job.generation)

    record = done(app, work.enqueue().id)
    assert (record.state, record.attempts, record.generation) == (State.COMPLETED, 0, 4712)
    assert ran == [4712]
    [event] = [event for event in told if event.kind is Kind.FLOOR_RAISED]
    assert event.generation == 1
    assert "4711" in event.detail


def test_r38_a_store_does_not_follow_nonsense(app: App) -> None:
    fence = Fenced(met=FURTHEST + 2)
    ran: list[int] = []

    @app.task(fences=[fence], max_attempts=1)
    def work() -> None:
        ran.append(1)

    record = done(app, work.enqueue().id)
    assert (record.state, ran, record.generation) == (State.DISCARDED, [], 1)
    assert record.failure is not None
    assert record.failure.type == "StaleToken"


def test_r41_a_run_that_was_taken_over_lifts_nothing(app: App) -> None:
    """A refusal that is the truth: the store says so too, so nothing is to be lifted and the run is over."""
    taken: list[str] = []

    class Slow(Fenced):
        def raise_to(self, token: Token) -> None:
            if not taken:
                taken.append(token.job)
                app.client.release([token.job])  # an operator takes it away
                raise StaleToken(token.job, token.generation, current=token.generation + 1)

    @app.task(fences=[Slow()])
    def work() -> None:
        taken.append("ran")

    job = work.enqueue().id
    assert done(app, job).state is State.COMPLETED
    assert taken == [job, "ran"]
    assert app.client.lift_floor(0).floor == 0


@pytest.mark.parametrize("wrong", [object(), "http://here", MemoryDestination()])
def test_what_cannot_be_raised_with_a_token_is_refused_at_once(app: App, wrong: Any) -> None:
    with pytest.raises(BadSettings, match="raise_to"):
        app.task(fences=[wrong])(lambda: None)


def test_a_repeated_write_says_so(app: App) -> None:
    """A handler that meets OutOfSequence has a bug of its own: the attempt fails with its name."""
    destination = MemoryDestination()

    @app.task(max_attempts=1)
    def work(job: Job) -> None:
        destination.write(job.token, "ledger", "one", 1)
        destination.write(job.token, "ledger", "two", 1)

    record = done(app, work.enqueue().id)
    assert record.failure is not None
    assert record.failure.type == OutOfSequence.__name__
    assert destination.read("ledger") == "one"


def test_a_step_hands_its_key_only_where_it_is_missing() -> None:
    def by_name(idempotency_key: str) -> str:
        return idempotency_key

    def by_place(idempotency_key: str = "own", /) -> str:
        return idempotency_key

    job = FakeJob()
    assert job.step("place", by_name, "mine") == "mine"
    assert job.step("partial", partial(by_name, idempotency_key="mine")) == "mine"
    assert job.step("partial place", partial(by_name, "mine")) == "mine"
    assert job.step("positional", by_place) == "own"
    assert job.step("missing", partial(by_name)) == job.idempotency_key("missing")
