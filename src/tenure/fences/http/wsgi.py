"""WSGI forms, for Flask, Django and any other: the fence resource, and a middleware that checks, then acts.

    application = DispatcherMiddleware(flask_app, {"/fences": FenceResource(service, begin)})

Nothing here imports a framework.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, MutableMapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from tenure.fences.http.bodies import read_body, read_length
from tenure.fences.http.messages import Answer, RequestFacts
from tenure.fences.http.problems import REFUSALS, problem
from tenure.fences.http.resource import Resource
from tenure.fences.http.serve import Begin
from tenure.fences.http.service import FencedService

Environ = MutableMapping[str, Any]
StartResponse = Callable[..., Any]
App = Callable[[Environ, StartResponse], Iterable[bytes]]


class FenceResource:
    """A WSGI application to be mounted: ``PUT`` raises the fence of the scope that the rest of the path names."""

    def __init__(self, service: FencedService, begin: Begin) -> None:
        self._resource = Resource(service, begin)
        self._service = service

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        try:
            facts = read_facts(environ, self._service.largest)
        except REFUSALS as refused:
            return send_answer(start_response, problem(refused))
        answer = self._resource.serve(facts, _text(environ.get("PATH_INFO", "")))
        return send_answer(start_response, answer, with_body=facts.method != "HEAD")


def read_facts(environ: Environ, largest: int, client: str = "") -> RequestFacts:
    """Read a whole request, left readable for whoever comes next; raises RequestTooLarge or RequestMalformed."""
    length = read_length(environ.get("CONTENT_LENGTH"), largest)
    endless = bool(environ.get("wsgi.input_terminated"))
    body = read_body(environ["wsgi.input"], length, largest, endless=endless)
    environ["wsgi.input"] = io.BytesIO(body)
    return facts_of(environ, body, client)


def facts_of(environ: Environ, body: bytes, client: str = "") -> RequestFacts:
    """Put the facts of a request together. A field that came twice is one here, its values joined by commas."""
    headers = tuple(
        (name.removeprefix("HTTP_").replace("_", "-"), value)
        for name, value in environ.items()
        if name.startswith("HTTP_")
    )
    path = quote((environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")).encode("latin-1"))
    query = environ.get("QUERY_STRING", "")
    return RequestFacts(environ["REQUEST_METHOD"], path + ("?" + query if query else ""), headers, body, client)


def send_answer(start_response: StartResponse, answer: Answer, *, with_body: bool = True) -> Iterable[bytes]:
    """Send an answer."""
    headers = [*answer.headers, ("Content-Length", str(len(answer.body)))]
    start_response(status_line(answer.status), headers)
    return [answer.body] if with_body else []


def status_line(status: int) -> str:
    """Write a status with its phrase."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} Unknown"


def _text(path: str) -> str:
    """Read the bytes of a path, which WSGI carries one a character, as the text that they are."""
    return path.encode("latin-1").decode(errors="replace")
