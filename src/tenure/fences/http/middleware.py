"""Middleware that checks, then acts: for an application that cannot be changed, and for what such a check is worth.

What it cannot promise: the fence and the effect are two transactions. A request that passed the check may be paused,
and write after a newer owner has raised the fence and read; nothing refuses it then. A server that goes down between
the effect and its stored answer leaves a request that is neither done nor undone: it is answered 409 until
`FencedService.forget_older_than` clears it. A handler that fails (an exception, a 5xx) after its effect is run again.

What it does: turns away what is late on arrival, malformed or without a token, and repeats that come one after the
other. For more, let the handler work in the transaction of `FencedService.request`.

The IETF draft of `Idempotency-Key` describes no more than this either; and most services that take such a key do it so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from tenure.fences.http import asgi, wsgi
from tenure.fences.http.messages import Answer, RequestFacts
from tenure.fences.http.problems import REFUSALS, problem
from tenure.fences.http.serve import Begin
from tenure.fences.http.service import Call, FencedService

_HARMLESS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_FAILED = 500


class CheckThenActMiddleware:
    """WSGI middleware that checks before its application acts: not the fence that a transaction is.

    See `tenure.fences.http.middleware` for what slips through. Reads pass unchecked.
    """

    def __init__(self, app: wsgi.App, service: FencedService, begin: Begin, *, ordered: bool = True) -> None:
        self._app = app
        self._checks = _Checks(service, begin, ordered=ordered)
        self._largest = service.largest

    def __call__(self, environ: wsgi.Environ, start_response: wsgi.StartResponse) -> Iterable[bytes]:
        """Check one request, let the application act, keep its answer."""
        if environ["REQUEST_METHOD"] in _HARMLESS:
            return self._app(environ, start_response)
        try:
            call = self._checks.check(wsgi.read_facts(environ, self._largest))
        except REFUSALS as refused:
            return wsgi.send_answer(start_response, problem(refused))
        if not call.repeat:
            try:
                answer = _collect(self._app, environ)
            except Exception:
                self._checks.give_up(call)
                raise
            if answer.status >= _FAILED:
                self._checks.give_up(call)
                return wsgi.send_answer(start_response, answer)
            self._checks.keep(call, answer)
        return wsgi.send_answer(start_response, call.response)


class AsyncCheckThenActMiddleware:
    """ASGI middleware that checks before its application acts: not the fence that a transaction is.

    See `tenure.fences.http.middleware` for what slips through. Reads pass unchecked, and so does what is not HTTP.
    """

    def __init__(
        self, app: asgi.App, service: FencedService, begin: Callable[[], Any], *, ordered: bool = True
    ) -> None:
        self._app = app
        self._checks = _Checks(service, begin, ordered=ordered)
        self._asynchronous = asgi.is_asynchronous(begin)
        self._largest = service.largest

    async def __call__(self, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        """Check one request, let the application act, keep its answer."""
        if scope["type"] != "http" or scope["method"] in _HARMLESS:
            await self._app(scope, receive, send)
            return
        try:
            facts = await asgi.read_facts(scope, receive, self._largest)
            call = await self._do(self._checks.check, self._checks.check_async, facts)
        except asgi.ClientGone:
            return
        except REFUSALS as refused:
            await asgi.send_answer(send, problem(refused))
            return
        if not call.repeat:
            sent = _Sent()
            try:
                await self._app(scope, asgi.replay(facts.body, receive), sent.take)
            except Exception:
                await self._do(self._checks.give_up, self._checks.give_up_async, call)
                await sent.pass_on(send)
                raise
            answer = sent.answer()
            if answer.status >= _FAILED:
                await self._do(self._checks.give_up, self._checks.give_up_async, call)
                await asgi.send_answer(send, answer)
                return
            await self._do(self._checks.keep, self._checks.keep_async, call, answer)
        await asgi.send_answer(send, call.response)

    async def _do(self, blocking: Callable[..., Any], asynchronous: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        if self._asynchronous:
            return await asynchronous(*args)
        return await asyncio.to_thread(blocking, *args)


class _Checks:
    """Each step in a transaction of its own: that is the hole."""

    def __init__(self, service: FencedService, begin: Callable[[], Any], *, ordered: bool) -> None:
        self._service = service
        self._begin = begin
        self._ordered = ordered

    def check(self, facts: RequestFacts) -> Call:
        with self._begin() as connection:
            return self._service.check(connection, facts, ordered=self._ordered)

    def keep(self, call: Call, answer: Answer) -> None:
        call.answer(answer.status, answer.body, answer.headers)
        with self._begin() as connection:
            self._service.keep(connection, call)

    def give_up(self, call: Call) -> None:
        with self._begin() as connection:
            self._service.give_up(connection, call)

    async def check_async(self, facts: RequestFacts) -> Call:
        async with self._begin() as connection:
            return await self._service.check_async(connection, facts, ordered=self._ordered)

    async def keep_async(self, call: Call, answer: Answer) -> None:
        call.answer(answer.status, answer.body, answer.headers)
        async with self._begin() as connection:
            await self._service.keep_async(connection, call)

    async def give_up_async(self, call: Call) -> None:
        async with self._begin() as connection:
            await self._service.give_up_async(connection, call)


def _collect(app: wsgi.App, environ: wsgi.Environ) -> Answer:
    started: list[tuple[int, tuple[tuple[str, str], ...]]] = []
    written: list[bytes] = []

    def start(status: str, headers: list[tuple[str, str]], _error: Any = None) -> Callable[[bytes], None]:
        started.append((int(status.split(" ", 1)[0]), tuple(headers)))
        return written.append

    pieces = app(environ, start)
    try:
        written += pieces
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()
    status, headers = started[-1]
    return Answer(status, _without_length(headers), b"".join(written))


class _Sent:
    """What an ASGI application has sent, kept back until it is through."""

    def __init__(self) -> None:
        self._messages: list[asgi.Message] = []

    async def take(self, message: asgi.Message) -> None:
        self._messages.append(message)

    async def pass_on(self, send: asgi.Send) -> None:
        for message in self._messages:
            await send(message)

    def answer(self) -> Answer:
        start = next(message for message in self._messages if message["type"] == "http.response.start")
        pairs = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in start.get("headers", ()))
        body = b"".join(message.get("body", b"") for message in self._messages)
        return Answer(start["status"], _without_length(pairs), body)


def _without_length(pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in pairs if name.lower() != "content-length")
