"""Mail, SMS and third parties: effects that no fence can guard, and so a choice that has to be made (D8, D9).

    @outbox.sender(app, deliver="at-most-once")
    def receipt(job: Job, to: str, cents: int) -> None:
        smtp.send(to, f"You paid {cents} cents", reference=job.id)

    @app.task
    def bill(job: Job, order: int) -> None:
        with connect() as connection:  # one transaction of the store's own database
            job.guard(connection)
            connection.execute("UPDATE orders SET billed = true WHERE id = %s", (order,))
            outbox.send(connection, job.idempotency_key("receipt"), receipt, to="a@example.org", cents=1200)

There is no outbox table: a message is a job of its own. It is stored in the caller's transaction, so it exists exactly
when that commits. Its id is the key that the caller gives, so a second run of the producer meets the message of the
first and stores nothing; with other arguments under that key it is refused. A `sender` is a task that makes the choice,
which nothing can spare you:

- ``at-most-once`` marks, then sends. Between the two lies a moment in which a crash loses the message: nobody knows
  whether it went out, so it is never sent again, and ends among the dead letters with that reason.
- ``at-least-once`` sends, then marks. Between the two lies a moment in which a crash sends it twice. Where the third
  party takes an idempotency key, give it `job.id`, which is the same in every run: then it arrives once (R40).

Both hold when a worker is killed at any moment, and when one is paused and wakes up late. What does not hold: neither
is exactly-once, and a message is remembered for as long as its finished job is kept (`retention`). A producer that runs
again after that stores it anew, and a third party that has forgotten its keys does it again.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import Parameter
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, cast, get_args, overload

from tenure.errors import BadSettings, Misuse, OutcomeUnknown, Unavailable
from tenure.options import Options
from tenure.protocol.ending import Discard, Snooze
from tenure.protocol.job import Enqueued, JobRecord
from tenure.protocol.names import LONGEST, check_name
from tenure.protocol.retry import Backoff, check_delay
from tenure.task import Task
from tenure.worker.context import Job

if TYPE_CHECKING:
    from tenure.app import App

Deliver = Literal["at-most-once", "at-least-once"]
"""What a crash at the wrong moment does to a message: lose it, or send it twice."""

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")

_BEGUN, _SENT = "outbox: begun", "outbox: sent"  # the names of steps
_CHOICE = "_tenure_deliver"  # marks the function of a sender
_SHOWN = 40  # characters of a step's name in an error
_LATER = 5.0  # seconds after which a sender that could not mark tries again


def sender(
    app: App, *, deliver: Deliver, lock_delay: float = 0.0, name: str | None = None, **options: Any
) -> _Decorator:
    """Register a function as a task that sends one message; `options` are those of ``app.task``.

    `deliver` is the choice: "at-most-once" or "at-least-once". The function may take the `Job`, whose id is the
    message's key. With `lock_delay`, for "at-least-once", a sender that takes over from one that was lost waits so many
    seconds first, so that what the lost one still has on its way arrives before, not after. Raises BadSettings.
    """
    if deliver not in get_args(Deliver):
        raise BadSettings(f"deliver is {deliver!r}: {' or '.join(map(repr, get_args(Deliver)))}; there is no third")
    check_delay("lock_delay", lock_delay)
    if deliver == "at-most-once":
        if lock_delay:
            raise BadSettings("lock_delay: an at-most-once message has one sender, which nobody needs to wait for")
        if options.setdefault("max_attempts", 1) != 1:
            raise BadSettings(f"max_attempts is {options['max_attempts']}: an at-most-once message is tried once")

    def register(function: Callable[..., Any]) -> Task[..., ..., Any]:
        plain: Task[..., ..., Any] = Task(
            app, name or function.__name__, function, Options(), backoff=Backoff(), isolation=None
        )
        make = _async_handler if plain.is_async else _handler
        handler = make(function, deliver, lock_delay, takes_job=plain.takes_job)
        setattr(handler, _CHOICE, deliver)
        task: Task[..., ..., Any] = app.task(name=plain.name, **options)(handler)
        return task

    return cast("_Decorator", register)


def send(connection: object, key: str, task: Task[Q, P, R], *args: P.args, **kwargs: P.kwargs) -> Enqueued:
    """Store a message in the caller's own open transaction, unless one with this key is there; raises Misuse.

    `key` is the message's id, such as ``job.idempotency_key("receipt")``, and `task` its sender. Without a connection
    (None) it is stored at once, on its own. What has that id and is another message, of another task or with other
    arguments, is Misuse, so that the transaction does not commit as if this one were stored.
    """
    stored = _message(connection, key, task).enqueue(*args, **kwargs)
    if not stored.created:
        client = task.app.client if connection is None else task.app.joined(connection)
        _expect_message(client.get(stored.id), key, task, args, kwargs)
    return stored


async def send_async(connection: object, key: str, task: Task[Q, P, R], *args: P.args, **kwargs: P.kwargs) -> Enqueued:
    """Store a message in the caller's own open transaction; the twin of `send`."""
    stored = await _message(connection, key, task).enqueue_async(*args, **kwargs)
    if not stored.created:
        client = task.app.aclient if connection is None else task.app.ajoined(connection)
        _expect_message(await client.get(stored.id), key, task, args, kwargs)
    return stored


def _expect_message(
    met: JobRecord, key: str, task: Task[Any, Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    if met.task != task.name:
        raise Misuse(f"the message {met.id} for {task.name} is not stored: a job of task {met.task} has its id")
    # With a unique key it may be another message that waits, and one was asked for.
    others = _differing(task, met.arguments, task.codec.encode(args, kwargs)) if met.id == key else []
    if others:
        raise Misuse(
            f"the message {met.id} for {task.name} is not stored: one with this key is, and differs in"
            f" {', '.join(map(repr, others))}. A key names one message: give another message another key, and the same"
            " one the same arguments, such as a step has remembered"
        )


def _differing(task: Task[Any, Any, Any], one: str, other: str) -> list[str]:
    """Name the arguments in which two messages differ, by value: a set may be written in any order."""
    if one == other:
        return []
    first, second = task.codec.decode(one), task.codec.decode(other)
    names = sorted(first.keys() | second.keys())
    return [name for name in names if (name in first, first.get(name)) != (name in second, second.get(name))]


def _message(connection: object, key: str, task: Task[Q, P, R]) -> Task[Q, P, R]:
    if not hasattr(task.function, _CHOICE):
        raise Misuse(
            f"task {task.name} is no sender: register it with @outbox.sender(app, deliver=…) and choose what a crash"
            " does to its messages"
        )
    return task.options(id=_check_key(key), connection=connection)


def _check_key(key: str) -> str:
    job, joined, step = str(key).partition(":")
    if joined and len(str(key)) > LONGEST:
        raise Misuse(
            f"a message's key has at most {LONGEST} characters, and that of step {step[:_SHOWN]!r} has {len(key)},"
            f" {len(job)} of them for the job's id: give the step, or the job, a shorter name"
        )
    return check_name("a message's key", key)


# -- what a sender does in a run


def _handler(
    function: Callable[..., Any], deliver: Deliver, lock_delay: float, *, takes_job: bool
) -> Callable[..., Any]:
    @wraps(function)
    def handler(job: Job, *args: Any, **kwargs: Any) -> Any:
        own = (job, *args) if takes_job else args
        if deliver == "at-most-once":
            _one_only(job, _begun(job))
            return function(*own, **kwargs)
        if lock_delay and job.lost_generation is not None:
            raise _come_later(lock_delay)
        return job.step(_SENT, lambda: function(*own, **kwargs))

    return _shown_with_job(handler, function, takes_job=takes_job)


def _async_handler(
    function: Callable[..., Awaitable[Any]], deliver: Deliver, lock_delay: float, *, takes_job: bool
) -> Callable[..., Any]:
    @wraps(function)
    async def handler(job: Job, *args: Any, **kwargs: Any) -> Any:
        own = (job, *args) if takes_job else args
        if deliver == "at-most-once":
            _one_only(job, await _begun_async(job))
            return await function(*own, **kwargs)
        if lock_delay and job.lost_generation is not None:
            raise _come_later(lock_delay)
        return await job.step_async(_SENT, lambda: function(*own, **kwargs))

    return _shown_with_job(handler, function, takes_job=takes_job)


def _begun(job: Job) -> Any:
    """Mark that this run begins to send, and return which run was the first to do so."""
    try:
        return job.step(_BEGUN, lambda: job.generation)
    except (OutcomeUnknown, Unavailable) as error:
        raise _unmarked(error) from error


async def _begun_async(job: Job) -> Any:
    async def generation() -> int:
        return job.generation

    try:
        return await job.step_async(_BEGUN, generation)
    except (OutcomeUnknown, Unavailable) as error:
        raise _unmarked(error) from error


def _one_only(job: Job, begun: Any) -> None:
    if begun != job.generation:
        raise Discard(f"it may have been sent: generation {begun} began to and did not finish; it is not sent again")
    job.check()


def _unmarked(error: Exception) -> Snooze:
    return Snooze(_LATER, f"nothing was sent, as the store could not be told first: {error}")


def _come_later(lock_delay: float) -> Snooze:
    return Snooze(lock_delay, "its sender was lost: what that one has on its way arrives first")


def _shown_with_job(
    handler: Callable[..., Any], function: Callable[..., Any], *, takes_job: bool
) -> Callable[..., Any]:
    """Show the handler with its job as the first parameter, also where the function does without."""
    if not takes_job:
        shown = inspect.signature(function)
        job = Parameter("_job", Parameter.POSITIONAL_ONLY, annotation=Job)
        with_job = shown.replace(parameters=[job, *shown.parameters.values()])
        handler.__signature__ = with_job  # type: ignore[attr-defined]  # inspect looks for it
    return handler


class _Decorator(Protocol):
    """The type of ``@outbox.sender(...)``."""

    @overload
    def __call__(self, function: Callable[Concatenate[Job, P], R], /) -> Task[Concatenate[Job, P], P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[Concatenate[Job, P], P, R]: ...
    def __call__(self, function: Callable[..., Any], /) -> Any:
        """Register `function`."""
        ...
