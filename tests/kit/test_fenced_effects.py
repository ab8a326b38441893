"""`assert_no_effect_after_loss` with destinations that compare tokens, and in transactions that guard the job."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tenure import App, Job
from tenure.testing.plugin.kit import Kit
from tests.kit.shop import BEFORE, ON_ITS_WAY, Bank, Ledger

# -- fences


def test_a_fence_refuses_where_the_gate_was_passed_in_time(tenure_kit: Kit, tenure_app: App) -> None:
    ledger = Ledger()
    effects = tenure_kit.effects()
    write = effects.wrap(ledger.write, fenced=True)

    @tenure_app.task(fences=[ledger])
    def right(job: Job) -> None:
        with job.effect(seconds=2) as token:
            write(7, token)

    tenure_kit.assert_no_effect_after_loss(right, effects)
    assert {generation for _, generation in ledger.lines} == {1, 3}


def test_a_token_that_is_not_passed_on_is_found(tenure_kit: Kit, tenure_app: App) -> None:
    effects = tenure_kit.effects()
    write = effects.wrap(Bank().charge, fenced=True)

    @tenure_app.task
    def work(job: Job) -> None:
        with job.effect(seconds=2):
            write(7)

    with pytest.raises(AssertionError, match="which has a fence, did not refuse it: pass the token on"):
        tenure_kit.assert_no_effect_after_loss(work, effects)


def test_what_the_worker_passes_for_a_declared_fence_is_not_the_handlers_gate(tenure_kit: Kit, tenure_app: App) -> None:
    effects = tenure_kit.effects()
    charge = effects.wrap(Bank().charge)

    @tenure_app.task(fences=[Ledger()])
    def work(job: Job) -> None:
        charge(7)

    with pytest.raises(AssertionError, match=ON_ITS_WAY):
        tenure_kit.assert_no_effect_after_loss(work, effects)


def test_a_refusal_in_the_destinations_own_words(tenure_kit: Kit, tenure_app: App) -> None:
    class Conflict(Exception):
        """What this destination says to an older generation."""

    met = [0]

    def write(generation: int) -> None:
        if generation < met[0]:
            raise Conflict
        met[0] = generation

    def start() -> None:
        met[0] = 0

    said = tenure_kit.effects(refusals=(Conflict,), reset=start)
    unsaid = tenure_kit.effects(reset=start)
    ways = iter([said.wrap(write, fenced=True), unsaid.wrap(write, fenced=True)])
    way = [next(ways)]

    @tenure_app.task
    def work(job: Job) -> None:
        with job.effect(seconds=2) as token:
            way[0](token.generation)

    tenure_kit.assert_no_effect_after_loss(work, said)
    way[0] = next(ways)
    with pytest.raises(AssertionError, match=ON_ITS_WAY):  # any other error may have changed something
        tenure_kit.assert_no_effect_after_loss(work, unsaid)


# -- guards


def test_a_guard_holds_the_job_while_its_transaction_is_open(tenure_kit: Kit, tenure_app: App) -> None:
    effects = tenure_kit.effects()
    charge = effects.wrap(Bank().charge)

    @tenure_app.task
    def right(job: Job) -> None:
        with tenure_app.store.transaction() as own:  # type: ignore[attr-defined] # a memory store has it
            job.guard(own)
            charge(1)
            charge(2)

    @tenure_app.task
    def wrong(job: Job) -> None:
        with tenure_app.store.transaction() as own:  # type: ignore[attr-defined] # a memory store has it
            job.guard(own)
            charge(1)
        charge(2)

    tenure_kit.assert_no_effect_after_loss(right, effects)
    with pytest.raises(AssertionError, match="Effect 2"):
        tenure_kit.assert_no_effect_after_loss(wrong, effects)


class TestInTheStoresOwnDatabase:
    @pytest.fixture
    def tenure_store(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/shop.db"

    @pytest.fixture
    def shop(self, tmp_path: Path) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as shop:
            yield shop

    @pytest.mark.parametrize("guarded", [True, False])
    def test_effects_and_completion_in_one_transaction(
        self, tenure_kit: Kit, tenure_app: App, shop: sqlite3.Connection, guarded: bool
    ) -> None:
        shop.execute("CREATE TABLE orders (number INTEGER)")
        effects = tenure_kit.effects(reset=lambda: shop.execute("DELETE FROM orders"))
        insert = effects.wrap(lambda number: shop.execute("INSERT INTO orders VALUES (?)", (number,)), "insert")

        @tenure_app.task
        def work(job: Job) -> None:
            shop.execute("BEGIN IMMEDIATE")
            try:
                if guarded:
                    job.guard(shop)
                insert(7)
                job.complete(shop)
                shop.execute("COMMIT")
            finally:
                if shop.in_transaction:
                    shop.execute("ROLLBACK")

        if guarded:
            tenure_kit.assert_no_effect_after_loss(work, effects)
            assert shop.execute("SELECT number FROM orders").fetchall() == [(7,)]
        else:
            with pytest.raises(AssertionError, match=BEFORE):
                tenure_kit.assert_no_effect_after_loss(work, effects)

    def test_time_is_moved_ahead(self, tenure_kit: Kit, tenure_app: App) -> None:
        @tenure_app.task
        def work(job: Job) -> None:
            if job.generation == 1:
                tenure_kit.pause()
                job.check()

        work.options(delay=3600).enqueue()
        assert tenure_kit.drain() == []
        tenure_kit.advance(3601)
        assert [one.generation for one in tenure_kit.drain()] == [1, 2]
