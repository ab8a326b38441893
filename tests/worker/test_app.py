"""`App` and its tasks: what may be said about a job, what is refused at the call, and leases without a task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tenure import (
    App,
    BadArguments,
    BadSettings,
    Job,
    Misuse,
    State,
)
from tenure.protocol.ending import LONGEST_TEXT


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")

    @app.task(queue="billing", priority=3, lease=60.0, max_attempts=7, max_takeovers=2, timeout=20.0, secret=("card",))
    def charge(order: int, card: str = "") -> str:
        """Charge an order."""
        return f"{order} {card}"

    yield app
    app.close()


@pytest.fixture
def charge(app: App) -> Any:
    return app.tasks["charge"]


# -- what is said about a job


def test_a_job_is_stored_as_its_task_says(app: App, charge: Any) -> None:
    stored = charge.enqueue(7)
    assert stored.created
    record = app.client.get(stored.id)
    assert (record.task, record.queue, record.priority, record.lease) == ("charge", "billing", 3, 60.0)
    assert (record.max_attempts, record.max_takeovers, record.timeout) == (7, 2, 20.0)
    assert record.secret == ("card",)
    assert record.state is State.AVAILABLE


def test_options_change_what_is_enqueued_through_them_and_nothing_else(app: App, charge: Any) -> None:
    urgent = charge.options(queue="fast", priority=100, unique_key="order-7", trace="00-1-2-01")
    record = app.client.get(urgent.enqueue(7).id)
    assert (record.queue, record.priority, record.unique_key, record.trace) == ("fast", 100, "order-7", "00-1-2-01")
    assert record.lease == 60.0
    assert app.client.get(charge.enqueue(8).id).queue == "billing"
    assert urgent.options(priority=1).defaults.queue == "fast"


def test_an_id_of_ones_own_is_stored_once(app: App, charge: Any) -> None:
    mine = charge.options(id="order-7")
    assert mine.enqueue(7).created
    again = mine.enqueue(7)
    assert (again.id, again.created) == ("order-7", False)


@pytest.mark.parametrize("option", ["delay", "run_at"])
def test_a_job_can_wait_for_its_time(app: App, charge: Any, option: str) -> None:
    moment = datetime.now(UTC) + timedelta(seconds=60)
    later = {"delay": 60.0, "run_at": moment}
    record = app.client.get(charge.options(**{option: later[option]}).enqueue(7).id)
    assert record.phase == "scheduled"
    due = moment if option == "run_at" else record.enqueued_at + timedelta(seconds=60)
    assert abs(record.run_at - due) < timedelta(milliseconds=5)  # a store counts in milliseconds


BAD: list[tuple[dict[str, Any], str]] = [
    ({"queue": ""}, "a queue's name '' is refused"),
    ({"queue": 5}, "a queue's name must be text, not int"),
    ({"priority": 101}, "priority is 101: -100 to 100"),
    ({"priority": -101}, "priority is -101: -100 to 100"),
    ({"lease": 0.5}, r"the lease is 0\.5 s: a lease lasts 1 to 86400 s"),
    ({"max_attempts": 0}, "max_attempts is 0: at least 1, or None for no bound"),
    ({"max_takeovers": -1}, "max_takeovers is -1: at least 1, or None for no bound"),
    ({"timeout": 0.0}, "timeout is 0 s: above 0, or None for no limit"),
    ({"delay": -1.0}, "delay is -1.0: a number of seconds from 0 to 3162240000"),
    ({"id": "a\x00b"}, "a job's id 'a\\\\x00b' is refused"),
    ({"unique_key": ""}, "a unique key '' is refused"),
    ({"trace": ""}, "a trace context '' is refused: it is 1 to 568 characters"),
    ({"trace": "t" * 569}, "a trace context 't{40}…' is refused: it is 1 to 568 characters"),
    ({"trace": "00-1\n"}, r"a trace context '00-1\\n' is refused"),
    ({"secret": ("card", "x" * 201)}, "the name of a secret argument 'x{40}…' is refused: a name is 1 to 200"),
    ({"run_at": datetime(2030, 1, 1)}, "run_at has no time zone"),  # noqa: DTZ001 -- that is the point
]


@pytest.mark.parametrize(("given", "said"), BAD, ids=lambda value: "-".join(value) if isinstance(value, dict) else "")
def test_a_bad_option_is_refused_by_name(charge: Any, given: dict[str, Any], said: str) -> None:
    with pytest.raises(Misuse, match=f"^{said}"):
        charge.options(**given)


WRONG_KIND: list[dict[str, Any]] = [
    {"lease": "60"},
    {"timeout": "20"},
    {"delay": None},
    {"max_attempts": "3"},
    {"priority": None},
    {"run_at": "tomorrow"},
]


@pytest.mark.parametrize("given", WRONG_KIND, ids=lambda given: "-".join(given))
def test_an_option_of_the_wrong_kind_is_refused_by_name(charge: Any, given: dict[str, Any]) -> None:
    [name] = given
    with pytest.raises(Misuse, match=f"{name} is "):
        charge.options(**given)


def test_a_whole_trace_context_fits(app: App, charge: Any) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" + " " + "congo=" + "t" * 506
    assert app.client.get(charge.options(trace=trace).enqueue(7).id).trace == trace


def test_an_unknown_option_is_refused_by_name(charge: Any) -> None:
    with pytest.raises(BadSettings, match="task charge has no option prio, quue; there are .* priority, queue"):
        charge.options(prio=1, quue="x")


def test_a_retry_forever_is_said_with_none(app: App, charge: Any) -> None:
    record = app.client.get(charge.options(max_attempts=None, max_takeovers=None, timeout=None).enqueue(7).id)
    assert (record.max_attempts, record.max_takeovers, record.timeout) == (None, None, None)


# -- what operators say


@pytest.mark.parametrize("verb", ["cancel", "discard", "release", "retry"])
@pytest.mark.parametrize("colour", ["sync", "async"])
def test_b35_an_operators_reason_is_cut(app: App, charge: Any, verb: str, colour: str) -> None:
    job = charge.enqueue(7).id
    if verb == "release":
        app.claim(job, owner="ada")
    if verb == "retry":
        app.client.cancel([job])
    reason = "x" * 50_000 + "\0"
    if colour == "sync":
        getattr(app.client, verb)([job], reason)
    else:
        asyncio.run(getattr(app.aclient, verb)([job], reason))
    told = app.client.get(job).reason
    assert told == "x" * LONGEST_TEXT + f"… (the first {LONGEST_TEXT} of 50001 characters)"


# -- arguments


@pytest.mark.parametrize(
    ("arguments", "keywords", "path"),
    [((), {}, "order"), ((7, "x", 1), {}, ""), ((7,), {"colour": "red"}, "colour"), (("seven",), {}, "order")],
)
def test_arguments_that_do_not_fit_are_refused_at_the_call(
    app: App, charge: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], path: str
) -> None:
    with pytest.raises(BadArguments) as refused:
        charge.enqueue(*arguments, **keywords)
    assert refused.value.task == "charge"
    assert path in str(refused.value)
    assert app.client.queues() == []


def test_b35_many_are_stored_at_once(app: App, charge: Any) -> None:
    stored = charge.enqueue_many({"order": number} for number in range(1000))
    assert all(one.created for one in stored)
    assert [one.id for one in stored] == sorted({one.id for one in stored})
    [counts] = app.client.queues()
    assert counts.due == 1000


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"order": "x"}, r"charge: \[2\]\.order"),
        ({"order": 1, "colour": "red"}, r"charge: \[2\]\.colour"),
        ({}, r"charge: \[2\]\.order"),
    ],
)
def test_b35_one_bad_call_of_many_stores_none_and_is_named(
    app: App, charge: Any, bad: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadArguments, match=said):
        charge.enqueue_many([{"order": 0}, {"order": 1}, bad, {"order": 3}])
    assert app.client.queues() == []


def test_none_of_many_is_none(app: App, charge: Any) -> None:
    assert charge.enqueue_many([]) == []
    assert asyncio.run(charge.enqueue_many_async([])) == []


@pytest.mark.parametrize("given", [{"id": "order-7"}, {"unique_key": "order-7"}])
def test_many_cannot_share_one_identity(charge: Any, given: dict[str, Any]) -> None:
    with pytest.raises(Misuse, match="leave the options id and unique_key out"):
        charge.options(**given).enqueue_many([{"order": 1}])


def test_the_asynchronous_calls_store_the_same(app: App, charge: Any) -> None:
    async def both() -> list[str]:
        one = await charge.enqueue_async(7, card="4711")
        many = await charge.enqueue_many_async([{"order": 8}, {"order": 9}])
        return [one.id, *(stored.id for stored in many)]

    records = [app.client.get(id_) for id_ in asyncio.run(both())]
    assert [record.arguments for record in records] == [
        app.client.get(stored.id).arguments
        for stored in [charge.enqueue(7, card="4711"), *charge.enqueue_many([{"order": 8}, {"order": 9}])]
    ]


# -- tasks


def test_a_task_is_still_a_function(charge: Any) -> None:
    assert charge(7, card="4711") == "7 4711"
    assert charge.__doc__ == "Charge an order."
    assert repr(charge) == "<Task charge>"


def test_an_async_task_is_still_a_coroutine_function() -> None:
    app = App("memory://")

    @app.task
    async def later(job: Job, order: int) -> str:
        return f"{order} under {job.generation}"

    class FakeJob:
        generation = 7

    call: Callable[..., Any] = later
    assert asyncio.run(call(FakeJob(), 3)) == "3 under 7"


def test_a_name_is_taken_once(app: App) -> None:
    def charge() -> None:
        """Have the same name."""

    with pytest.raises(Misuse, match="a task 'charge' is registered already: give one of them another name="):
        app.task(charge)
    assert app.task(name="charge again")(charge).name == "charge again"


@pytest.mark.parametrize("name", ["a\nb", "x" * 201])
def test_b29_a_tasks_name_is_checked(app: App, name: str) -> None:
    with pytest.raises(Misuse, match="a task's name"):
        app.task(name=name)(lambda: None)


def test_a_process_runs_plain_functions(app: App) -> None:
    async def later() -> None:
        """Be asynchronous."""

    with pytest.raises(BadSettings, match="task later: isolation='process' runs plain functions"):
        app.task(isolation="process")(later)


def test_a_task_says_at_once_that_it_takes_a_bad_option(app: App) -> None:
    with pytest.raises(BadSettings, match=r"the lease is 0\.1 s"):
        app.task(lease=0.1)(lambda: None)


# -- the store


def test_without_a_store_the_first_use_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENURE_STORE", raising=False)
    with pytest.raises(BadSettings, match="set TENURE_STORE to one of sqlite:"):
        _ = App().client


def test_the_store_can_be_named_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TENURE_STORE", f"sqlite:///{tmp_path / 'jobs.db'}")
    app = App()
    assert app.client.queues() == []
    app.close()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("mysql://host/jobs", "no store has an address that begins with mysql://"),
        ("jobs.db", "no store has an address that begins without a scheme"),
        ("sqlite://jobs.db", "a SQLite store is sqlite:///relative"),
        ("", "no store has an address"),
    ],
)
def test_a_bad_address_is_refused_at_once(address: str, said: str) -> None:
    with pytest.raises(BadSettings, match=said):
        App(address)


def test_another_store_can_be_used_from_now_on(app: App, charge: Any, tmp_path: Path) -> None:
    charge.enqueue(7)
    app.use_store(f"sqlite:///{tmp_path / 'other.db'}")
    assert app.client.queues() == []
    charge.enqueue(8)
    assert app.client.queues()[0].due == 1


def test_a_name_given_by_position_is_told_how_to_be_given() -> None:
    with pytest.raises(BadSettings, match=r"such as name='charge'"):
        App("memory://").task("charge")  # type: ignore[call-overload]


def test_an_option_that_no_task_has_is_refused_by_name() -> None:
    app = App("memory://")
    with pytest.raises(BadSettings, match="task work has no option leese; there are .*lease"):
        app.task(name="work", leese=3)(lambda: None)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("given", "said"), [({"isolation": "proces"}, "isolation is 'proces'"), ({"backoff": 5}, "backoff is 5")]
)
def test_what_would_never_run_is_refused_where_it_is_defined(given: dict[str, Any], said: str) -> None:
    app = App("memory://")
    with pytest.raises(BadSettings, match=f"task work: {said}"):
        app.task(name="work", **given)(lambda: None)


@pytest.mark.parametrize(
    ("function", "there"),
    [(lambda card: card, "card"), (lambda: None, "none")],
)
def test_a_secret_that_no_argument_has_is_refused_where_it_is_defined(function: Any, there: str) -> None:
    app = App("memory://")
    with pytest.raises(BadSettings, match=f"task work: secret names 'crad', and there is no such parameter: {there}"):
        app.task(name="work", secret=("crad",))(function)
    assert app.tasks == {}


def test_the_parameter_that_takes_the_job_is_no_secret() -> None:
    app = App("memory://")

    def work(job: Job, card: str) -> str:
        return f"{job.id} {card}"

    with pytest.raises(BadSettings, match="secret names 'job', and there is no such parameter: card"):
        app.task(name="work", secret=("job",))(work)
    assert app.task(name="work", secret=("card",))(work).defaults.secret == ("card",)


def test_a_secret_that_no_argument_has_is_refused_in_the_options_of_one_enqueue(charge: Any) -> None:
    with pytest.raises(BadSettings, match="task charge: secret names 'pin', and there is no such parameter: order, ca"):
        charge.options(secret=("card", "pin"))
