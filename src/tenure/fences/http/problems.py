"""Refusals as HTTP answers and back again: the problem types (RFC 9457), their status codes, the errors they stand for.

| type                    | status | error             | what the client does                                |
|-------------------------|--------|-------------------|-----------------------------------------------------|
| fencing-token-missing   | 428    | MissingHeader     | sends the header field                              |
| fencing-token-malformed | 400    | BadToken          | sends a token that can be judged                    |
| stale-fencing-token     | 412    | StaleToken        | stops, for good                                     |
| out-of-sequence         | 412    | OutOfSequence     | stops: applied before, or overtaken                 |
| request-in-progress     | 409    | RequestInProgress | asks again after a moment                           |
| idempotency-key-reused  | 422    | KeyReused         | is mended: one key, two different requests          |
| request-too-large       | 413    | RequestTooLarge   | sends less                                          |
| request-malformed       | 400    | RequestMalformed  | sends a body as long as its Content-Length says     |

The IETF draft of `Idempotency-Key` answers a missing key with 400; here it is 428 like any other missing precondition.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tenure.errors import BadToken, Misuse, OutOfSequence, StaleToken, TenureError, Unavailable
from tenure.fences.http.headers import MissingHeader
from tenure.fences.http.messages import Answer, make_answer
from tenure.protocol.lease import Effect, Token

PROBLEM_JSON = "application/problem+json"
LONGEST_PROBLEM = 65_536
"""The longest problem in bytes that a client reads."""


class RequestInProgress(Unavailable):
    """The same request, or another one under the same fence, is being carried out; this one did nothing: try again."""


class KeyReused(Misuse):
    """One idempotency key came with two different requests; the second one did nothing."""


class RequestTooLarge(Misuse):
    """A request is larger than its endpoint takes; it did nothing."""


class RequestMalformed(Misuse):
    """A request's body is not what its header fields announce; it did nothing."""


@dataclass(frozen=True, slots=True)
class _Problem:
    name: str
    status: int
    error: type[TenureError]
    title: str


_PROBLEMS = (
    _Problem("fencing-token-missing", 428, MissingHeader, "A fencing token is required"),
    _Problem("fencing-token-malformed", 400, BadToken, "The fencing token cannot be judged"),
    _Problem("stale-fencing-token", 412, StaleToken, "The fencing token is stale"),
    _Problem("out-of-sequence", 412, OutOfSequence, "The write was applied before, or overtaken"),
    _Problem("request-in-progress", 409, RequestInProgress, "A request like this is being carried out"),
    _Problem("idempotency-key-reused", 422, KeyReused, "The idempotency key belongs to another request"),
    _Problem("request-too-large", 413, RequestTooLarge, "The request is too large"),
    _Problem("request-malformed", 400, RequestMalformed, "The request cannot be read"),
)

REFUSALS = tuple(problem.error for problem in _PROBLEMS)
"""The errors that a fenced endpoint answers with a problem; anything else is a failure of the service."""


def problem(error: TenureError) -> Answer:
    """Answer a request with the problem that `error` stands for; only for `REFUSALS`."""
    kind = next(kind for kind in _PROBLEMS if isinstance(error, kind.error))
    body = {"type": kind.name, "title": kind.title, "status": kind.status, "detail": str(error), **_members(error)}
    headers = {"Content-Type": PROBLEM_JSON, "Cache-Control": "no-store"}
    if kind.error is RequestInProgress:
        headers["Retry-After"] = "1"
    return make_answer(kind.status, json.dumps(body).encode(), headers)


def may_be_problem(status: int, content_type: str | None) -> bool:
    """Tell whether an answer may be one of these problems, so that its body is worth reading."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    return kind == PROBLEM_JSON and any(problem.status == status for problem in _PROBLEMS)


def error_of(status: int, body: bytes, token: Token) -> TenureError | None:
    """Read a problem back into the error that it stands for; None when it is none of these."""
    try:
        members = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, dict):
        return None
    name = str(members.get("type")).rpartition("/")[2]
    kind = next((kind for kind in _PROBLEMS if (kind.name, kind.status) == (name, status)), None)
    return None if kind is None else _ERRORS.get(kind.error, _plain(kind.error))(members, token)


def _members(error: TenureError) -> dict[str, Any]:
    if isinstance(error, StaleToken):
        return {"job": error.job, "generation": error.generation, "current": error.current}
    if isinstance(error, OutOfSequence):
        return {
            "job": error.job,
            "generation": error.generation,
            "sequence": error.sequence,
            "highest": error.highest,
        }
    return {}


def _plain(error: type[TenureError]) -> Callable[[dict[str, Any], Token], TenureError]:
    return lambda members, _token: error(f"the service refused the request: {members.get('detail') or 'no reason'}")


def _stale(members: dict[str, Any], token: Token) -> TenureError:
    current = _whole(members.get("current"))
    reason = "" if current is None else f"the destination has met generation {current}"
    return StaleToken(token.job, token.generation, current=current, reason=reason)


def _out_of_sequence(members: dict[str, Any], token: Token) -> TenureError:
    sequence = token.sequence if isinstance(token, Effect) else _whole(members.get("sequence")) or 0
    return OutOfSequence(token.job, token.generation, sequence, highest=_whole(members.get("highest")) or sequence)


def _missing(members: dict[str, Any], _token: Token) -> TenureError:
    return BadToken(f"the service refused the request: {members.get('detail') or 'a header field is missing'}")


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


_ERRORS: dict[type[TenureError], Callable[[dict[str, Any], Token], TenureError]] = {
    StaleToken: _stale,
    OutOfSequence: _out_of_sequence,
    MissingHeader: _missing,
}
