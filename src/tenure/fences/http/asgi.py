"""ASGI forms, for Starlette, FastAPI and any other: the fence resource, and a bound for bodies.

    app.mount("/fences", FenceResource(service, engine.begin))
    app.add_middleware(BoundedBody, largest=service.largest)

`begin` may open asynchronous transactions or blocking ones; these run in threads. Nothing here imports a framework.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tenure.fences.http.bodies import Body
from tenure.fences.http.messages import Answer, RequestFacts
from tenure.fences.http.problems import REFUSALS, problem
from tenure.fences.http.resource import Resource
from tenure.fences.http.service import FencedService

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class ClientGone(Exception):
    """The client went away before its request had arrived."""


class FenceResource:
    """An ASGI application to be mounted: ``PUT`` raises the fence of the scope that the rest of the path names."""

    def __init__(self, service: FencedService, begin: Callable[[], Any]) -> None:
        self._resource = Resource(service, begin)
        self._asynchronous = is_asynchronous(begin)
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise TypeError(f"a fence resource answers HTTP, not {scope['type']!r}")
        try:
            facts = await read_facts(scope, receive, self._service.largest)
        except ClientGone:
            return
        except REFUSALS as refused:
            answer = problem(refused)
        else:
            answer = await self._answer(facts, rest_of_path(scope))
        await send_answer(send, answer, with_body=scope["method"] != "HEAD")

    async def _answer(self, facts: RequestFacts, path: str) -> Answer:
        if self._asynchronous:
            return await self._resource.serve_async(facts, path)
        return await asyncio.to_thread(self._resource.serve, facts, path)


class BoundedBody:
    """ASGI middleware that reads each request's body before its application does, and refuses what is too large.

    For what reads bodies by itself before an endpoint is asked, as FastAPI does where a parameter is the body.
    """

    def __init__(self, app: App, largest: int) -> None:
        self._app = app
        self._largest = largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on one request with its body, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            body = await read_body(receive, self._largest)
        except ClientGone:
            return
        except REFUSALS as refused:
            await send_answer(send, problem(refused), with_body=scope["method"] != "HEAD")
        else:
            await self._app(scope, replay(body, receive), send)


def is_asynchronous(begin: Callable[[], Any]) -> bool:
    """Tell whether `begin` opens asynchronous transactions: whether what it gives wants an ``async with``."""
    return hasattr(begin(), "__aenter__")


async def read_facts(scope: Scope, receive: Receive, largest: int) -> RequestFacts:
    """Receive a whole request; raises RequestTooLarge as soon as it is, and ClientGone."""
    return facts_of(scope, await read_body(receive, largest))


async def read_body(receive: Receive, largest: int) -> bytes:
    """Receive the whole body of a request; raises RequestTooLarge as soon as it is, and ClientGone."""
    body = Body(largest)
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGone
        body.add(message.get("body", b""))
        more = message.get("more_body", False)
    return body.whole()


def replay(body: bytes, receive: Receive) -> Receive:
    """Make what an application receives of a request whose body was read: that body first."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return pending.pop() if pending else await receive()

    return again


def facts_of(scope: Scope, body: bytes, client: str = "") -> RequestFacts:
    """Put the facts of a request together."""
    headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
    path = scope.get("raw_path") or scope["path"].encode()
    query = b"?" + scope["query_string"] if scope.get("query_string") else b""
    return RequestFacts(scope["method"], (path + query).decode("latin-1"), headers, body, client)


async def send_answer(send: Send, answer: Answer, *, with_body: bool = True) -> None:
    """Send an answer."""
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    headers.append((b"content-length", str(len(answer.body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body if with_body else b""})


def rest_of_path(scope: Scope) -> str:
    """Return the part of the path behind the mount, as text with nothing percent-encoded."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path.removeprefix(root)
