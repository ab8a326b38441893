"""The guards of verbs in a caller's own transaction: which file or table they mean, and whether it is as it was met."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, suite

_SQLITE = ("tests/sqlite/test_join.py",)
_POSTGRES = ("tests/postgres/test_join.py", "-k", "postgres-18")


def _sqlite(
    name: str, guard: str, old: str, new: str, *, file: str = "statements.sql", tests: tuple[str, ...] = _SQLITE
) -> Mutant:
    return Mutant(f"join: {name} on sqlite", guard, f"store/sqlite/{file}", old, new, tests)


def _postgres(
    name: str, guard: str, old: str, new: str, *, file: str = "statements.sql", tests: tuple[str, ...] = _POSTGRES
) -> Mutant:
    return Mutant(f"join: {name} on postgres", guard, f"store/postgres/{file}", old, new, tests)


JOINS = (
    _sqlite(
        "autocommit taken for a transaction",
        "who could not commit what is begun for them must begin it",
        """ or getattr(connection, "autocommit", None) is True:""",
        ":",
        file="join.py",
    ),
    Mutant(
        "sqlite: look-ups read whole rows",
        "what is passed by is not read, however big it is (B35)",
        "store/sqlite/migrations/0001_jobs.sql",
        """END)
) STRICT;

-- In exactly""",
        """END)
) STRICT, WITHOUT ROWID;

-- In exactly""",
        ("tests/sqlite/test_big_rows.py",),
    ),
    _sqlite(
        "file of another boot not looked at",
        "a file that was set back to another boot ends its leases",
        " AND boot IS :boot AND (SELECT",
        " AND (SELECT",
    ),
    _sqlite(
        "another file not looked at",
        "a changed identity raises the floor (R44)",
        "SELECT identity IS :identity AND boot",
        "SELECT boot",
    ),
    _sqlite(
        "older release not looked at",
        "a file of an older release is refused",
        " AND (SELECT max(number) FROM tenure_migrations) >= :schema",
        "",
    ),
    _sqlite(
        "guard that does not look",
        "a guard is believed only in the file that was met",
        "generation = :generation AND @ours\n\n-- name: held",
        "generation = :generation\n\n-- name: held",
    ),
    _sqlite(
        "completion that does not look",
        "a completion is made only in the file that was met",
        "generation = :generation AND @ours\nRETURNING id, generation",
        "generation = :generation\nRETURNING id, generation",
    ),
    _sqlite(
        "nothing found, nothing looked at",
        "what looks by itself and finds nothing is looked after",
        "if self._looked or all(answers) or self._look():",
        "if True:",
        file="join.py",
    ),
    _sqlite(
        "other verbs not looked after",
        "what does not look by itself is looked after (R44)",
        "if not self._looked and not (len(batch.calls) == 1 and STATEMENTS[batch.calls[0].name].looks):",
        "if False:",
        file="join.py",
    ),
    _sqlite(
        "replaced file taken for the one met",
        "a file in the place of the one that was met raises its floor (R44)",
        "met.place != place or ",
        "",
        file="join.py",
    ),
    _sqlite(
        "undone tables taken for there",
        "what a transaction made ready and undid is made ready again",
        "if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:",
        "if True:",
        file="join.py",
    ),
    _sqlite(
        "joined store without an identity",
        "a store that is only ever joined leaves the floor alone (R44)",
        '"identity": file_identity(self._path)',
        '"identity": ""',
        file="join.py",
    ),
    _sqlite(
        "attached file taken for the one in use",
        "verbs use the tables of the store's own file",
        "if len(attached) == 1 and attached[0][2] == path:",
        "if any(file == path for *_, file in attached):",
        file="join.py",
    ),
    _postgres(
        "another table not looked at",
        "a table that the search_path means since is noticed",
        "'tenure_jobs'::regclass = :table::oid AND current_setting",
        "current_setting",
    ),
    _postgres(
        "weak commit not looked at",
        "an effect's commit is durable (R42)",
        " AND current_setting('synchronous_commit') IN ('on', 'remote_apply')",
        "",
    ),
    _postgres(
        "guard that does not look",
        "a guard is believed only in the store's own table",
        "AND @ours\nFOR NO KEY UPDATE",
        "\nFOR NO KEY UPDATE",
    ),
    _postgres(
        "completion that does not look",
        "a completion is made only where its commit is durable (R42)",
        "AND @ours\nRETURNING id, generation",
        "\nRETURNING id, generation",
    ),
    _postgres(
        "other verbs not looked after",
        "what does not look by itself is looked after (R42)",
        " and looks_itself(batch)):",
        "):",
        file="callers.py",
    ),
    _postgres(
        "unknown connection taken for known",
        "a connection is asked once to which database it leads",
        "(is_known(self._raw, self._identity) and looks_itself(batch))",
        "looks_itself(batch)",
        file="callers.py",
    ),
    _sqlite(
        "completion by any owner",
        "a completion names its owner (R5)",
        "owner = :owner AND generation = :generation AND @ours\nRETURNING",
        "generation = :generation AND @ours\nRETURNING",
        tests=suite("sqlite", "endings", "leases"),
    ),
    _sqlite(
        "completion under any generation",
        "a completion names its generation (R5)",
        "AND generation = :generation AND @ours\nRETURNING",
        "AND @ours\nRETURNING",
        tests=suite("sqlite", "endings", "leases"),
    ),
    _postgres(
        "completion by any owner",
        "a completion names its owner (R5)",
        "AND owner = :owner::text AND generation = :generation::bigint AND @ours\nRETURNING",
        "AND generation = :generation::bigint AND @ours\nRETURNING",
        tests=suite("postgres", "endings", "leases"),
    ),
    _postgres(
        "completion under any generation",
        "a completion names its generation (R5)",
        "AND generation = :generation::bigint AND @ours\nRETURNING",
        "AND @ours\nRETURNING",
        tests=suite("postgres", "endings", "leases"),
    ),
)
