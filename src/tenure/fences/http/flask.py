"""Flask: a view whose effect is fenced, in one transaction.

    @app.post("/accounts/<account>/charges")
    @fenced(service, engine.begin, scope=lambda account: f"account/{account}")
    def charge(call: Call, account: str):
        call.connection.execute(...)
        return {"charge": 1}, 201

The transaction is committed before the answer is sent. Put Flask's `FenceResource` (`tenure.fences.http.wsgi`) beside
the application with ``DispatcherMiddleware``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flask import Response, make_response, request

from tenure.errors import Misuse
from tenure.fences.http.bodies import read_length
from tenure.fences.http.messages import Answer, RequestFacts, make_answer
from tenure.fences.http.problems import REFUSALS, problem
from tenure.fences.http.serve import Begin, Endpoint
from tenure.fences.http.service import Call, FencedService
from tenure.fences.http.wsgi import facts_of, read_facts

View = Callable[..., Any]


def fenced(
    service: FencedService,
    begin: Begin,
    *,
    scope: Callable[..., str] | None = None,
    client: Callable[[], str] | None = None,
    ordered: bool = True,
) -> Callable[[View], Callable[..., Response]]:
    """Make a view whose effect is fenced; it takes, by name, `call`, and returns what any view may.

    `scope` is called with the view's arguments and names what the request would change, `client` names who sent it;
    see `FencedService.request`.
    """
    endpoint = Endpoint(service, begin, ordered)

    def decorate(view: View) -> Callable[..., Response]:
        @functools.wraps(view)
        def fenced_view(**arguments: Any) -> Response:
            def act(call: Call) -> Answer:
                returned = view(**arguments, call=call)
                return returned if isinstance(returned, Answer) else _answer(make_response(returned))

            try:
                facts = _facts(service.largest, client() if client else "")
            except REFUSALS as refused:
                return _response(problem(refused))
            return _response(endpoint.serve(facts, scope(**arguments) if scope else None, act))

        return fenced_view

    return decorate


def _facts(largest: int, client: str) -> RequestFacts:
    if "stream" not in vars(request):  # nothing of it was read yet
        return read_facts(request.environ, largest, client)
    body = request.get_data()
    if len(body) < read_length(request.environ.get("CONTENT_LENGTH"), largest):
        raise Misuse(
            "the body was read before the fenced view, and is gone: let what runs before it call request.get_data()"
            " first"
        )
    return facts_of(request.environ, body, client)


def _answer(response: Response) -> Answer:
    return make_answer(response.status_code, response.get_data(), response.headers.items())


def _response(answer: Answer) -> Response:
    return Response(answer.body, answer.status, list(answer.headers))
