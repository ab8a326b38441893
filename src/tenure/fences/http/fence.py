"""`HTTPFence`: the fence of a service as a client sees it; what a task declares to have it raised before it runs."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import quote

from tenure.errors import Misuse, OutcomeUnknown, TenureError
from tenure.fences.http.headers import fencing_headers, read_headers
from tenure.fences.http.problems import LONGEST_PROBLEM, error_of, may_be_problem
from tenure.fences.rule import Mark
from tenure.protocol.lease import Effect, Token
from tenure.protocol.names import check_name

_LIBRARIES = {"httpx", "httpcore", "requests", "urllib3"}
_OK, _FAILED = 200, 500


class Client(Protocol):
    """An `httpx.Client`, an `httpx.AsyncClient` or a `requests.Session`."""

    @property
    def request(self) -> Callable[..., Any]:
        """The method that sends one request."""
        ...


class HTTPFence:
    """The fences below `url`, the address of a service's fence resource; raised with a token before the first read.

    `client` brings authentication and pooling. It may be fenced itself or not. A request takes at most `timeout`
    seconds a phase. Raising is harmless to repeat, so a lost answer (OutcomeUnknown) needs no care.
    """

    def __init__(self, client: Client, url: str, *, timeout: float = 5.0) -> None:
        self._client = client
        self._url = url.rstrip("/")
        self._asynchronous = inspect.iscoroutinefunction(client.request)
        follow = "follow_redirects" if hasattr(client, "follow_redirects") else "allow_redirects"
        self._options: dict[str, Any] = {"timeout": timeout, follow: False}

    def raise_to(self, token: Token, *, scope: str | None = None) -> None:
        """Announce a new owner before its first read there (R32); raises StaleToken when a newer one was there.

        `scope` names what is protected, by default the job itself. Raises OutcomeUnknown when the
        service did not answer, Unavailable when it is busy there, Misuse when there is no fence at this address.
        """
        fields = _announcement(token, scope)
        _judge(self._send("PUT", read_headers(fields).scope, fields), fields)

    async def raise_to_async(self, token: Token, *, scope: str | None = None) -> None:
        """Announce a new owner without blocking the loop; the twin of `raise_to`."""
        fields = _announcement(token, scope)
        _judge(await self._send_async("PUT", read_headers(fields).scope, fields), fields)

    def current(self, scope: str) -> Mark | None:
        """Return what the fence of `scope` has met, None when nothing."""
        return _read_mark(self._send("GET", scope, {}))

    async def current_async(self, scope: str) -> Mark | None:
        """Return what the fence of `scope` has met; the twin of `current`."""
        return _read_mark(await self._send_async("GET", scope, {}))

    def _send(self, method: str, scope: str, headers: Mapping[str, str]) -> Any:
        if self._asynchronous:
            raise Misuse("this fence was made with an asynchronous client: use raise_to_async and current_async")
        try:
            return self._client.request(method, self._address(scope), headers=dict(headers), **self._options)
        except Exception as error:
            _raise_translated(error)
            raise

    async def _send_async(self, method: str, scope: str, headers: Mapping[str, str]) -> Any:
        if not self._asynchronous:
            return await asyncio.to_thread(self._send, method, scope, headers)
        try:
            return await self._client.request(method, self._address(scope), headers=dict(headers), **self._options)
        except Exception as error:
            _raise_translated(error)
            raise

    def _address(self, scope: str) -> str:
        if check_name("a fence's scope", scope) in {".", ".."}:
            raise Misuse(f"a scope named {scope!r} cannot stand in an address: clients take it for a step in the path")
        return f"{self._url}/{quote(scope, safe='')}"


def _announcement(token: Token, scope: str | None) -> dict[str, str]:
    return fencing_headers(Token(token.job, token.generation) if isinstance(token, Effect) else token, scope)


def _judge(response: Any, sent: Mapping[str, str]) -> None:
    """Take an answer for a raised fence only if it tells the mark: many an address answers a PUT with 200."""
    status, asked = int(response.status_code), read_headers(sent)
    if status == _OK:
        mark = _read_mark(response)
        if mark is None or mark.job != asked.token.job or mark.generation < asked.token.generation:
            raise Misuse(f"what answered did not raise the fence of {asked.scope!r}: it tells of {mark}")
        return
    error: TenureError | None = None
    if may_be_problem(status, response.headers.get("content-type")) and len(response.content) <= LONGEST_PROBLEM:
        error = error_of(status, response.content, asked.token)
    raise error or _unexpected(status)


def _read_mark(response: Any) -> Mark | None:
    if int(response.status_code) != _OK:
        raise _unexpected(int(response.status_code))
    try:
        mark = json.loads(response.content)["mark"]
        return None if mark is None else Mark(str(mark["job"]), int(mark["generation"]), int(mark["sequence"]))
    except (ValueError, TypeError, LookupError) as error:
        raise Misuse("what answered is no fence resource: its body tells no mark") from error


def _unexpected(status: int) -> TenureError:
    if status >= _FAILED:
        return OutcomeUnknown(f"the service failed with status {status}: the fence may be raised or not; try again")
    return Misuse(f"the service answered with status {status}: is this the address of its fence resource?")


def _raise_translated(error: Exception) -> None:
    """Raise an error of the client library as one of ours; return for any other."""
    if type(error).__module__.partition(".")[0] in _LIBRARIES:
        raise OutcomeUnknown(f"the service could not be reached, or did not answer ({type(error).__name__})") from error
