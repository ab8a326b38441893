"""The middleware that checks, then acts: what it turns away, and the holes that its page names, shown open."""

from __future__ import annotations

import asyncio
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from pathlib import Path
from typing import Any

import pytest

from tenure import Effect, Token
from tenure.fences.http import fencing_headers
from tenure.fences.http import middleware as module
from tenure.fences.http.asgi import FenceResource
from tenure.fences.http.middleware import AsyncCheckThenActMiddleware, CheckThenActMiddleware
from tenure.fences.http.problems import RequestTooLarge
from tenure.fences.http.wsgi import read_facts
from tests.fences.http import SQLiteValues

SCOPE = "account/7"
Answer = tuple[int, dict[str, str], bytes]


class Site(ABC):
    """An application that knows no fences, behind the middleware; `before` runs between the check and the act."""

    def __init__(self, values: SQLiteValues) -> None:
        self.values = values
        self.before: Callable[[], None] = lambda: None

    def act(self, method: str, body: bytes) -> Answer:
        if method == "GET":
            return 200, {}, str(self.values.read(SCOPE)).encode()
        value = json.loads(body)["value"]
        self.before()
        with self.values.begin() as connection:
            self.values.put(connection, SCOPE, "written" if value in {"fail", "crash"} else value)
        if value == "crash":
            raise SystemExit
        return (503, {}, b"") if value == "fail" else (201, {"Location": "/7"}, b"done")

    def ask(self, generation: int, sequence: int, value: str = "a", key: str = "charge", **more: Any) -> Answer:
        headers = fencing_headers(Effect("job-1", generation, sequence), SCOPE, key)
        return self.send("PUT", headers, json.dumps({"value": value}).encode(), **more)

    @abstractmethod
    def send(self, method: str, headers: dict[str, str], body: bytes = b"", **more: Any) -> Answer: ...


class WSGISite(Site):
    def __init__(self, values: SQLiteValues) -> None:
        super().__init__(values)
        self.app = CheckThenActMiddleware(self._app, values.service, values.begin)

    def _app(self, environ: MutableMapping[str, Any], start_response: Any) -> Iterable[bytes]:
        status, headers, body = self.act(environ["REQUEST_METHOD"], environ["wsgi.input"].read())
        start_response(f"{status} Whatever", [*headers.items(), ("Content-Length", str(len(body)))])
        yield body[:1]
        yield body[1:]

    def send(self, method: str, headers: dict[str, str], body: bytes = b"", **more: Any) -> Answer:
        environ = {"REQUEST_METHOD": method, "PATH_INFO": "/7", "CONTENT_LENGTH": str(len(body))}
        environ |= {"HTTP_" + name.upper().replace("-", "_"): value for name, value in headers.items()}
        started: list[Any] = []
        pieces = self.app({**environ, "wsgi.input": io.BytesIO(body)}, lambda *start: started.extend(start))
        content = b"".join(pieces)
        return int(started[0][:3]), {name.lower(): value for name, value in started[1]}, content


class ASGISite(Site):
    def __init__(self, values: SQLiteValues) -> None:
        super().__init__(values)
        self.app = AsyncCheckThenActMiddleware(self._app, values.service, values.begin)

    async def _app(self, scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        body = (await receive())["body"] if scope["method"] == "PUT" else b""
        try:
            status, headers, content = self.act(scope["method"], body)
        except RuntimeError:
            await send({"type": "http.response.start", "status": 500, "headers": []})
            await send({"type": "http.response.body", "body": b"oh"})
            raise
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": content[:1], "more_body": True})
        await send({"type": "http.response.body", "body": content[1:]})

    def send(self, method: str, headers: dict[str, str], body: bytes = b"", **more: Any) -> Answer:
        kind = more.get("kind", "http")
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": kind, "method": method, "path": "/7", "headers": pairs, "query_string": b""}
        incoming = [{"type": "http.request", "body": body[:3], "more_body": True}]
        incoming.append({"type": "http.request", "body": body[3:], "more_body": False})
        self.sent: list[Any] = []

        async def receive() -> Any:
            return incoming.pop(0)

        async def send(message: Any) -> None:
            self.sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        if kind != "http":
            return 0, {}, b""
        told = {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}
        return self.sent[0]["status"], told, b"".join(message["body"] for message in self.sent[1:])


@pytest.fixture(params=[WSGISite, ASGISite])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    values = SQLiteValues(tmp_path / "values.db", largest=1000)
    values.create()
    made: Site = request.param(values)
    return made


def raise_to(site: Site, generation: int) -> None:
    with site.values.begin() as connection:
        site.values.service.fence.raise_to(connection, Token("job-1", generation), scope=SCOPE)


def test_it_says_what_it_cannot_promise() -> None:
    assert module.__doc__ is not None
    assert "cannot promise" in module.__doc__
    for kind in (CheckThenActMiddleware, AsyncCheckThenActMiddleware):
        assert "CheckThenAct" in kind.__name__
        assert kind.__doc__ is not None
        assert "slips through" in kind.__doc__


def test_it_turns_away_what_is_late_on_arrival_and_repeats_an_answer(site: Site) -> None:
    first = site.ask(7, 1)
    assert (first[0], first[1]["location"], first[2]) == (201, "/7", b"done")
    again = site.ask(7, 1)
    assert (again[0], again[1]["location"], again[2], again[1]["idempotency-replayed"]) == (201, "/7", b"done", "true")
    raise_to(site, 8)
    assert site.ask(7, 2, key="late")[0] == 412
    assert site.send("PUT", {}, b"{}")[0] == 428
    assert site.send("PUT", {}, b"x" * 1001)[0] == 413
    assert site.values.written() == ["a"]


def test_reads_pass_unchecked(site: Site) -> None:
    assert site.send("GET", {}) == (200, {"content-length": "4"} if isinstance(site, WSGISite) else {}, b"None")
    if isinstance(site, ASGISite):
        site.send("", {}, kind="websocket")
        assert site.sent == [{"type": "websocket.close"}]


def test_hole_a_write_that_was_checked_in_time_lands_after_the_raise(site: Site) -> None:
    """The pause is between the check and the act. In one transaction the raise would have had to wait, or have won."""
    site.before = lambda: raise_to(site, 8)
    assert site.ask(7, 1, "late")[0] == 201
    assert site.values.read(SCOPE) == "late"


def test_hole_a_server_that_goes_down_leaves_a_request_that_nobody_answers(site: Site) -> None:
    with pytest.raises(SystemExit):
        site.ask(7, 1, "crash")
    assert site.values.written() == ["written"]
    assert site.ask(7, 1, "crash")[0] == 409
    with site.values.begin() as connection:
        connection.execute("UPDATE tenure_http_responses SET created_at = created_at - 1000")
        assert site.values.service.forget_older_than(connection, 900) == 1
    with pytest.raises(SystemExit):
        site.ask(7, 2, "crash")


@pytest.mark.parametrize("value", ["fail", "boom"])
def test_hole_a_handler_that_fails_after_its_effect_is_run_again(site: Site, value: str) -> None:
    for sequence in (1, 2):
        if value == "fail":
            assert site.ask(7, sequence, value)[0] == 503
        else:
            with pytest.raises(RuntimeError):
                site.ask(7, sequence, value)
    assert site.values.written() == (["written", "written"] if value == "fail" else [])
    if isinstance(site, ASGISite) and value == "boom":
        assert site.sent[0]["status"] == 500  # what the application had sent was passed on


def test_an_answer_too_large_to_keep_is_a_failure(site: Site) -> None:
    site.act = lambda method, body: (201, {}, b"x" * 1001)  # type: ignore[method-assign]
    with pytest.raises(Exception, match="too large"):
        site.ask(7, 1)


def test_a_client_that_goes_away_before_its_request_has_arrived_gets_no_answer(tmp_path: Path) -> None:
    values = SQLiteValues(tmp_path / "values.db")
    values.create()
    resource = FenceResource(values.service, values.begin)
    guarded = AsyncCheckThenActMiddleware(resource, values.service, values.begin)
    scope = {"type": "http", "method": "PUT", "path": "/7", "headers": [], "query_string": b""}
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    for app in (resource, guarded):
        asyncio.run(app(scope, receive, send))
    assert sent == []
    with pytest.raises(TypeError, match="websocket"):
        asyncio.run(resource({**scope, "type": "websocket"}, receive, send))


def test_a_wsgi_server_that_ends_the_input_itself_needs_no_length(tmp_path: Path) -> None:
    """Requests in chunks have none."""
    endless = {"REQUEST_METHOD": "PUT", "PATH_INFO": "/7", "wsgi.input_terminated": True}
    for body, length in ((b"x" * 1000, 1000), (b"", 0)):
        assert len(read_facts({**endless, "wsgi.input": io.BytesIO(body)}, 1000).body) == length
    with pytest.raises(RequestTooLarge):
        read_facts({**endless, "wsgi.input": io.BytesIO(b"x" * 1001)}, 1000)
