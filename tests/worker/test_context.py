"""What a handler is given: the gate before an effect, progress, and steps that are done once, on a real store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenure import App, BadArguments, Job, LeaseLost, Misuse, State, TenureError
from tenure.hold import Lease, renewing
from tenure.protocol.events import Emitter
from tenure.protocol.job import Claimer, Ending, Wanted
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import Verb
from tenure.store.sqlite import SqliteStore
from tenure.store.sqlite.clocks import Clocks
from tenure.worker.keeper import Keeper
from tests.worker.bench import LEASE, TRUST, Clock

ANYTHING = [None, 7, 2**63, "größe", 0.1, [1, {"a": None}], {"done": 3, "of": 8}]


class Bench:
    """One job on a SQLite store whose clocks a test moves, claimed by one worker after the other."""

    def __init__(self, folder: Path) -> None:
        self.boot = Clock(5000.0)
        self.wall = Clock(1_900_000_000.0)
        self.store = SqliteStore(str(folder / "jobs.db"), clocks=Clocks(wall=self.wall, boot=self.boot))
        self.app = App(self.store)

        @self.app.task(lease=LEASE)
        def work() -> None:
            """Be claimed by hand."""

        self.id = work.enqueue().id
        self.driver = self.store.dedicated(timeout=5.0)

    def advance(self, seconds: float) -> None:
        self.boot.advance(seconds)
        self.wall.advance(seconds)

    def claim(self, worker: str) -> Job:
        claimer = Claimer(f"owner-{worker}", worker)
        sent_at = self.boot()
        [row] = self.driver.do(self.store.verbs.claim, claimer, Wanted(("default",), ("work",), 1))
        token = Token(row.id, row.generation)
        lease = Lease(
            token,
            claimer.owner,
            row.lease,
            sent_at,
            renew=renewing(self.app.client),
            clock=self.boot,
            wall=self.wall,
        )
        return Job(row, lease, self.app)

    def take_over(self) -> Job:
        self.advance(LEASE + 1)
        return self.claim("bea")

    def end(self, job: Job, verb: Verb) -> None:
        self.app.client.settle(job.lease.owner, [Ending(job.token, verb)])


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    opened = Bench(tmp_path)
    yield opened
    opened.app.close()


# -- the gate


def test_a_job_knows_its_token_and_its_attempt(bench: Bench) -> None:
    job = bench.claim("ada")
    assert (job.id, job.generation, job.token, job.attempt) == (bench.id, 1, Token(bench.id, 1), 1)
    assert (job.queue, job.task, job.trace) == ("default", "work", None)


def test_a_takeover_is_no_attempt(bench: Bench) -> None:
    bench.claim("ada")
    job = bench.take_over()
    assert (job.generation, job.attempt) == (2, 1)
    bench.end(job, Verb.FAIL)
    assert bench.claim("cleo").attempt == 2


def test_the_gate_hands_out_the_token(bench: Bench) -> None:
    job = bench.claim("ada")
    with job.effect() as token:
        assert (token.job, token.generation, token.sequence) == (job.id, job.generation, 1)


def test_r21_the_gate_closes_with_the_lease_whoever_is_asleep(bench: Bench) -> None:
    job = bench.claim("ada")
    bench.boot.advance(LEASE * TRUST)
    assert job.cancelled
    assert job.stop_reason is not None
    with pytest.raises(LeaseLost, match="its time ran out"):
        job.check()
    with pytest.raises(LeaseLost), job.effect():
        pytest.fail("an effect started after the lease had ended")


def test_the_gate_closes_when_the_job_is_told_to_stop(bench: Bench) -> None:
    job = bench.claim("ada")
    assert (job.cancelled, job.stop_reason) == (False, None)
    job.ask_to_stop("the worker is shutting down")
    job.ask_to_stop("something else")
    assert (job.cancelled, job.stop_reason) == (True, "the worker is shutting down")
    with pytest.raises(LeaseLost, match="the worker is shutting down"):
        job.check()
    with pytest.raises(LeaseLost), job.effect():
        pytest.fail("an effect started after the job was told to stop")


def test_the_gate_asks_whether_there_is_time_for_the_effect(bench: Bench) -> None:
    job = bench.claim("ada")
    with job.effect(LEASE * TRUST - 1):
        pass
    bench.advance(10)
    with pytest.raises(LeaseLost, match="18.4 s are left and the effect may take 20 s"), job.effect(20):
        pytest.fail("an effect started for which the lease is too short")


def test_an_extension_outlasts_the_next_renewals(bench: Bench) -> None:
    """What the holder believes after an extension, the store must keep: a beat of the keeper must not shorten it."""
    job = bench.claim("ada")
    job.lease.extend(300.0)
    bench.advance(10)
    keeper = Keeper(
        bench.driver,
        bench.store.verbs,
        job.lease.owner,
        on_lost=lambda *_: None,
        emitter=Emitter(),
        clock=bench.boot,
    )
    keeper.add([job.lease])
    keeper.beat()
    stored = bench.app.client.get(bench.id).lease_remaining
    assert stored is not None
    assert job.lease.remaining() < stored
    assert job.lease.remaining() == pytest.approx(300.0 * TRUST - 10)


def test_r14_after_a_jump_of_the_wall_clock_the_gate_asks_the_store(bench: Bench) -> None:
    job = bench.claim("ada")
    bench.wall.advance(3600)
    job.check()
    bench.take_over()
    bench.wall.advance(3600)
    bench.boot.advance(-LEASE)  # ada's clock stood still meanwhile, as in a frozen machine
    with pytest.raises(LeaseLost, match=r"generation 2 took over \(bea\)"):
        job.check()


# -- progress


@pytest.mark.parametrize("value", ANYTHING, ids=repr)
def test_progress_is_stored_as_it_was_given(bench: Bench, value: object) -> None:
    job = bench.claim("ada")
    job.progress(value)
    asyncio.run(job.progress_async(value))
    assert bench.app.client.get(bench.id).progress is not None


def test_progress_that_json_cannot_carry_is_refused_at_the_call(bench: Bench) -> None:
    job = bench.claim("ada")
    with pytest.raises(TenureError, match="progress"):
        job.progress({"rate": float("nan")})
    assert bench.app.client.get(bench.id).progress is None


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_a_late_workers_progress_is_refused_and_it_is_told(bench: Bench, colour: str) -> None:
    late = bench.claim("ada")
    bench.take_over().progress("by bea")
    with pytest.raises(LeaseLost, match=r"generation 2 took over \(bea\)"):
        if colour == "sync":
            late.progress("by ada")
        else:
            asyncio.run(late.progress_async("by ada"))
    assert late.cancelled
    assert bench.app.client.get(bench.id).progress == '"by bea"'


# -- steps


class Effect:
    """Something that must happen once; `fails` says how often it fails first."""

    def __init__(self, result: object = "receipt", fails: int = 0) -> None:
        self.times = 0
        self._result = result
        self._fails = fails

    def __call__(self, *_: object) -> object:
        self.times += 1
        if self.times <= self._fails:
            raise ConnectionError("the payment service is away")
        return self._result

    async def later(self, *_: object) -> object:
        return self()


def do_step(colour: str, job: Job, effect: Effect, name: str = "charge") -> object:
    if colour == "sync":
        return job.step(name, effect, 1200)
    return asyncio.run(job.step_async(name, effect.later, 1200))


@pytest.fixture(params=["sync", "async"])
def colour(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


def test_r40_a_step_is_done_once_in_a_run(bench: Bench, colour: str) -> None:
    job, effect = bench.claim("ada"), Effect({"paid": 1200})
    assert do_step(colour, job, effect) == {"paid": 1200}
    assert do_step(colour, job, effect) == {"paid": 1200}
    assert effect.times == 1


@pytest.mark.parametrize("way_back", ["retry", "takeover"])
def test_r40_a_step_is_done_once_over_all_runs(bench: Bench, colour: str, way_back: str) -> None:
    effect = Effect()
    first = bench.claim("ada")
    do_step(colour, first, effect)
    if way_back == "retry":
        bench.end(first, Verb.RETRY)
        second = bench.claim("bea")
    else:
        second = bench.take_over()
    assert second.generation == 2
    assert do_step(colour, second, effect) == "receipt"
    assert effect.times == 1


def test_a_step_that_returned_nothing_is_remembered_too(bench: Bench, colour: str) -> None:
    effect = Effect(None)
    job = bench.claim("ada")
    assert do_step(colour, job, effect) is None
    assert do_step(colour, job, effect) is None
    assert effect.times == 1


def test_a_step_that_failed_is_not_remembered(bench: Bench, colour: str) -> None:
    job, effect = bench.claim("ada"), Effect(fails=1)
    with pytest.raises(ConnectionError):
        do_step(colour, job, effect)
    assert do_step(colour, job, effect) == "receipt"
    assert effect.times == 2


def test_steps_of_other_names_are_other_steps(bench: Bench, colour: str) -> None:
    job, effect = bench.claim("ada"), Effect()
    do_step(colour, job, effect, "charge")
    do_step(colour, job, effect, "mail")
    assert effect.times == 2


def test_a_late_worker_starts_no_step(bench: Bench, colour: str) -> None:
    late, effect = bench.claim("ada"), Effect()
    bench.take_over()
    with pytest.raises(LeaseLost):
        do_step(colour, late, effect)
    assert effect.times == 0


def test_a_late_worker_gets_the_result_that_stands(bench: Bench, colour: str) -> None:
    late, effect = bench.claim("ada"), Effect("by bea")
    do_step(colour, bench.take_over(), effect)
    assert do_step(colour, late, Effect("by ada")) == "by bea"


def test_a_step_recorded_too_late_is_refused_and_does_not_stand(bench: Bench, colour: str) -> None:
    late = bench.claim("ada")

    class Slow(Effect):
        def __call__(self, *given: object) -> object:
            bench.take_over()
            return super().__call__(*given)

    with pytest.raises(LeaseLost, match=r"generation 2 took over \(bea\)"):
        do_step(colour, late, Slow("by ada"))
    assert bench.app.client.recall_step(bench.id, "charge") is None


def test_a_result_that_json_cannot_carry_is_refused_by_the_steps_name(bench: Bench, colour: str) -> None:
    job = bench.claim("ada")
    with pytest.raises(TenureError, match="the result of step charge"):
        do_step(colour, job, Effect(float("inf")))
    assert bench.app.client.recall_step(bench.id, "charge") is None


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201])
def test_b29_a_step_needs_a_name(bench: Bench, colour: str, name: str) -> None:
    with pytest.raises(Misuse, match="a step's name"):
        do_step(colour, bench.claim("ada"), Effect(), name)


# -- in a test of one's own


def test_a_task_is_a_plain_function_in_a_unit_test() -> None:
    app = App("memory://")

    class FakeJob:
        generation = 7

    @app.task
    def charge(job: Job, order: int) -> str:
        return f"{order} under {job.generation}"

    call: Callable[..., str] = charge
    assert call(FakeJob(), order=3) == "3 under 7"


def test_a_run_of_ones_own_ends_as_its_verb_says(bench: Bench) -> None:
    bench.end(bench.claim("ada"), Verb.COMPLETE)
    assert bench.app.client.get(bench.id).state is State.COMPLETED
    with pytest.raises(BadArguments):
        bench.app.tasks["work"].enqueue(1)
