"""Operations are generators that yield requests; a driver answers them. The only file that knows sync from async.

A verb of the store is written once, as a generator:

    def renew(...) -> Op[list[Renewed]]:
        rows = yield from ask(statements.request("renew", ...))
        return [...]

It contains no I/O. `run` answers its requests on a blocking connection, `arun` on an asynchronous one, and a simulator
is just a third driver. The caller's own open transaction is a connection like any other. Three rules keep this honest:

1. A bare ``yield`` of a request stands only here, in `ask`; elsewhere it is ``yield from``, which keeps the types.
2. A request is atomic: a transaction, or part of one. An operation makes at most one that changes a job. What it asks
   afterwards explains the answer ("why was I refused?") or notes it in the history.
3. An error of the connection is thrown back *into* the operation, at the line that asked, and the operation is always
   closed, also when its caller is cancelled.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)


class Request(Generic[R_co]):
    """Something that a connection can be asked; `R_co` is the type of the answer."""

    __slots__ = ()


Op = Generator[Request[Any], Any, T]
"""An operation with result T."""


def ask(request: Request[R_co]) -> Op[R_co]:
    """Put one request to whoever drives the operation and return the answer."""
    answer: R_co = yield request
    return answer


def run(op: Op[T], execute: Callable[[Request[Any]], Any]) -> T:
    """Drive `op` on a blocking connection: answer each request with `execute` until the operation returns."""
    try:
        request = next(op)
        while True:
            try:
                answer = execute(request)
            except BaseException as error:  # noqa: BLE001 -- it goes on inside the operation
                request = op.throw(error)
            else:
                request = op.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        op.close()


async def arun(op: Op[T], execute: Callable[[Request[Any]], Awaitable[Any]]) -> T:
    """Drive `op` on an asynchronous connection; the twin of `run`."""
    try:
        request = next(op)
        while True:
            try:
                answer = await execute(request)
            except BaseException as error:  # noqa: BLE001 -- it goes on inside the operation
                request = op.throw(error)
            else:
                request = op.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        op.close()
