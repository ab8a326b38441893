-- The answers of a fenced service in MySQL or MariaDB; the columns are explained in the file for PostgreSQL.

-- name: create
-- Text is bound as bytes: no collation takes two values for one, and no connection's character set changes any.
CREATE TABLE IF NOT EXISTS tenure_http_responses (
    id              BINARY(64) NOT NULL PRIMARY KEY,
    client          VARBINARY(800) NOT NULL,
    idempotency_key BLOB NOT NULL,
    scope           VARBINARY(800) NOT NULL,
    fingerprint     BINARY(64) NOT NULL,
    attempt         BINARY(32) NOT NULL,
    status          INTEGER,
    headers         MEDIUMBLOB,
    body            LONGBLOB,
    created_at      BIGINT NOT NULL,
    INDEX tenure_http_responses_created_at (created_at)
) ENGINE = InnoDB

-- name: begin
-- Returns nothing here: `find` tells by `attempt` whose row it is.
INSERT INTO tenure_http_responses (id, client, idempotency_key, scope, fingerprint, attempt, created_at)
VALUES (:id, :client, :key, :scope, :fingerprint, :attempt, UNIX_TIMESTAMP())
ON DUPLICATE KEY UPDATE id = id

-- name: find
-- A locking read: the transaction's snapshot may be older than the row.
SELECT fingerprint, attempt, status, headers, body FROM tenure_http_responses WHERE id = :id FOR UPDATE

-- name: finish
UPDATE tenure_http_responses SET status = :status, headers = :headers, body = :body
WHERE id = :id AND attempt = :attempt

-- name: give_up
DELETE FROM tenure_http_responses WHERE id = :id AND attempt = :attempt AND status IS NULL

-- name: forget
DELETE FROM tenure_http_responses WHERE created_at <= UNIX_TIMESTAMP() - :seconds
