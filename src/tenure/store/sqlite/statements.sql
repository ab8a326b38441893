-- Every statement of the SQLite store. The same names, parameters and columns stand in the PostgreSQL store's file.
--
-- Clocks: :now_ms is the wall clock and :boot_ms the host's boot clock in milliseconds, read by the session after it has
-- taken the write lock, so inside the atomic step (R12).

-- part: poison
(state = 'running' AND takeovers + 1 >= max_takeovers)

-- part: take
-- What a claim does to a row. The right-hand sides see the row as it was: a running one is being taken over.
    state = CASE WHEN @poison THEN 'discarded' ELSE 'running' END,
    owner = CASE WHEN @poison THEN NULL ELSE :owner END,
    worker = CASE WHEN @poison THEN worker ELSE :worker END,
    lease_until = CASE WHEN @poison THEN NULL ELSE :boot_ms + coalesce(:lease_ms, lease_ms) END,
    lease_ms = coalesce(:lease_ms, lease_ms),
    claimed_at = CASE WHEN @poison THEN claimed_at ELSE :now_ms END,
    finished_at = CASE WHEN @poison THEN :now_ms END,
    generation = max(generation, (SELECT floor FROM tenure_store)) + 1,
    takeovers = takeovers + (state = 'running'),
    lost_generation = CASE WHEN state = 'running' THEN generation END,
    lost_worker = CASE WHEN state = 'running' THEN worker END,
    ended = CASE WHEN state = 'running' THEN 'takeover' ELSE ended END,
    ended_at = CASE WHEN state = 'running' THEN :now_ms ELSE ended_at END,
    failure = CASE WHEN state = 'running' THEN NULL ELSE failure END,
    reason = CASE WHEN @poison THEN @lost WHEN state = 'running' THEN 'lease ended' ELSE reason END

-- part: lost
CASE takeovers WHEN 0 THEN 'worker lost once' ELSE 'worker lost ' || (takeovers + 1) || ' times' END

-- part: claimed
id, generation, state, task, queue, priority, arguments, attempts, takeovers, max_attempts, lease_ms, timeout_ms, trace,
    lost_generation, lost_worker, run_at

-- part: store
INSERT INTO tenure_jobs (
    id, task, queue, priority, run_at, lease_ms, max_attempts, max_takeovers, timeout_ms, unique_key, arguments, secret,
    trace, named, enqueued_at
) VALUES (
    :id, :task, :queue, :priority, coalesce(:run_at_ms, :now_ms) + :delay_ms, :lease_ms, :max_attempts, :max_takeovers,
    :timeout_ms, :unique_key, :arguments, :secret, :trace, :named, :now_ms
)
ON CONFLICT DO NOTHING
RETURNING id

-- name: enqueue
@store

-- name: enqueue_one
-- The same, for one job.
@store

-- name: enqueue_alike
-- The same: what is alike stands in the parameters, what is not in the rows.
@store

-- name: met
-- Which job stood in the way of an enqueue: the same id, or a live one with the same unique key.
SELECT :id, id FROM tenure_jobs WHERE id = :id
UNION ALL
SELECT :id, id FROM tenure_jobs
WHERE task = :task AND unique_key = :unique_key AND unique_key IS NOT NULL AND state IN ('available', 'running')
LIMIT 1

-- part: lanes
-- Lanes are the (queue, priority) pairs that hold anything, found by skipping through the index.
wanted (queue, place) AS (SELECT value, key FROM json_each(:queues)),
lane (queue, place, priority) AS (
    SELECT queue, place, (
        SELECT max(j.priority) FROM tenure_jobs AS j WHERE j.state = 'available' AND j.queue = wanted.queue
    ) FROM wanted
    UNION ALL
    SELECT queue, place, (
        SELECT max(j.priority) FROM tenure_jobs AS j
        WHERE j.state = 'available' AND j.queue = lane.queue AND j.priority < lane.priority
    ) FROM lane WHERE priority IS NOT NULL
)

-- name: claim
-- differs: what was claimed leaves no entry in an index here, so that a line begins where its first job stands
-- Within a lane the index is already in claim order, so the depth of a queue does not matter. CROSS JOIN keeps lanes
-- outermost, and LIMIT -1 keeps SQLite from dropping their order.
WITH RECURSIVE
@lanes,
expired (id) AS (
    SELECT id FROM tenure_jobs
    WHERE :takeovers AND state = 'running' AND queue IN (SELECT queue FROM wanted)
        AND task IN (SELECT value FROM json_each(:tasks)) AND lease_until <= :boot_ms AND generation < :max_generation
    ORDER BY lease_until
    LIMIT :limit
),
due (id) AS (
    SELECT j.id
    FROM (SELECT * FROM lane WHERE priority IS NOT NULL ORDER BY priority DESC, place LIMIT -1) AS best
    CROSS JOIN tenure_jobs AS j INDEXED BY tenure_jobs_due
    WHERE j.state = 'available' AND j.queue = best.queue AND j.priority = best.priority AND j.run_at <= :now_ms
        AND j.task IN (SELECT value FROM json_each(:tasks)) AND j.generation < :max_generation
    LIMIT :limit - (SELECT count(*) FROM expired)
)
UPDATE tenure_jobs SET
    @take
WHERE id IN (SELECT id FROM expired UNION ALL SELECT id FROM due)
    AND max(generation, (SELECT floor FROM tenure_store)) < :max_generation
RETURNING @claimed

-- name: outlook
-- Whether a job is due, whether a lease has ended, and milliseconds until time alone will make the next one claimable.
WITH RECURSIVE
@lanes
SELECT coalesce(max(ms <= 0) FILTER (WHERE NOT leased), FALSE), coalesce(max(ms <= 0) FILTER (WHERE leased), FALSE),
    min(ms) FILTER (WHERE ms > 0)
FROM (
    SELECT lease_until - :boot_ms AS ms, TRUE AS leased FROM tenure_jobs
    WHERE state = 'running' AND queue IN (SELECT queue FROM wanted)
    UNION ALL
    SELECT (
        SELECT min(j.run_at) FROM tenure_jobs AS j
        WHERE j.state = 'available' AND j.queue = lane.queue AND j.priority = lane.priority
    ) - :now_ms, FALSE FROM lane WHERE priority IS NOT NULL
    UNION ALL
    SELECT (
        SELECT min(j.run_at) FROM tenure_jobs AS j
        WHERE j.state = 'available' AND j.queue = lane.queue AND j.priority = lane.priority AND j.run_at > :now_ms
    ) - :now_ms, FALSE FROM lane WHERE priority IS NOT NULL
)

-- name: create_named
INSERT INTO tenure_jobs (id, queue, run_at, lease_ms, named, enqueued_at)
SELECT :job, '', :now_ms, :lease_ms, TRUE, :now_ms FROM tenure_store WHERE floor < :max_generation
ON CONFLICT DO NOTHING
RETURNING id

-- name: claim_named
UPDATE tenure_jobs SET
    @take
WHERE id = :job
    AND ((state = 'available' AND run_at <= :now_ms) OR (state = 'running' AND lease_until <= :boot_ms))
    AND max(generation, (SELECT floor FROM tenure_store)) < :max_generation
RETURNING @claimed

-- name: renew
-- Only a lease that has not ended can be kept (R6), and none is ever shortened: its holder may believe in the longer end.
UPDATE tenure_jobs SET lease_until = max(lease_until, :boot_ms + coalesce(:duration_ms, lease_ms))
WHERE id = :job AND owner = :owner AND generation = :generation AND lease_until > :boot_ms
RETURNING id, generation

-- part: ours
-- A caller's transaction says by what it has met the file before. What changes a job there looks again in the same step;
-- on the store's own connections, where :boot is NULL, that was looked at when they were opened.
(:boot IS NULL OR (
    SELECT identity IS :identity AND boot IS :boot AND (SELECT max(number) FROM tenure_migrations) >= :schema
    FROM tenure_store
))

-- name: look
-- differs: PostgreSQL's stands with what else a connection is asked before its first verb
SELECT @ours

-- part: completion
    state = :target,
    owner = NULL,
    lease_until = NULL,
    finished_at = :now_ms,
    ended = :verb,
    ended_at = :now_ms,
    failure = NULL,
    reason = NULL

-- name: complete
-- What `settle` does to one run that is completed, which is how nearly every run ends.
UPDATE tenure_jobs SET
    result = :result,
    @completion
WHERE id = :job AND owner = :owner AND generation = :generation AND @ours
RETURNING id, generation

-- name: complete_all
-- What `settle` does where all are completed, which is how nearly every turn ends. The likelihood is for the planner: what
-- it was once told of a small table must not make it read all of a big one.
UPDATE tenure_jobs SET
    result = done.result,
    @completion
FROM (
    WITH done (job, generation, result) AS (VALUES (:job, :generation, :result))
    SELECT * FROM done
) AS done
WHERE id = done.job AND owner = :owner AND tenure_jobs.generation = done.generation
    AND likelihood(done.generation > 0, 0.001)
RETURNING id, generation

-- name: settle
-- The end of a run under its token, accepted late as long as nobody else has claimed (R5, R6).
UPDATE tenure_jobs SET
    state = CASE WHEN :counts AND attempts + 1 >= max_attempts THEN 'discarded' ELSE :target END,
    attempts = attempts + :counts,
    owner = NULL,
    lease_until = NULL,
    run_at = CASE WHEN :target = 'available' THEN :now_ms + :delay_ms ELSE run_at END,
    finished_at = CASE WHEN :target <> 'available' OR (:counts AND attempts + 1 >= max_attempts) THEN :now_ms END,
    ended = :verb,
    ended_at = :now_ms,
    result = :result,
    failure = :failure,
    reason = CASE WHEN :reason IS NULL AND :counts AND attempts + 1 >= max_attempts THEN 'attempts used up' ELSE :reason END
WHERE id = :job AND owner = :owner AND generation = :generation
RETURNING id, generation

-- name: free
-- Who has begun a transaction has locked everything: nobody else can have locked a single job.
SELECT id, generation FROM tenure_jobs WHERE id = :job AND owner = :owner AND generation = :generation

-- name: explain
-- What stands in the way of an owner's write.
SELECT id, state, generation, owner, worker, ended, result, lease_until - :boot_ms FROM tenure_jobs WHERE id = :job

-- name: note_refused
INSERT INTO tenure_history (job, generation, at, event, worker)
SELECT :job, :generation, :now_ms, :event, coalesce(
    (SELECT name FROM tenure_workers WHERE owner = :owner),
    -- Who holds a bare lease has not reported itself, but the end of its right is in the history.
    (SELECT max(worker) FROM tenure_history WHERE job = :job AND generation = :generation)
)
FROM tenure_jobs WHERE id = :job
RETURNING number

-- name: progress
UPDATE tenure_jobs SET progress = :value
WHERE id = :job AND owner = :owner AND generation = :generation
RETURNING id

-- name: recall_step
SELECT result FROM tenure_steps WHERE job = :job AND step = :step

-- name: record_step
INSERT INTO tenure_steps (job, step, generation, result, at)
SELECT id, :step, generation, :result, :now_ms FROM tenure_jobs
WHERE id = :job AND owner = :owner AND generation = :generation
ON CONFLICT (job, step) DO NOTHING
RETURNING step

-- name: guard
-- The session has taken the write lock, which holds off every claim.
SELECT id FROM tenure_jobs WHERE id = :job AND owner = :owner AND generation = :generation AND @ours

-- name: held
SELECT id, generation FROM tenure_jobs WHERE state = 'running' AND owner = :owner

-- part: record
id, task, queue, priority, state, run_at, generation, worker, lease_ms, lease_until - :boot_ms, claimed_at, attempts,
    max_attempts, takeovers, max_takeovers, timeout_ms, unique_key, secret, ended, ended_at, reason, trace,
    lost_generation, lost_worker, enqueued_at, finished_at, :now_ms

-- name: get
SELECT @record, failure, arguments, result, progress FROM tenure_jobs WHERE id = :job

-- part: failed
-- What a list tells of a failure: neither message nor traceback.
CASE WHEN failure IS NOT NULL THEN json_object(
    'type', json_extract(failure, '$.type'), 'where', json_extract(failure, '$.where'), 'message', ''
) END

-- part: which
(:ids IS NULL OR id IN (SELECT value FROM json_each(:ids)))
    AND (:queue IS NULL OR queue = :queue)
    AND (:task IS NULL OR task = :task)
    AND (:state IS NULL OR state = :state)

-- name: find_newest
SELECT @record, @failed FROM tenure_jobs
WHERE (:after IS NULL OR id < :after) AND @which
ORDER BY id DESC
LIMIT :limit

-- name: find_oldest
SELECT @record, @failed FROM tenure_jobs
WHERE (:after IS NULL OR id > :after) AND @which
ORDER BY id
LIMIT :limit

-- name: history
SELECT job, generation, at, event, worker, reason, failure FROM tenure_history WHERE job = :job ORDER BY number

-- name: operate
-- by: operator
-- Checked again as it is carried out (R10); taking a running job away makes its owner's token stale at once (R2).
UPDATE tenure_jobs SET
    state = :target,
    generation = generation + (state = 'running'),
    owner = NULL,
    lease_until = NULL,
    run_at = CASE WHEN :target = 'available' THEN :now_ms ELSE run_at END,
    finished_at = CASE WHEN :target = 'available' THEN NULL ELSE :now_ms END,
    attempts = CASE WHEN :restarts THEN 0 ELSE attempts END,
    takeovers = CASE WHEN :restarts THEN 0 ELSE takeovers END,
    result = CASE WHEN :restarts THEN NULL ELSE result END,
    ended = CASE WHEN state = 'running' THEN :verb ELSE ended END,
    ended_at = CASE WHEN state = 'running' THEN :now_ms ELSE ended_at END,
    failure = CASE WHEN state = 'running' THEN NULL ELSE failure END,
    reason = :reason
WHERE id = :job AND state IN (SELECT value FROM json_each(:sources))
    AND NOT (:restarts AND unique_key IS NOT NULL AND EXISTS (
        SELECT 1 FROM tenure_jobs AS rival
        WHERE rival.task = tenure_jobs.task AND rival.unique_key = tenure_jobs.unique_key
            AND rival.state IN ('available', 'running')
    ))
RETURNING id

-- name: prune_look
SELECT id FROM tenure_jobs WHERE id > :after ORDER BY id LIMIT :limit

-- name: prune
-- by: upkeep
DELETE FROM tenure_jobs WHERE id > :after AND id <= :upto AND finished_at <= :now_ms - :before_ms
RETURNING id

-- name: queues
-- A bare lease that nobody owns waits for nothing.
SELECT queue,
    count(*) FILTER (WHERE state = 'available' AND run_at <= :now_ms),
    count(*) FILTER (WHERE state = 'available' AND run_at > :now_ms),
    count(*) FILTER (WHERE state = 'running' AND lease_until > :boot_ms),
    count(*) FILTER (WHERE state = 'running' AND lease_until <= :boot_ms)
FROM tenure_jobs
WHERE state IN ('available', 'running') AND (task IS NOT NULL OR state = 'running')
GROUP BY queue
ORDER BY queue

-- name: report
INSERT INTO tenure_workers (owner, name, host, pid, queues, slots, started_at, seen_at)
VALUES (:owner, :name, :host, :pid, :queues, :slots, :now_ms, :now_ms)
ON CONFLICT (owner) DO UPDATE SET seen_at = excluded.seen_at
RETURNING owner

-- name: foremost
-- What has been due longest in each lane: a row by the index for each, however deep the queue is.
WITH RECURSIVE
@lanes
SELECT lane.queue, j.task, :now_ms - j.run_at
FROM lane CROSS JOIN tenure_jobs AS j
WHERE lane.priority IS NOT NULL AND j.rowid = (
    SELECT due.rowid FROM tenure_jobs AS due INDEXED BY tenure_jobs_due
    WHERE due.state = 'available' AND due.queue = lane.queue AND due.priority = lane.priority AND due.run_at <= :now_ms
    ORDER BY due.run_at, due.id
    LIMIT 1
)

-- name: forget
DELETE FROM tenure_workers WHERE owner = :owner OR seen_at <= :now_ms - :silent_ms
RETURNING owner

-- name: workers
SELECT owner, name, host, pid, queues, slots, started_at, :now_ms - seen_at,
    (SELECT count(*) FROM tenure_jobs AS j WHERE j.state = 'running' AND j.owner = w.owner)
FROM tenure_workers AS w
ORDER BY started_at, owner

-- name: admit
SELECT floor, identity IS :identity FROM tenure_store

-- name: lift_floor
UPDATE tenure_store SET floor = :generation WHERE floor < :generation
RETURNING floor

-- name: raise_floor
-- Checked again as it is carried out, so that of many workers that notice a changed identity only one raises (R10, R44).
UPDATE tenure_store SET
    floor = CASE
        WHEN identity IS NULL AND NOT :force THEN floor
        ELSE max(floor, coalesce((SELECT max(generation) FROM tenure_jobs), 0)) + :step
    END,
    identity = :identity
WHERE :force OR identity IS NOT :identity
RETURNING floor
