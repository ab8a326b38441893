"""A small service whose values are fenced, on real servers, and the adapter through which the suite writes to it.

    PUT /values?scope=...       {"value": ...}   under the fence of the scope
    PUT /unfenced?scope=...     {"value": ...}   around it
    GET, DELETE /values?scope=...                as a program without a fence would
    /fences/<scope>                              the fence resource

A value of "boom" raises after it was written, "fail" is answered with 503, "wait" is written once `gate` is open.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, Self, cast

import httpx
import psycopg
import uvicorn
from psycopg_pool import AsyncConnectionPool
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from tenure import Effect, Token
from tenure.fences.http import Call, FencedService, HTTPFence, RequestFacts, fencing_headers
from tenure.fences.http.asgi import FenceResource
from tenure.fences.http.client_httpx import FencedTransport
from tenure.fences.http.starlette import fenced
from tenure.testing.fences import Destination

SCOPE = "account/7"
TIMEOUT = 30.0
FAILED = 503


class Uvicorn:
    """An ASGI application behind uvicorn on a port of its own, in a thread."""

    def __init__(self, app: Any) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none"))
        self._thread = threading.Thread(target=self._run, name=f"uvicorn-{self.port}", daemon=True)

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()


class SQLiteValues:
    """Values in an SQLite file, in blocking transactions; `log` has a line for every write, in order."""

    def __init__(self, file: Path, **settings: Any) -> None:
        self.file = file
        self.service = FencedService("sqlite", **settings)
        self.busy_timeout = TIMEOUT
        self.gate = threading.Event()
        self.waiting = threading.Event()

    @contextmanager
    def begin(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.file, isolation_level=None, timeout=self.busy_timeout)) as connection:
            connection.execute("PRAGMA synchronous = OFF")  # these tests cut no power
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def create(self) -> None:
        with closing(sqlite3.connect(self.file)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        with self.begin() as connection:
            self.service.create(connection)
            connection.execute("CREATE TABLE things (scope TEXT PRIMARY KEY, value TEXT NOT NULL)")
            connection.execute("CREATE TABLE log (line INTEGER PRIMARY KEY, scope TEXT, value TEXT)")

    def put(self, connection: Any, scope: str, value: str) -> None:
        connection.execute(
            "INSERT INTO things VALUES (?, ?) ON CONFLICT (scope) DO UPDATE SET value = excluded.value", (scope, value)
        )
        connection.execute("INSERT INTO log (scope, value) VALUES (?, ?)", (scope, value))
        if value == "boom":
            raise RuntimeError("the handler failed after its effect")
        if value == "wait":
            self.waiting.set()
            assert self.gate.wait(TIMEOUT)

    def read(self, scope: str) -> str | None:
        with self.begin() as connection:
            rows = connection.execute("SELECT value FROM things WHERE scope = ?", (scope,)).fetchall()
        return rows[0][0] if rows else None

    def delete(self, scope: str) -> None:
        with self.begin() as connection:
            connection.execute("DELETE FROM things WHERE scope = ?", (scope,))

    def written(self) -> list[str]:
        with self.begin() as connection:
            return [row[0] for row in connection.execute("SELECT value FROM log ORDER BY line").fetchall()]

    def reset(self, scope: str, reason: str) -> None:
        with self.begin() as connection:
            self.service.fence.reset(connection, scope, reason=reason)

    def resets(self, scope: str) -> list[str]:
        with self.begin() as connection:
            return [reset.reason for reset in self.service.fence.resets(connection, scope)]

    def app(self, **options: Any) -> Starlette:
        """Make the service's application: blocking transactions, handlers in threads."""

        @fenced(self.service, self.begin, scope=named_scope, **options)
        def write(request: Request, call: Call) -> Response:
            value = json.loads(request._body)["value"]
            self.put(call.connection, call.scope, value)
            return told(value)

        async def unfenced(request: Request) -> Response:
            value = (await request.json())["value"]
            with self.begin() as connection:
                self.put(connection, named_scope(request), value)
            return Response(status_code=204)

        def read(request: Request) -> Response:
            return JSONResponse(self.read(named_scope(request)))

        def delete(request: Request) -> Response:
            self.delete(named_scope(request))
            return Response(status_code=204)

        return Starlette(routes=routes(write, unfenced, read, delete, FenceResource(self.service, self.begin)))


class PostgresValues:
    """Values in PostgreSQL: asynchronous transactions, asynchronous handlers."""

    def __init__(self, url: str, **settings: Any) -> None:
        self.url = url
        self.service = FencedService("postgresql", **settings)
        self.pool: AsyncConnectionPool[psycopg.AsyncConnection[Any]] | None = None
        self.gate: asyncio.Event = asyncio.Event()
        self.waiting = threading.Event()
        self.loop: asyncio.AbstractEventLoop | None = None

    @asynccontextmanager
    async def life(self, _app: object) -> AsyncIterator[None]:
        """Keep a pool of connections for as long as the application runs."""
        self.loop = asyncio.get_running_loop()
        async with AsyncConnectionPool(self.url, min_size=1, max_size=10, open=False) as self.pool:
            yield

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        assert self.pool is not None
        async with self.pool.connection() as connection:
            yield connection

    def create(self) -> None:
        with psycopg.connect(self.url) as connection:
            self.service.create(connection)
            connection.execute("CREATE TABLE IF NOT EXISTS things (scope TEXT PRIMARY KEY, value TEXT NOT NULL)")
            connection.execute("CREATE TABLE IF NOT EXISTS log (line SERIAL PRIMARY KEY, scope TEXT, value TEXT)")
            connection.execute("TRUNCATE things, log, tenure_fences, tenure_fence_resets, tenure_http_responses")

    async def put(self, connection: Any, scope: str, value: str) -> None:
        await connection.execute(
            "INSERT INTO things VALUES (%s, %s) ON CONFLICT (scope) DO UPDATE SET value = excluded.value",
            (scope, value),
        )
        await connection.execute("INSERT INTO log (scope, value) VALUES (%s, %s)", (scope, value))
        if value == "wait":
            self.waiting.set()
            await asyncio.wait_for(self.gate.wait(), TIMEOUT)

    def open_gate(self) -> None:
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.gate.set)

    def written(self) -> list[str]:
        with psycopg.connect(self.url) as connection:
            return [row[0] for row in connection.execute("SELECT value FROM log ORDER BY line").fetchall()]

    def reset(self, scope: str, reason: str) -> None:
        with psycopg.connect(self.url) as connection:
            self.service.fence.reset(connection, scope, reason=reason)

    def resets(self, scope: str) -> list[str]:
        with psycopg.connect(self.url) as connection:
            return [reset.reason for reset in self.service.fence.resets(connection, scope)]

    def app(self) -> Starlette:
        """Make the service's application."""

        @fenced(self.service, self.begin, scope=named_scope)
        async def write(request: Request, call: Call) -> Response:
            value = (await request.json())["value"]
            await self.put(call.connection, call.scope, value)
            return told(value)

        async def unfenced(request: Request) -> Response:
            async with self.begin() as connection:
                await self.put(connection, named_scope(request), (await request.json())["value"])
            return Response(status_code=204)

        async def read(request: Request) -> Response:
            async with self.begin() as connection:
                cursor = await connection.execute("SELECT value FROM things WHERE scope = %s", (named_scope(request),))
                rows = await cursor.fetchall()
            return JSONResponse(rows[0][0] if rows else None)

        async def delete(request: Request) -> Response:
            async with self.begin() as connection:
                await connection.execute("DELETE FROM things WHERE scope = %s", (named_scope(request),))
            return Response(status_code=204)

        resource = FenceResource(self.service, self.begin)
        return Starlette(routes=routes(write, unfenced, read, delete, resource), lifespan=self.life)


def named_scope(request: Request) -> str:
    return request.query_params["scope"]


def told(value: str) -> Response:
    return JSONResponse({"value": value}, FAILED if value == "fail" else 201, {"Location": "/values"})


def routes(write: Any, unfenced: Any, read: Any, delete: Any, fences: Any) -> list[Route | Mount]:
    return [
        Route("/values", write, methods=["PUT"]),
        Route("/unfenced", unfenced, methods=["PUT"]),
        Route("/values", read, methods=["GET"]),
        Route("/values", delete, methods=["DELETE"]),
        Mount("/fences", fences),
    ]


class HTTPDestination:
    """The suite's destination: client, network, server and database; a fresh key for every write."""

    def __init__(self, url: str, values: SQLiteValues | PostgresValues, plain: httpx.Client) -> None:
        self._url = url
        self._values = values
        self._plain = plain
        self._client = fenced_client(url)
        self._fence = HTTPFence(self._client, url + "/fences", timeout=TIMEOUT)

    @classmethod
    @contextmanager
    def at(cls, url: str, values: SQLiteValues | PostgresValues) -> Iterator[HTTPDestination]:
        with httpx.Client(base_url=url, timeout=TIMEOUT, verify=False) as plain:
            made = cls(url, values, plain)
            with made._client:
                yield made

    def raise_to(self, token: Token, scope: str) -> None:
        self._fence.raise_to(token, scope=scope)

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        numbered = Effect(token.job, token.generation, sequence) if isinstance(cast("Any", token), Token) else token
        headers = fencing_headers(numbered, scope, str(uuid.uuid4()))
        response = self._client.put("/values", params={"scope": scope}, headers=headers, json={"value": value})
        assert response.raise_for_status().json() == {"value": value}

    def write_unfenced(self, scope: str, value: str) -> None:
        self._plain.put("/unfenced", params={"scope": scope}, json={"value": value}).raise_for_status()

    def read(self, scope: str) -> str | None:
        found: str | None = self._client.get("/values", params={"scope": scope}).raise_for_status().json()
        return found

    def delete(self, scope: str) -> None:
        self._plain.delete("/values", params={"scope": scope}).raise_for_status()

    def reset(self, scope: str, reason: str) -> None:
        self._values.reset(scope, reason)

    def resets(self, scope: str) -> list[str]:
        return self._values.resets(scope)

    @contextmanager
    def again(self) -> Iterator[Destination]:
        with HTTPDestination.at(self._url, self._values) as another:
            yield another


def fenced_client(url: str, timeout: float = TIMEOUT) -> httpx.Client:
    """Make a client behind a fence; there is no TLS on the loopback, so nothing is loaded for it."""
    return httpx.Client(transport=FencedTransport(httpx.HTTPTransport(verify=False)), base_url=url, timeout=timeout)


def facts(
    generation: int = 7,
    sequence: int = 1,
    key: str | None = "job-1:charge",
    *,
    scope: str = SCOPE,
    body: bytes = b"a",
    client: str = "",
    target: str = "/charges",
    method: str = "POST",
) -> RequestFacts:
    headers = fencing_headers(Effect("job-1", generation, sequence), scope, key)
    return RequestFacts(method, target, tuple(headers.items()), body, client)
