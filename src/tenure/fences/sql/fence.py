"""`SQLFence` itself: each method works on the caller's connection; its twin ending in `_async` awaits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tenure.errors import Misuse
from tenure.fences.connections import asynchronous, blocking
from tenure.fences.rule import LEAP, Bid, Mark, Reset, announcement, check_reason, writing
from tenure.fences.sql.bound import BoundSQLFence
from tenure.fences.sql.operations import Dialect, Operations, check_dialect
from tenure.fences.sql.row import RowFence
from tenure.protocol.lease import Token
from tenure.protocol.names import check_name
from tenure.protocol.op import Op, arun, run

T = TypeVar("T")


class SQLFence:
    """Fences in the table `tenure_fences` of a destination's database, on the caller's own connection.

    A method joins the transaction of the connection, and the caller commits. On a connection in autocommit each is
    committed by itself; only `apply` asks for a transaction of the caller's, which is that of the effect.
    """

    def __init__(self, dialect: Dialect, *, leap: int = LEAP) -> None:
        self._operations = Operations(check_dialect(dialect), check_leap(leap))

    def create(self, connection: Any) -> None:
        """Make the fence's tables, or bring older ones up to date; repeating it is harmless."""
        driver = blocking(connection, self._operations.dialect)
        run(self._operations.fitting(self._operations.migrate(), held=driver.holds_schema), driver)

    async def create_async(self, connection: Any) -> None:
        """Make the fence's tables; the twin of `create`."""
        driver = await asynchronous(connection, self._operations.dialect)
        await arun(self._operations.fitting(self._operations.migrate(), held=driver.holds_schema), driver)

    def raise_to(self, connection: Any, token: Token, *, scope: str | None = None) -> None:
        """Announce a new owner before its first read there (R32), and commit; raises StaleToken or BadToken.

        `scope` names what is protected, by default the job itself.
        """
        self._do(connection, self._operations.admit(announcement(token, scope)))

    async def raise_to_async(self, connection: Any, token: Token, *, scope: str | None = None) -> None:
        """Announce a new owner; the twin of `raise_to`."""
        await self._do_async(connection, self._operations.admit(announcement(token, scope)))

    def apply(self, connection: Any, token: Token, *, sequence: int | None = None, scope: str | None = None) -> None:
        """Let one write through, first thing in the transaction of that write.

        Raises StaleToken, OutOfSequence or BadToken, and the write must not be made. `sequence` numbers the writes of
        one run; by default it is that of the effect that the gate yielded, else 1. Raises Misuse in autocommit: what
        is passed there would not be undone with the write.
        """
        bid = writing(token, scope, sequence)
        driver = blocking(connection, self._operations.dialect)
        run(self._admit_held(bid, held=driver.holds), driver)

    async def apply_async(
        self, connection: Any, token: Token, *, sequence: int | None = None, scope: str | None = None
    ) -> None:
        """Let one write through; the twin of `apply`."""
        bid = writing(token, scope, sequence)
        driver = await asynchronous(connection, self._operations.dialect)
        await arun(self._admit_held(bid, held=driver.holds), driver)

    def current(self, connection: Any, scope: str) -> Mark | None:
        """Read the mark of a scope; None where nothing was met, or since a reset."""
        return self._do(connection, self._operations.current(check_scope(scope)))

    async def current_async(self, connection: Any, scope: str) -> Mark | None:
        """Read the mark of a scope; the twin of `current`."""
        return await self._do_async(connection, self._operations.current(check_scope(scope)))

    def reset(self, connection: Any, scope: str, *, reason: str) -> Mark | None:
        """Put a scope's mark aside, as a person would after a bogus token (R38); returns what it was.

        It is kept, with the time and the reason, and every token is new to the scope again.
        """
        op = self._operations.reset(check_scope(scope), check_reason(reason))
        driver = blocking(connection, self._operations.dialect)
        return run(self._operations.fitting(op, held=driver.holds), driver)

    async def reset_async(self, connection: Any, scope: str, *, reason: str) -> Mark | None:
        """Put a scope's mark aside; the twin of `reset`."""
        op = self._operations.reset(check_scope(scope), check_reason(reason))
        driver = await asynchronous(connection, self._operations.dialect)
        return await arun(self._operations.fitting(op, held=driver.holds), driver)

    def resets(self, connection: Any, scope: str) -> list[Reset]:
        """List the marks that were put aside in a scope, oldest first."""
        return self._do(connection, self._operations.resets(check_scope(scope)))

    async def resets_async(self, connection: Any, scope: str) -> list[Reset]:
        """List the marks that were put aside; the twin of `resets`."""
        return await self._do_async(connection, self._operations.resets(check_scope(scope)))

    def bound(self, connect: Callable[[], Any], scope: str | None = None) -> BoundSQLFence:
        """Bind the fence to a destination, for `@app.task(fences=[...])`; `connect` opens a connection, sync or async.

        Each raise opens one, commits and closes it.
        """
        return BoundSQLFence(self._operations, connect, scope)

    def row(self, table: str, key: str) -> RowFence:
        """Fence the rows of a table of one's own, one by one, by columns of theirs; `key` is the key's column."""
        return RowFence(self._operations, table, key)

    def _admit_held(self, bid: Bid, *, held: bool) -> Op[None]:
        if not held:
            raise Misuse(
                "the connection is in autocommit and not in a transaction: what is let through there is not undone"
                " with the write that follows. Begin a transaction, and make the write in it too"
            )
        yield from self._operations.admit(bid)

    def _do(self, connection: Any, op: Op[T]) -> T:
        return run(op, blocking(connection, self._operations.dialect))

    async def _do_async(self, connection: Any, op: Op[T]) -> T:
        return await arun(op, await asynchronous(connection, self._operations.dialect))


def check_scope(scope: str) -> str:
    """Return a scope that can be a name; raises Misuse."""
    return check_name("a fence's scope", scope)


def check_leap(leap: object) -> int:
    """Return a leap that lets something through; raises Misuse."""
    if isinstance(leap, bool) or not isinstance(leap, int) or leap < 1:
        raise Misuse(f"leap is {leap!r}: a whole number from 1, how far a generation may lie beyond the mark (R38)")
    return leap
