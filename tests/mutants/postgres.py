"""The guards of the PostgreSQL store."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, suite


def _postgres(name: str, guard: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(f"postgres: {name}", guard, "store/postgres/statements.sql", old, new, tests)


POSTGRES = (
    _postgres(
        "a lone job rings no bell",
        "listeners hear of a job that is due (B35)",
        "CASE WHEN run_at <= @clock THEN pg_notify('tenure', queue)::text ELSE '' END",
        "CASE WHEN FALSE THEN pg_notify('tenure', queue)::text ELSE '' END",
        *suite("postgres", "basics"),
    ),
    _postgres(
        "a lone job rings before its time",
        "nobody is woken for a job that is not due yet (B35)",
        "CASE WHEN run_at <= @clock THEN pg_notify('tenure', queue)::text ELSE '' END",
        "CASE WHEN TRUE THEN pg_notify('tenure', queue)::text ELSE '' END",
        "tests/postgres/test_bell.py",
    ),
    _postgres(
        "settle without owner",
        "an end names its owner (R5)",
        "    WHERE id = ANY (ARRAY[ending.job]) AND owner = :owner::text AND",
        "    WHERE id = ANY (ARRAY[ending.job]) AND state = 'running' AND",
        *suite("postgres", "endings", "leases"),
    ),
    _postgres(
        "settle without generation",
        "an end names its generation (R5)",
        " AND job.generation = ending.generation\n    RETURNING",
        "\n    RETURNING",
        *suite("postgres", "leases"),
    ),
    _postgres(
        "renew without generation",
        "a renewal names its generation (R5)",
        "AND generation = token.generation\n        FOR NO KEY UPDATE SKIP",
        "\n        FOR NO KEY UPDATE SKIP",
        *suite("postgres", "leases"),
    ),
    _postgres(
        "renew an ended lease",
        "an ended lease cannot be kept (R6)",
        "SELECT id FROM held WHERE lease_until > (SELECT moment FROM clock)",
        "SELECT id FROM held",
        *suite("postgres", "leases"),
    ),
    _postgres(
        "refused by nobody",
        "a refused write is told with the name of who held the generation (R46)",
        "(SELECT max(worker) FROM tenure_history WHERE job = refused.job AND generation = refused.generation)",
        "NULL",
        *suite("postgres", "endings"),
    ),
    _postgres(
        "heavy listing",
        "a listing reads no message and no traceback (B30)",
        "'message', ''\n)::text END",
        "'message', failure::json ->> 'message'\n)::text END",
        *suite("postgres", "basics"),
    ),
    _postgres(
        "renewal shortens",
        "no renewal shortens a lease (R13)",
        "SET lease_until = greatest(\n    lease_until, (SELECT moment",
        "SET lease_until = greatest(\n    NULL, (SELECT moment",
        *suite("postgres", "leases"),
    ),
    Mutant(
        "postgres: isolation of the database's default",
        "every request runs in READ COMMITTED, whatever the database's default is",
        "store/postgres/admission.sql",
        "            ('default_transaction_isolation', 'read committed'),\n",
        "",
        ("tests/postgres/test_admission.py", "-k", "isolation"),
    ),
    _postgres(
        "renew by the clock of the transaction",
        "the clock is read after the lock (R12)",
        "(SELECT @clock AS moment FROM (SELECT count(*) FROM held) AS after_the_locks)",
        "(SELECT transaction_timestamp() + :shift_ms::bigint * interval '1 millisecond' AS moment)",
        "tests/postgres/test_leases.py",
    ),
    _postgres(
        "generation not raised",
        "every claim raises the generation (R1)",
        "generation = greatest(generation, (SELECT floor FROM tenure_store WHERE one = 1)) + 1,",
        "generation = greatest(generation, (SELECT floor FROM tenure_store WHERE one = 1), 1),",
        *suite("postgres", "leases"),
    ),
    _postgres(
        "floor ignored",
        "claims start above the floor (R3)",
        "generation = greatest(generation, (SELECT floor FROM tenure_store WHERE one = 1)) + 1,",
        "generation = generation + 1,",
        *suite("postgres", "upkeep"),
    ),
    _postgres(
        "live lease claimed",
        "a claim waits for the end of the lease (R1)",
        "AND task = ANY (:tasks::text[]) AND lease_until <= (SELECT @clock) AND",
        "AND task = ANY (:tasks::text[]) AND",
        *suite("postgres", "leases"),
    ),
    _postgres(
        "limit exceeded",
        "never more than asked for (R9)",
        "LIMIT :limit::bigint - (SELECT count(*) FROM expired)",
        "LIMIT :limit::bigint",
        *suite("postgres", "leases"),
    ),
    _postgres(
        "step recorded without a token",
        "a step is recorded under the token (R5)",
        "WHERE id = :job::text AND owner = :owner::text AND generation = :generation::bigint\n    FOR SHARE",
        "WHERE id = :job::text\n    FOR SHARE",
        *suite("postgres", "leases"),
    ),
    Mutant(
        "postgres: second migrator stumbles",
        "migrators that meet apply each migration once, and none fails",
        "store/postgres/schema.py",
        "        if not _has_record(connection):\n            raise\n",
        "        raise\n",
        ("tests/postgres/test_migrations.py",),
    ),
    Mutant(
        "postgres: migration waits in front of others",
        "a migration gives up rather than hold anybody up (B28)",
        "store/postgres/schema.py",
        "        connection.execute(_HASTY)\n",
        "",
        ("tests/postgres/test_migrations.py",),
    ),
    _postgres(
        "complete all without owner",
        "an end names its owner (R5)",
        "WHERE id = ANY (ARRAY[ending.job]) AND owner = :owner::text AND job.generation = ending.generation\n"
        "RETURNING id, job.generation\n\n-- name: settle",
        "WHERE id = ANY (ARRAY[ending.job]) AND state = 'running' AND job.generation = ending.generation\n"
        "RETURNING id, job.generation\n\n-- name: settle",
        *suite("postgres", "endings", "leases", "owners"),
    ),
    _postgres(
        "complete all without generation",
        "an end names its generation (R5)",
        " AND job.generation = ending.generation\nRETURNING id, job.generation\n\n-- name: settle",
        "\nRETURNING id, job.generation\n\n-- name: settle",
        *suite("postgres", "endings", "leases", "owners"),
    ),
)
