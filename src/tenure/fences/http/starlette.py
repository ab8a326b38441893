"""Starlette and FastAPI: a fenced endpoint in one transaction, and the pieces of it.

    @app.post("/accounts/{account}/charges")
    @fenced(service, engine.begin, scope=lambda request: f"account/{request.path_params['account']}")
    async def charge(request: Request, call: Call, account: str) -> JSONResponse:
        await call.connection.execute(...)
        return JSONResponse({"charge": 1}, status_code=201)

The decorator opens the transaction, lets the request through, runs the handler, keeps its answer and commits, and only
then is the answer sent. FastAPI's dependencies with ``yield`` cannot do that: their end may come after the answer has
gone, and with it a commit that fails. So the dependency here, `request_facts`, only gathers what the helper needs:

    @app.post("/charges")
    async def charge(facts: Annotated[RequestFacts, Depends(request_facts)]) -> Response:
        async with engine.begin() as connection, service.request_async(connection, facts, scope="ledger") as call:
            if not call.repeat:
                await connection.execute(...)
                call.answer(201, {"charge": 1})
        return response_of(call.response)

`BoundedBody` (`tenure.fences.http.asgi`) bounds what FastAPI reads for the parameters of an endpoint, and for this
dependency, before anything here is asked. `exception_handlers` turns refusals into their problems:
``FastAPI(exception_handlers=exception_handlers())``.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from tenure.errors import Misuse
from tenure.fences.http.asgi import facts_of
from tenure.fences.http.bodies import Body
from tenure.fences.http.messages import Answer, RequestFacts, make_answer
from tenure.fences.http.problems import REFUSALS, RequestTooLarge, problem
from tenure.fences.http.serve import Endpoint
from tenure.fences.http.service import Call, FencedService

Handler = Callable[..., Any]
OfRequest = Callable[[Request], str]


def fenced(
    service: FencedService,
    begin: Callable[[], Any],
    *,
    scope: OfRequest | None = None,
    client: OfRequest | None = None,
    ordered: bool = True,
) -> Callable[[Handler], Callable[..., Awaitable[Response]]]:
    """Make an endpoint whose effect is fenced; the handler takes `request` and, by name, `call`.

    An ``async def`` handler needs a `begin` of asynchronous transactions, a ``def`` handler one of blocking ones; it
    runs in a thread, transaction and all. The handler returns a `Response` with its body, or what `call.answer` gave.
    `scope` names what the request would change, `client` who sent it; see `FencedService.request`.
    """
    endpoint = Endpoint(service, begin, ordered)

    def decorate(handler: Handler) -> Callable[..., Awaitable[Response]]:
        @functools.wraps(handler)
        async def fenced_endpoint(*args: Any, **kwargs: Any) -> Response:
            request: Request = kwargs["request"] if "request" in kwargs else args[0]
            try:
                facts = await _facts(request, service.largest, client(request) if client else "")
            except RequestTooLarge as refused:
                return response_of(problem(refused))
            named = scope(request) if scope else None
            if inspect.iscoroutinefunction(handler):

                async def act_async(call: Call) -> Answer:
                    return _answer(await handler(*args, **kwargs, call=call))

                return response_of(await endpoint.serve_async(facts, named, act_async))

            def act(call: Call) -> Answer:
                return _answer(handler(*args, **kwargs, call=call))

            return response_of(await run_in_threadpool(endpoint.serve, facts, named, act))

        fenced_endpoint.__signature__ = _without_call(handler)  # type: ignore[attr-defined]  # what FastAPI reads
        return fenced_endpoint

    return decorate


async def request_facts(request: Request) -> RequestFacts:
    """Gather the facts of a request: a dependency for FastAPI, a function for Starlette."""
    return facts_of(request.scope, await request.body())


def response_of(answer: Answer) -> Response:
    """Make the response that an answer stands for."""
    response = Response(answer.body, answer.status)
    for name, value in answer.headers:
        response.headers.append(name, value)
    return response


def exception_handlers() -> dict[Any, Callable[[Request, Any], Coroutine[Any, Any, Response]]]:
    """Handle what `FencedService.request` raises, for an application that uses it without the decorator."""

    async def handle(_request: Request, error: Any) -> Response:
        return response_of(problem(error))

    return dict.fromkeys(REFUSALS, handle)


async def _facts(request: Request, largest: int, client: str) -> RequestFacts:
    body = Body(largest)
    async with aclosing(request.stream()) as pieces:
        async for piece in pieces:
            body.add(piece)
    request._body = body.whole()  # noqa: SLF001 -- as its own body() does, so that the handler finds it
    return facts_of(request.scope, request._body, client)  # noqa: SLF001 -- the same


def _answer(returned: Any) -> Answer:
    if isinstance(returned, Answer):
        return returned
    body = getattr(returned, "body", None)
    if not isinstance(returned, Response) or not isinstance(body, bytes):
        raise Misuse(
            "a fenced handler returns a Response with its whole body, or call.answer(...), so that the answer can be"
            f" given again; this one returned {type(returned).__name__}"
        )
    return make_answer(returned.status_code, body, returned.headers.items())


def _without_call(handler: Handler) -> inspect.Signature:
    """Leave `call` out of what FastAPI sees, with annotations as values: its names are not known elsewhere."""
    signature = inspect.signature(handler)
    if not {"request", "call"} <= signature.parameters.keys():
        raise Misuse(f"{handler.__name__} is to take the parameters `request` and `call`")
    hints = typing.get_type_hints(handler, include_extras=True)
    parameters = [
        parameter.replace(annotation=hints.get(name, parameter.annotation))
        for name, parameter in signature.parameters.items()
        if name != "call"
    ]
    return signature.replace(parameters=parameters, return_annotation=hints.get("return", signature.empty))
