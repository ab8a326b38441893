"""One fenced endpoint in Starlette, FastAPI, Flask and Django, on real servers, spoken to in raw HTTP."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from tenure import Effect, Misuse, Token
from tenure.fences.http import Call, FencedService, RequestFacts, fencing_headers
from tenure.fences.http.asgi import FenceResource
from tenure.fences.http.starlette import exception_handlers, fenced, request_facts, response_of
from tenure.testing.proxy import free_port
from tests.fences.http import SQLiteValues, Uvicorn, named_scope, told
from tests.support.processes import Processes, wait_for

LARGEST = 100_000
SCOPE = "account/7"
TARGET = "/values?scope=account/7"


class Change(BaseModel):
    value: str


def fastapi_app(values: SQLiteValues) -> FastAPI:
    """The endpoint by decorator, and once more by hand with a dependency."""
    app = FastAPI(exception_handlers=exception_handlers())

    @app.put("/values")
    @fenced(values.service, values.begin, scope=named_scope)
    def write(request: Request, change: Change, call: Call, scope: str) -> Response:
        assert scope == call.scope
        values.put(call.connection, scope, change.value)
        return told(change.value)

    @app.put("/by-hand")
    def by_hand(facts: Annotated[RequestFacts, Depends(request_facts)], change: Change, scope: str) -> Response:
        with values.begin() as connection, values.service.request(connection, facts, scope=scope) as call:
            if not call.repeat:
                values.put(connection, scope, change.value)
                call.answer(201, {"value": change.value}, {"Location": "/values"})
        return response_of(call.response)

    app.mount("/fences", FenceResource(values.service, values.begin))
    return app


@dataclass
class Answer:
    status: int
    pairs: list[tuple[str, str]]
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        return dict(self.pairs)

    def fields(self, name: str) -> list[str]:
        return [value for found, value in self.pairs if found == name]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> str:
        assert self.headers["content-type"] == "application/problem+json"
        assert self.json["status"] == self.status
        kind: str = self.json["type"]
        return kind


@dataclass
class Service:
    """A served application, spoken to byte by byte."""

    port: int
    values: SQLiteValues
    target: str = TARGET

    def send(self, headers: dict[str, str] | list[tuple[str, str]], body: bytes = b'{"value": "a"}') -> Answer:
        return self.ask("PUT", self.target, headers, body)

    def send_in_chunks(self, headers: dict[str, str], *chunks: bytes) -> Answer:
        body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))
        return self.ask("PUT", self.target, headers, body, "Transfer-Encoding: chunked")

    def ask(self, method: str, target: str, headers: Any = (), body: bytes = b"", length: str = "") -> Answer:
        pairs = headers.items() if isinstance(headers, dict) else headers
        lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", "Connection: close"]
        lines += ["Content-Type: application/json", length or f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in pairs]
        with socket.create_connection(("127.0.0.1", self.port), 30) as connection:
            connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
            with connection.makefile("rb") as stream:
                return _read(stream.read())


def _read(answer: bytes) -> Answer:
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *fields = head.decode("latin-1").split("\r\n")
    pairs = [(name.lower(), value.strip()) for name, _, value in (field.partition(":") for field in fields)]
    return Answer(int(first.split()[1]), pairs, body)


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Service]]:
    """Start all four at once; each has a file of its own, which every test finds as the last one left it."""
    folder = tmp_path_factory.mktemp("services")
    values = {
        name: SQLiteValues(folder / name, largest=LARGEST) for name in ("starlette", "fastapi", "flask", "django")
    }
    ports = {}
    with ExitStack() as stack:
        processes = stack.enter_context(Processes(folder))
        for name, each in values.items():
            each.create()
            if name in {"flask", "django"}:
                ports[name] = free_port()
                processes.python("-m", "tests.fences.http_wsgi", name, each.file, str(ports[name]))
            else:
                app = each.app() if name == "starlette" else fastapi_app(each)
                ports[name] = stack.enter_context(Uvicorn(app)).port
        for port in ports.values():
            wait_for(lambda port=port: _listens(port), 30, f"a server on port {port}")  # type: ignore[misc]
        yield {name: Service(ports[name], each) for name, each in values.items()}


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(params=["starlette", "fastapi", "fastapi by hand", "flask", "django"])
def service(request: pytest.FixtureRequest, services: dict[str, Service]) -> Service:
    found = services[request.param.split()[0]]
    with found.values.begin() as connection:
        for table in ("things", "log", "tenure_fences", "tenure_http_responses"):
            connection.execute(f"DELETE FROM {table}")
    target = TARGET.replace("/values", "/by-hand") if "hand" in request.param else TARGET
    return Service(found.port, found.values, target)


def fields(generation: int, sequence: int, key: str = "job-1:charge", scope: str = SCOPE) -> dict[str, str]:
    return fencing_headers(Effect("job-1", generation, sequence), scope, key)


def test_a_request_is_carried_out_and_its_repeat_gets_the_same_answer(service: Service) -> None:
    first = service.send(fields(7, 1))
    assert (first.status, first.json, first.headers["location"]) == (201, {"value": "a"}, "/values")
    assert "idempotency-replayed" not in first.headers
    again = service.send(fields(7, 1))
    assert (again.status, again.body, again.headers["location"]) == (201, first.body, "/values")
    assert again.headers["content-type"] == first.headers["content-type"]
    assert again.fields("idempotency-replayed") == ["true"]
    assert service.values.written() == ["a"]


def test_r40_the_next_owner_gets_the_answer_that_the_last_one_did_not(service: Service) -> None:
    first = service.send(fields(7, 3))
    taken_over = service.send(fields(8, 1))
    assert (taken_over.status, taken_over.body) == (201, first.body)
    assert service.values.written() == ["a"]
    assert service.send(fields(7, 4, "job-1:other")).problem == "stale-fencing-token"


def test_r31_a_stale_request_is_refused_and_told_what_was_met(service: Service) -> None:
    service.send(fields(8, 1))
    stale = service.send(fields(7, 9, "job-1:late"), b'{"value": "late"}')
    assert (stale.status, stale.problem) == (412, "stale-fencing-token")
    assert (stale.json["job"], stale.json["generation"], stale.json["current"]) == ("job-1", 7, 8)
    assert stale.headers["cache-control"] == "no-store"
    assert service.values.written() == ["a"]


def test_r33_a_write_that_was_overtaken_is_refused(service: Service) -> None:
    service.send(fields(7, 3))
    late = service.send(fields(7, 2, "job-1:second"), b'{"value": "late"}')
    assert (late.status, late.problem) == (412, "out-of-sequence")
    assert (late.json["sequence"], late.json["highest"]) == (2, 3)
    assert service.values.written() == ["a"]


def test_a_key_belongs_to_one_request(service: Service) -> None:
    service.send(fields(7, 1))
    for sequence in (1, 2):
        other = service.send(fields(7, sequence), b'{"value": "b"}')
        assert (other.status, other.problem) == (422, "idempotency-key-reused")
    assert service.values.written() == ["a"]
    assert service.send(fields(7, 2, "job-1:second"), b'{"value": "b"}').status == 201  # the refusals moved no mark


def test_what_raised_is_rolled_back_and_can_be_sent_again(service: Service) -> None:
    for _ in range(2):
        assert service.send(fields(7, 1), b'{"value": "boom"}').status == 500
        assert service.values.written() == []
    assert service.send(fields(7, 1)).status == 201
    assert service.values.written() == ["a"]


@pytest.mark.parametrize("service", ["starlette", "fastapi", "flask", "django"], indirect=True)
def test_an_answer_that_says_that_it_failed_is_rolled_back_and_not_kept(service: Service) -> None:
    for _ in range(2):
        failed = service.send(fields(7, 1), b'{"value": "fail"}')
        assert (failed.status, failed.json) == (503, {"value": "fail"})
        assert failed.fields("idempotency-replayed") == []
        assert service.values.written() == []
    assert service.send(fields(7, 1)).status == 201


def test_r36_a_request_cannot_choose_another_fence_than_its_endpoints(service: Service) -> None:
    refused = service.send(fields(7, 1, scope="account/8"))
    assert (refused.status, refused.problem) == (400, "fencing-token-malformed")
    assert service.values.written() == []


@pytest.mark.parametrize(
    "name", ["Fencing-Token", "Fencing-Job", "Fencing-Scope", "Fencing-Sequence", "Idempotency-Key"]
)
def test_r37_a_request_without_a_field_is_refused(service: Service, name: str) -> None:
    given = fields(7, 1)
    del given[name]
    refused = service.send(given)
    assert (refused.status, refused.problem) == (428, "fencing-token-missing")
    assert name in refused.json["detail"]
    assert service.values.written() == []


GARBLED = {
    "no number": ("Fencing-Token", "eight"),
    "empty": ("Fencing-Token", ""),
    "negative": ("Fencing-Token", "-8"),
    "a float": ("Fencing-Token", "8.0"),
    "16 digits": ("Fencing-Token", "1" * 16),
    "one that nobody issued": ("Fencing-Token", "9" * 15),
    "sequence 0": ("Fencing-Sequence", "0"),
    "a sequence of 16 digits": ("Fencing-Sequence", "1" * 16),
    "a name in Latin-1": ("Fencing-Job", "\xe4"),
    "a name in raw UTF-8": ("Fencing-Job", "\xc3\xa4"),
    "a name in an older encoding": ("Fencing-Job", "%E4"),
    "a name spelled otherwise": ("Fencing-Scope", "account%2F7"),
    "a name that is too long": ("Fencing-Job", "x" * 201),
    "a bare key": ("Idempotency-Key", "job-1:charge"),
    "a key in Latin-1": ("Idempotency-Key", '"\xe4"'),
    "a key that is too long": ("Idempotency-Key", '"' + "x" * 4802 + '"'),
}


@pytest.mark.parametrize("case", GARBLED)
def test_r37_a_garbled_request_is_refused(service: Service, case: str) -> None:
    name, value = GARBLED[case]
    refused = service.send(fields(7, 1) | {name: value})
    assert (refused.status, refused.problem) == (400, "fencing-token-malformed")
    assert service.values.written() == []


@pytest.mark.parametrize(
    "name", ["Fencing-Token", "Fencing-Job", "Fencing-Scope", "Fencing-Sequence", "Idempotency-Key"]
)
def test_r37_a_field_that_comes_twice_is_refused(service: Service, name: str) -> None:
    given = fields(7, 1)
    refused = service.send([*given.items(), (name, given[name])])
    assert (refused.status, refused.problem) == (400, "fencing-token-malformed")
    assert service.values.written() == []


def test_a_request_that_is_too_large_is_refused(service: Service) -> None:
    body = json.dumps({"value": "x" * LARGEST}).encode()
    refused = service.send(fields(7, 1), body)
    assert (refused.status, refused.problem) == (413, "request-too-large")
    assert service.values.written() == []


@pytest.mark.parametrize("service", ["starlette", "fastapi", "fastapi by hand", "flask"], indirect=True)
def test_a_request_in_chunks_is_the_same_request(service: Service) -> None:
    """The server under Django takes none."""
    first = service.send_in_chunks(fields(7, 1), b'{"val', b'ue": "a"}')
    assert (first.status, first.json) == (201, {"value": "a"})
    again = service.send(fields(7, 1))
    assert (again.status, again.fields("idempotency-replayed")) == (201, ["true"])
    assert service.values.written() == ["a"]


def test_r32_the_fence_is_raised_by_put_and_told_by_get(service: Service) -> None:
    address = "/fences/account%2F7"
    assert service.ask("GET", address).json == {"scope": SCOPE, "mark": None}
    raised = service.ask("PUT", address, fencing_headers(Token("job-1", 8), SCOPE))
    told = {"scope": SCOPE, "mark": {"job": "job-1", "generation": 8, "sequence": 0}}
    assert (raised.status, raised.json) == (200, told)
    assert service.ask("GET", address).json == told
    assert service.send(fields(7, 1)).problem == "stale-fencing-token"
    older = service.ask("PUT", address, fencing_headers(Token("job-1", 7), SCOPE))
    assert (older.status, older.problem, older.json["current"]) == (412, "stale-fencing-token", 8)


def test_the_fence_resource_answers_as_http_asks(service: Service) -> None:
    address = "/fences/account%2F7"
    assert service.ask("PUT", address).problem == "fencing-token-missing"
    elsewhere = service.ask("PUT", address, fencing_headers(Token("job-1", 8), "account/8"))
    assert elsewhere.problem == "fencing-token-malformed"
    refused = service.ask("DELETE", address)
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD, PUT")
    assert service.ask("GET", "/fences/" + "x" * 201).status == 404
    head = service.ask("HEAD", address)
    assert (head.status, head.body) == (200, b"")
    assert service.ask("PUT", address, fencing_headers(Token("job-1", 8), SCOPE), b"x" * (LARGEST + 1)).status == 413


# -- a handler of one colour and transactions of the other


async def never_async(request: Request, call: Call) -> Response:
    raise AssertionError("it is not to be called")


def never(request: Request, call: Call) -> Response:
    raise AssertionError("it is not to be called")


@pytest.mark.parametrize(
    ("handler", "begin", "why"),
    [
        (never_async, lambda: ExitStack(), "write the handler with `def`"),
        (never, lambda: AsyncExitStack(), "write the handler with `async def`"),
    ],
)
def test_a_handler_says_which_transactions_it_needs(handler: Any, begin: Callable[[], Any], why: str) -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    headers = [(name.lower().encode(), value.encode()) for name, value in fields(7, 1).items()]
    scope = {"type": "http", "method": "PUT", "path": "/values", "headers": headers}
    endpoint = fenced(FencedService("sqlite"), begin)(handler)

    async def ask() -> Response:
        return await endpoint(request=Request(scope, receive))

    with pytest.raises(Misuse, match=why):
        asyncio.run(ask())
