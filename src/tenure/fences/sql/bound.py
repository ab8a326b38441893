"""`BoundSQLFence`: a SQL fence and the way to its database, as `@app.task(fences=[...])` takes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from inspect import isawaitable
from typing import Any

from tenure.fences.connections import asynchronous, blocking, is_known
from tenure.fences.rule import Bid, announcement
from tenure.fences.sql.operations import Operations
from tenure.protocol.lease import Token
from tenure.protocol.op import arun, run


class BoundSQLFence:
    """Raises a fence on a connection of its own; `SQLFence.bound` makes one.

    `connect` returns a new connection or session, a context manager that lends one, or, asynchronous, one of these
    that is awaited or entered. Each raise is committed, and the connection closed or given back.
    """

    def __init__(self, operations: Operations, connect: Callable[[], Any], scope: str | None) -> None:
        self._operations = operations
        self._connect = connect
        self._scope = scope

    def raise_to(self, token: Token) -> None:
        """Announce a new owner before its first read there (R32); raises StaleToken or BadToken."""
        bid = announcement(token, self._scope)
        asynchronous_one = self._raise_blocking(bid)
        if asynchronous_one is not None:
            asyncio.run(self._raise_in(asynchronous_one, bid))

    async def raise_to_async(self, token: Token) -> None:
        """Announce a new owner without blocking the loop; the twin of `raise_to`."""
        bid = announcement(token, self._scope)
        asynchronous_one = await asyncio.to_thread(self._raise_blocking, bid)
        if asynchronous_one is not None:
            await self._raise_in(asynchronous_one, bid)

    def _raise_blocking(self, bid: Bid) -> Any:
        """Raise on a blocking connection; an asynchronous one comes back, to be used in an event loop."""
        opened = self._connect()
        if hasattr(opened, "__aenter__") or isawaitable(opened):
            return opened
        with ExitStack() as stack:
            if is_known(opened) or not hasattr(opened, "__enter__"):
                connection = opened
                stack.callback(getattr(opened, "close", bool))
            else:
                connection = stack.enter_context(opened)
            driver = blocking(connection, self._operations.dialect)
            run(self._operations.admit(bid), driver)
            driver.commit()
        return None

    async def _raise_in(self, opened: Any, bid: Bid) -> None:
        async with AsyncExitStack() as stack:
            if hasattr(opened, "__aenter__"):
                connection = await stack.enter_async_context(opened)
            else:
                connection = await opened
                stack.push_async_callback(connection.close)
            driver = await asynchronous(connection, self._operations.dialect)
            await arun(self._operations.admit(bid), driver)
            await driver.commit()
