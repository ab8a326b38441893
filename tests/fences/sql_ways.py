"""Ways to a SQL database: how each client library opens a connection, a transaction, and executes a statement."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import psycopg
import pymysql

T = TypeVar("T")

Dialect = Literal["postgresql", "sqlite", "mysql"]
PATIENCE = 30.0


@dataclass(frozen=True)
class Database:
    """One database: a file, a url of PostgreSQL, or the arguments for a driver of MySQL."""

    dialect: Dialect
    address: Any

    @property
    def parts(self) -> dict[str, Any]:
        """The address in pieces."""
        if self.dialect == "mysql":
            return dict(self.address)
        url = urlsplit(self.address)
        login = {"user": url.username, "password": url.password}
        return {"host": url.hostname, "port": url.port, **login, "database": url.path[1:]}

    def url(self, driver: str) -> str:
        """Write the address as SQLAlchemy takes it."""
        if self.dialect == "sqlite":
            return f"sqlite+{driver}:///{self.address}"
        parts = self.parts
        return f"{self.dialect}+{driver}://{parts['user']}:{parts['password']}@{parts['host']}:{parts['port']}/{parts['database']}"


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class BlockingWay(ABC):
    """Connections of a DB-API driver; what others do in another way stands in their classes."""

    mark = "%s"

    def __init__(self, database: Database) -> None:
        self.database = database

    @abstractmethod
    def connect(self) -> Any: ...

    @contextmanager
    def transaction(self, connection: Any) -> Iterator[None]:
        try:
            yield
        except BaseException:
            connection.rollback()
            raise
        connection.commit()

    def execute(self, connection: Any, sql: str, *values: Any) -> list[Any]:
        cursor = connection.cursor()
        try:
            cursor.execute(sql.replace("?", self.mark), values)
            return list(cursor.fetchall()) if cursor.description else []
        finally:
            cursor.close()

    def close(self, connection: Any) -> None:
        connection.close()


class Sqlite3(BlockingWay):
    mark = "?"

    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.database.address, isolation_level=None, timeout=PATIENCE)

    @contextmanager
    def transaction(self, connection: Any) -> Iterator[None]:
        connection.execute("BEGIN IMMEDIATE")
        with super().transaction(connection):
            yield


class Psycopg(BlockingWay):
    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.database.address)


class PyMySQL(BlockingWay):
    def connect(self) -> Any:
        return pymysql.connect(**self.database.parts)


class SQLAlchemyCore(BlockingWay):
    """Core connections over psycopg."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._engine = import_module("sqlalchemy").create_engine(database.url("psycopg"))

    def connect(self) -> Any:
        return self._engine.connect()

    def execute(self, connection: Any, sql: str, *values: Any) -> list[Any]:
        result = connection.exec_driver_sql(sql.replace("?", "%s"), values)
        return list(result.fetchall()) if result.returns_rows else []

    def end(self) -> None:
        self._engine.dispose()


class Django(BlockingWay):
    """The connection that Django keeps for the calling thread, behind the proxy that applications import."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        settings = import_module("django.conf").settings
        if not settings.configured:
            settings.configure()
        if not import_module("django.apps").apps.ready:
            import_module("django").setup()
        self._connections = import_module("django.db").connections
        self._atomic = import_module("django.db.transaction").atomic
        self._alias = f"destination-{secrets.token_hex(4)}"
        if database.dialect == "sqlite":
            made = {"ENGINE": "django.db.backends.sqlite3", "NAME": database.address}
        else:
            names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD", "database": "NAME"}
            login = {names[name]: value for name, value in database.parts.items()}
            made = {"ENGINE": f"django.db.backends.{database.dialect}", **login}
        self._connections.settings[self._alias] = self._connections.configure_settings({"default": made})["default"]

    def connect(self) -> Any:
        return import_module("django.utils.connection").ConnectionProxy(self._connections, self._alias)

    @contextmanager
    def transaction(self, connection: Any) -> Iterator[None]:
        with self._atomic(using=self._alias):
            yield


class AsyncWay(ABC):
    """Asynchronous connections of a driver with cursors."""

    mark = "%s"

    def __init__(self, database: Database) -> None:
        self.database = database

    @abstractmethod
    async def connect(self) -> Any: ...

    @asynccontextmanager
    async def transaction(self, connection: Any) -> AsyncIterator[None]:
        try:
            yield
        except BaseException:
            await connection.rollback()
            raise
        await connection.commit()

    async def execute(self, connection: Any, sql: str, *values: Any) -> list[Any]:
        async with connection.cursor() as cursor:
            await cursor.execute(sql.replace("?", self.mark), values)
            return list(await cursor.fetchall()) if cursor.description else []

    async def close(self, connection: Any) -> None:
        await connection.close()


class AsyncPsycopg(AsyncWay):
    async def connect(self) -> Any:
        return await psycopg.AsyncConnection.connect(self.database.address)


class AioMySQL(AsyncWay):
    async def connect(self) -> Any:
        parts = self.database.parts
        return await import_module("aiomysql").connect(**parts | {"db": parts.pop("database")}, charset="utf8mb4")

    async def close(self, connection: Any) -> None:
        await connection.ensure_closed()


class AsyncPG(AsyncWay):
    async def connect(self) -> Any:
        return await import_module("asyncpg").connect(self.database.address)

    @asynccontextmanager
    async def transaction(self, connection: Any) -> AsyncIterator[None]:
        async with connection.transaction():
            yield

    async def execute(self, connection: Any, sql: str, *values: Any) -> list[Any]:
        for number in range(1, len(values) + 1):
            sql = sql.replace("?", f"${number}", 1)
        return [tuple(row) for row in await connection.fetch(sql, *values)]


class SQLAlchemySession(AsyncWay):
    """ORM sessions over asyncpg."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._asyncio = import_module("sqlalchemy.ext.asyncio")
        self._engine = self._asyncio.create_async_engine(database.url("asyncpg"))

    async def connect(self) -> Any:
        return self._asyncio.AsyncSession(self._engine)

    async def execute(self, connection: Any, sql: str, *values: Any) -> list[Any]:
        names = [f"value_{number}" for number in range(len(values))]
        for name in names:
            sql = sql.replace("?", f":{name}", 1)
        text = import_module("sqlalchemy").text(sql)
        result = await connection.execute(text, dict(zip(names, values, strict=True)))
        return list(result.fetchall()) if result.returns_rows else []

    async def end(self) -> None:
        await self._engine.dispose()
