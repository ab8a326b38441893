"""What both HTTP clients share: one logical request of a job, the gate before it, and what its answer means.

What holds: every write carries the token, its number and its key; none is sent once the lease has less time left than
the request may take (R19); one that is sent again, after a lost answer, keeps number and key. A refusal comes back as
the error of the rule, not as a status code.

What does not: bytes that have left cannot be called back, so a request that passed the gate may still arrive late; the
service's fence is what refuses it then. A timeout of these libraries is one for each phase (connect, write, read): the
longest of them is what the gate compares. Redirects are not followed with a write: see `check_redirect`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from tenure.errors import BadToken, Misuse
from tenure.fences.http.headers import REPLAYED, TOKEN, fencing_headers, read_headers
from tenure.fences.http.problems import error_of
from tenure.protocol.lease import Token

_HARMLESS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_MOVED = frozenset({301, 302, 307, 308})


class Holder(Protocol):
    """Whoever can pass the gate of a lease: a `Job`, a `Hold`, a `NamedLease`, a `Lease`."""

    def effect(self, seconds: float = 0.0) -> AbstractContextManager[Token]:
        """Pass the gate before an effect that may take `seconds`; yields a numbered token, raises LeaseLost."""
        ...


class Answered(Protocol):
    """An answer of either library."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The header fields."""
        ...


class Fenced:
    """One logical request: numbered when it is first sent; sent again, it keeps its number and its key.

    The key is that of the job's `step`, or `key` as given: a lease alone has none, for its name lives on after the
    effect that it was taken for.
    """

    def __init__(
        self, holder: Holder, step: str | None = None, *, key: str | None = None, scope: str | None = None
    ) -> None:
        self._holder = holder
        self._scope = scope
        self._key = _key(holder, step, key)
        self._token: Token | None = None
        self._lock = threading.Lock()

    @contextmanager
    def sending(self, seconds: float) -> Iterator[dict[str, str]]:
        """Pass the gate, stay in it while the request is under way, and yield the header fields; raises LeaseLost."""
        with self._holder.effect(seconds) as token:
            with self._lock:
                if self._token is None:
                    self._token = token
            yield fencing_headers(self._token, self._scope, self._key)


def is_repeat(response: Answered) -> bool:
    """Tell whether the answer is that of an earlier, equal request: nothing was done again."""
    return response.headers.get(REPLAYED) == "true"


def may_pass_unfenced(method: str, headers: Mapping[str, str]) -> bool:
    """Tell whether a request needs no `Fenced`: it only reads, or carries a token that was put there by hand."""
    return method.upper() in _HARMLESS or any(name.lower() == TOKEN.lower() for name in headers)


def refuse_unfenced(method: str, url: str) -> Misuse:
    """Say that a write was not sent, because no token goes with it (R37)."""
    return Misuse(
        f"a {method} to {_bare(url)} carries no fencing token: give the request `fenced(job, step)`, or use another"
        " client for what needs no fence"
    )


def longest(phases: Iterable[float | None]) -> float:
    """Return the longest of a request's timeouts; one without a timeout could outlast any lease and is refused."""
    seconds = 0.0
    for phase in phases:
        if phase is None:
            raise Misuse("a fenced request needs a timeout for every phase: without one it could outlast its lease")
        seconds = max(seconds, phase)
    return seconds


def check_redirect(method: str, status: int, location: str | None) -> None:
    """Refuse to go on where a write was sent elsewhere; raises Misuse.

    Followed as a GET (301, 302) the write would silently not happen; sent on (307, 308), its body and token would go
    to a place that its sender did not name, where another fence guards, or none. A 303 leads to what the write has
    made, and is followed by a plain GET that carries none of this.
    """
    if status in _MOVED and location is not None and method.upper() not in _HARMLESS:
        raise Misuse(
            f"the service answered a fenced {method} with {status} and another address, {_bare(location)}: nothing was"
            " sent there; address the service where it is"
        )


def raise_for_problem(status: int, body: bytes, sent: Mapping[str, str]) -> None:
    """Raise the error that a problem stands for; `sent` are the header fields of the request."""
    try:
        token = read_headers(sent).token
    except BadToken:
        token = Token("?", 0)
    error = error_of(status, body, token)
    if error is not None:
        raise error


def _key(holder: Holder, step: str | None, key: str | None) -> str:
    if (step is None) == (key is None):
        raise Misuse("name what the request does: the step of a job, or a key of your own")
    if key is not None:
        return key
    name: Callable[[Any], str] | None = getattr(holder, "idempotency_key", None)
    if name is None:
        raise Misuse(f"a {type(holder).__name__} knows no steps: give the request a key of its own, key=...")
    return name(step)


def _bare(url: str) -> str:
    return url.partition("?")[0]
