"""The answers that a fenced service has given, one row for each request, written in the transaction of the effect."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tenure.errors import Misuse
from tenure.fences.http.headers import REPLAYED
from tenure.fences.http.messages import Answer, RequestFacts, digest, fingerprint
from tenure.fences.http.problems import KeyReused, RequestInProgress
from tenure.protocol.op import Op, Request, ask

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Question(Request[list[Row]]):
    """One named statement with its parameters, answered with the rows that it returns."""

    name: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as its row names it; `attempt` is this message, which others of the same request do not share."""

    id: str
    client: str
    key: str
    scope: str
    fingerprint: str
    attempt: str


def asked_for(facts: RequestFacts, scope: str, key: str) -> Asked:
    """Name a request by who asks and by its key, and note what it asks for."""
    row = digest(facts.client.encode(), key.encode())
    return Asked(row, facts.client, key, scope, fingerprint(facts, scope), secrets.token_hex(16))


def begin(asked: Asked) -> Op[Answer | None]:
    """Begin to carry a request out, or return the answer that it got; raises KeyReused or RequestInProgress.

    The row is there from now on for whoever asks in a later transaction, and those who ask meanwhile wait for this one.
    """
    parameters = {name: getattr(asked, name) for name in ("id", "client", "key", "scope", "fingerprint", "attempt")}
    returned = yield from ask(Question("begin", parameters))
    return None if any(returned) else (yield from find(asked))


def find(asked: Asked) -> Op[Answer | None]:
    """Return the answer that a request got; None when it is this message that carries it out, or nobody has begun."""
    rows = yield from ask(Question("find", {"id": asked.id}))
    if not rows:
        return None
    found, attempt, status, headers, body = rows[0]
    if _text(attempt) == asked.attempt:
        return None
    if _text(found) != asked.fingerprint:
        raise KeyReused(
            f"the idempotency key {asked.key!r} came with another request before: a key names one request, with its"
            " method, address, scope and body"
        )
    if status is None:
        raise RequestInProgress(
            "this request is being carried out, or was when its server went down: try again for its answer"
        )
    pairs = tuple((name, value) for name, value in json.loads(headers or "[]"))
    return Answer(status, (*pairs, (REPLAYED, "true")), bytes(body or b""), repeat=True)


def finish(asked: Asked, answer: Answer) -> Op[None]:
    """Keep the answer of the request that this message carried out; Misuse where its beginning is gone.

    Then the transaction in which the fence was passed has been rolled back, and what the handler wrote since stands in
    another one, which nothing guards: it must not be committed.
    """
    rows = yield from ask(Question("find", {"id": asked.id}))
    if not rows or _text(rows[0][1]) != asked.attempt:
        raise Misuse(
            "the transaction in which this request passed the fence has ended before its handler did, as by a rollback:"
            " let the error of a statement end the handler, and leave the transaction to the decorator"
        )
    headers = json.dumps(answer.headers)
    yield from ask(
        Question(
            "finish",
            {
                "id": asked.id,
                "attempt": asked.attempt,
                "status": answer.status,
                "headers": headers,
                "body": answer.body,
            },
        )
    )


def give_up(asked: Asked) -> Op[None]:
    """Forget that this message began, so that a later one can begin anew."""
    yield from ask(Question("give_up", {"id": asked.id, "attempt": asked.attempt}))


def forget(seconds: int) -> Op[int]:
    """Forget requests that began longer ago; return how many."""
    return len((yield from ask(Question("forget", {"seconds": seconds}))))


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
