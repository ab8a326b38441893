-- A fence in SQLite; the comments stand in the file for PostgreSQL, except where the two differ.

-- name: begin
-- Takes the one write lock at once: a transaction that reads first may find that it cannot write any more.
BEGIN IMMEDIATE

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: has_migrations
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'tenure_fence_migrations'

-- name: make_migrations
CREATE TABLE IF NOT EXISTS tenure_fence_migrations (number INTEGER PRIMARY KEY)

-- name: migrations
SELECT number FROM tenure_fence_migrations

-- name: note_migration
INSERT INTO tenure_fence_migrations (number) VALUES (:number) ON CONFLICT (number) DO NOTHING

-- name: admit
INSERT INTO tenure_fences AS mark (scope, job, generation, sequence)
SELECT :scope, :job, :generation, :sequence
WHERE :generation <= :leap OR EXISTS (SELECT 1 FROM tenure_fences WHERE scope = :scope)
ON CONFLICT (scope) DO UPDATE
SET job = excluded.job, generation = excluded.generation, sequence = excluded.sequence
WHERE (mark.job IS NULL OR mark.job = excluded.job)
    AND excluded.generation - mark.generation <= :leap
    AND (mark.generation < excluded.generation
        OR (mark.generation = excluded.generation AND mark.sequence < excluded.sequence))
RETURNING 1

-- name: current
SELECT job, generation, sequence FROM tenure_fences WHERE scope = :scope

-- name: lock
-- There is one lock for all rows, and only a write takes it.
UPDATE tenure_fences SET scope = scope WHERE scope = :scope RETURNING job, generation, sequence

-- name: note_reset
INSERT INTO tenure_fence_resets (scope, job, generation, sequence, reset_at, reason)
VALUES (:scope, :job, :generation, :sequence, (julianday('now') - 2440587.5) * 86400.0, :reason)

-- name: clear
UPDATE tenure_fences SET job = NULL, generation = 0, sequence = 0 WHERE scope = :scope

-- name: resets
SELECT job, generation, sequence, reset_at, reason FROM tenure_fence_resets WHERE scope = :scope ORDER BY id

-- part: higher
(fence_job IS NULL OR fence_job = :job)
    AND :generation - COALESCE(fence_generation, 0) <= :leap
    AND (COALESCE(fence_generation, 0) < :generation
        OR (fence_generation = :generation AND fence_sequence < :sequence))

-- name: update_row
UPDATE {table}
SET {columns}fence_job = :job, fence_generation = :generation, fence_sequence = :sequence
WHERE {key} = :key AND @higher
RETURNING 1

-- name: current_row
SELECT fence_job, COALESCE(fence_generation, 0), COALESCE(fence_sequence, 0) FROM {table} WHERE {key} = :key

-- name: lock_row
-- Asked after `update_row`, which has taken the lock.
SELECT fence_job, COALESCE(fence_generation, 0), COALESCE(fence_sequence, 0) FROM {table} WHERE {key} = :key
