"""The guards of the fence in a SQL database."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TRANSACTIONS = ("tests/fences/test_sql_transactions.py",)
_TABLES = ("tests/fences/test_sql_tables.py",)
_ROWS = ("tests/fences/test_sql_rows.py",)
_CONNECTIONS = ("tests/fences/test_connections.py",)
_BOUND = ("tests/fences/test_sql_bound.py",)
_WAYS = {"postgresql": "psycopg and not async", "sqlite": "sqlite3", "mysql": "PyMySQL"}

_JOB = {
    "postgresql": ("(mark.job IS NULL OR mark.job = excluded.job)", "TRUE"),
    "sqlite": ("(mark.job IS NULL OR mark.job = excluded.job)", "TRUE"),
    "mysql": ("    AND (job IS NULL OR job = UNHEX(:job))", ""),
}
_LEAP = {
    "postgresql": ("    AND excluded.generation - mark.generation <= CAST(:leap AS bigint)\n", ""),
    "sqlite": ("    AND excluded.generation - mark.generation <= :leap\n", ""),
    "mysql": ("    AND :generation - generation <= :leap\n", ""),
}
_OLDER = {
    "postgresql": ("(mark.generation < excluded.generation", "(TRUE"),
    "sqlite": ("(mark.generation < excluded.generation", "(TRUE"),
    "mysql": ("(generation < :generation OR", "(TRUE OR"),
}
_REPEAT = {
    "postgresql": ("mark.sequence < excluded.sequence", "mark.sequence <= excluded.sequence"),
    "sqlite": ("mark.sequence < excluded.sequence", "mark.sequence <= excluded.sequence"),
}
_ROW_JOB = {
    "postgresql": ("(fence_job IS NULL OR fence_job = CAST(:job AS text))", "TRUE"),
    "sqlite": ("(fence_job IS NULL OR fence_job = :job)", "TRUE"),
    "mysql": ("(fence_job IS NULL OR fence_job = UNHEX(:job))", "TRUE"),
}
_ROW_LEAP = {
    "postgresql": (
        "    AND CAST(:generation AS bigint) - COALESCE(fence_generation, 0) <= CAST(:leap AS bigint)\n",
        "",
    ),
    "sqlite": ("    AND :generation - COALESCE(fence_generation, 0) <= :leap\n", ""),
    "mysql": ("    AND :generation - COALESCE(fence_generation, 0) <= :leap\n", ""),
}
_ROW_OLDER = {
    "postgresql": ("(COALESCE(fence_generation, 0) < CAST(:generation AS bigint)\n", "(TRUE\n"),
    "sqlite": ("(COALESCE(fence_generation, 0) < :generation\n", "(TRUE\n"),
    "mysql": ("(COALESCE(fence_generation, 0) < :generation\n", "(TRUE\n"),
}
_ROW_REPEAT = {
    "postgresql": ("fence_sequence < CAST(:sequence", "fence_sequence <= CAST(:sequence"),
    "sqlite": ("fence_sequence < :sequence", "fence_sequence <= :sequence"),
    "mysql": ("fence_sequence < :sequence", "fence_sequence <= :sequence"),
}
_NEW_LEAP = {
    "postgresql": ("WHERE CAST(:generation AS bigint) <= CAST(:leap AS bigint)\n    OR", "WHERE TRUE\n    OR"),
    "sqlite": ("WHERE :generation <= :leap OR", "WHERE TRUE OR"),
}
_CLEAR = "UPDATE tenure_fences SET job = NULL, generation = 0, sequence = 0"


def _statements(name: str, guard: str, pairs: dict[str, tuple[str, str]], tests: tuple[str, ...] = ()) -> list[Mutant]:
    """Make one mutant a dialect."""
    return [
        Mutant(
            f"sql fence, {dialect}: {name}",
            guard,
            f"fences/sql/{dialect}/statements.sql",
            old,
            new,
            (*tests, "-k", dialect) if tests else ("tests/fences/test_sql.py", "-k", f"test_r3 and {_WAYS[dialect]}"),
        )
        for dialect, (old, new) in pairs.items()
    ]


def _python(name: str, guard: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(f"sql fence: {name}", guard, f"fences/{file}.py", old, new, tests)


FENCES_SQL = (
    *_statements("older passes", "an older generation is refused (R31)", _OLDER),
    *_statements("repeat passes", "a repeated write is refused (R33)", _REPEAT),
    Mutant(
        "sql fence, mysql: repeat passes",
        "a repeated write is refused (R33), where matched rows are counted and not changed ones",
        "fences/sql/mysql/statements.sql",
        "AND sequence < :sequence))\n\n-- name: current\n",
        "AND sequence <= :sequence))\n\n-- name: current\n",
        (*_CONNECTIONS, "-k", "carries and SQLAlchemy and PyMySQL"),
    ),
    *_statements("two jobs compared", "tokens of two jobs are never compared (R36)", _JOB),
    *_statements("leap passes", "a generation that nobody issued is refused (R38)", _LEAP),
    *_statements("leap passes in a new scope", "so it is where nothing was met (R38)", _NEW_LEAP, _TRANSACTIONS),
    *_statements("row: older passes", "an older generation changes no row (R31)", _ROW_OLDER, _ROWS),
    *_statements("row: repeat passes", "a repeated write changes no row (R33)", _ROW_REPEAT, _ROWS),
    *_statements("row: two jobs compared", "a row counts one job's tokens (R36)", _ROW_JOB, _ROWS),
    *_statements("row: leap passes", "a generation that nobody issued changes no row (R38)", _ROW_LEAP, _ROWS),
    *_statements(
        "reset deletes the row",
        "a fence's row is never deleted (R35)",
        dict.fromkeys(_WAYS, (_CLEAR, "DELETE FROM tenure_fences")),
        _TRANSACTIONS,
    ),
    *_statements(
        "reset does not lock",
        "a reset notes the write that it waited for (R38)",
        {"postgresql": ("scope = CAST(:scope AS text) FOR UPDATE", "scope = CAST(:scope AS text)")},
        _TRANSACTIONS,
    ),
    *_statements(
        "refusal explained by a snapshot",
        "a refusal tells what is there now",
        {"mysql": ("WHERE scope = UNHEX(:scope) FOR UPDATE", "WHERE scope = UNHEX(:scope)")},
        _TRANSACTIONS,
    ),
    *_statements(
        "migrations without a lock",
        "several can make the tables at the same time",
        {"postgresql": ("SELECT pg_advisory_xact_lock(8387231267114869605)", "SELECT 1")},
        _TABLES,
    ),
    Mutant(
        "sql fence, mysql: a shared lock first",
        "writers of one scope wait in a row, and not for each other",
        "fences/sql/mysql/statements.sql",
        "INSERT INTO tenure_fences (scope) VALUES (UNHEX(:scope)) ON DUPLICATE KEY UPDATE scope = scope",
        "INSERT IGNORE INTO tenure_fences (scope) VALUES (UNHEX(:scope))",
        ("tests/fences/test_sql.py", "-k", "applied_once and PyMySQL"),
    ),
    Mutant(
        "sql fence, mysql: names with a collation",
        "names are compared exactly (R36)",
        "fences/sql/mysql/migrations/0001_fences.sql",
        "scope       VARBINARY(800) PRIMARY KEY",
        "scope       VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY",
        (*_TRANSACTIONS, "-k", "exactly and mysql"),
    ),
    _python(
        "write in autocommit",
        "what is let through commits with its write (D2)",
        "sql/fence",
        "        if not held:\n",
        "        if held is None:\n",
        *_CONNECTIONS,
    ),
    _python(
        "not raised",
        "a new owner's announcement holds off the old one (R32)",
        "sql/fence",
        "        self._do(connection, self._operations.admit(announcement(token, scope)))",
        "        announcement(token, scope)",
        "tests/fences/test_sql.py",
        "-k",
        "test_r32 and sqlite3",
    ),
    _python(
        "reset without a reason",
        "a reset needs a reason (R38)",
        "rule",
        "if not isinstance(reason, str) or not reason.strip():",
        "if not isinstance(reason, str):",
        *_TRANSACTIONS,
    ),
    _python(
        "reset in pieces",
        "a failed connection is not left in a transaction",
        "sql/operations",
        '                yield from self._do("rollback")',
        "                pass",
        *_TABLES,
    ),
    _python(
        "own transaction not committed",
        "in autocommit a reset is committed",
        "sql/operations",
        '        yield from self._do("commit")\n',
        "",
        *_CONNECTIONS,
    ),
    _python(
        "reset during a refusal",
        "a refusal that cannot be explained is told",
        "sql/operations",
        "        if judge(mark, bid, leap=self.leap) != mark:",
        "        if judge(mark, bid, leap=self.leap) == 0:",
        *_TRANSACTIONS,
    ),
    _python(
        "first form frozen",
        "a row of the first form counts the next job's tokens",
        "sql/operations",
        "return Mark(_text(found) or job, int(generation), int(sequence))",
        "return Mark(_text(found), int(generation), int(sequence))",
        *_TABLES,
    ),
    _python(
        "numbers as they are read",
        "a connection that reads whole numbers as text is judged as any other",
        "sql/operations",
        "return Mark(_text(found) or job, int(generation), int(sequence))",
        "return Mark(_text(found) or job, generation, sequence)",
        *_TABLES,
    ),
    _python(
        "names in text",
        "every connection's character set finds the same row",
        "sql/operations",
        'return text.encode().hex() if self.dialect == "mysql" else text',
        'return text.encode("latin1", "replace").hex() if self.dialect == "mysql" else text',
        *_TRANSACTIONS,
        "-k",
        "exactly and mysql",
    ),
    _python(
        "tables in pieces",
        "in SQLite the tables are made in one piece or not at all",
        "connections",
        '_SQLITE = _Driver("sqlite", _NAMED, _on_sqlite, _sqlite_holds, _sqlite_begun)',
        '_SQLITE = _Driver("sqlite", _NAMED, _on_sqlite, _sqlite_holds, _sqlite_holds)',
        *_TABLES,
    ),
    _python(
        "psycopg's autocommit unseen",
        "autocommit is seen on psycopg",
        "connections",
        "return not connection.autocommit or int(connection.info.transaction_status) != _IDLE",
        "return True",
        *_CONNECTIONS,
    ),
    _python(
        "MySQL's autocommit unseen",
        "autocommit is seen on drivers of MySQL",
        "connections",
        "return not connection.get_autocommit() or",
        "return True or",
        *_CONNECTIONS,
    ),
    _python(
        "MySQL's transaction unseen",
        "a transaction begun in autocommit is seen on drivers of MySQL",
        "connections",
        'bool(getattr(connection, "server_status", 0) & _IN_TRANSACTION)',
        "False",
        *_CONNECTIONS,
    ),
    _python(
        "SQLite's autocommit unseen",
        "autocommit is seen on sqlite3",
        "connections",
        "== _LEGACY and connection.isolation_level is not None",
        "== _LEGACY",
        *_CONNECTIONS,
    ),
    _python(
        "Django's autocommit unseen",
        "autocommit is seen on Django",
        "connections",
        "held = not connection.get_autocommit()",
        "held = True",
        *_CONNECTIONS,
    ),
    _python(
        "SQLAlchemy not begun",
        "SQLAlchemy has begun what it is to commit",
        "connections",
        "    if not core.in_transaction():\n        core.begin()\n",
        "",
        *_CONNECTIONS,
    ),
    _python(
        "SQLAlchemy's autocommit unseen on asyncpg",
        "autocommit is seen on asyncpg under SQLAlchemy",
        "connections",
        "held = not core.sync_connection.connection.dbapi_connection.autocommit",
        "held = True",
        *_CONNECTIONS,
    ),
    _python(
        "another dialect's connection",
        "a fence speaks the language of its database",
        "connections",
        "    if found != wanted:",
        "    if found is None:",
        *_CONNECTIONS,
    ),
    _python(
        "psycopg's pipeline unseen",
        "a connection in pipeline mode, which hides rows, is refused",
        "connections",
        "    _check_pipeline(given, raw)\n",
        "",
        *_CONNECTIONS,
    ),
    _python(
        "psycopg's pipeline unseen under Django",
        "a connection in pipeline mode is refused under Django too",
        "connections",
        "        _check_pipeline(connection, connection.connection)\n",
        "",
        *_CONNECTIONS,
    ),
    _python(
        "bound, not committed",
        "a bound fence commits what it raised",
        "sql/bound",
        "            driver.commit()\n",
        "",
        *_BOUND,
    ),
    _python(
        "bound, not committed, async",
        "a bound fence commits what it raised, in a loop too",
        "sql/bound",
        "            await driver.commit()\n",
        "",
        *_BOUND,
    ),
    _python(
        "row: any name",
        "only names go into a statement",
        "sql/row",
        "if not isinstance(name, str) or not _NAME.fullmatch(name):",
        "if not isinstance(name, str):",
        *_ROWS,
    ),
    _python(
        "row: mark overwritten in capitals",
        "a program cannot write the columns of the fence, however it spells them",
        "sql/row",
        "str(name).lower() in MARKS",
        "name in MARKS",
        *_ROWS,
    ),
    _python(
        "row: mark overwritten",
        "a program cannot write the columns of the fence",
        "sql/row",
        "        if own:\n",
        "        if own is None:\n",
        *_ROWS,
    ),
)
