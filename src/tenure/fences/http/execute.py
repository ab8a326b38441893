"""How the statements of a fenced service run on the caller's own connection, and for how long one may wait there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from tenure.errors import Misuse
from tenure.fences.connections import Query, asynchronous, blocking
from tenure.fences.http.problems import RequestInProgress
from tenure.fences.http.responses import Question
from tenure.fences.sql.operations import Dialect
from tenure.protocol.op import Op, Request, arun, ask, run
from tenure.store.statements import load_statements

T = TypeVar("T")

_SQLSTATES = {"55P03", "40001", "40P01"}
_NUMBERS = {1205, 1213, 3572}
_LONGEST_CHAIN = 8


class Executor:
    """Runs named statements in one dialect on whatever connection it is given."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._sql = {name: found.sql for name, found in load_statements(__package__, f"{dialect}.sql").items()}

    def create(self) -> Op[None]:
        """Make the table of answers where it is missing."""
        for name in ("create", "index"):
            if name in self._sql:
                yield from ask(Question(name, {}))

    def run(self, connection: Any, op: Op[T]) -> T:
        """Run an operation on a blocking connection."""
        target = blocking(connection, self._dialect)
        return run(op, lambda question: target(self._query(question)))

    async def arun(self, connection: Any, op: Op[T]) -> T:
        """Run an operation on an asynchronous connection."""
        target = await asynchronous(connection, self._dialect)
        return await arun(op, lambda question: target(self._query(question)))

    def _query(self, question: Request[Any]) -> Query:
        if not isinstance(question, Question):
            raise TypeError(f"{question!r} is no question to a table of answers")
        return Query(
            self._sql[question.name], {name: self._bound(value) for name, value in question.parameters.items()}
        )

    def _bound(self, value: Any) -> Any:
        """Bind text as its bytes in MySQL, where every connection may have a character set of its own."""
        return value.encode() if self._dialect == "mysql" and isinstance(value, str) else value

    def check_held(self, connection: Any) -> None:
        """Raise Misuse where each statement is committed by itself: there fence and effect are two things."""
        _check_held(held=blocking(connection, self._dialect).holds)

    async def check_held_async(self, connection: Any) -> None:
        """Raise Misuse where each statement is committed by itself; the twin of `check_held`."""
        _check_held(held=(await asynchronous(connection, self._dialect)).holds)

    @contextmanager
    def bounded(self, connection: Any, seconds: float) -> Iterator[None]:
        """Bound the waits for locks inside the block; raises RequestInProgress when one took too long.

        The bound is the connection's own again at the end of the block; after an error the transaction is to be rolled
        back, and it is then too.
        """
        with told_to_wait():
            before = self.run(connection, self._limit(seconds))
            yield
            self.run(connection, self._restore(before))

    @asynccontextmanager
    async def bounded_async(self, connection: Any, seconds: float) -> AsyncIterator[None]:
        """Bound the waits for locks inside the block; the twin of `bounded`."""
        with told_to_wait():
            before = await self.arun(connection, self._limit(seconds))
            yield
            await self.arun(connection, self._restore(before))

    def _limit(self, seconds: float) -> Op[str | None]:
        if "limit_waits" not in self._sql:
            return None
        ((before, _),) = yield from ask(Question("limit_waits", {"limit": f"{max(1, round(seconds * 1000))}ms"}))
        return str(before)

    def _restore(self, before: str | None) -> Op[None]:
        if before is not None:
            yield from ask(Question("restore_waits", {"limit": before}))


@contextmanager
def told_to_wait() -> Iterator[None]:
    """Turn a lock that was not to be had, and a transaction that another one overtook, into RequestInProgress."""
    try:
        yield
    except Exception as error:
        if not waited_too_long(error):
            raise
        raise RequestInProgress(
            "another request under the same fence, or an earlier copy of this one, is being carried out: try again"
        ) from error


def _check_held(*, held: bool) -> None:
    if not held:
        raise Misuse(
            "the connection is in autocommit and not in a transaction: fence, effect and answer would be committed one"
            " by one. Begin a transaction, and make the effect in it too"
        )


def waited_too_long(error: BaseException | None) -> bool:
    """Tell whether an error of any database library says that a lock was not to be had, so that nothing was done.

    Recognised by SQLSTATE, by SQLite's name and by MySQL's number for: waited too long, overtaken by another
    transaction, deadlocked.
    """
    for _ in range(_LONGEST_CHAIN):
        if error is None:
            return False
        if getattr(error, "sqlstate", None) in _SQLSTATES or _number(error) in _NUMBERS:
            return True
        if str(getattr(error, "sqlite_errorname", "")).startswith("SQLITE_BUSY"):
            return True
        error = getattr(error, "orig", None) or error.__cause__
    return False


def _number(error: BaseException) -> object:
    """Read MySQL's number of an error, which stands first in those of its drivers and of what wraps them."""
    of_database = any(kind.__name__ == "DatabaseError" for kind in type(error).__mro__)
    return error.args[0] if of_database and error.args and isinstance(error.args[0], int) else None
