"""requests behind a fence: an adapter that is mounted on a session, and what each request brings along for it.

    from tenure.fences.http.client_requests import FencedAdapter, fenced, is_repeat

    session = requests.Session()
    session.mount("https://pay.example/", FencedAdapter())
    response = session.post("https://pay.example/charges", json=order, auth=fenced(job, "charge"), timeout=5)

An adapter and not only a `requests` auth: an auth is called when a request is prepared and sees neither the moment of
sending nor the timeout. `fenced(...)` is an auth because that is the one way to hand something to the adapter with a
single request; the service's own authentication goes inside it: ``fenced(job, "charge", auth=("user", "secret"))``.

Under the adapter's prefix a write without `fenced(...)` and without a token in its own header fields is refused:
Misuse. The adapter never repeats by itself (R27): a repeat that waits for its turn would pass no gate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase, HTTPBasicAuth

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

__all__ = ["FencedAdapter", "fenced", "is_repeat"]

_ATTRIBUTE = "_tenure_fenced"

Authenticate = Callable[[requests.PreparedRequest], requests.PreparedRequest]


class fenced(AuthBase):  # noqa: N801 -- it reads as the function that it is to its callers
    """Mark one logical request: the effect `step` of a job, on `scope` (by default the job).

    A lease without a job has no steps: give it a `key`, as the function of a step is given one. Give the mark to one
    request. Sent again, that request keeps its number and its key. `auth` authenticates at the service.
    """

    def __init__(
        self,
        holder: Holder,
        step: str | None = None,
        *,
        key: str | None = None,
        scope: str | None = None,
        auth: Authenticate | tuple[str, str] | None = None,
    ) -> None:
        self._logical = Fenced(holder, step, key=key, scope=scope)
        self._auth = HTTPBasicAuth(*auth) if isinstance(auth, tuple) else auth

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Hand the mark to the adapter together with the prepared request."""
        if self._auth is not None:
            request = self._auth(request)
        setattr(request, _ATTRIBUTE, self._logical)
        return request


class FencedAdapter(HTTPAdapter):
    """Sends what is fenced through the gate of its job, and raises what the service's fence refuses."""

    def __init__(self, pool_connections: int = 10, pool_maxsize: int = 10, *, pool_block: bool = False) -> None:
        super().__init__(pool_connections, pool_maxsize, max_retries=0, pool_block=pool_block)

    def send(  # noqa: PLR0917 -- the signature is that of requests
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: FBT001, FBT002 -- the signature is that of requests
        timeout: Any = None,
        verify: bool | str = True,  # noqa: FBT001, FBT002 -- the same
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Send one message; raises LeaseLost, Misuse, and what the service's fence refuses."""

        def forward(message: requests.PreparedRequest) -> requests.Response:
            return super(FencedAdapter, self).send(message, stream, timeout, verify, cert, proxies)

        method = request.method or ""
        if may_pass_unfenced(method, {}):
            return forward(request)
        logical: Fenced | None = getattr(request, _ATTRIBUTE, None)
        if logical is None:
            if not may_pass_unfenced(method, _text(request.headers)):
                raise refuse_unfenced(method, request.url or "")
            return _judged(request, forward(request))
        with logical.sending(longest(_phases(timeout))) as fields:
            marked = request.copy()  # what requests builds a redirect from stays clean
            marked.headers.update(fields)
            return _judged(marked, forward(marked))


def _phases(timeout: Any) -> tuple[float | None, float | None]:
    """Read connect and read timeouts from any of the forms that requests takes."""
    if isinstance(timeout, tuple):
        connect, read = timeout
        return connect, read
    if hasattr(timeout, "connect_timeout"):
        raise Misuse("give a fenced request its timeout as seconds or as (connect, read), not as an object of urllib3")
    return timeout, timeout


def _judged(sent: requests.PreparedRequest, response: requests.Response) -> requests.Response:
    try:
        check_redirect(sent.method or "", response.status_code, response.headers.get("location"))
        if may_be_problem(response.status_code, response.headers.get("content-type")):
            raise_for_problem(response.status_code, _read(response), _text(sent.headers))
    except BaseException:
        response.close()
        raise
    return response


def _read(response: requests.Response) -> bytes:
    """Read a short body and leave it with the response, for whoever reads it next."""
    body = b""
    for piece in response.iter_content(8192):
        body += piece
        if len(body) > LONGEST_PROBLEM:
            raise Misuse(f"the service refused a request with more than {LONGEST_PROBLEM} bytes of explanation")
    response._content = body  # noqa: SLF001 -- what its own `content` would have kept
    return body


def _text(headers: Mapping[str, str | bytes]) -> dict[str, str]:
    return {name: value.decode("latin-1") if isinstance(value, bytes) else value for name, value in headers.items()}
