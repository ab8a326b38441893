-- A fence in PostgreSQL. The same names with the same parameters stand in the files of the other dialects; a name that is
-- missing there has no work to do there. Every parameter is cast, so that any driver can bind it as it likes.
--
-- A row whose job is NULL counts nobody's tokens yet: the fence was reset, or comes from the time before the column.

-- name: begin
BEGIN

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: lock_migrations
-- Held to the end of the transaction; the number spells "tenfence" and means nothing else.
SELECT pg_advisory_xact_lock(8387231267114869605)

-- name: has_migrations
SELECT 1 WHERE to_regclass('tenure_fence_migrations') IS NOT NULL

-- name: make_migrations
CREATE TABLE IF NOT EXISTS tenure_fence_migrations (number INTEGER PRIMARY KEY)

-- name: migrations
SELECT number FROM tenure_fence_migrations

-- name: note_migration
INSERT INTO tenure_fence_migrations (number) VALUES (CAST(:number AS integer)) ON CONFLICT (number) DO NOTHING

-- name: admit
-- Compare and store in one step, inside the transaction of the effect (R31); an announcement has sequence 0 (R32). The
-- first condition is for a scope that is new: no row, so nothing met, so no leap from there (R38).
INSERT INTO tenure_fences AS mark (scope, job, generation, sequence)
SELECT CAST(:scope AS text), CAST(:job AS text), CAST(:generation AS bigint), CAST(:sequence AS bigint)
WHERE CAST(:generation AS bigint) <= CAST(:leap AS bigint)
    OR EXISTS (SELECT 1 FROM tenure_fences WHERE scope = CAST(:scope AS text))
ON CONFLICT (scope) DO UPDATE
SET job = excluded.job, generation = excluded.generation, sequence = excluded.sequence
WHERE (mark.job IS NULL OR mark.job = excluded.job)
    AND excluded.generation - mark.generation <= CAST(:leap AS bigint)
    AND (mark.generation < excluded.generation
        OR (mark.generation = excluded.generation AND mark.sequence < excluded.sequence))
RETURNING 1

-- name: current
SELECT job, generation, sequence FROM tenure_fences WHERE scope = CAST(:scope AS text)

-- name: lock
-- Reads the mark so that it stays as it is to the end of the transaction.
SELECT job, generation, sequence FROM tenure_fences WHERE scope = CAST(:scope AS text) FOR UPDATE

-- name: note_reset
INSERT INTO tenure_fence_resets (scope, job, generation, sequence, reset_at, reason)
VALUES (
    CAST(:scope AS text), CAST(:job AS text), CAST(:generation AS bigint), CAST(:sequence AS bigint),
    CAST(extract(epoch FROM clock_timestamp()) AS double precision), CAST(:reason AS text)
)

-- name: clear
-- The row stays: it is never deleted, so that nothing can slip in between (R35).
UPDATE tenure_fences SET job = NULL, generation = 0, sequence = 0 WHERE scope = CAST(:scope AS text)

-- name: resets
SELECT job, generation, sequence, reset_at, reason
FROM tenure_fence_resets WHERE scope = CAST(:scope AS text) ORDER BY id

-- part: higher
-- A row of the user's own that carries its mark: what `admit` asks of the fence's row.
(fence_job IS NULL OR fence_job = CAST(:job AS text))
    AND CAST(:generation AS bigint) - COALESCE(fence_generation, 0) <= CAST(:leap AS bigint)
    AND (COALESCE(fence_generation, 0) < CAST(:generation AS bigint)
        OR (fence_generation = CAST(:generation AS bigint) AND fence_sequence < CAST(:sequence AS bigint)))

-- name: update_row
-- The names in braces come from the program and are quoted; the values are bound.
UPDATE {table}
SET {columns}fence_job = CAST(:job AS text), fence_generation = CAST(:generation AS bigint),
    fence_sequence = CAST(:sequence AS bigint)
WHERE {key} = :key AND @higher
RETURNING 1

-- name: current_row
SELECT fence_job, COALESCE(fence_generation, 0), COALESCE(fence_sequence, 0) FROM {table} WHERE {key} = :key

-- name: lock_row
SELECT fence_job, COALESCE(fence_generation, 0), COALESCE(fence_sequence, 0) FROM {table} WHERE {key} = :key FOR UPDATE
