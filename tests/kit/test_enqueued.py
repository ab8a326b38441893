"""`assert_enqueued`: what it accepts, and what it says when it does not."""

from __future__ import annotations

import pytest

from tenure import App, Job, Misuse
from tenure.protocol.job import NewJob
from tenure.testing.plugin.kit import Kit


@pytest.fixture
def charged(tenure_app: App) -> App:
    @tenure_app.task(queue="billing", secret=("card",))
    def charge(job: Job, order: int, card: str, cents: int = 100) -> None: ...

    charge.enqueue(order=7, card="4000")
    charge.options(queue="urgent").enqueue(order=8, card="4001", cents=200)
    return tenure_app


def test_a_job_is_found_by_what_is_named(tenure_kit: Kit, charged: App) -> None:
    charge = charged.tasks["charge"]
    tenure_kit.assert_enqueued(charge)
    assert tenure_kit.assert_enqueued(charge, order=8).queue == "urgent"
    tenure_kit.assert_enqueued(charge, queue="billing", order=7, card="4000")
    tenure_kit.assert_enqueued(charge, order=7, cents=100)  # its default, which was not passed


def test_a_job_that_has_run_was_enqueued(tenure_kit: Kit, charged: App) -> None:
    tenure_kit.drain()
    assert tenure_kit.assert_enqueued(charged.tasks["charge"], order=7).phase == "completed"


@pytest.mark.parametrize("expected", [{"order": 9}, {"order": 7, "queue": "urgent"}, {"order": 8, "cents": 100}])
def test_what_was_not_enqueued_is_told_with_what_was(
    tenure_kit: Kit, charged: App, expected: dict[str, object]
) -> None:
    with pytest.raises(AssertionError) as raised:
        tenure_kit.assert_enqueued(charged.tasks["charge"], **expected)  # type: ignore[arg-type] # any mixture
    text = str(raised.value)
    assert "was not enqueued; there are 2 jobs of it:" in text
    assert "in queue urgent, available: charge(order=8, card=(secret), cents=200)" in text
    assert "4001" not in text


def test_where_there_is_none_it_says_so(tenure_kit: Kit, tenure_app: App) -> None:
    @tenure_app.task
    def work() -> None: ...

    with pytest.raises(AssertionError, match=r"work\(\) in queue mail was not enqueued, nor any other job of it"):
        tenure_kit.assert_enqueued(work, queue="mail")


def test_an_argument_that_the_task_does_not_have_is_a_mistake(tenure_kit: Kit, charged: App) -> None:
    with pytest.raises(Misuse, match="has no argument job, sum; there are order, card, cents"):
        tenure_kit.assert_enqueued(charged.tasks["charge"], sum=7, job=None)


def test_arguments_that_no_longer_fit_are_shown_and_match_nothing(tenure_kit: Kit, charged: App) -> None:
    charged.client.enqueue([NewJob("job-1", "charge", '{"colour": "red"}')])
    with pytest.raises(AssertionError, match="charge: colour"):
        tenure_kit.assert_enqueued(charged.tasks["charge"], order=9)


def test_more_jobs_than_a_page_are_all_found(tenure_kit: Kit, tenure_app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.testing.plugin.look._PAGE", 3)

    @tenure_app.task
    def work(number: int) -> None: ...

    work.enqueue_many([{"number": number} for number in range(7)])
    assert len(tenure_kit.enqueued()) == 7
    tenure_kit.assert_enqueued(work, number=6)


def test_one_job_is_told_as_one(tenure_kit: Kit, tenure_app: App) -> None:
    @tenure_app.task
    def lonely(order: int) -> None: ...

    lonely.enqueue(order=1)
    with pytest.raises(AssertionError, match="there is 1 job of it:"):
        tenure_kit.assert_enqueued(lonely, order=2)
