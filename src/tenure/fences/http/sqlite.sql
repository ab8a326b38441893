-- The answers of a fenced service in SQLite; the columns are explained in the file for PostgreSQL.

-- name: create
CREATE TABLE IF NOT EXISTS tenure_http_responses (
    id              TEXT PRIMARY KEY,
    client          TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    scope           TEXT NOT NULL,
    fingerprint     TEXT NOT NULL,
    attempt         TEXT NOT NULL,
    status          INTEGER,
    headers         TEXT,
    body            BLOB,
    created_at      INTEGER NOT NULL
) WITHOUT ROWID

-- name: index
CREATE INDEX IF NOT EXISTS tenure_http_responses_created_at ON tenure_http_responses (created_at)

-- name: begin
-- SQLite has one writer: no other message of the same request can be in between.
INSERT INTO tenure_http_responses (id, client, idempotency_key, scope, fingerprint, attempt, created_at)
VALUES (
    :id, :client, :key, :scope, :fingerprint, :attempt, CAST((julianday('now') - 2440587.5) * 86400 AS INTEGER)
)
ON CONFLICT (id) DO NOTHING
RETURNING attempt

-- name: find
SELECT fingerprint, attempt, status, headers, body FROM tenure_http_responses WHERE id = :id

-- name: finish
UPDATE tenure_http_responses SET status = :status, headers = :headers, body = :body
WHERE id = :id AND attempt = :attempt

-- name: give_up
DELETE FROM tenure_http_responses WHERE id = :id AND attempt = :attempt AND status IS NULL

-- name: forget
DELETE FROM tenure_http_responses
WHERE created_at <= CAST((julianday('now') - 2440587.5) * 86400 AS INTEGER) - :seconds
RETURNING id
