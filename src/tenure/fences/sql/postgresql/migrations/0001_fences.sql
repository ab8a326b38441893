-- One row a scope, never deleted: the fence outlives the data it protects (R35).
CREATE TABLE IF NOT EXISTS tenure_fences (
    scope       VARCHAR(200) PRIMARY KEY,
    generation  BIGINT NOT NULL,
    sequence    BIGINT NOT NULL
)
