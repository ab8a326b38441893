-- The same tables, columns and rules as in the SQLite store. Times are timestamptz by this server's clock. The condition comes
-- from tenure.protocol.lifecycle.check_constraint(); a test compares the two. Names compare byte by byte (COLLATE "C"), on
-- every server alike. All of it lives in the schema that stands first in the search_path of whoever migrates.

CREATE TABLE tenure_store (
    one         integer PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    floor       bigint NOT NULL DEFAULT 0,  -- claims start above it (R3, R4)
    identity    text                        -- which database this is, to notice a restore or a failover (R44)
);

INSERT INTO tenure_store DEFAULT VALUES;

-- Half of each page of jobs is left free or reclaimed soon, so that a renewal stays on its page and touches no index (HOT).
-- The index of ids is not deduplicated: it would find no more than the versions of one job, at each claim of a job in a
-- full page, which is a seventh of what the claim costs.
CREATE TABLE tenure_jobs (
    id              text COLLATE "C" PRIMARY KEY WITH (deduplicate_items = off),
    task            text COLLATE "C",            -- NULL: a bare lease
    queue           text COLLATE "C" NOT NULL,
    priority        integer NOT NULL DEFAULT 0,
    state           text COLLATE "C" NOT NULL DEFAULT 'available',
    run_at          timestamptz NOT NULL,
    generation      bigint NOT NULL DEFAULT 0,
    owner           text COLLATE "C",
    worker          text COLLATE "C",
    lease_until     timestamptz,
    lease_ms        bigint NOT NULL,
    claimed_at      timestamptz,
    attempts        integer NOT NULL DEFAULT 0,
    max_attempts    integer,
    takeovers       integer NOT NULL DEFAULT 0,
    max_takeovers   integer,
    timeout_ms      bigint,
    unique_key      text COLLATE "C",
    arguments       text NOT NULL DEFAULT '{}',
    secret          text,                        -- JSON list of arguments that no view may show
    result          text,
    progress        text,
    ended           text COLLATE "C",            -- the verb that ended the last run, when, why and with which error
    ended_at        timestamptz,
    reason          text,
    failure         text,
    trace           text,
    lost_generation bigint,                      -- whose lease had ended when the present owner took over
    lost_worker     text COLLATE "C",
    enqueued_at     timestamptz NOT NULL,
    finished_at     timestamptz,
    named           boolean NOT NULL DEFAULT FALSE,  -- the id was chosen by a person and may come again
    CHECK (CASE state
        WHEN 'available' THEN owner IS NULL AND lease_until IS NULL AND finished_at IS NULL
        WHEN 'running' THEN owner IS NOT NULL AND lease_until IS NOT NULL AND finished_at IS NULL
        WHEN 'completed' THEN owner IS NULL AND lease_until IS NULL AND finished_at IS NOT NULL
        WHEN 'cancelled' THEN owner IS NULL AND lease_until IS NULL AND finished_at IS NOT NULL
        WHEN 'discarded' THEN owner IS NULL AND lease_until IS NULL AND finished_at IS NOT NULL
        ELSE FALSE
    END)
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.05
);

-- In exactly the order of claims, so that the depth of a queue does not matter.
CREATE INDEX tenure_jobs_due ON tenure_jobs (queue, priority DESC, run_at, id) WHERE state = 'available';
-- No column that a renewal changes.
CREATE INDEX tenure_jobs_running ON tenure_jobs (queue, id) WHERE state = 'running';
CREATE UNIQUE INDEX tenure_jobs_unique ON tenure_jobs (task, unique_key)
    WHERE unique_key IS NOT NULL AND state IN ('available', 'running');

CREATE TABLE tenure_history (
    number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job         text COLLATE "C" NOT NULL,
    generation  bigint NOT NULL,
    at          timestamptz NOT NULL,
    event       text COLLATE "C" NOT NULL,
    worker      text COLLATE "C",
    reason      text,
    failure     text
);

CREATE INDEX tenure_history_job ON tenure_history (job, number);

CREATE TABLE tenure_steps (
    job         text COLLATE "C",
    step        text COLLATE "C",
    generation  bigint NOT NULL,
    result      text NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (job, step)
);

CREATE TABLE tenure_workers (
    owner       text COLLATE "C" PRIMARY KEY,
    name        text COLLATE "C" NOT NULL,
    host        text NOT NULL,
    pid         integer NOT NULL,
    queues      text NOT NULL,
    slots       integer NOT NULL,
    started_at  timestamptz NOT NULL,
    seen_at     timestamptz NOT NULL
);

-- The audit rule, in one place that no statement can forget: whenever a run ends other than by completion, and whenever
-- an operator moves a job that is not running, the generation that it happened to gets a line (R46). The conditions stand
-- at the triggers, so that an ordinary run calls no function.
CREATE FUNCTION tenure_note_turn() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO tenure_history (job, generation, at, event, worker, reason, failure)
    VALUES (OLD.id, OLD.generation, NEW.ended_at, NEW.ended, OLD.worker, NEW.reason, NEW.failure);
    RETURN NULL;
END $$;

CREATE TRIGGER tenure_jobs_history AFTER UPDATE OF state, generation ON tenure_jobs FOR EACH ROW
WHEN (OLD.owner IS NOT NULL AND (NEW.owner IS NULL OR NEW.generation <> OLD.generation)
    AND NEW.ended IS DISTINCT FROM 'complete')
EXECUTE FUNCTION tenure_note_turn();

CREATE FUNCTION tenure_note_operator() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO tenure_history (job, generation, at, event, worker, reason)
    VALUES (
        OLD.id, OLD.generation, coalesce(NEW.finished_at, NEW.run_at),
        CASE NEW.state WHEN 'available' THEN 'retry' WHEN 'cancelled' THEN 'cancel' ELSE 'discard' END,
        OLD.worker, NEW.reason
    );
    RETURN NULL;
END $$;

CREATE TRIGGER tenure_jobs_operated AFTER UPDATE OF state ON tenure_jobs FOR EACH ROW
WHEN (OLD.owner IS NULL AND NEW.owner IS NULL AND NEW.state <> OLD.state)
EXECUTE FUNCTION tenure_note_operator();

-- What belongs to a job goes with it. A removed id that a person chose may come again: the floor keeps its tokens from
-- repeating, whoever removed the row (R3).
CREATE FUNCTION tenure_forget_gone() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM tenure_history WHERE job = ANY (ARRAY(SELECT id FROM gone));
    DELETE FROM tenure_steps WHERE job = ANY (ARRAY(SELECT id FROM gone));
    UPDATE tenure_store SET floor = highest.generation
    FROM (SELECT max(generation) AS generation FROM gone WHERE named) AS highest
    WHERE floor < highest.generation;
    RETURN NULL;
END $$;

CREATE TRIGGER tenure_jobs_gone AFTER DELETE ON tenure_jobs REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION tenure_forget_gone();

CREATE FUNCTION tenure_forget_all() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE tenure_store SET floor = greatest(floor, (SELECT max(generation) FROM tenure_jobs WHERE named));
    DELETE FROM tenure_history;
    DELETE FROM tenure_steps;
    RETURN NULL;
END $$;

CREATE TRIGGER tenure_jobs_emptied BEFORE TRUNCATE ON tenure_jobs
FOR EACH STATEMENT EXECUTE FUNCTION tenure_forget_all();

-- Which database this is (R44): the cluster, its timeline, the database and the table. A promoted standby, a restored
-- backup and a copy each differ in one of them. It runs with the rights of its owner, so that every role sees the same
-- identity; what that owner may not ask stays "?", and then the other parts must do.
CREATE FUNCTION tenure_identity() RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    cluster text := '?';
    timeline text := '?';
BEGIN
    BEGIN
        cluster := (SELECT system_identifier FROM pg_catalog.pg_control_system());
    EXCEPTION WHEN insufficient_privilege THEN
        RAISE DEBUG 'the owner of tenure_identity() may not call pg_control_system()';
    END;
    BEGIN
        timeline := left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8);
    EXCEPTION WHEN insufficient_privilege THEN
        RAISE DEBUG 'the owner of tenure_identity() may not call pg_walfile_name() or pg_current_wal_lsn()';
    END;
    RETURN concat_ws(
        ':', cluster, timeline, (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()),
        'tenure_jobs'::regclass::oid
    );
END $$;

-- Milliseconds since 1970, as all clocks are told to clients; a part of a millisecond has not passed yet.
CREATE FUNCTION tenure_ms(moment timestamptz) RETURNS bigint LANGUAGE sql STABLE
RETURN floor(extract(epoch FROM moment) * 1000)::bigint;

-- Asked at the head of every transaction that comes through a pooler, which may have moved to another server since.
CREATE FUNCTION tenure_expect(known text) RETURNS void LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    IF tenure_identity() IS DISTINCT FROM known THEN
        RAISE EXCEPTION 'this is not the database that was admitted' USING ERRCODE = 'TN001';
    END IF;
END $$;
