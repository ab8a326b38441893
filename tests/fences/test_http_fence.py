"""`HTTPFence`: a service's fence, raised through any client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import requests
from starlette.responses import Response

from tenure import BadToken, Effect, Misuse, OutcomeUnknown, StaleToken, Token, Unavailable
from tenure.fences.http import HTTPFence, client_httpx
from tenure.fences.http.problems import RequestInProgress, problem
from tenure.fences.rule import Mark
from tenure.testing.proxy import free_port
from tests.fences.http_clients import *  # noqa: F403 -- pytest finds fixtures by name
from tests.fences.http_clients import Server


@pytest.fixture(params=["httpx", "fenced httpx", "requests"])
def fence(request: pytest.FixtureRequest, server: Server) -> Iterator[HTTPFence]:
    client: Any
    if request.param == "requests":
        client = requests.Session()
        client.trust_env = False
    elif request.param == "httpx":
        client = httpx.Client(verify=False)
    else:
        client = httpx.Client(transport=client_httpx.FencedTransport(httpx.HTTPTransport(verify=False)))
    with client:
        yield HTTPFence(client, server.url + "/fences/")


def test_r32_a_fence_is_raised_and_read(fence: HTTPFence) -> None:
    assert fence.current("job-1") is None
    fence.raise_to(Token("job-1", 8))
    fence.raise_to(Effect("job-1", 8, 5))  # what an effect yields announces as well as any token
    assert fence.current("job-1") == Mark("job-1", 8, 0)
    with pytest.raises(StaleToken) as refused:
        fence.raise_to(Token("job-1", 7))
    assert refused.value.current == 8
    with pytest.raises(BadToken):
        fence.raise_to(None)  # type: ignore[arg-type]
    with pytest.raises(BadToken, match="lease on the resource"):
        fence.raise_to(Token("job-2", 9), scope="job-1")


def test_r30_a_busy_fence_and_a_failing_service_are_told_apart(fence: HTTPFence, server: Server) -> None:
    echo = HTTPFence(fence._client, server.url + "/echo")
    busy = problem(RequestInProgress("try again"))
    server.answer(Response(busy.body, busy.status, dict(busy.headers)))
    with pytest.raises(Unavailable, match="try again"):
        echo.raise_to(Token("job-1", 8))
    for ask in (echo.raise_to, lambda token: echo.current(token.job)):
        server.answer(Response(status_code=500))
        with pytest.raises(OutcomeUnknown, match="status 500"):
            ask(Token("job-1", 8))


NO_MARKS = [
    b'{"value": "echo"}',
    b"done",
    b"[]",
    b'{"scope": "job-1", "mark": null}',
    b'{"scope": "job-1", "mark": {"job": "job-1", "generation": 7, "sequence": 0}}',
    b'{"scope": "job-1", "mark": {"job": "job-2", "generation": 8, "sequence": 0}}',
]


@pytest.mark.parametrize("body", NO_MARKS)
def test_an_answer_that_tells_no_mark_raised_no_fence(fence: HTTPFence, server: Server, body: bytes) -> None:
    server.answer(Response(body, 200))
    with pytest.raises(Misuse, match="fence"):
        HTTPFence(fence._client, server.url + "/echo").raise_to(Token("job-1", 8))


@pytest.mark.parametrize("scope", ["a/../b", "/", "a//b", "a b", "a%2Fb", "ä", "日本", "?x", "#x", "a;b", "100%"])
def test_any_scope_has_an_address(fence: HTTPFence, scope: str) -> None:
    fence.raise_to(Token("job-1", 8), scope=scope)
    assert fence.current(scope) == Mark("job-1", 8, 0)


@pytest.mark.parametrize("scope", [".", ".."])
def test_but_for_two_that_clients_take_for_steps(fence: HTTPFence, scope: str) -> None:
    with pytest.raises(Misuse, match="cannot stand"):
        fence.raise_to(Token("job-1", 8), scope=scope)


def test_a_fence_asks_for_a_fence_resource(fence: HTTPFence, server: Server) -> None:
    for path in ("/nowhere", "/echo", "/unfenced"):
        wrong = HTTPFence(fence._client, server.url + path)
        with pytest.raises(Misuse, match="fence resource"):
            wrong.raise_to(Token("job-1", 8))
        with pytest.raises(Misuse, match="fence resource"):
            wrong.current("job-1")


def test_r30_a_fence_that_cannot_be_reached_is_unknown(fence: HTTPFence) -> None:
    gone = HTTPFence(fence._client, f"http://127.0.0.1:{free_port()}/fences", timeout=1.0)
    with pytest.raises(OutcomeUnknown) as unknown:
        gone.raise_to(Token("job-1", 8))
    assert unknown.value.__cause__ is not None


def test_a_fence_with_an_asynchronous_client(server: Server) -> None:
    async def play() -> None:
        async with httpx.AsyncClient(verify=False) as client:
            fence = HTTPFence(client, server.url + "/fences")
            await fence.raise_to_async(Token("job-1", 8))
            assert await fence.current_async("job-1") == Mark("job-1", 8, 0)
            with pytest.raises(StaleToken):
                await fence.raise_to_async(Token("job-1", 7))
            with pytest.raises(Misuse, match="_async"):
                fence.raise_to(Token("job-1", 8))
            gone = HTTPFence(client, f"http://127.0.0.1:{free_port()}/fences", timeout=1.0)
            with pytest.raises(OutcomeUnknown):
                await gone.raise_to_async(Token("job-1", 8))
        with httpx.Client(verify=False) as blocking:
            await HTTPFence(blocking, server.url + "/fences").raise_to_async(Token("job-1", 9))

    asyncio.run(play())
    with httpx.Client(verify=False) as client:
        assert HTTPFence(client, server.url + "/fences").current("job-1") == Mark("job-1", 9, 0)
