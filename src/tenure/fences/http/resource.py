"""The fence resource of a service: what its two forms, ASGI and WSGI, have in common.

    PUT  <mount>/<scope>    raise the fence to the token in the header fields; 412 when a newer one was there
    GET  <mount>/<scope>    tell what the fence has met

Both answer ``{"scope": ..., "mark": {"job": ..., "generation": ..., "sequence": ...}}``; the mark is null while there
is none. Whoever can PUT here can shut out every owner of a scope, so let nobody in who may not write to what it guards:
authenticate in front of it. A reset is no request: a person does it in the database, with `SQLFence.reset`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tenure.errors import Misuse
from tenure.fences.http.execute import told_to_wait
from tenure.fences.http.messages import Answer, RequestFacts, make_answer
from tenure.fences.http.problems import REFUSALS, problem
from tenure.fences.http.service import FencedService
from tenure.fences.rule import Mark
from tenure.protocol.names import check_name

_OK, _NOT_FOUND, _NOT_ALLOWED = 200, 404, 405
_NO_STORE = {"Cache-Control": "no-store"}


@dataclass(frozen=True, slots=True)
class Resource:
    """The fences of one service, by scope; `begin` opens its transactions, as `Endpoint` describes it."""

    service: FencedService
    begin: Any

    def serve(self, facts: RequestFacts, path: str) -> Answer:
        """Answer one request for the fence that the rest of its path names."""
        scope = _scope(path)
        if scope is None:
            return make_answer(_NOT_FOUND)
        try:
            if facts.method == "PUT":
                with told_to_wait(), self.begin() as connection:
                    mark: Mark | None = self.service.raise_to(connection, facts, scope)
            elif facts.method in {"GET", "HEAD"}:
                with told_to_wait(), self.begin() as connection:
                    mark = self.service.fence.current(connection, scope)
            else:
                return make_answer(_NOT_ALLOWED, headers={"Allow": "GET, HEAD, PUT"})
        except REFUSALS as refused:
            return problem(refused)
        return _told(scope, mark)

    async def serve_async(self, facts: RequestFacts, path: str) -> Answer:
        """Answer one request; the twin of `serve`."""
        scope = _scope(path)
        if scope is None:
            return make_answer(_NOT_FOUND)
        try:
            if facts.method == "PUT":
                with told_to_wait():
                    async with self.begin() as connection:
                        mark: Mark | None = await self.service.raise_to_async(connection, facts, scope)
            elif facts.method in {"GET", "HEAD"}:
                with told_to_wait():
                    async with self.begin() as connection:
                        mark = await self.service.fence.current_async(connection, scope)
            else:
                return make_answer(_NOT_ALLOWED, headers={"Allow": "GET, HEAD, PUT"})
        except REFUSALS as refused:
            return problem(refused)
        return _told(scope, mark)


def _scope(path: str) -> str | None:
    try:
        return check_name("a fence's scope", path.removeprefix("/"))
    except Misuse:
        return None


def _told(scope: str, mark: Mark | None) -> Answer:
    return make_answer(_OK, {"scope": scope, "mark": None if mark is None else asdict(mark)}, _NO_STORE)
