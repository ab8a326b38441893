"""The outbox in one process: its messages, its choices, and what a sender does in its first and in a later run."""

import asyncio
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure import (
    App,
    Backoff,
    BadSettings,
    Discard,
    Enqueued,
    Filter,
    Job,
    JobRecord,
    LeaseLost,
    Misuse,
    OutcomeUnknown,
    Snooze,
    State,
    Unavailable,
)
from tenure.fences import outbox
from tenure.protocol.job import Ending
from tenure.protocol.lifecycle import Verb
from tenure.store.memory import MemoryStore
from tenure.store.sqlite import SqliteStore
from tenure.testing.job import FakeJob
from tests.support.processes import Processes, wait_for

app = App("memory://")
sent: list[tuple[str, str]] = []


@outbox.sender(app, deliver="at-most-once")
def at_most(job: Job, to: str) -> str:
    sent.append((job.id, to))
    return f"sent to {to}"


@outbox.sender(app, deliver="at-most-once")
async def at_most_async(job: Job, to: str) -> str:
    sent.append((job.id, to))
    return f"sent to {to}"


@outbox.sender(app, deliver="at-least-once")
def at_least(job: Job, to: str) -> str:
    sent.append((job.id, to))
    return f"sent to {to}"


@outbox.sender(app, deliver="at-least-once")
async def at_least_async(job: Job, to: str) -> str:
    sent.append((job.id, to))
    return f"sent to {to}"


Run = Callable[[Job], Any]
AT_MOST: list[Run] = [lambda job: at_most(job, to="a"), lambda job: asyncio.run(at_most_async(job, to="a"))]
AT_LEAST: list[Run] = [lambda job: at_least(job, to="a"), lambda job: asyncio.run(at_least_async(job, to="a"))]
ALL = AT_MOST + AT_LEAST


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    sent.clear()


# -- the choice


def test_there_is_no_choice_by_default() -> None:
    with pytest.raises(TypeError, match="deliver"):
        outbox.sender(app)  # type: ignore[call-arg]  # that is the point


@pytest.mark.parametrize("wrong", ["exactly-once", "", None, "AT-MOST-ONCE"])
def test_there_is_no_third_choice(wrong: Any) -> None:
    with pytest.raises(BadSettings, match="no third"):
        outbox.sender(app, deliver=wrong)


def test_options_that_contradict_the_choice_are_refused() -> None:
    with pytest.raises(BadSettings, match="tried once"):
        outbox.sender(app, deliver="at-most-once", max_attempts=3)
    with pytest.raises(BadSettings, match="nobody needs to wait"):
        outbox.sender(app, deliver="at-most-once", lock_delay=3.0)
    with pytest.raises(BadSettings, match="lock_delay"):
        outbox.sender(app, deliver="at-least-once", lock_delay=-1.0)
    with pytest.raises(BadSettings, match="no option colour"):
        outbox.sender(app, deliver="at-least-once", colour="red")(lambda: None)


def test_a_sender_is_a_task_with_its_own_signature() -> None:
    own = App("memory://")

    @outbox.sender(own, deliver="at-least-once", queue="mail", name="letter")
    def write(to: str, copies: int = 1) -> None:
        """Write a letter."""
        sent.append((to, str(copies)))

    assert (write.name, write.defaults.queue, write.__doc__) == ("letter", "mail", "Write a letter.")
    assert own.tasks == {"letter": write}
    with pytest.raises(Misuse, match="colour"):
        outbox.send(None, "key", write, to="a", colour="red")  # type: ignore[call-arg]  # that is the point
    outbox.send(None, "key", write, to="a")
    write(FakeJob(), to="b", copies=2)
    assert sent == [("b", "2")]


# -- messages


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[App]:
    app.use_store(f"sqlite:///{tmp_path}/shop.db")
    app.store.migrate()
    yield app
    app.close()
    app.use_store("memory://")


@contextmanager
def transaction(shop: App) -> Iterator[sqlite3.Connection]:
    path = str(shop.address).removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        if connection.in_transaction:
            connection.execute("COMMIT")


def messages(shop: App) -> list[JobRecord]:
    return [shop.client.get(job.id) for job in shop.client.find(Filter())]


def test_a_message_is_there_exactly_when_its_transaction_commits(shop: App) -> None:
    with transaction(shop) as connection:
        outbox.send(connection, "order-7:receipt", at_most, to="a")
        connection.execute("ROLLBACK")
    assert messages(shop) == []
    with transaction(shop) as connection:
        outbox.send(connection, "order-7:receipt", at_most, to="a")
        assert messages(shop) == []
    [message] = messages(shop)
    assert (message.id, message.task, message.max_attempts) == ("order-7:receipt", "at_most", 1)


def test_a_second_message_with_the_same_key_is_not_stored(shop: App) -> None:
    with transaction(shop) as connection:
        assert outbox.send(connection, "order-7:receipt", at_most, to="a").created
    with transaction(shop) as connection:
        assert outbox.send(connection, "order-7:receipt", at_most, to="a") == Enqueued("order-7:receipt", created=False)
        assert outbox.send(connection, "order-7:invoice", at_most, to="b").created
    assert {message.id: message.arguments for message in messages(shop)} == {
        "order-7:receipt": '{"to":"a"}',
        "order-7:invoice": '{"to":"b"}',
    }


def test_a_job_of_another_task_is_no_message(shop: App) -> None:
    async def again(connection: sqlite3.Connection | None) -> None:
        await outbox.send_async(connection, "order-7:receipt", at_least_async, to="a")

    outbox.send(None, "order-7:receipt", at_most, to="a")
    for own in (True, False):
        with transaction(shop) as connection:
            given = connection if own else None
            if not own:
                connection.execute("ROLLBACK")
            with pytest.raises(Misuse, match="for at_least is not stored: a job of task at_most has its id"):
                outbox.send(given, "order-7:receipt", at_least, to="a")
            with pytest.raises(Misuse, match="for at_least_async is not stored: a job of task at_most"):
                asyncio.run(again(given))
    assert [message.task for message in messages(shop)] == ["at_most"]


def test_a_message_may_be_sent_from_a_loop_and_on_its_own(shop: App) -> None:
    async def main() -> Enqueued:
        with transaction(shop) as connection:
            return await outbox.send_async(connection, "one", at_least_async.options(priority=5), to="a")

    assert asyncio.run(main()).created
    assert outbox.send(None, "two", at_least, "b").created
    assert {(message.id, message.priority) for message in messages(shop)} == {("one", 5), ("two", 0)}


def test_what_made_no_choice_is_no_sender(shop: App) -> None:
    @shop.task
    def mail(to: str) -> None: ...

    del shop.tasks["mail"]
    with pytest.raises(Misuse, match="no sender"):
        outbox.send(None, "key", mail, to="a")
    with pytest.raises(Misuse, match="a message's key"):
        outbox.send(None, "", at_most, to="a")
    assert messages(shop) == []


# -- runs


@pytest.mark.parametrize("run", ALL)
def test_a_message_knows_its_key(run: Run) -> None:
    assert run(FakeJob(id="order-7:receipt")) == "sent to a"
    assert sent == [("order-7:receipt", "a")]


@pytest.mark.parametrize("run", AT_MOST)
def test_at_most_once_a_run_that_finds_the_mark_of_another_sends_nothing(run: Run) -> None:
    first = FakeJob()
    run(first)
    with pytest.raises(Discard, match="generation 1 began"):
        run(first.next_run())
    assert len(sent) == 1


@pytest.mark.parametrize("run", AT_MOST)
def test_at_most_once_the_mark_comes_first(run: Run) -> None:
    first = FakeJob()
    second = first.next_run()
    with pytest.raises(LeaseLost):
        run(first)  # it wakes up late, and cannot mark any more
    assert sent == []
    assert run(second) == "sent to a"


@pytest.mark.parametrize("run", AT_MOST)
def test_at_most_once_what_was_cancelled_while_it_marked_is_not_sent(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    job = FakeJob()
    remember = job._stage.verbs.record_step

    def record_and_lose(*args: Any) -> Any:
        answer = yield from remember(*args)
        job.lease.lose("cancelled by an operator")
        return answer

    monkeypatch.setattr(job._stage.verbs, "record_step", record_and_lose)
    with pytest.raises(LeaseLost, match="operator"):
        run(job)
    assert sent == []


@pytest.mark.parametrize("run", AT_MOST)
@pytest.mark.parametrize("error", [Unavailable("away"), OutcomeUnknown("lost")])
def test_at_most_once_a_sender_that_cannot_mark_comes_back_unspent(
    run: Run, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise error

    async def fail_async(*_: Any) -> Any:
        raise error

    job = FakeJob()
    monkeypatch.setattr(job, "step", fail)
    monkeypatch.setattr(job, "step_async", fail_async)
    with pytest.raises(Snooze, match="could not be told"):
        run(job)
    assert sent == []


@pytest.mark.parametrize("run", AT_LEAST)
def test_at_least_once_what_was_marked_is_not_sent_again(run: Run) -> None:
    first = FakeJob()
    run(first)
    assert run(first.next_run()) == "sent to a"
    assert len(sent) == 1


@pytest.mark.parametrize("run", AT_LEAST)
def test_at_least_once_a_worker_that_wakes_up_late_sends_nothing(run: Run) -> None:
    job = FakeJob()
    job.lose()
    with pytest.raises(LeaseLost):
        run(job)
    assert sent == []


def test_r39_who_takes_over_lets_the_lost_one_go_first(tmp_path: Path) -> None:
    with closing(SqliteStore(str(tmp_path / "jobs.db"))) as store:
        store.migrate()
        own = App(store)

        @outbox.sender(own, deliver="at-least-once", lock_delay=30.0)
        def switch(job: Job) -> None:
            sent.append((job.id, str(job.generation)))

        @outbox.sender(own, deliver="at-least-once", lock_delay=30.0)
        async def switch_async(job: Job) -> None:
            sent.append((job.id, str(job.generation)))

        runs: list[Run] = [switch, lambda job: asyncio.run(switch_async(job))]
        for number, run in enumerate(runs):
            later = FakeJob(id=f"job-{number}", store=store).next_run()
            with pytest.raises(Snooze) as wait:
                run(later)
            assert (wait.value.seconds, sent) == (30.0, [])
            own.client.settle(later.lease.owner, [Ending(later.token, Verb.SNOOZE)])
            run(later.next_run())  # it came back by itself, and does not wait again
            assert sent == [(f"job-{number}", "3")]
            sent.clear()


# -- in a worker


def test_a_sender_that_fails_ends_as_its_choice_says() -> None:
    own = App(MemoryStore())
    tries: list[str] = []

    @outbox.sender(own, deliver="at-most-once")
    def once(to: str) -> None:
        tries.append(f"once {to}")
        raise ConnectionError("refused")

    @outbox.sender(own, deliver="at-least-once", max_attempts=3, backoff=Backoff(first=0.01, jitter=0.0))
    def often(job: Job) -> str:
        tries.append("often")
        if job.attempt < 3:
            raise ConnectionError("refused")
        return "through"

    outbox.send(None, "once", once, to="a")
    outbox.send(None, "often", often)
    worker = own.worker(retention=None)
    worker.start()
    wait_for(lambda: not [job for job in own.client.find(Filter()) if job.finished_at is None], 20.0, "both to end")
    worker.stop(grace=0)
    assert sorted(tries) == ["often", "often", "often", "once a"]
    assert own.client.get("often").result == '"through"'
    failed = own.client.get("once")
    assert failed.state is State.DISCARDED
    assert failed.failure is not None
    assert failed.failure.type == "ConnectionError"

    own.client.retry(["once"])  # an operator's second try finds the mark, too
    worker = own.worker(retention=None)
    worker.start()
    wait_for(lambda: own.client.get("once").state is State.DISCARDED, 20.0, "the message to end again")
    worker.stop(grace=0)
    assert tries.count("once a") == 1
    assert "may have been sent" in (own.client.get("once").reason or "")


def test_the_page_runs(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "fences" / "outbox.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "page.py").write_text("\n".join(blocks), encoding="utf-8")
    with Processes(tmp_path) as processes:
        environment = {"PYTHONPATH": str(Path(tenure.__file__).parents[1])}
        ran = processes.start(
            "/bin/sh", "-c", f"cd {tmp_path} && exec {sys.executable} page.py", environment=environment
        )
        assert ran.wait(60.0) == 0, ran.stderr.read_text()
