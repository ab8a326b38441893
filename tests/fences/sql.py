"""A table of values in a SQL database, guarded by a `SQLFence` in the same database: the destination of the suite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tenure import Token
from tenure.fences import SQLFence
from tenure.testing.fences import Destination
from tests.fences.sql_ways import AsyncWay, BlockingWay, Loop

TABLE = {
    "postgresql": "CREATE TABLE IF NOT EXISTS things (scope VARCHAR(200) PRIMARY KEY, value TEXT)",
    "sqlite": "CREATE TABLE IF NOT EXISTS things (scope VARCHAR(200) PRIMARY KEY, value TEXT)",
    "mysql": "CREATE TABLE IF NOT EXISTS things (scope VARBINARY(800) PRIMARY KEY, value TEXT)",
}
REMOVE = "DELETE FROM things WHERE scope = ?"
PUT = "INSERT INTO things (scope, value) VALUES (?, ?)"
READ = "SELECT value FROM things WHERE scope = ?"


class SQLDestination:
    """The destination over one blocking connection."""

    def __init__(self, way: BlockingWay) -> None:
        self._way = way
        self._fence = SQLFence(way.database.dialect)
        self._connection = way.connect()

    def create(self) -> None:
        with self._way.transaction(self._connection):
            self._fence.create(self._connection)
            self._way.execute(self._connection, TABLE[self._way.database.dialect])

    def raise_to(self, token: Token, scope: str) -> None:
        with self._way.transaction(self._connection):
            self._fence.raise_to(self._connection, token, scope=scope)

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        with self._way.transaction(self._connection):
            self._fence.apply(self._connection, token, sequence=sequence, scope=scope)
            self._put(scope, value)

    def write_unfenced(self, scope: str, value: str) -> None:
        with self._way.transaction(self._connection):
            self._put(scope, value)

    def read(self, scope: str) -> str | None:
        with self._way.transaction(self._connection):
            rows = self._way.execute(self._connection, READ, scope)
        return rows[0][0] if rows else None

    def delete(self, scope: str) -> None:
        with self._way.transaction(self._connection):
            self._way.execute(self._connection, REMOVE, scope)

    def reset(self, scope: str, reason: str) -> None:
        with self._way.transaction(self._connection):
            self._fence.reset(self._connection, scope, reason=reason)

    def resets(self, scope: str) -> list[str]:
        with self._way.transaction(self._connection):
            return [reset.reason for reset in self._fence.resets(self._connection, scope)]

    @contextmanager
    def again(self) -> Iterator[Destination]:
        mine = SQLDestination(self._way)
        try:
            yield mine
        finally:
            mine.close()

    def close(self) -> None:
        self._way.close(self._connection)

    def _put(self, scope: str, value: str) -> None:
        self._way.execute(self._connection, REMOVE, scope)
        self._way.execute(self._connection, PUT, scope, value)


class AsyncSQLDestination:
    """The destination over one asynchronous connection, in a loop of another thread."""

    def __init__(self, way: AsyncWay, loop: Loop) -> None:
        self._way = way
        self._loop = loop
        self._fence = SQLFence(way.database.dialect)
        self._connection = loop.run(way.connect())

    def create(self) -> None:
        async def create() -> None:
            async with self._way.transaction(self._connection):
                await self._fence.create_async(self._connection)
                await self._way.execute(self._connection, TABLE[self._way.database.dialect])

        self._loop.run(create())

    def raise_to(self, token: Token, scope: str) -> None:
        async def raise_to() -> None:
            async with self._way.transaction(self._connection):
                await self._fence.raise_to_async(self._connection, token, scope=scope)

        self._loop.run(raise_to())

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        async def write() -> None:
            async with self._way.transaction(self._connection):
                await self._fence.apply_async(self._connection, token, sequence=sequence, scope=scope)
                await self._put(scope, value)

        self._loop.run(write())

    def write_unfenced(self, scope: str, value: str) -> None:
        async def write() -> None:
            async with self._way.transaction(self._connection):
                await self._put(scope, value)

        self._loop.run(write())

    def read(self, scope: str) -> str | None:
        async def read() -> str | None:
            async with self._way.transaction(self._connection):
                rows = await self._way.execute(self._connection, READ, scope)
            return rows[0][0] if rows else None

        return self._loop.run(read())

    def delete(self, scope: str) -> None:
        async def delete() -> None:
            async with self._way.transaction(self._connection):
                await self._way.execute(self._connection, REMOVE, scope)

        self._loop.run(delete())

    def reset(self, scope: str, reason: str) -> None:
        async def reset() -> None:
            async with self._way.transaction(self._connection):
                await self._fence.reset_async(self._connection, scope, reason=reason)

        self._loop.run(reset())

    def resets(self, scope: str) -> list[str]:
        async def resets() -> list[str]:
            async with self._way.transaction(self._connection):
                return [reset.reason for reset in await self._fence.resets_async(self._connection, scope)]

        return self._loop.run(resets())

    @contextmanager
    def again(self) -> Iterator[Destination]:
        mine = AsyncSQLDestination(self._way, self._loop)
        try:
            yield mine
        finally:
            mine.close()

    def close(self) -> None:
        self._loop.run(self._way.close(self._connection))

    async def _put(self, scope: str, value: str) -> None:
        await self._way.execute(self._connection, REMOVE, scope)
        await self._way.execute(self._connection, PUT, scope, value)
