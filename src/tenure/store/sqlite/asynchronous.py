"""The caller's own asynchronous connection: aiosqlite, or SQLAlchemy over it; recognised by name and never imported.

aiosqlite keeps its `sqlite3` connection in a thread of its own, the only one that may use it, so verbs run there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tenure.store.caller import unwrapped

Call = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a function where the connection may be used."""


def is_asynchronous(connection: object) -> bool:
    """Tell whether it takes an event loop to reach the connection."""
    return _is_aiosqlite(connection) or hasattr(connection, "sync_session") or hasattr(connection, "sync_connection")


async def reach(connection: Any) -> tuple[object, Call]:
    """Find the connection of `sqlite3` beneath, and how to call what uses it."""
    if hasattr(connection, "sync_session"):
        connection = await connection.connection()
    if hasattr(connection, "sync_connection") and not connection.in_transaction():
        await connection.begin()  # with the first statement that passes through SQLAlchemy; ours do not
    raw: Any = unwrapped(connection)
    if not _is_aiosqlite(raw):
        return raw, _here

    async def there(function: Callable[[], Any]) -> Any:
        return await raw._execute(function)  # noqa: SLF001 -- aiosqlite has no public way into its thread

    return raw._conn, there  # noqa: SLF001 -- the same


async def _here(function: Callable[[], Any]) -> Any:
    return function()


def _is_aiosqlite(connection: object) -> bool:
    return type(connection).__module__.partition(".")[0] == "aiosqlite"
