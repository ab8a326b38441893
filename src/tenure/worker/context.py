"""`Job`: what a handler is given about its run, and the gate through which its effects pass."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial
from inspect import Parameter
from types import FunctionType
from typing import Any, ParamSpec, Protocol, TypeVar

from tenure.client import AsyncClient, Client
from tenure.errors import LeaseLost
from tenure.hold import Gate, Lease, lost_reason
from tenure.protocol.codec import decode_any, encode_any
from tenure.protocol.ending import completed
from tenure.protocol.events import Emitter, Kind
from tenure.protocol.job import Answer, Claimed, Ending, Verdict
from tenure.protocol.lease import Effect, Token
from tenure.protocol.names import check_name

P = ParamSpec("P")
R = TypeVar("R")

_KEY = "idempotency_key"  # the parameter that a step fills in


class Clients(Protocol):
    """Where a job's own requests to the store go: connections that the machinery does not use."""

    @property
    def client(self) -> Client:
        """The blocking client."""
        ...

    @property
    def aclient(self) -> AsyncClient:
        """The asynchronous client."""
        ...

    @property
    def events(self) -> Emitter:
        """Where to tell what happens."""
        ...

    def joined(self, connection: object) -> Client:
        """Return a client that works inside the caller's own open transaction."""
        ...

    def ajoined(self, connection: object) -> AsyncClient:
        """Return an asynchronous client that works inside the caller's own open transaction."""
        ...


def _any_result(value: Any) -> str:
    return encode_any(value, "the result")


class Job:
    """One run of one job, as its handler sees it."""

    __slots__ = ("_claimed", "_clients", "_encode", "_stop_reason", "completes", "lease")

    def __init__(
        self, claimed: Claimed, lease: Lease, clients: Clients, *, encode: Callable[[Any], str] = _any_result
    ) -> None:
        self._claimed = claimed
        self._clients = clients
        self._encode = encode
        self._stop_reason: str | None = None
        self.completes = False  # in a transaction of the handler's own, which may or may not commit
        self.lease = lease

    @property
    def id(self) -> str:
        """The job's id; with a step's name it is the idempotency key of an effect (R40)."""
        return self._claimed.id

    @property
    def generation(self) -> int:
        """The generation of this run: the number that destinations compare."""
        return self._claimed.generation

    @property
    def token(self) -> Token:
        """The fencing token to be passed on with every effect."""
        return self.lease.token

    @property
    def attempt(self) -> int:
        """Which try this is: 1 for the first; takeovers do not count."""
        return self._claimed.attempts + 1

    @property
    def lost_generation(self) -> int | None:
        """The generation whose worker was lost, None when this run took nothing over."""
        return self._claimed.lost_generation

    @property
    def queue(self) -> str:
        """The queue that the job waited in."""
        return self._claimed.queue

    @property
    def task(self) -> str:
        """The name of the job's task."""
        return self._claimed.task or ""

    @property
    def trace(self) -> str | None:
        """The trace context of the enqueuer."""
        return self._claimed.trace

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop: its lease is lost, its time is over, or the worker must go."""
        return self._stop_reason is not None or self.lease.lost

    @property
    def stop_reason(self) -> str | None:
        """Why the handler should stop, None while it should not."""
        return self._stop_reason or self.lease.lost_reason

    def ask_to_stop(self, reason: str) -> None:
        """Tell the handler that it should stop; the gate is closed from now on."""
        self._stop_reason = self._stop_reason or reason

    def check(self) -> None:
        """Raise LeaseLost unless the run may go on; compares clocks at this moment (R21)."""
        self._check_stop()
        self.lease.check()

    def _check_stop(self) -> None:
        if self._stop_reason is not None:
            raise LeaseLost(self.id, self.generation, self._stop_reason)

    def effect(self, seconds: float = 0.0) -> AbstractContextManager[Effect]:
        """Pass the gate before an effect that may take `seconds`; yields the token to send along, numbered (R19, R33).

        Raises LeaseLost when the run may not go on, or when the lease has less time left than the effect may take.
        """
        return Gate(self._passed, seconds)

    def _passed(self, seconds: float) -> Effect:
        self._check_stop()
        return self.lease.passed(seconds)  # which checks the lease

    def idempotency_key(self, step: str) -> str:
        """Name an effect in the same way for every run of this job: the job's id and the step, no generation (R40)."""
        return _escaped(self.id) + ":" + _escaped(check_name("a step's name", step))

    def headers(self, step: str, *, seconds: float = 0.0, scope: str | None = None) -> dict[str, str]:
        """Pass the gate and write the header fields of an HTTP request for a named effect: token, number and key (D5).

        `seconds` is the longest time that the request may take; raises LeaseLost as `effect` does. One call for one
        request: a request that is sent again keeps its fields.
        """
        from tenure.fences.http.headers import fencing_headers  # noqa: PLC0415 -- only who speaks HTTP needs it

        with self.effect(seconds) as token:
            return fencing_headers(token, scope, self.idempotency_key(step))

    # -- effects in the store's own database (D1)

    def guard(self, connection: object) -> None:
        """Hold this run's right to the job until the caller's own open transaction ends; raises LeaseLost.

        What the transaction writes into the store's database is then committed under this generation or not at all:
        no other worker can claim the job in between. Call it first, and keep the transaction short.
        """
        self._expect(self._clients.joined(connection).guard(self.lease.owner, self.token))

    async def guard_async(self, connection: object) -> None:
        """Hold this run's right to the job until the transaction ends; the twin of `guard`."""
        self._expect(await self._clients.ajoined(connection).guard(self.lease.owner, self.token))

    def complete(self, connection: object, result: Any = None) -> None:
        """Complete the job in the caller's own open transaction; raises LeaseLost.

        The job is completed, with `result`, exactly when the transaction commits. What the handler returns afterwards
        is not looked at; if the transaction did not commit, the run has failed. Called again, the first result stands.
        """
        (answer,) = self._clients.joined(connection).settle(self.lease.owner, [self._completion(result)])
        self._completed(answer)

    async def complete_async(self, connection: object, result: Any = None) -> None:
        """Complete the job in the caller's own open transaction; the twin of `complete`."""
        (answer,) = await self._clients.ajoined(connection).settle(self.lease.owner, [self._completion(result)])
        self._completed(answer)

    def _completion(self, result: Any) -> Ending:
        return completed(self.token, self._encode(result))

    def _completed(self, answer: Answer) -> None:
        self._expect(answer)
        self.completes = True

    # -- what the store remembers

    def verify(self) -> None:
        """Ask the store whether this run still owns its job; raises LeaseLost, Unavailable or OutcomeUnknown."""
        self.lease.verify()
        self.check()

    def lift_floor(self, generation: int) -> None:
        """Let every later claim in the store start above a generation that a destination has met (R41)."""
        self._clients.client.lift_floor(generation)

    def tell(self, kind: Kind, detail: str) -> None:
        """Emit an event about this run; the detail carries no values."""
        self._clients.events.emit(kind, job=self.id, generation=self.generation, task=self.task, detail=detail)

    def progress(self, value: Any) -> None:
        """Store how far the run is, as any JSON value; raises LeaseLost under an older generation."""
        self._expect(self._clients.client.progress(self.lease.owner, self.token, encode_any(value, "progress")))

    async def progress_async(self, value: Any) -> None:
        """Store how far the run is; the twin of `progress`."""
        text = encode_any(value, "progress")
        self._expect(await self._clients.aclient.progress(self.lease.owner, self.token, text))

    def step(self, name: str, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Do a named effect once: a later run of this job gets the remembered result instead of doing it again.

        The result must survive JSON unchanged. Between the effect and its record lies a window in which a crash makes
        the next run repeat it. A destination that takes an idempotency key closes it (R40): a function that has a
        parameter `idempotency_key`, and is not given one, gets `Job.idempotency_key` of this step.
        """
        client = self._clients.client
        found = client.recall_step(self.id, check_name("a step's name", name))
        if found is None:
            self.check()
            value = function(*args, **self._with_key(function, name, args, kwargs))
            found = encode_any(value, f"the result of step {name}")
            found = self._expect(client.record_step(self.lease.owner, self.token, name, found)).result or found
        result: R = decode_any(found, f"the remembered result of step {name}")
        return result

    async def step_async(self, name: str, function: Callable[P, Awaitable[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Do a named effect once; the twin of `step`."""
        client = self._clients.aclient
        found = await client.recall_step(self.id, check_name("a step's name", name))
        if found is None:
            self.check()
            value = await function(*args, **self._with_key(function, name, args, kwargs))
            found = encode_any(value, f"the result of step {name}")
            found = self._expect(await client.record_step(self.lease.owner, self.token, name, found)).result or found
        result: R = decode_any(found, f"the remembered result of step {name}")
        return result

    def _with_key(
        self, function: Callable[..., Any], step: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        wants = _wants_key(function, args, kwargs)
        return {**kwargs, "idempotency_key": self.idempotency_key(step)} if wants else kwargs

    def _expect(self, answer: Answer) -> Answer:
        if answer.verdict is Verdict.STALE:
            self.lease.lose(lost_reason(answer))
            raise LeaseLost(self.id, self.generation, lost_reason(answer))
        return answer


def _escaped(name: str) -> str:
    # So that no two pairs of names make one key; ids that Tenure makes look as they are.
    return name.replace("%", "%25").replace(":", "%3A")


def _wants_key(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if isinstance(function, FunctionType) and not vars(function):  # nothing shows another signature
        code = function.__code__
        if _KEY not in code.co_varnames:  # spares most steps the look at their signature
            return False
        if not args and _KEY in code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]:
            return _KEY not in kwargs
    try:
        signature = inspect.signature(function)
        given = signature.bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):  # a built-in function without a signature, or a call that will fail by itself
        return False
    parameter = signature.parameters.get(_KEY)
    if parameter is None or parameter.kind not in {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}:
        return False
    return _KEY not in given and not (isinstance(function, partial) and _KEY in function.keywords)
