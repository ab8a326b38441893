"""What goes in and out of a fenced endpoint, free of any framework: the facts of a request, and its answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tenure.errors import Misuse

Pairs = tuple[tuple[str, str], ...]

JSON = "application/json"
_HEADERS_OF_A_CONNECTION = frozenset(
    {"connection", "content-length", "date", "keep-alive", "server", "set-cookie", "transfer-encoding"}
)
_LOWEST, _HIGHEST = 200, 599


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """One request as its service received it.

    `target` is the path with the query, and `headers` are all fields as pairs, so that one that came twice is seen.
    `client` names who sent it, as the service has authenticated it: keys of two clients never meet.
    """

    method: str
    target: str
    headers: Pairs
    body: bytes = field(default=b"", repr=False)
    client: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request; `repeat` says that the request was carried out before and this is what it got."""

    status: int
    headers: Pairs = ()
    body: bytes = field(default=b"", repr=False)
    repeat: bool = False


def make_answer(status: int, body: Any = b"", headers: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> Answer:
    """Make an answer: bytes go out as they are, text as UTF-8, anything else as JSON. Raises Misuse.

    Fields that belong to one connection or to one visitor (``Date``, ``Set-Cookie``) are left out: the answer will be
    given again.
    """
    if type(status) is not int or not _LOWEST <= status <= _HIGHEST:
        raise Misuse(f"{status!r} is no final status: an answer has one from {_LOWEST} to {_HIGHEST}")
    pairs = tuple((name, value) for name, value in _pairs(headers) if name.lower() not in _HEADERS_OF_A_CONNECTION)
    content, kind = _encoded(body)
    if kind and not any(name.lower() == "content-type" for name, _ in pairs):
        pairs = (("Content-Type", kind), *pairs)
    return Answer(status, pairs, content)


def fingerprint(facts: RequestFacts, scope: str) -> str:
    """Digest what makes two requests the same one: method, target, scope and body."""
    return digest(facts.method.upper().encode(), facts.target.encode(), scope.encode(), facts.body)


def digest(*parts: bytes) -> str:
    """Digest several values; where one ends and the next begins counts too."""
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8))
        total.update(part)
    return total.hexdigest()


def _pairs(headers: Mapping[str, str] | Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    return headers.items() if isinstance(headers, Mapping) else headers


def _encoded(body: Any) -> tuple[bytes, str | None]:
    if isinstance(body, bytes):
        return body, None
    if isinstance(body, str):
        return body.encode(), "text/plain; charset=utf-8"
    return json.dumps(body, ensure_ascii=False).encode(), JSON
