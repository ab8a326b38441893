"""Leases without a worker: a name owned in a block, the bare protocol by id, and who a forked child is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tenure import App, Hold, LeaseHeld, LeaseLost, Misuse, NotFound, StaleToken, State
from tenure.worker.keeper import Keeper
from tests.support.processes import wait_for


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    yield app
    app.close()


# -- a name


def named(app: App, colour: str, use: Callable[[Any], Any], *, duration: float = 30.0) -> Any:
    """Own the name "report" in a block of either colour, and return what `use` made of it there."""
    if colour == "sync":
        with app.lease("report", duration=duration) as lease:
            return use(lease)

    async def block() -> Any:
        async with app.lease("report", duration=duration) as lease:
            return use(lease)

    return asyncio.run(block())


@pytest.fixture(params=["sync", "async"])
def colour(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


def test_a_name_is_owned_inside_the_block_and_free_after_it(app: App, colour: str) -> None:
    def use(lease: Any) -> int:
        lease.check()
        assert 0 < lease.remaining() < 30.0
        assert lease.token.job == "report"
        with pytest.raises(LeaseHeld, match="job report is held by"):
            app.claim("report", owner="bea")
        generation: int = lease.generation
        return generation

    assert named(app, colour, use) == 1
    assert app.client.get("report").state is State.AVAILABLE
    assert named(app, colour, lambda lease: lease.generation) == 2


def test_a_name_that_is_owned_is_refused(app: App, colour: str) -> None:
    app.claim("report", owner="bea", duration=30.0)
    with pytest.raises(LeaseHeld, match="held by bea under generation 1 for"):
        named(app, colour, lambda _: pytest.fail("a name was owned twice"))


def test_a_named_lease_is_renewed_while_its_block_runs(app: App, colour: str) -> None:
    def outlast(lease: Any) -> None:
        ends = []

        def is_renewed() -> bool:
            record = app.client.get("report")
            ends.append(record.now.timestamp() + (record.lease_remaining or 0.0))
            return ends[-1] > ends[0] + 1.0

        wait_for(is_renewed, 20.0, "the end of the lease in the store to move on")
        lease.check()
        assert lease.generation == 1

    named(app, colour, outlast, duration=5.0)


def test_an_error_inside_the_block_goes_on_and_frees_the_name(app: App, colour: str) -> None:
    def fail(_: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        named(app, colour, fail)
    assert app.client.get("report").state is State.AVAILABLE


def test_a_name_taken_away_is_told_to_its_block(app: App, colour: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.named.Keeper", partial(Keeper, beat=0.1))

    def lose(lease: Any) -> None:
        app.client.cancel(["report"], "the report is not needed")
        wait_for(lambda: lease.lost, 20.0, "the loss to be told")
        with pytest.raises(LeaseLost, match="the job is cancelled"):
            lease.check()

    named(app, colour, lose)


@pytest.mark.parametrize("use", ["token", "generation", "lost"])
def test_outside_its_block_a_named_lease_is_nothing(app: App, use: str) -> None:
    with pytest.raises(Misuse, match="the lease 'report' is not held: use it inside its with block"):
        getattr(app.lease("report"), use)


@pytest.mark.parametrize(("name", "duration"), [("", 30.0), ("report", 0.2), ("report", 90_000.0)])
def test_a_bad_named_lease_is_refused_at_once(app: App, name: str, duration: float) -> None:
    with pytest.raises(Misuse, match="lease"):
        app.lease(name, duration=duration)


# -- the bare protocol


def claim(app: App, colour: str, job: str, **options: Any) -> Hold:
    if colour == "sync":
        return app.claim(job, owner="ada", **options)
    return asyncio.run(app.claim_async(job, owner="ada", **options))


def test_a_claim_by_id_is_completed_once_and_remembers_its_result(app: App, colour: str) -> None:
    hold = claim(app, colour, "order-7")
    assert hold.complete('"done"') == '"done"'
    assert hold.complete('"again"') == '"done"'
    with pytest.raises(LeaseLost, match="the run ended"):
        hold.check()


def test_a_claim_by_id_of_what_is_not_there_can_be_refused(app: App, colour: str) -> None:
    with pytest.raises(NotFound, match="there is no job 'order-7'"):
        claim(app, colour, "order-7", create=False)


def test_after_a_takeover_every_verb_of_the_old_holder_is_stale(app: App, colour: str) -> None:
    late = claim(app, colour, "order-7", duration=1.0)
    wait_for(lambda: (app.client.get("order-7").lease_remaining or 1.0) < 0, 20.0, "the lease to end")
    assert app.claim("order-7", owner="bea").generation == 2
    verbs: list[Callable[[], object]] = [late.renew, late.complete, lambda: late.fail("too late"), late.release]
    for verb in verbs:
        with pytest.raises(StaleToken) as refused:
            verb()
        assert (refused.value.generation, refused.value.current, refused.value.holder) == (1, 2, "bea")
    with pytest.raises(LeaseLost):
        late.check()
    assert app.client.get("order-7").generation == 2


def test_a_hold_is_extended_failed_and_released_under_its_token(app: App, colour: str) -> None:
    hold = claim(app, colour, "order-7", duration=30.0)
    hold.extend(300.0)
    assert hold.remaining() > 200.0
    hold.release()
    hold = claim(app, colour, "order-7")
    assert (hold.generation, hold.token.job) == (2, "order-7")
    hold.fail("the printer is out of paper", delay=60.0)
    record = app.client.get("order-7")
    assert (record.attempts, record.reason, record.phase) == (1, "the printer is out of paper", "retryable")


def test_b35_what_a_hold_says_is_bounded_like_a_handlers(app: App) -> None:
    hold = app.claim("order-7", owner="ada")
    with pytest.raises(Misuse, match="the result: 1048577 bytes as JSON, above the limit of 1048576"):
        hold.complete('"' + "é" * 524_287 + 'x"')
    hold.fail("x" * 50_000)
    assert app.client.get("order-7").reason == "x" * 16_384 + "… (the first 16384 of 50000 characters)"


# -- forks


def test_r24_a_forked_child_is_somebody_else(app: App) -> None:
    """In a process of its own, with one thread, as a server that forks its workers before they start."""
    mine = app.claimer
    assert app.claimer == mine
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, f"{app.claimer.owner} {app.claimer.worker}".encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        owner, worker = pipe.read().rsplit(" ", 1)
    os.waitpid(child, 0)
    assert owner != mine.owner
    assert worker == f"{os.uname().nodename}:{child}"
