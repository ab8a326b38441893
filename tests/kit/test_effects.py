"""`assert_no_effect_after_loss`: each handler that is wrong is found, and none that is right."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from unittest.mock import AsyncMock, Mock

import pytest

from tenure import App, Job, LeaseLost, Misuse, Snooze
from tenure.testing.plugin.kit import Kit
from tests.kit.shop import BEFORE, ON_ITS_WAY, Bank

Handler = Callable[[Job, Callable[..., str]], object]


def behind_the_gate(job: Job, charge: Callable[..., str]) -> None:
    for order in (1, 2):
        with job.effect(seconds=2):
            charge(order)


def in_steps(job: Job, charge: Callable[..., str]) -> None:
    for order in (1, 2):
        job.step(f"charge {order}", charge, order)


def after_a_check(job: Job, charge: Callable[..., str]) -> None:
    for order in (1, 2):
        job.check()
        charge(order)


def behind_the_gate_of_the_lease(job: Job, charge: Callable[..., str]) -> None:
    with job.lease.effect(seconds=2):
        charge(1)
    job.lease.check()
    charge(2)


def with_a_lease_extended_far(job: Job, charge: Callable[..., str]) -> None:
    job.lease.extend(3600)
    behind_the_gate(job, charge)


@pytest.mark.parametrize(
    "handler", [behind_the_gate, in_steps, after_a_check, behind_the_gate_of_the_lease, with_a_lease_extended_far]
)
def test_a_handler_that_asks_before_each_effect_is_right(tenure_kit: Kit, tenure_app: App, handler: Handler) -> None:
    effects = tenure_kit.effects()
    charge = effects.wrap(Bank().charge)

    @tenure_app.task
    def work(job: Job) -> None:
        handler(job, charge)

    tenure_kit.assert_no_effect_after_loss(work, effects)


def without_asking(job: Job, charge: Callable[..., str]) -> None:
    charge(1)


def asking_once_for_two(job: Job, charge: Callable[..., str]) -> None:
    with job.effect(seconds=5):
        charge(1)
        charge(2)


def asking_twice_beforehand(job: Job, charge: Callable[..., str]) -> None:
    job.check()
    job.check()
    charge(1)
    charge(2)


def asking_afterwards(job: Job, charge: Callable[..., str]) -> None:
    charge(1)
    job.check()


def going_on_when_told(job: Job, charge: Callable[..., str]) -> None:
    for order in (1, 2):
        try:
            job.check()
        except LeaseLost:
            charge(-1)
        charge(order)


def trusting_what_it_saw(job: Job, charge: Callable[..., str]) -> None:
    fine = not job.cancelled
    if fine:
        charge(1)
    if fine:
        charge(2)


@pytest.mark.parametrize(
    ("handler", "told"),
    [
        (without_asking, BEFORE),
        (without_asking, ON_ITS_WAY),
        (asking_once_for_two, "  after effect 1"),
        (asking_twice_beforehand, "  after effect 1"),
        (asking_afterwards, BEFORE),
        (going_on_when_told, BEFORE),
        (trusting_what_it_saw, "  after effect 1"),
    ],
)
def test_a_handler_that_does_not_ask_is_found(tenure_kit: Kit, tenure_app: App, handler: Handler, told: str) -> None:
    effects = tenure_kit.effects()
    charge = effects.wrap(Bank().charge)

    @tenure_app.task
    def work(job: Job) -> None:
        handler(job, charge)

    with pytest.raises(AssertionError, match="work carried out effects after its lease was lost") as raised:
        tenure_kit.assert_no_effect_after_loss(work, effects)
    assert told in str(raised.value)
    assert "it had passed no gate and no guard, and no fence refused it" in str(raised.value)


def test_what_was_carried_out_is_told(tenure_kit: Kit, tenure_app: App) -> None:
    effects = tenure_kit.effects()
    charge = effects.wrap(Bank().charge, "bank.charge")

    @tenure_app.task
    def work(job: Job, order: int) -> None:
        job.check()
        charge(order)
        charge(order=order + 1)

    with pytest.raises(AssertionError) as raised:
        tenure_kit.assert_no_effect_after_loss(work, effects, 7)
    text = str(raised.value)
    assert "Effect 2, bank.charge(order=8): it had passed no gate and no guard" in text
    assert "The lease was lost\n  while effect 1 was on its way\n  after effect 1\n" in text
    assert "Effect 1," not in text
    assert "Pass the gate before each effect" in text


def test_both_workers_run_the_handler_and_the_job_is_over(tenure_kit: Kit, tenure_app: App) -> None:
    bank = Bank()
    effects = tenure_kit.effects(reset=bank.charged.clear)
    charge = effects.wrap(bank.charge)
    generations: list[int] = []

    @tenure_app.task
    def work(job: Job) -> None:
        generations.append(job.generation)
        behind_the_gate(job, charge)

    before = work.enqueue()
    tenure_kit.drain()
    tenure_kit.assert_no_effect_after_loss(work, effects)
    assert generations == [1, 1, 3, 1] + [1, 3] * 4  # undisturbed, before it begins, and at four moments in it
    assert bank.charged == [1, 2, 1, 2]  # the last moment comes after the second effect: both runs did both
    assert [job.id for job in tenure_kit.enqueued()] == [before.id]


@pytest.mark.parametrize("concurrent", [False, True])
def test_async_handlers_and_effects(tenure_kit: Kit, tenure_app: App, concurrent: bool) -> None:
    bank = Bank()
    effects = tenure_kit.effects()
    charge = effects.wrap(bank.charge_async)

    async def one(job: Job, order: int) -> None:
        with job.effect(seconds=2):
            await charge(order)

    @tenure_app.task
    async def right(job: Job) -> None:
        if concurrent:
            await asyncio.gather(one(job, 1), one(job, 2))
        else:
            await one(job, 1)
            await one(job, 2)

    @tenure_app.task
    async def in_a_step(job: Job) -> None:
        await job.step_async("charge", charge, 3)

    @tenure_app.task
    async def wrong(job: Job) -> None:
        await charge(1)

    tenure_kit.assert_no_effect_after_loss(right, effects)
    if not concurrent:  # the late run did none, one, one, two and two effects, and the other worker both each time
        assert len(bank.charged) == 2 + 5 * 2 + (0 + 1 + 1 + 2 + 2)
    tenure_kit.assert_no_effect_after_loss(in_a_step, effects)
    with pytest.raises(AssertionError, match=BEFORE):
        tenure_kit.assert_no_effect_after_loss(wrong, effects)


def test_an_effect_beside_another_is_that_of_its_own_run(tenure_kit: Kit, tenure_app: App) -> None:
    effects = tenure_kit.effects()
    charge = effects.wrap(Bank().charge_async, fenced=True)

    @tenure_app.task
    async def wrong(job: Job) -> None:
        job.check()
        await asyncio.gather(charge(1), charge(2))

    with pytest.raises(AssertionError, match="Effect 2, charge_async\\(2\\)") as raised:
        tenure_kit.assert_no_effect_after_loss(wrong, effects)
    assert ON_ITS_WAY in str(raised.value).partition("Effect 2")[2]  # as another worker ran the job


def test_a_repeat_needs_a_gate_of_its_own(tenure_kit: Kit, tenure_app: App) -> None:
    effects = tenure_kit.effects()
    charge = effects.wrap(Mock(side_effect=[ConnectionError, "receipt"] * 20), "charge")

    @tenure_app.task
    def work(job: Job) -> None:
        with job.effect(seconds=5):
            try:
                charge()
            except ConnectionError:  # perhaps it was charged all the same
                charge()

    with pytest.raises(AssertionError, match="Effect 2"):
        tenure_kit.assert_no_effect_after_loss(work, effects)


def test_a_plain_effect_in_an_async_handler(tenure_kit: Kit, tenure_app: App) -> None:
    effects = tenure_kit.effects()
    charge = effects.wrap(Bank().charge)

    @tenure_app.task
    async def right(job: Job) -> None:
        with job.effect(seconds=2):
            charge(1)
        with job.effect(seconds=2):
            await asyncio.to_thread(charge, 2)

    @tenure_app.task
    async def wrong(job: Job) -> None:
        job.check()
        charge(1)
        await asyncio.to_thread(charge, 2)

    tenure_kit.assert_no_effect_after_loss(right, effects)
    with pytest.raises(AssertionError, match="Effect 2"):
        tenure_kit.assert_no_effect_after_loss(wrong, effects)


def test_a_mock_can_be_wrapped(tenure_kit: Kit, tenure_app: App) -> None:
    effects = tenure_kit.effects()
    plain, coroutine = effects.wrap(Mock(return_value=1)), effects.wrap(AsyncMock(return_value=2), "later")

    @tenure_app.task
    async def work(job: Job) -> None:
        job.check()
        plain()
        job.check()
        assert await coroutine() == 2

    tenure_kit.assert_no_effect_after_loss(work, effects)
    assert {call.name for call in effects.seen} == {"Mock", "later"}


# -- what would prove nothing


def test_a_handler_without_effects_proves_nothing(tenure_kit: Kit, tenure_app: App) -> None:
    @tenure_app.task
    def work() -> None: ...

    with pytest.raises(AssertionError, match="work carried out no effect"):
        tenure_kit.assert_no_effect_after_loss(work, tenure_kit.effects())


def test_a_handler_that_does_less_the_second_time_proves_nothing(tenure_kit: Kit, tenure_app: App) -> None:
    bank = Bank()
    effects = tenure_kit.effects()
    charge = effects.wrap(bank.charge)

    @tenure_app.task
    def work(job: Job) -> None:
        if not bank.charged:
            behind_the_gate(job, charge)

    with pytest.raises(AssertionError, match="did not get as far"):
        tenure_kit.assert_no_effect_after_loss(work, effects)
    again = tenure_kit.effects(reset=bank.charged.clear)
    charge = again.wrap(bank.charge)
    tenure_kit.assert_no_effect_after_loss(work, again)


def test_a_handler_that_fails_undisturbed_says_so(tenure_kit: Kit, tenure_app: App) -> None:
    @tenure_app.task
    def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        tenure_kit.assert_no_effect_after_loss(work, tenure_kit.effects())


def test_only_the_first_run_of_a_job_is_on_trial(tenure_kit: Kit, tenure_app: App) -> None:
    effects = tenure_kit.effects()
    charge = effects.wrap(Bank().charge)

    @tenure_app.task
    def work(job: Job) -> None:
        job.check()
        charge(1)
        if job.generation == 1:
            raise Snooze(0)

    tenure_kit.assert_no_effect_after_loss(work, effects)


def test_a_task_of_another_app_is_refused(tenure_kit: Kit) -> None:
    @App("memory://").task
    def work() -> None: ...

    with pytest.raises(Misuse, match="belongs to another app"):
        tenure_kit.assert_no_effect_after_loss(work, tenure_kit.effects())


def test_calls_outside_of_a_run_are_seen_and_harmless(tenure_kit: Kit) -> None:
    effects = tenure_kit.effects()
    charge = effects.wrap(Bank().charge)
    assert charge(7) == "receipt for 7"
    assert [(str(call), call.token, call.gated) for call in effects.seen] == [("charge(7)", None, False)]
