-- A fence in MySQL and MariaDB; the comments stand in the file for PostgreSQL, except where the two differ. Scopes and jobs
-- are bytes (UTF-8) and bound in hexadecimal: no collation, no trailing blank and no connection's character set makes two
-- names one, and every driver can write them.

-- name: begin
START TRANSACTION

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: has_migrations
SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'tenure_fence_migrations'

-- name: make_migrations
CREATE TABLE IF NOT EXISTS tenure_fence_migrations (number INTEGER PRIMARY KEY) ENGINE = InnoDB

-- name: migrations
SELECT number FROM tenure_fence_migrations

-- name: note_migration
INSERT INTO tenure_fence_migrations (number) VALUES (:number) ON DUPLICATE KEY UPDATE number = number

-- name: touch
-- An upsert cannot carry a condition here, so the row is made first, counting nobody's tokens, and locked. An `INSERT
-- IGNORE` would take a shared lock on a row that is there, and two of them would wait for each other below.
INSERT INTO tenure_fences (scope) VALUES (UNHEX(:scope)) ON DUPLICATE KEY UPDATE scope = scope

-- name: admit
UPDATE tenure_fences SET job = UNHEX(:job), generation = :generation, sequence = :sequence
WHERE scope = UNHEX(:scope)
    AND (job IS NULL OR job = UNHEX(:job))
    AND :generation - generation <= :leap
    AND (generation < :generation OR (generation = :generation AND sequence < :sequence))

-- name: current
SELECT job, generation, sequence FROM tenure_fences WHERE scope = UNHEX(:scope)

-- name: lock
-- Also what explains a refusal: a plain read would show the row as it was when the transaction began.
SELECT job, generation, sequence FROM tenure_fences WHERE scope = UNHEX(:scope) FOR UPDATE

-- name: note_reset
INSERT INTO tenure_fence_resets (scope, job, generation, sequence, reset_at, reason)
VALUES (UNHEX(:scope), UNHEX(:job), :generation, :sequence, UNIX_TIMESTAMP(SYSDATE(6)), CONVERT(UNHEX(:reason) USING utf8mb4))

-- name: clear
UPDATE tenure_fences SET job = NULL, generation = 0, sequence = 0 WHERE scope = UNHEX(:scope)

-- name: resets
SELECT job, generation, sequence, reset_at, reason FROM tenure_fence_resets WHERE scope = UNHEX(:scope) ORDER BY id

-- part: higher
(fence_job IS NULL OR fence_job = UNHEX(:job))
    AND :generation - COALESCE(fence_generation, 0) <= :leap
    AND (COALESCE(fence_generation, 0) < :generation
        OR (fence_generation = :generation AND fence_sequence < :sequence))

-- name: update_row
UPDATE {table}
SET {columns}fence_job = UNHEX(:job), fence_generation = :generation, fence_sequence = :sequence
WHERE {key} = :key AND @higher

-- name: current_row
SELECT fence_job, COALESCE(fence_generation, 0), COALESCE(fence_sequence, 0) FROM {table} WHERE {key} = :key

-- name: lock_row
SELECT fence_job, COALESCE(fence_generation, 0), COALESCE(fence_sequence, 0) FROM {table} WHERE {key} = :key FOR UPDATE
