"""How much of a body each form of the server's side reads: bounded and whole, whatever its length is said to be."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI
from flask import Flask, request
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from tenure import Effect, Misuse
from tenure.fences.http import Call, RequestFacts, fencing_headers
from tenure.fences.http.asgi import BoundedBody, FenceResource
from tenure.fences.http.bodies import read_body, read_length
from tenure.fences.http.middleware import AsyncCheckThenActMiddleware, CheckThenActMiddleware
from tenure.fences.http.problems import RequestMalformed, RequestTooLarge
from tenure.fences.http.starlette import exception_handlers, fenced, request_facts, response_of
from tenure.fences.http.wsgi import FenceResource as WSGIFenceResource
from tests.fences import sql_ways
from tests.fences.http import SCOPE, SQLiteValues, named_scope, told
from tests.fences.http_wsgi import django_view, flask_app

LARGEST = 1000
PIECE = 100
GOOD = b'{"value": "a"}'
GARBLED = ["abc", "+3", "-3", "1_0", "3.0", "0x3", "3 3", "3, 3", "\u0663", "\xb2"]

Sent = tuple[int, dict[Any, bytes | str], bytes]
FIELDS = fencing_headers(Effect("job-1", 7, 1), SCOPE, "job-1:charge")


class Endless(io.RawIOBase):
    """A body that goes on for as long as somebody reads."""

    def __init__(self) -> None:
        self.given = 0

    def read(self, size: int = -1) -> bytes:
        assert size >= 0, "the whole of it was asked for"
        assert self.given < 10 * LARGEST, "nobody counts"
        self.given += min(size, PIECE)
        return b"x" * min(size, PIECE)


@pytest.fixture
def values(tmp_path: Path) -> SQLiteValues:
    made = SQLiteValues(tmp_path / "values.db", largest=LARGEST)
    made.create()
    return made


# -- ASGI


def starlette_app(values: SQLiteValues) -> Any:
    return values.app()


class Change(BaseModel):
    value: str


def fastapi_app(values: SQLiteValues) -> Any:
    app = FastAPI(exception_handlers=exception_handlers())

    @app.put("/values")
    @fenced(values.service, values.begin, scope=named_scope)
    def write(request: Request, change: Change, call: Call) -> Response:
        values.put(call.connection, call.scope, change.value)
        return told(change.value)

    return BoundedBody(app, LARGEST)


def fastapi_app_by_hand(values: SQLiteValues) -> Any:
    app = FastAPI(exception_handlers=exception_handlers())

    @app.put("/values")
    def write(facts: Annotated[RequestFacts, Depends(request_facts)], scope: str) -> Response:
        with values.begin() as connection, values.service.request(connection, facts, scope=scope) as call:
            if not call.repeat:
                values.put(connection, scope, json.loads(facts.body)["value"])
                call.answer(201)
        return response_of(call.response)

    app.add_middleware(BoundedBody, largest=LARGEST)
    return app


def asgi_middleware(values: SQLiteValues) -> Any:
    async def app(_scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        with values.begin() as connection:
            values.put(connection, SCOPE, json.loads(body)["value"])
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return AsyncCheckThenActMiddleware(app, values.service, values.begin)


def asgi_resource(values: SQLiteValues) -> Any:
    return FenceResource(values.service, values.begin)


ASGI: dict[str, Callable[[SQLiteValues], Any]] = {
    "starlette": starlette_app,
    "fastapi": fastapi_app,
    "fastapi by hand": fastapi_app_by_hand,
    "middleware": asgi_middleware,
    "resource": asgi_resource,
}


def ask_asgi(app: Any, pieces: Iterable[bytes]) -> Sent:
    """Send a request in chunks, which announce no length."""
    headers = [(name.lower().encode(), value.encode()) for name, value in FIELDS.items()]
    headers += [(b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")]
    scope = {"type": "http", "method": "PUT", "headers": headers, "path": "/values", "query_string": b"scope=account/7"}
    coming = iter([*pieces, None] if isinstance(pieces, list) else pieces)
    sent: list[Any] = []

    async def receive() -> Any:
        piece = next(coming)
        return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app({**scope, "root_path": "", "http_version": "1.1"}, receive, send))
    return sent[0]["status"], dict(sent[0]["headers"]), b"".join(message.get("body", b"") for message in sent[1:])


@pytest.mark.parametrize("form", ASGI)
def test_a_body_without_an_end_is_read_up_to_the_bound(values: SQLiteValues, form: str) -> None:
    taken = 0

    def endless() -> Iterable[bytes]:
        nonlocal taken
        while taken < 10 * LARGEST:
            taken += PIECE
            yield b"x" * PIECE

    status, headers, body = ask_asgi(ASGI[form](values), endless())
    assert (status, headers[b"content-type"]) == (413, b"application/problem+json")
    assert json.loads(body)["type"] == "request-too-large"
    assert taken == LARGEST + PIECE
    assert nothing_was_done(values)


@pytest.mark.parametrize("form", [form for form in ASGI if form != "resource"])
@pytest.mark.parametrize("size", [len(GOOD), LARGEST])
def test_a_body_in_chunks_arrives_whole(values: SQLiteValues, form: str, size: int) -> None:
    body = GOOD.rjust(size)
    assert ask_asgi(ASGI[form](values), [body[:7], body[7:8], body[8:]])[0] == 201
    assert values.written() == ["a"]


def test_a_client_that_goes_away_meanwhile_reaches_nobody(values: SQLiteValues) -> None:
    async def app(*_: Any) -> None:
        raise AssertionError

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(_message: Any) -> None:
        raise AssertionError

    asyncio.run(BoundedBody(app, LARGEST)({"type": "http", "method": "PUT"}, receive, send))


def test_what_is_no_request_passes_the_bound(values: SQLiteValues) -> None:
    reached: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reached.append((scope["type"], receive, send))

    asyncio.run(BoundedBody(app, LARGEST)({"type": "lifespan"}, None, None))  # type: ignore[arg-type]  # not asked
    assert reached == [("lifespan", None, None)]


# -- WSGI


def wsgi_middleware(values: SQLiteValues) -> Any:
    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        with values.begin() as connection:
            values.put(connection, SCOPE, json.loads(environ["wsgi.input"].read())["value"])
        start_response("201 Created", [])
        return [b""]

    return CheckThenActMiddleware(app, values.service, values.begin)


def wsgi_resource(values: SQLiteValues) -> Any:
    return WSGIFenceResource(values.service, values.begin)


def django_app(values: SQLiteValues) -> Any:
    """Call the view itself: Django's handler wants settings of its own."""
    way = sql_ways.Django(sql_ways.Database("sqlite", str(values.file)))
    view = django_view(values, way._alias)

    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        from django.core.handlers.wsgi import WSGIRequest

        answer = view(WSGIRequest(environ))
        start_response(f"{answer.status_code} Whatever", list(answer.items()))
        way.connect().close()
        return [answer.content]

    return app


WSGI: dict[str, Callable[[SQLiteValues], Any]] = {
    "flask": flask_app,
    "django": django_app,
    "middleware": wsgi_middleware,
    "resource": wsgi_resource,
}


def ask_wsgi(app: Any, source: Any, given: dict[str, Any]) -> Sent:
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "PUT",
        "PATH_INFO": "/values",
        "QUERY_STRING": "scope=account/7",
        "SCRIPT_NAME": "",
    }
    environ |= {"SERVER_NAME": "127.0.0.1", "SERVER_PORT": "80", "wsgi.url_scheme": "http", "wsgi.input": source}
    environ |= {"HTTP_" + name.upper().replace("-", "_"): value for name, value in FIELDS.items()}
    started: list[Any] = []
    answer = app(environ | {"CONTENT_TYPE": "application/json"} | given, lambda *start: started.extend(start))
    return int(started[0][:3]), {name.lower(): value for name, value in started[1]}, b"".join(answer)


@pytest.mark.parametrize("form", [form for form in WSGI if form != "django"])
def test_a_chunked_body_without_an_end_is_read_up_to_the_bound(values: SQLiteValues, form: str) -> None:
    """Django reads what has no length for an empty body."""
    source = Endless()
    chunked = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
    refused(ask_wsgi(WSGI[form](values), source, chunked), 413, "request-too-large")
    assert source.given == LARGEST + 1
    assert nothing_was_done(values)


@pytest.mark.parametrize("form", WSGI)
@pytest.mark.parametrize("length", [str(LARGEST + 1), "9" * 5000])
def test_what_is_announced_too_large_is_not_read(values: SQLiteValues, form: str, length: str) -> None:
    source = Endless()
    refused(ask_wsgi(WSGI[form](values), source, {"CONTENT_LENGTH": length}), 413, "request-too-large")
    assert source.given == 0
    assert nothing_was_done(values)


@pytest.mark.parametrize("form", WSGI)
@pytest.mark.parametrize("length", GARBLED)
def test_r37_a_length_that_is_no_number_is_refused(values: SQLiteValues, form: str, length: str) -> None:
    source = Endless()
    refused(ask_wsgi(WSGI[form](values), source, {"CONTENT_LENGTH": length}), 400, "request-malformed")
    assert source.given == 0
    assert nothing_was_done(values)


@pytest.mark.parametrize("form", WSGI)
def test_half_a_body_is_no_request(values: SQLiteValues, form: str) -> None:
    """Its client went away, and half an amount is one, too."""
    half = {"CONTENT_LENGTH": str(len(GOOD) + 1)}
    refused(ask_wsgi(WSGI[form](values), io.BytesIO(GOOD), half), 400, "request-malformed")
    assert nothing_was_done(values)


@pytest.mark.parametrize("form", [form for form in WSGI if form != "django"])
def test_a_body_in_chunks_is_not_cut_off_at_what_else_was_announced(values: SQLiteValues, form: str) -> None:
    given = {"CONTENT_LENGTH": str(len(GOOD)), "wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
    refused(ask_wsgi(WSGI[form](values), io.BytesIO(GOOD + b" "), given), 400, "request-malformed")
    assert nothing_was_done(values)


@pytest.mark.parametrize("form", [form for form in WSGI if form != "resource"])
@pytest.mark.parametrize("size", [len(GOOD), LARGEST])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_arrives_whole(values: SQLiteValues, form: str, size: int, chunked: bool) -> None:
    given = {"wsgi.input_terminated": True} if chunked and form != "django" else {"CONTENT_LENGTH": f"0{size}"}
    assert ask_wsgi(WSGI[form](values), io.BytesIO(GOOD.rjust(size)), given)[0] == 201
    assert values.written() == ["a"]


@pytest.mark.parametrize("early", ["get_data", "form"])
def test_a_body_that_flask_has_read_before_counts_or_is_missed(values: SQLiteValues, early: str) -> None:
    app: Flask = flask_app(values)
    app.testing = True
    app.before_request(lambda: (request.get_data() if early == "get_data" else request.form) and None)
    form = b"--b\r\nContent-Disposition: form-data; name=value\r\n\r\na\r\n--b--\r\n"
    body, kind = (GOOD, "application/json") if early == "get_data" else (form, "multipart/form-data; boundary=b")
    given = {"CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": kind}
    if early == "get_data":
        assert ask_wsgi(app, io.BytesIO(body), given)[0] == 201
        return
    with pytest.raises(Misuse, match="read before the fenced view"):
        ask_wsgi(app, io.BytesIO(body), given)
    assert nothing_was_done(values)


def test_djangos_own_bound_counts_too(values: SQLiteValues) -> None:
    app = django_app(values)
    from django.test import override_settings

    body = GOOD.rjust(500)
    with override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=499):
        answer = ask_wsgi(app, io.BytesIO(body), {"CONTENT_LENGTH": "500"})
    refused(answer, 413, "request-too-large")
    assert "at most 499 bytes" in json.loads(answer[2])["detail"]
    assert nothing_was_done(values)
    with override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=None):
        assert ask_wsgi(app, io.BytesIO(body), {"CONTENT_LENGTH": "500"})[0] == 201


def test_what_django_received_without_a_length_is_bounded_too(values: SQLiteValues) -> None:
    """An ASGI server hands over what came in chunks as a file."""
    way = sql_ways.Django(sql_ways.Database("sqlite", str(values.file)))
    view = django_view(values, way._alias)
    from django.core.handlers.asgi import ASGIRequest
    from django.test import override_settings

    headers = [(name.lower().encode(), value.encode()) for name, value in FIELDS.items()]
    scope = {"type": "http", "method": "PUT", "headers": headers, "path": "/values", "query_string": b"scope=account/7"}
    for limit, largest in ((500, 500), (None, LARGEST)):
        with override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=limit):
            answer = view(ASGIRequest(scope, io.BytesIO(GOOD.rjust(LARGEST + 1))))
        refused(
            (answer.status_code, {"content-type": answer["Content-Type"]}, answer.content), 413, "request-too-large"
        )
        assert f"at most {largest} bytes" in json.loads(answer.content)["detail"]
        assert nothing_was_done(values)
    assert view(ASGIRequest(scope, io.BytesIO(GOOD.rjust(LARGEST)))).status_code == 201
    way.connect().close()


# -- their parts


def test_a_source_may_give_less_than_it_was_asked_for() -> None:
    source = Endless()
    assert read_body(source, LARGEST - 1, LARGEST, endless=False) == b"x" * (LARGEST - 1)
    assert source.given == LARGEST - 1


@pytest.mark.parametrize(("text", "length"), [(None, 0), ("", 0), ("0", 0), ("007", 7), (" 7\t", 7), ("1000", 1000)])
def test_a_length_in_digits_is_read(text: str | None, length: int) -> None:
    assert read_length(text, LARGEST) == length


@pytest.mark.parametrize("text", GARBLED)
def test_a_length_in_anything_else_is_not(text: str) -> None:
    with pytest.raises(RequestMalformed, match="Content-Length"):
        read_length(text, LARGEST)
    with pytest.raises(RequestTooLarge, match="at most 1000 bytes"):
        read_length("1001", LARGEST)


def refused(answer: Sent, status: int, problem: str) -> None:
    told_status, headers, body = answer
    assert (told_status, headers["content-type"]) == (status, "application/problem+json")
    assert json.loads(body)["type"] == problem


def nothing_was_done(values: SQLiteValues) -> bool:
    with values.begin() as connection:
        stored = connection.execute("SELECT COUNT(*) FROM tenure_http_responses").fetchone()[0]
        written = connection.execute("SELECT COUNT(*) FROM log").fetchone()[0]
        return (stored, written, values.service.fence.current(connection, SCOPE)) == (0, 0, None)
