-- What a person put aside, when (seconds since 1970) and why (R38).
CREATE TABLE IF NOT EXISTS tenure_fence_resets (
    id          BIGINT AUTO_INCREMENT PRIMARY KEY,
    scope       VARBINARY(800) NOT NULL,
    job         VARBINARY(800) NOT NULL,
    generation  BIGINT NOT NULL,
    sequence    BIGINT NOT NULL,
    reset_at    DOUBLE NOT NULL,
    reason      TEXT CHARACTER SET utf8mb4 NOT NULL
) ENGINE = InnoDB
