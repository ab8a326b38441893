-- What a person put aside, when (seconds since 1970) and why (R38).
CREATE TABLE IF NOT EXISTS tenure_fence_resets (
    id          INTEGER PRIMARY KEY,
    scope       VARCHAR(200) NOT NULL,
    job         VARCHAR(200) NOT NULL,
    generation  BIGINT NOT NULL,
    sequence    BIGINT NOT NULL,
    reset_at    REAL NOT NULL,
    reason      TEXT NOT NULL
)
