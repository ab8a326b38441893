"""The store's side of the simulation: operations are carried out whole or not at all, and every change is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tenure.errors import NotFound
from tenure.protocol.job import Claimer, Ending, NewJob, Wanted
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import Verb
from tenure.protocol.op import Op
from tenure.testing.simulation.server import Change, MemoryServer, Server
from tenure.testing.simulation.sqlite import File, SqliteServer

JOBS = [NewJob("j1", "work", lease=1.0, named=True), NewJob("j2", "work", lease=1.0, priority=-1, named=True)]
WANTED = [Wanted(("default",), ("work",), 1)]
ADA, BEA = Claimer("owner-a", "ada"), Claimer("owner-b", "bea")


class Bench:
    """A server, a clock, and the changes that were heard."""

    def __init__(self, name: str) -> None:
        self.now = 5e4
        self.file = File() if name == "sqlite" else None
        self.server: Server = (
            MemoryServer(lambda: self.now) if self.file is None else SqliteServer(self.file, lambda: self.now)
        )
        self.heard: list[Change] = []
        self.server.heard = self.heard.extend

    def told(self) -> list[tuple[str, str, int | None, int | None]]:
        return [(entry.job, entry.event, entry.right, entry.generation) for entry in self.server.entries]

    def close(self) -> None:
        if self.file is not None:
            self.file.remove()


@pytest.fixture(params=["memory", "sqlite"])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    bench = Bench(request.param)
    yield bench
    bench.close()


def test_every_change_is_told_and_heard(bench: Bench) -> None:
    server, verbs = bench.server, bench.server.verbs
    server.execute(verbs.enqueue, (JOBS,), {})
    server.execute(verbs.turn, (ADA, [], WANTED), {})
    server.execute(verbs.progress, (ADA.owner, Token("j1", 1), "1"), {})
    bench.now += 0.5
    server.execute(verbs.renew, (ADA.owner, [Token("j1", 1)]), {})
    bench.now += 1.1
    server.execute(verbs.turn, (BEA, [], WANTED), {})
    server.execute(verbs.operate, (Verb.RELEASE, ["j1"]), {})
    server.execute(verbs.turn, (BEA, [], WANTED), {})
    server.execute(verbs.turn, (BEA, [Ending(Token("j1", 4), Verb.COMPLETE, result="1")], []), {})
    server.execute(verbs.operate, (Verb.CANCEL, ["j2"]), {})
    server.execute(verbs.operate, (Verb.RETRY, ["j2"]), {})
    server.execute(verbs.prune, (0.0,), {"limit": 10})
    assert bench.told() == [
        ("j1", "enqueue", None, 0),
        ("j2", "enqueue", None, 0),
        ("j1", "claim", None, 1),
        ("j1", "progress", 1, 1),
        ("j1", "renew", 1, 1),
        ("j1", "takeover", 1, 2),
        ("j1", "release", 2, 3),
        ("j1", "claim", None, 4),
        ("j1", "complete", 4, 4),
        ("j2", "cancel", None, 0),
        ("j2", "retry", None, 0),
        ("j1", "prune", None, None),
    ]
    assert len(bench.heard) == len(bench.server.entries)
    assert [row.job for row in server.rows()] == ["j2"]
    assert not server.all_over()


def test_an_operation_that_refuses_changes_nothing(bench: Bench) -> None:
    def refuses(jobs: Sequence[NewJob]) -> Op[None]:
        yield from bench.server.verbs.enqueue(jobs)
        raise NotFound("j1")

    done, error = bench.server.execute(refuses, (JOBS,), {})
    assert (done, type(error)) == (False, NotFound)
    assert bench.server.rows() == []
    assert bench.told() == []
    assert bench.heard == []


def test_a_failover_goes_back_and_goes_on_above(bench: Bench) -> None:
    server, verbs = bench.server, bench.server.verbs
    server.execute(verbs.enqueue, (JOBS,), {})
    server.keep()
    _, turn = server.execute(verbs.turn, (ADA, [], WANTED), {})
    assert turn.claimed[0].generation == 1
    server.fail_over()
    assert bench.told() == [("j1", "enqueue", None, 0), ("j2", "enqueue", None, 0)]
    _, turn = server.execute(verbs.turn, (BEA, [], WANTED), {})
    assert turn.claimed[0].id == "j1"
    assert turn.claimed[0].generation > 10**9
