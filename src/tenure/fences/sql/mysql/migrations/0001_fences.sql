-- One row a scope, never deleted: the fence outlives the data it protects (R35). 800 bytes hold every name of 200 characters.
CREATE TABLE IF NOT EXISTS tenure_fences (
    scope       VARBINARY(800) PRIMARY KEY,
    job         VARBINARY(800),
    generation  BIGINT NOT NULL DEFAULT 0,
    sequence    BIGINT NOT NULL DEFAULT 0
) ENGINE = InnoDB
