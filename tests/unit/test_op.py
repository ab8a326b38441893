"""The drivers of operations: replies in, errors in, results out, always closed."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tenure.protocol.op import Op, Request, arun, ask, run

Execute = Callable[[Request[Any]], Any]


class Question(Request[int]):
    """Something to ask."""


def run_async(op: Op[Any], execute: Execute) -> Any:
    async def answer(request: Request[Any]) -> Any:
        return execute(request)

    return asyncio.run(arun(op, answer))


both = pytest.mark.parametrize("drive", [run, run_async])


def add_two(closed: list[str]) -> Op[int]:
    try:
        first = yield from ask(Question())
        second = yield from ask(Question())
        return first + second
    finally:
        closed.append("closed")


@both
def test_replies_reach_the_operation_in_order(drive: Callable[[Op[int], Execute], int]) -> None:
    answers = iter([2, 40])
    closed: list[str] = []
    assert drive(add_two(closed), lambda _: next(answers)) == 42
    assert closed == ["closed"]


@both
def test_an_error_is_thrown_in_where_it_was_asked(drive: Callable[[Op[str], Execute], str]) -> None:
    def careful() -> Op[str]:
        try:
            yield from ask(Question())
        except OSError as error:
            answer = yield from ask(Question())
            return f"{error}, then {answer}"
        return "no error"

    answers = iter([OSError("cut"), 7])

    def execute(_: Request[Any]) -> Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert drive(careful(), execute) == "cut, then 7"


@both
def test_an_error_that_nobody_catches_closes_the_operation(drive: Callable[[Op[int], Execute], int]) -> None:
    closed: list[str] = []

    def execute(_: Request[Any]) -> Any:
        raise OSError("cut")

    with pytest.raises(OSError, match="cut"):
        drive(add_two(closed), execute)
    assert closed == ["closed"]


@both
def test_an_operation_that_asks_nothing_just_returns(drive: Callable[[Op[int], Execute], int]) -> None:
    def nothing() -> Op[int]:
        return 1
        yield  # type: ignore[unreachable]  # what makes it a generator

    assert drive(nothing(), lambda _: pytest.fail("it asked")) == 1


def test_a_cancelled_caller_closes_the_operation() -> None:
    closed: list[str] = []

    async def never(_: Request[Any]) -> Any:
        await asyncio.Event().wait()

    async def scene() -> None:
        task = asyncio.ensure_future(arun(add_two(closed), never))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())
    assert closed == ["closed"]
