-- The answers of a fenced service in PostgreSQL, kept in the service's own database beside the fence. The same names, with
-- the same parameters and columns, stand in the files of the other dialects; a name that is missing there has no work to
-- do there. Every parameter is cast, so that any driver can bind it as it likes.

-- name: create
-- One statement, so that it is one transaction everywhere. Two that make the same table at once would fail; the number
-- stands for this table and means nothing else.
DO $$
BEGIN
    PERFORM pg_advisory_xact_lock(7310597164892263028);
    CREATE TABLE IF NOT EXISTS tenure_http_responses (
        id              TEXT PRIMARY KEY,      -- the digest of client and key
        client          TEXT NOT NULL,
        idempotency_key TEXT NOT NULL,
        scope           TEXT NOT NULL,
        fingerprint     TEXT NOT NULL,         -- the digest of method, target, scope and body
        attempt         TEXT NOT NULL,         -- the message that carries the request out
        status          INTEGER,               -- NULL while it is being carried out
        headers         TEXT,
        body            BYTEA,
        created_at      BIGINT NOT NULL        -- seconds since 1970, by this database's clock
    );
    CREATE INDEX IF NOT EXISTS tenure_http_responses_created_at ON tenure_http_responses (created_at);
END
$$

-- name: limit_waits
-- For this transaction only: whoever holds the row of the fence or of the request must not keep this message for long.
SELECT current_setting('lock_timeout'), set_config('lock_timeout', CAST(:limit AS text), TRUE)

-- name: restore_waits
SELECT set_config('lock_timeout', CAST(:limit AS text), TRUE)

-- name: begin
-- Waits for another message of the same request that is being carried out in a transaction of its own.
INSERT INTO tenure_http_responses (id, client, idempotency_key, scope, fingerprint, attempt, created_at)
VALUES (
    CAST(:id AS text), CAST(:client AS text), CAST(:key AS text), CAST(:scope AS text), CAST(:fingerprint AS text),
    CAST(:attempt AS text), CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS bigint)
)
ON CONFLICT (id) DO NOTHING
RETURNING attempt

-- name: find
SELECT fingerprint, attempt, status, headers, body FROM tenure_http_responses WHERE id = CAST(:id AS text)

-- name: finish
UPDATE tenure_http_responses
SET status = CAST(:status AS integer), headers = CAST(:headers AS text), body = CAST(:body AS bytea)
WHERE id = CAST(:id AS text) AND attempt = CAST(:attempt AS text)

-- name: give_up
DELETE FROM tenure_http_responses
WHERE id = CAST(:id AS text) AND attempt = CAST(:attempt AS text) AND status IS NULL

-- name: forget
DELETE FROM tenure_http_responses
WHERE created_at <= CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS bigint) - CAST(:seconds AS bigint)
RETURNING id
