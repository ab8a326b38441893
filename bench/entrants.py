"""Everybody who is measured."""

from __future__ import annotations

from bench.entrant import Entrant, Store
from bench.limits import BareBell, BarePostgres, BareSqlite, BareWatch
from bench.own import OwnOnPostgres, OwnOnSqlite
from bench.peers.absurd import Absurd
from bench.peers.awa import Awa
from bench.peers.chancy import Chancy
from bench.peers.dbos import Dbos
from bench.peers.huey import Huey
from bench.peers.litequeue import LiteQueue
from bench.peers.persistqueue import PersistQueue
from bench.peers.pgqueuer import PgQueuer
from bench.peers.procrastinate import Procrastinate
from bench.pgbench import PgBench, PgBenchCrowd

TENURE: dict[Store, Entrant] = {"postgresql": OwnOnPostgres(), "sqlite": OwnOnSqlite()}

PEERS: tuple[Entrant, ...] = (
    PgQueuer(),
    Awa(),
    Chancy(),
    Absurd(),
    Dbos(),
    Procrastinate(),
    Huey(),
    LiteQueue(),
    PersistQueue(),
)

LIMITS: tuple[Entrant, ...] = (BarePostgres(), BareBell(), PgBench(), PgBenchCrowd(), BareSqlite(), BareWatch())

LEFT_OUT: dict[str, str] = {
    "Oban": "needs Python 3.12, and this benchmark runs on 3.11 too",
    "RQ, Dramatiq, Celery, SAQ, arq, Docket, streaq": "work on Redis, where Tenure has no store yet",
    "honker": "its wheel asks for a newer C library than many systems have",
}
"""Queues that are not measured, and why."""
