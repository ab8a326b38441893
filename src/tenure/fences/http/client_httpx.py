"""httpx behind a fence: a transport that stands in front of the one that a client uses anyway.

    from tenure.fences.http.client_httpx import FencedTransport, fenced, is_repeat

    client = httpx.Client(transport=FencedTransport(), base_url="https://pay.example", timeout=5)
    response = client.post("/charges", json=order, extensions=fenced(job, "charge", scope="account/7"))

A transport and not an `httpx.Auth`: an auth flow is over before redirects are followed, and httpx copies header fields
to wherever they lead, so an auth could neither keep the token from another origin nor a body from being sent on; it
would also take the place of the service's own authentication, and a request that forgot it would leave without a
token. The transport sees each message as it leaves and the timeout that it leaves with. One client, with its pool of
connections, serves all jobs; what belongs to one request goes along with it in `extensions`.

A write without `fenced(...)` and without a token in its own header fields is refused: Misuse. Reads pass untouched.
"""

from __future__ import annotations

from typing import Any

import httpx

from tenure.errors import Misuse
from tenure.fences.http.client import (
    Fenced,
    Holder,
    check_redirect,
    is_repeat,
    longest,
    may_pass_unfenced,
    raise_for_problem,
    refuse_unfenced,
)
from tenure.fences.http.problems import LONGEST_PROBLEM, may_be_problem

__all__ = ["AsyncFencedTransport", "FencedTransport", "fenced", "is_repeat"]

_EXTENSION = "tenure"


def fenced(
    holder: Holder, step: str | None = None, *, key: str | None = None, scope: str | None = None
) -> dict[str, Any]:
    """Make the `extensions` of one logical request: the effect `step` of a job, on `scope` (by default the job).

    A lease without a job has no steps: give it a `key`, as the function of a step is given one. Give what this returns
    to one request. Sent again, that request keeps its number and its key.
    """
    return {_EXTENSION: Fenced(holder, step, key=key, scope=scope)}


class FencedTransport(httpx.BaseTransport):
    """Sends what is fenced through the gate of its job, and raises what the service's fence refuses."""

    def __init__(self, inner: httpx.BaseTransport | None = None) -> None:
        self._inner = httpx.HTTPTransport() if inner is None else inner

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one message; raises LeaseLost, Misuse, and what the service's fence refuses."""
        logical = _logical(request)
        if logical is None:
            return self._judged(request, self._inner.handle_request(request))
        with logical.sending(longest(_phases(request))) as fields:
            marked = _with_fields(request, fields)
            return self._judged(marked, self._inner.handle_request(marked))

    def close(self) -> None:
        """Close the transport behind this one."""
        self._inner.close()

    def _judged(self, sent: httpx.Request, response: httpx.Response) -> httpx.Response:
        if not _must_be_read(sent, response):
            return response
        try:
            _check_moved(sent, response)
            body = b""
            for piece in response.iter_bytes():
                body += piece
                _check_length(body)
        finally:
            response.close()
        raise_for_problem(response.status_code, body, sent.headers)
        return _again(response, body)


class AsyncFencedTransport(httpx.AsyncBaseTransport):
    """The twin of `FencedTransport` for an `httpx.AsyncClient`."""

    def __init__(self, inner: httpx.AsyncBaseTransport | None = None) -> None:
        self._inner = httpx.AsyncHTTPTransport() if inner is None else inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one message; raises LeaseLost, Misuse, and what the service's fence refuses."""
        logical = _logical(request)
        if logical is None:
            return await self._judged(request, await self._inner.handle_async_request(request))
        with logical.sending(longest(_phases(request))) as fields:
            marked = _with_fields(request, fields)
            return await self._judged(marked, await self._inner.handle_async_request(marked))

    async def aclose(self) -> None:
        """Close the transport behind this one."""
        await self._inner.aclose()

    async def _judged(self, sent: httpx.Request, response: httpx.Response) -> httpx.Response:
        if not _must_be_read(sent, response):
            return response
        try:
            _check_moved(sent, response)
            body = b""
            async for piece in response.aiter_bytes():
                body += piece
                _check_length(body)
        finally:
            await response.aclose()
        raise_for_problem(response.status_code, body, sent.headers)
        return _again(response, body)


def _logical(request: httpx.Request) -> Fenced | None:
    """Find the logical request that a message belongs to; a read belongs to none, even if it came of a redirect."""
    found: Fenced | None = request.extensions.get(_EXTENSION)
    if found is not None and not may_pass_unfenced(request.method, {}):
        return found
    if found is None and not may_pass_unfenced(request.method, request.headers):
        raise refuse_unfenced(request.method, str(request.url))
    return None


def _phases(request: httpx.Request) -> list[float | None]:
    timeout: dict[str, float | None] = request.extensions.get("timeout", {})
    return [timeout.get(phase) for phase in ("connect", "write", "read", "pool")]


def _with_fields(request: httpx.Request, fields: dict[str, str]) -> httpx.Request:
    """Copy a request and mark the copy: what httpx builds a redirect from stays clean."""
    headers = httpx.Headers(request.headers)
    headers.update(fields)
    return httpx.Request(
        request.method, request.url, headers=headers, stream=request.stream, extensions=request.extensions
    )


def _must_be_read(sent: httpx.Request, response: httpx.Response) -> bool:
    if may_pass_unfenced(sent.method, {}):
        return False
    return response.has_redirect_location or may_be_problem(response.status_code, response.headers.get("content-type"))


def _check_moved(sent: httpx.Request, response: httpx.Response) -> None:
    check_redirect(sent.method, response.status_code, response.headers.get("location"))


def _check_length(body: bytes) -> None:
    if len(body) > LONGEST_PROBLEM:
        raise Misuse(f"the service refused a request with more than {LONGEST_PROBLEM} bytes of explanation")


def _again(response: httpx.Response, body: bytes) -> httpx.Response:
    """Make a read response one that its client can read."""
    headers = httpx.Headers(response.headers)
    for name in ("content-encoding", "transfer-encoding"):
        headers.pop(name, None)
    return httpx.Response(response.status_code, headers=headers, content=body, extensions=response.extensions)
