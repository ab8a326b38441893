-- Times of the wall (run_at, …_at) are milliseconds since 1970; lease_until is milliseconds of the host's boot clock, which
-- nobody can step. The condition comes from tenure.protocol.lifecycle.check_constraint(); a test compares them.

CREATE TABLE tenure_store (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    floor       INTEGER NOT NULL DEFAULT 0,  -- claims start above it (R3, R4)
    identity    TEXT,                        -- which file this is, to notice a copy (R44)
    boot        TEXT                         -- the boot in which lease_until counts; another boot ends every lease
) STRICT;

INSERT INTO tenure_store (one) VALUES (1);

-- With a rowid: without one, whatever looks for an id reads the whole of each row that it is compared with, and a row may
-- carry a megabyte of arguments.
CREATE TABLE tenure_jobs (
    id              TEXT NOT NULL PRIMARY KEY,
    task            TEXT,                        -- NULL: a bare lease
    queue           TEXT NOT NULL,
    priority        INTEGER NOT NULL DEFAULT 0,
    state           TEXT NOT NULL DEFAULT 'available',
    run_at          INTEGER NOT NULL,
    generation      INTEGER NOT NULL DEFAULT 0,
    owner           TEXT,
    worker          TEXT,
    lease_until     INTEGER,
    lease_ms        INTEGER NOT NULL,
    claimed_at      INTEGER,
    attempts        INTEGER NOT NULL DEFAULT 0,
    max_attempts    INTEGER,
    takeovers       INTEGER NOT NULL DEFAULT 0,
    max_takeovers   INTEGER,
    timeout_ms      INTEGER,
    unique_key      TEXT,
    arguments       TEXT NOT NULL DEFAULT '{}',
    secret          TEXT,                        -- JSON list of arguments that no view may show
    result          TEXT,
    progress        TEXT,
    ended           TEXT,                        -- the verb that ended the last run, when, why and with which error
    ended_at        INTEGER,
    reason          TEXT,
    failure         TEXT,
    trace           TEXT,
    lost_generation INTEGER,                     -- whose lease had ended when the present owner took over
    lost_worker     TEXT,
    enqueued_at     INTEGER NOT NULL,
    finished_at     INTEGER,
    named           INTEGER NOT NULL DEFAULT 0,  -- the id was chosen by a person and may come again
    CHECK (CASE state
        WHEN 'available' THEN owner IS NULL AND lease_until IS NULL AND finished_at IS NULL
        WHEN 'running' THEN owner IS NOT NULL AND lease_until IS NOT NULL AND finished_at IS NULL
        WHEN 'completed' THEN owner IS NULL AND lease_until IS NULL AND finished_at IS NOT NULL
        WHEN 'cancelled' THEN owner IS NULL AND lease_until IS NULL AND finished_at IS NOT NULL
        WHEN 'discarded' THEN owner IS NULL AND lease_until IS NULL AND finished_at IS NOT NULL
        ELSE FALSE
    END)
) STRICT;

-- In exactly the order of claims, so that the depth of a queue does not matter.
CREATE INDEX tenure_jobs_due ON tenure_jobs (queue, priority DESC, run_at, id) WHERE state = 'available';
-- No column that a renewal changes.
CREATE INDEX tenure_jobs_running ON tenure_jobs (queue, id) WHERE state = 'running';
CREATE UNIQUE INDEX tenure_jobs_unique ON tenure_jobs (task, unique_key)
    WHERE unique_key IS NOT NULL AND state IN ('available', 'running');

CREATE TABLE tenure_history (
    number      INTEGER PRIMARY KEY,
    job         TEXT NOT NULL,
    generation  INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    event       TEXT NOT NULL,
    worker      TEXT,
    reason      TEXT,
    failure     TEXT
) STRICT;

CREATE INDEX tenure_history_job ON tenure_history (job);

-- The audit rule, in one place that no statement can forget: whenever a run ends other than by completion, and whenever
-- an operator moves a job that is not running, the generation that it happened to gets a line (R46).
CREATE TRIGGER tenure_jobs_history AFTER UPDATE OF state, generation ON tenure_jobs
WHEN (OLD.owner IS NOT NULL AND (NEW.owner IS NULL OR NEW.generation <> OLD.generation) AND NEW.ended IS NOT 'complete')
BEGIN
    INSERT INTO tenure_history (job, generation, at, event, worker, reason, failure)
    VALUES (OLD.id, OLD.generation, NEW.ended_at, NEW.ended, OLD.worker, NEW.reason, NEW.failure);
END;

CREATE TRIGGER tenure_jobs_operated AFTER UPDATE OF state ON tenure_jobs
WHEN OLD.owner IS NULL AND NEW.owner IS NULL AND NEW.state <> OLD.state
BEGIN
    INSERT INTO tenure_history (job, generation, at, event, worker, reason)
    VALUES (
        OLD.id, OLD.generation, coalesce(NEW.finished_at, NEW.run_at),
        CASE NEW.state WHEN 'available' THEN 'retry' WHEN 'cancelled' THEN 'cancel' ELSE 'discard' END,
        OLD.worker, NEW.reason
    );
END;

CREATE TABLE tenure_steps (
    job         TEXT NOT NULL,
    step        TEXT NOT NULL,
    generation  INTEGER NOT NULL,
    result      TEXT NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (job, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE tenure_workers (
    owner       TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    host        TEXT NOT NULL,
    pid         INTEGER NOT NULL,
    queues      TEXT NOT NULL,
    slots       INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL
) STRICT;

-- What belongs to a job goes with it. A removed id that a person chose may come again: the floor keeps its tokens from
-- repeating, whoever removed the row (R3).
CREATE TRIGGER tenure_jobs_gone AFTER DELETE ON tenure_jobs
BEGIN
    DELETE FROM tenure_history WHERE job = OLD.id;
    DELETE FROM tenure_steps WHERE job = OLD.id;
    UPDATE tenure_store SET floor = OLD.generation WHERE OLD.named AND floor < OLD.generation;
END;
