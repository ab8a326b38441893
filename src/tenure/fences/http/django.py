"""Django: a view whose effect is fenced, in one transaction.

    @fenced(service, scope=lambda request, account: f"account/{account}")
    def charge(request, call, account):
        Charge.objects.create(account=account, cents=1200)
        return JsonResponse({"charge": 1}, status=201)

The view's own models are in the transaction, as long as they live in the database named by `using`. It is committed
before the answer is sent. Mount `tenure.fences.http.wsgi.FenceResource` beside the application, with `atomic` as its
`begin`. Views are blocking ones, like Django's transactions. A request is bounded by the service's `largest` and by
DATA_UPLOAD_MAX_MEMORY_SIZE.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse

from tenure.errors import Misuse
from tenure.fences.http.bodies import check_length, read_length, too_large
from tenure.fences.http.messages import Answer, RequestFacts, make_answer
from tenure.fences.http.problems import REFUSALS, problem
from tenure.fences.http.serve import Endpoint
from tenure.fences.http.service import Call, FencedService
from tenure.fences.http.wsgi import facts_of

View = Callable[..., Any]


@contextmanager
def atomic(using: str = "default") -> Iterator[Any]:
    """Open a transaction of Django's and yield its connection, which does nothing once that has ended."""
    connection = connections[using]
    with transaction.atomic(using=using), connection.execute_wrapper(_inside):
        yield connection


def _inside(execute: Callable[..., Any], *statement: Any) -> Any:
    """Refuse what follows a rollback of the view's own, where SQLite would commit it by itself."""
    *_, context = statement
    connection = context["connection"]
    if connection.vendor == "sqlite" and _is_in_autocommit(connection.connection):
        raise Misuse(
            "the transaction that this statement belongs to has ended, as by a rollback; nothing was changed: let the"
            " error of a statement end the view, and leave the transaction to the decorator"
        )
    return execute(*statement)


def _is_in_autocommit(raw: Any) -> bool:
    return raw.isolation_level is None and not raw.in_transaction


def fenced(
    service: FencedService,
    *,
    using: str = "default",
    scope: Callable[..., str] | None = None,
    client: Callable[[Any], str] | None = None,
    ordered: bool = True,
) -> Callable[[View], Callable[..., Any]]:
    """Make a view whose effect is fenced; it takes the request, by name `call`, and returns a response with a body.

    `scope` is called with the request and the view's arguments and names what the request would change, `client` is
    called with the request and names who sent it; see `FencedService.request`.
    """
    endpoint = Endpoint(service, lambda: atomic(using), ordered)

    def decorate(view: View) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(view):
            raise Misuse("a fenced view is a blocking one: Django's transactions are")

        @functools.wraps(view)
        def fenced_view(request: Any, *args: Any, **kwargs: Any) -> Any:
            def act(call: Call) -> Answer:
                return _answer(view(request, *args, **kwargs, call=call))

            try:
                facts = _facts(request, service.largest, client(request) if client else "")
            except REFUSALS as refused:
                return _response(problem(refused))
            named = scope(request, *args, **kwargs) if scope else None
            return _response(endpoint.serve(facts, named, act))

        return fenced_view

    return decorate


def _facts(request: HttpRequest, largest: int, client: str) -> RequestFacts:
    length = read_length(request.META.get("CONTENT_LENGTH"), largest)
    try:
        body = check_length(request.body, length)
    except RequestDataTooBig as error:
        raise too_large(settings.DATA_UPLOAD_MAX_MEMORY_SIZE or largest) from error
    facts = facts_of({**request.META, "SCRIPT_NAME": "", "PATH_INFO": ""}, body, client)
    return RequestFacts(request.method or "", request.get_full_path(), facts.headers, facts.body, client)


def _answer(returned: Any) -> Answer:
    if isinstance(returned, Answer):
        return returned
    if not isinstance(returned, HttpResponse) or returned.streaming:
        raise Misuse("a fenced view returns a response with its whole body, so that the answer can be given again")
    return make_answer(returned.status_code, returned.content, returned.items())


def _response(answer: Answer) -> HttpResponse:
    response = HttpResponse(answer.body, status=answer.status)
    del response["Content-Type"]
    for name, value in answer.headers:
        response[name] = value
    return response
