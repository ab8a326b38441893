-- Every statement of the PostgreSQL store. The same names, parameters and columns stand in the SQLite store's file.
--
-- Clock: `@clock` is the server's clock at the moment of the call, moved by :shift_ms in tests. A statement that decides
-- about a lease or stamps its end locks its rows first and reads the clock after that, in a step that depends on the
-- locks (R12): if a wait for a lock ended without a change, PostgreSQL would not look at the condition again.
--
-- Plans: a statement must run well on any statistics, because those of a queue are always stale. So rows are found by one
-- index each, in a subquery that runs once and hands over ids (`id = ANY (ARRAY(...))`) or for each row of another
-- (LATERAL with a lock, which the planner cannot turn round), and nothing is left to a join.
--
-- Locks are FOR NO KEY UPDATE, what an UPDATE takes: a foreign key of the application to a job hinders nobody.

-- part: clock
(clock_timestamp() + :shift_ms::bigint * interval '1 millisecond')

-- part: poison
(state = 'running' AND takeovers + 1 >= max_takeovers)

-- part: take
-- What a claim does to a row. The right-hand sides see the row as it was: a running one is being taken over.
    state = CASE WHEN @poison THEN 'discarded' ELSE 'running' END,
    owner = CASE WHEN @poison THEN NULL ELSE :owner::text END,
    worker = CASE WHEN @poison THEN worker ELSE :worker::text END,
    lease_until = CASE WHEN @poison THEN NULL
        ELSE (SELECT moment FROM taken) + coalesce(:lease_ms::bigint, lease_ms) * interval '1 millisecond' END,
    lease_ms = coalesce(:lease_ms::bigint, lease_ms),
    claimed_at = CASE WHEN @poison THEN claimed_at ELSE (SELECT moment FROM taken) END,
    finished_at = CASE WHEN @poison THEN (SELECT moment FROM taken) END,
    generation = greatest(generation, (SELECT floor FROM tenure_store WHERE one = 1)) + 1,
    takeovers = takeovers + (state = 'running')::integer,
    lost_generation = CASE WHEN state = 'running' THEN generation END,
    lost_worker = CASE WHEN state = 'running' THEN worker END,
    ended = CASE WHEN state = 'running' THEN 'takeover' ELSE ended END,
    ended_at = CASE WHEN state = 'running' THEN (SELECT moment FROM taken) ELSE ended_at END,
    failure = CASE WHEN state = 'running' THEN NULL ELSE failure END,
    reason = CASE WHEN @poison THEN @lost WHEN state = 'running' THEN 'lease ended' ELSE reason END
WHERE id = ANY ((SELECT ids FROM taken)::text[])
    AND greatest(generation, (SELECT floor FROM tenure_store WHERE one = 1)) < :max_generation::bigint

-- part: lost
CASE takeovers WHEN 0 THEN 'worker lost once' ELSE 'worker lost ' || (takeovers + 1) || ' times' END

-- part: claimed
id, generation, state, task, queue, priority, arguments, attempts, takeovers, max_attempts, lease_ms, timeout_ms, trace,
    lost_generation, lost_worker, tenure_ms(run_at)

-- part: rung
-- Wakes listeners, once for each queue that has got due jobs; a notice carries the queue's name and nothing else (B35).
rung AS (
    SELECT pg_notify('tenure', queue)
    FROM (SELECT DISTINCT queue FROM changed WHERE state = 'available' AND run_at <= @clock) AS due
)

-- part: stored
-- What an enqueue does besides storing rows.
    ON CONFLICT DO NOTHING
    RETURNING id, queue, state, run_at
),
@rung
SELECT id FROM changed WHERE (SELECT count(*) FROM rung) IS NOT NULL

-- name: enqueue
-- Rows come, and are stored, in one order by everybody, so that two enqueues of the same jobs cannot deadlock (B34).
WITH changed AS (
    INSERT INTO tenure_jobs (
        id, task, queue, priority, run_at, lease_ms, max_attempts, max_takeovers, timeout_ms, unique_key, arguments,
        secret, trace, named, enqueued_at
    )
    SELECT id, task, queue, priority,
        coalesce(timestamptz 'epoch' + run_at_ms * interval '1 millisecond', moment) + delay_ms * interval '1 millisecond',
        lease_ms, max_attempts, max_takeovers, timeout_ms, unique_key, arguments, secret, trace, named, moment
    FROM (SELECT @clock AS moment) AS clock, unnest(
        :id::text[], :task::text[], :queue::text[], :priority::integer[], :run_at_ms::bigint[], :delay_ms::bigint[],
        :lease_ms::bigint[], :max_attempts::integer[], :max_takeovers::integer[], :timeout_ms::bigint[],
        :unique_key::text[], :arguments::text[], :secret::text[], :trace::text[], :named::boolean[]
    ) AS job (
        id, task, queue, priority, run_at_ms, delay_ms, lease_ms, max_attempts, max_takeovers, timeout_ms, unique_key,
        arguments, secret, trace, named
    )
@stored

-- name: enqueue_one
-- What `enqueue` does to one job, without a join, a sort and a count that would cost more than to store it. To ring
-- returns an empty text.
INSERT INTO tenure_jobs (
    id, task, queue, priority, run_at, lease_ms, max_attempts, max_takeovers, timeout_ms, unique_key, arguments, secret,
    trace, named, enqueued_at
)
SELECT :id::text, :task::text, :queue::text, :priority::integer,
    coalesce(timestamptz 'epoch' + :run_at_ms::bigint * interval '1 millisecond', moment)
        + :delay_ms::bigint * interval '1 millisecond',
    :lease_ms::bigint, :max_attempts::integer, :max_takeovers::integer, :timeout_ms::bigint, :unique_key::text,
    :arguments::text, :secret::text, :trace::text, :named::boolean, moment
FROM (SELECT @clock AS moment) AS clock
ON CONFLICT DO NOTHING
RETURNING id || CASE WHEN run_at <= @clock THEN pg_notify('tenure', queue)::text ELSE '' END

-- name: enqueue_alike
-- What `enqueue` does to jobs that differ in nothing but id and arguments, which is how most come.
WITH changed AS (
    INSERT INTO tenure_jobs (
        id, task, queue, priority, run_at, lease_ms, max_attempts, max_takeovers, timeout_ms, unique_key, arguments,
        secret, trace, named, enqueued_at
    )
    SELECT id, :task::text, :queue::text, :priority::integer,
        coalesce(timestamptz 'epoch' + :run_at_ms::bigint * interval '1 millisecond', moment)
            + :delay_ms::bigint * interval '1 millisecond',
        :lease_ms::bigint, :max_attempts::integer, :max_takeovers::integer, :timeout_ms::bigint, :unique_key::text,
        arguments, :secret::text, :trace::text, :named::boolean, moment
    FROM (SELECT @clock AS moment) AS clock, unnest(:id::text[], :arguments::text[]) AS job (id, arguments)
@stored

-- name: met
-- Which job stood in the way of an enqueue: the same id, or a live one with the same unique key.
SELECT asked.id, found.id
FROM unnest(:id::text[], :task::text[], :unique_key::text[]) AS asked (id, task, unique_key)
CROSS JOIN LATERAL (
    SELECT id FROM tenure_jobs WHERE id = asked.id
    UNION ALL
    SELECT id FROM tenure_jobs
    WHERE task = asked.task AND unique_key = asked.unique_key AND unique_key IS NOT NULL
        AND state IN ('available', 'running')
    LIMIT 1
) AS found

-- part: lanes
-- Lanes are the (queue, priority) pairs that hold anything. Those that are `known` are taken for granted; the others are
-- found in the gaps between them, by skipping through the index from its end: what was claimed lies at the head of a lane,
-- and its entries are walked over for as long as any transaction could still see it.
wanted (queue, place) AS (
    SELECT queue, min(place) FROM unnest(:queues::text[]) WITH ORDINALITY AS named (queue, place) GROUP BY queue
),
gap (queue, place, above, below) AS (
    SELECT wanted.queue, place, priority, lead(priority) OVER (PARTITION BY wanted.queue ORDER BY priority)
    FROM wanted JOIN known ON known.queue = wanted.queue
    UNION ALL
    SELECT queue, place, NULL, (SELECT min(priority) FROM known WHERE known.queue = wanted.queue) FROM wanted
),
found (queue, place, priority, below) AS (
    SELECT gap.queue, gap.place, least.priority, gap.below
    FROM gap CROSS JOIN LATERAL (
        SELECT j.priority FROM tenure_jobs AS j
        WHERE j.state = 'available' AND j.queue = gap.queue
            AND j.priority > coalesce(gap.above, @below_all) AND j.priority < coalesce(gap.below, @above_all)
        ORDER BY j.priority, j.run_at DESC LIMIT 1
    ) AS least
    UNION ALL
    SELECT found.queue, found.place, next.priority, found.below
    FROM found CROSS JOIN LATERAL (
        SELECT j.priority FROM tenure_jobs AS j
        WHERE j.state = 'available' AND j.queue = found.queue
            AND j.priority > found.priority AND j.priority < coalesce(found.below, @above_all)
        ORDER BY j.priority, j.run_at DESC LIMIT 1
    ) AS next
),
lane (queue, place, priority) AS (
    SELECT queue, place, priority FROM found
    UNION ALL
    SELECT wanted.queue, place, priority FROM wanted JOIN known ON known.queue = wanted.queue
)

-- part: below_all
(-2147483649)

-- part: above_all
2147483648

-- name: claim
-- Within a lane the index is already in claim order, so that the depth of a queue does not matter. Rows are locked one by
-- one as the outer LIMIT asks for them, and `taken` reads each subquery exactly once, so that no plan can take more than
-- the limit (R9). A lane whose head is known is read from there on.
WITH RECURSIVE
known (queue, priority) AS (
    SELECT DISTINCT queue, priority FROM unnest(:head_queue::text[], :head_priority::integer[]) AS head (queue, priority)
),
@lanes,
expired AS MATERIALIZED (
    SELECT id FROM tenure_jobs
    WHERE :takeovers::boolean AND state = 'running' AND queue = ANY (:queues::text[])
        AND task = ANY (:tasks::text[]) AND lease_until <= (SELECT @clock) AND generation < :max_generation::bigint
    ORDER BY lease_until
    LIMIT :limit::bigint
    FOR NO KEY UPDATE SKIP LOCKED
),
due AS MATERIALIZED (
    SELECT job.id
    FROM (SELECT queue, priority FROM lane ORDER BY priority DESC, place) AS best
    CROSS JOIN LATERAL (
        SELECT j.id FROM tenure_jobs AS j
        WHERE j.state = 'available' AND j.queue = best.queue AND j.priority = best.priority
            AND j.run_at >= coalesce((
                SELECT max(timestamptz 'epoch' + run_at_ms * interval '1 millisecond')
                FROM unnest(:head_queue::text[], :head_priority::integer[], :head_run_at_ms::bigint[])
                    AS head (queue, priority, run_at_ms)
                WHERE head.queue = best.queue AND head.priority = best.priority
            ), '-infinity')
            AND j.run_at <= (SELECT @clock)
            AND j.task = ANY (:tasks::text[]) AND j.generation < :max_generation::bigint
        ORDER BY j.run_at, j.id
        LIMIT :limit::bigint
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS job
    LIMIT :limit::bigint - (SELECT count(*) FROM expired)
),
taken AS MATERIALIZED (
    SELECT array_agg(id) AS ids, @clock AS moment
    FROM (SELECT id FROM expired UNION ALL SELECT id FROM due) AS locked
)
UPDATE tenure_jobs SET
    @take
RETURNING @claimed

-- name: outlook
-- Whether a job is due, whether a lease has ended, and milliseconds until time alone will make the next one claimable.
WITH RECURSIVE
known (queue, priority) AS (SELECT NULL::text, NULL::integer WHERE FALSE),
@lanes,
clock AS MATERIALIZED (SELECT @clock AS moment)
SELECT coalesce(bool_or(at <= (SELECT moment FROM clock)) FILTER (WHERE NOT leased), FALSE),
    coalesce(bool_or(at <= (SELECT moment FROM clock)) FILTER (WHERE leased), FALSE),
    ceil(extract(epoch FROM
        min(at) FILTER (WHERE at > (SELECT moment FROM clock)) - (SELECT moment FROM clock)) * 1000)::bigint
FROM (
    SELECT lease_until AS at, TRUE AS leased FROM tenure_jobs
    WHERE state = 'running' AND queue = ANY (:queues::text[])
    UNION ALL
    SELECT (
        SELECT j.run_at FROM tenure_jobs AS j
        WHERE j.state = 'available' AND j.queue = lane.queue AND j.priority = lane.priority
            AND j.run_at <= (SELECT moment FROM clock)
        ORDER BY j.run_at DESC LIMIT 1
    ), FALSE FROM lane
    UNION ALL
    SELECT (
        SELECT j.run_at FROM tenure_jobs AS j
        WHERE j.state = 'available' AND j.queue = lane.queue AND j.priority = lane.priority
            AND j.run_at > (SELECT moment FROM clock)
        ORDER BY j.run_at LIMIT 1
    ), FALSE FROM lane
) AS moments

-- name: create_named
INSERT INTO tenure_jobs (id, queue, run_at, lease_ms, named, enqueued_at)
SELECT :job::text, '', moment, :lease_ms::bigint, TRUE, moment
FROM tenure_store, (SELECT @clock AS moment) AS clock WHERE one = 1 AND floor < :max_generation::bigint
ON CONFLICT DO NOTHING
RETURNING id

-- name: claim_named
WITH locked AS MATERIALIZED (
    SELECT id, state, run_at, lease_until FROM tenure_jobs WHERE id = :job::text FOR NO KEY UPDATE
),
clock AS MATERIALIZED (SELECT @clock AS moment FROM (SELECT count(*) FROM locked) AS after_the_lock),
taken AS MATERIALIZED (
    SELECT array_agg(id) AS ids, max(moment) AS moment
    FROM locked, clock
    WHERE (state = 'available' AND run_at <= moment) OR (state = 'running' AND lease_until <= moment)
)
UPDATE tenure_jobs SET
    @take
RETURNING @claimed

-- name: renew
-- Only a lease that has not ended can be kept (R6). None is ever shortened. A row that another transaction has locked is left out instead of
-- waited for: one handler's guard must not hold up the renewals of all others.
WITH held AS MATERIALIZED (
    SELECT mine.id, mine.lease_until
    FROM unnest(:job::text[], :generation::bigint[]) AS token (job, generation)
    CROSS JOIN LATERAL (
        SELECT id, lease_until FROM tenure_jobs
        WHERE id = token.job AND owner = :owner::text AND generation = token.generation
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS mine
),
clock AS MATERIALIZED (SELECT @clock AS moment FROM (SELECT count(*) FROM held) AS after_the_locks)
UPDATE tenure_jobs
SET lease_until = greatest(
    lease_until, (SELECT moment FROM clock) + coalesce(:duration_ms::bigint, lease_ms) * interval '1 millisecond'
)
WHERE id = ANY (ARRAY(SELECT id FROM held WHERE lease_until > (SELECT moment FROM clock)))
RETURNING id, generation

-- part: ours
-- A caller's transaction says which table is the store's. What changes a job there looks in the same step whether it
-- means that table, whatever its search_path says now, and whether its commit will be durable (R42); on the store's own
-- connections, where :table is NULL, that was looked at when they were opened.
(:table::oid IS NULL
    OR ('tenure_jobs'::regclass = :table::oid AND current_setting('synchronous_commit') IN ('on', 'remote_apply')))

-- part: completion
    state = :target::text,
    owner = NULL,
    lease_until = NULL,
    finished_at = moment,
    ended = :verb::text,
    ended_at = moment,
    failure = NULL,
    reason = NULL

-- name: complete
-- What `settle` does to one run that is completed, which is how nearly every run ends.
UPDATE tenure_jobs SET
    @completion,
    result = :result::text
FROM (SELECT @clock AS moment) AS clock
WHERE id = :job::text AND owner = :owner::text AND generation = :generation::bigint AND @ours
RETURNING id, generation

-- name: complete_all
-- What `settle` does where all are completed, which is how nearly every turn ends.
UPDATE tenure_jobs AS job SET
    @completion,
    result = ending.result
FROM (SELECT @clock AS moment) AS clock,
    unnest(:job::text[], :generation::bigint[], :result::text[]) AS ending (job, generation, result)
WHERE id = ANY (ARRAY[ending.job]) AND owner = :owner::text AND job.generation = ending.generation
RETURNING id, job.generation

-- name: settle
-- The end of a run under its token, accepted late as long as nobody else has claimed (R5, R6). Of several endings under one
-- token the first counts. The row is compared with an array of one id, which only a lookup for each ending can answer: with
-- `=` a plan from when the table was empty walks all of it. The state is not asked: it would draw the planner to the index
-- of running jobs, which is full of dead entries.
WITH clock AS MATERIALIZED (SELECT @clock AS moment),
changed AS (
    UPDATE tenure_jobs AS job SET
        state = CASE WHEN @used_up THEN 'discarded' ELSE target END,
        attempts = attempts + counts::integer,
        owner = NULL,
        lease_until = NULL,
        run_at = CASE WHEN target = 'available'
            THEN (SELECT moment FROM clock) + delay_ms * interval '1 millisecond' ELSE run_at END,
        finished_at = CASE WHEN target <> 'available' OR @used_up THEN (SELECT moment FROM clock) END,
        ended = verb,
        ended_at = (SELECT moment FROM clock),
        result = ending.result,
        failure = ending.failure,
        reason = CASE WHEN @used_up THEN coalesce(ending.reason, 'attempts used up') ELSE ending.reason END
    FROM unnest(
        :job::text[], :generation::bigint[], :verb::text[], :target::text[], :counts::boolean[], :delay_ms::bigint[],
        :result::text[], :reason::text[], :failure::text[]
    ) AS ending (job, generation, verb, target, counts, delay_ms, result, reason, failure)
    WHERE id = ANY (ARRAY[ending.job]) AND owner = :owner::text AND job.generation = ending.generation
    RETURNING id, job.generation, queue, state, run_at
),
@rung
SELECT id, generation FROM changed WHERE (SELECT count(*) FROM rung) IS NOT NULL

-- part: used_up
(counts AND coalesce(attempts + 1 >= max_attempts, FALSE))

-- name: free
-- Which of these jobs nobody else has locked: a handler may have left the transaction of its guard open.
SELECT mine.id, mine.generation
FROM unnest(:job::text[], :generation::bigint[]) AS token (job, generation)
CROSS JOIN LATERAL (
    SELECT id, generation FROM tenure_jobs
    WHERE id = token.job AND owner = :owner::text AND generation = token.generation
    FOR NO KEY UPDATE SKIP LOCKED
) AS mine

-- name: explain
-- What stands in the way of an owner's write.
SELECT id, state, generation, owner, worker, ended, result,
    ceil(extract(epoch FROM lease_until - @clock) * 1000)::bigint
FROM tenure_jobs WHERE id = ANY (:job::text[])

-- name: note_refused
INSERT INTO tenure_history (job, generation, at, event, worker)
SELECT refused.job, refused.generation, @clock, refused.event,
    coalesce(
        (SELECT name FROM tenure_workers WHERE owner = :owner::text),
        -- Who holds a bare lease has not reported itself, but the end of its right is in the history.
        (SELECT max(worker) FROM tenure_history WHERE job = refused.job AND generation = refused.generation)
    )
FROM unnest(:job::text[], :generation::bigint[], :event::text[]) AS refused (job, generation, event)
WHERE EXISTS (SELECT FROM tenure_jobs WHERE id = refused.job)
RETURNING number

-- name: progress
UPDATE tenure_jobs SET progress = :value::text
WHERE id = :job::text AND owner = :owner::text AND generation = :generation::bigint
RETURNING id

-- name: recall_step
SELECT result FROM tenure_steps WHERE job = :job::text AND step = :step::text

-- name: record_step
-- The row is locked, so that no claim can come between the check of the token and the step (protocol.md, B.8).
WITH held AS MATERIALIZED (
    SELECT id FROM tenure_jobs
    WHERE id = :job::text AND owner = :owner::text AND generation = :generation::bigint
    FOR SHARE
)
INSERT INTO tenure_steps (job, step, generation, result, at)
SELECT id, :step::text, :generation::bigint, :result::text, @clock FROM held
ON CONFLICT (job, step) DO NOTHING
RETURNING step

-- name: guard
-- Strong enough to hold off the next claim until the caller's transaction ends; FOR KEY SHARE would not be (protocol.md,
-- B.8), and FOR SHARE would have to be exchanged for this by a completion in the same transaction.
SELECT id FROM tenure_jobs
WHERE id = :job::text AND owner = :owner::text AND generation = :generation::bigint AND @ours
FOR NO KEY UPDATE

-- name: held
SELECT id, generation FROM tenure_jobs WHERE state = 'running' AND owner = :owner::text

-- part: record
id, task, queue, priority, state, tenure_ms(run_at), generation, worker, lease_ms,
    ceil(extract(epoch FROM lease_until - moment) * 1000)::bigint, tenure_ms(claimed_at), attempts, max_attempts,
    takeovers, max_takeovers, timeout_ms, unique_key, secret, ended, tenure_ms(ended_at), reason, trace,
    lost_generation, lost_worker, tenure_ms(enqueued_at), tenure_ms(finished_at), tenure_ms(moment)

-- name: get
SELECT @record, failure, arguments, result, progress FROM tenure_jobs, (SELECT @clock AS moment) AS clock
WHERE id = :job::text

-- part: failed
-- What a list tells of a failure: neither message nor traceback.
CASE WHEN failure IS NOT NULL THEN json_build_object(
    'type', failure::json ->> 'type', 'where', failure::json ->> 'where', 'message', ''
)::text END

-- part: which
(:queue::text IS NULL OR queue = :queue::text)
    AND (:task::text IS NULL OR task = :task::text)
    AND (:state::text IS NULL OR state = :state::text)

-- name: find_newest
-- Ids that were named are looked up; otherwise the walk begins behind the last one seen. One of the two does not run.
SELECT @record, @failed FROM tenure_jobs, (SELECT @clock AS moment) AS clock
WHERE id = ANY (ARRAY(
    SELECT id FROM tenure_jobs
    WHERE :ids::text[] IS NOT NULL AND id = ANY (:ids::text[]) AND id < coalesce(:after::text, chr(1114111)) AND @which
    UNION ALL (
        SELECT id FROM tenure_jobs
        WHERE :ids::text[] IS NULL AND id < coalesce(:after::text, chr(1114111)) AND @which
        ORDER BY id DESC LIMIT :limit::bigint
    )
))
ORDER BY id DESC
LIMIT :limit::bigint

-- name: find_oldest
SELECT @record, @failed FROM tenure_jobs, (SELECT @clock AS moment) AS clock
WHERE id = ANY (ARRAY(
    SELECT id FROM tenure_jobs
    WHERE :ids::text[] IS NOT NULL AND id = ANY (:ids::text[]) AND id > coalesce(:after::text, '') AND @which
    UNION ALL (
        SELECT id FROM tenure_jobs
        WHERE :ids::text[] IS NULL AND id > coalesce(:after::text, '') AND @which
        ORDER BY id LIMIT :limit::bigint
    )
))
ORDER BY id
LIMIT :limit::bigint

-- name: history
SELECT job, generation, tenure_ms(at), event, worker, reason, failure
FROM tenure_history WHERE job = :job::text ORDER BY number

-- name: operate
-- by: operator
-- Checked again as it is carried out (R10), on the rows as they are under their locks, taken in order of id; taking a running
-- job away makes its owner's token stale at once (R2). Of several jobs with one unique key, the first is brought back.
WITH met AS MATERIALIZED (
    SELECT id, task, unique_key, state FROM tenure_jobs WHERE id = ANY (:job::text[]) ORDER BY id FOR NO KEY UPDATE
),
clock AS MATERIALIZED (SELECT @clock AS moment FROM (SELECT count(*) FROM met) AS after_the_locks),
changed AS (
    UPDATE tenure_jobs SET
        state = :target::text,
        generation = generation + (state = 'running')::integer,
        owner = NULL,
        lease_until = NULL,
        run_at = CASE WHEN :target::text = 'available' THEN (SELECT moment FROM clock) ELSE run_at END,
        finished_at = CASE WHEN :target::text = 'available' THEN NULL ELSE (SELECT moment FROM clock) END,
        attempts = CASE WHEN :restarts::boolean THEN 0 ELSE attempts END,
        takeovers = CASE WHEN :restarts::boolean THEN 0 ELSE takeovers END,
        result = CASE WHEN :restarts::boolean THEN NULL ELSE result END,
        ended = CASE WHEN state = 'running' THEN :verb::text ELSE ended END,
        ended_at = CASE WHEN state = 'running' THEN (SELECT moment FROM clock) ELSE ended_at END,
        failure = CASE WHEN state = 'running' THEN NULL ELSE failure END,
        reason = :reason::text
    WHERE id = ANY (ARRAY(
        SELECT met.id FROM met
        WHERE met.state = ANY (:sources::text[])
            AND NOT (:restarts::boolean AND met.unique_key IS NOT NULL AND (
                EXISTS (
                    SELECT FROM tenure_jobs AS rival
                    WHERE rival.task = met.task AND rival.unique_key = met.unique_key AND rival.unique_key IS NOT NULL
                        AND rival.state IN ('available', 'running')
                ) OR EXISTS (
                    SELECT FROM met AS twin
                    WHERE twin.task = met.task AND twin.unique_key = met.unique_key AND twin.id < met.id
                        AND twin.state = ANY (:sources::text[])
                )
            ))
    ))
    RETURNING id, queue, state, run_at
),
@rung
SELECT id FROM changed WHERE (SELECT count(*) FROM rung) IS NOT NULL

-- name: prune_look
SELECT id FROM tenure_jobs WHERE id > :after::text ORDER BY id LIMIT :limit::bigint

-- name: prune
-- by: upkeep
DELETE FROM tenure_jobs WHERE id = ANY (ARRAY(
    SELECT id FROM tenure_jobs
    WHERE id > :after::text AND id <= :upto::text
        AND finished_at <= (SELECT @clock) - :before_ms::bigint * interval '1 millisecond'
    FOR UPDATE SKIP LOCKED
))
RETURNING id

-- name: queues
-- Each half reads the index of its own state, so that finished jobs cost nothing. A bare lease that nobody owns waits for
-- nothing.
SELECT queue, sum(due)::bigint, sum(scheduled)::bigint, sum(running)::bigint, sum(expired)::bigint
FROM (
    SELECT queue, count(*) FILTER (WHERE run_at <= moment) AS due, count(*) FILTER (WHERE run_at > moment) AS scheduled,
        0 AS running, 0 AS expired
    FROM tenure_jobs, (SELECT @clock AS moment) AS clock WHERE state = 'available' AND task IS NOT NULL
    GROUP BY queue
    UNION ALL
    SELECT queue, 0, 0, count(*) FILTER (WHERE lease_until > moment), count(*) FILTER (WHERE lease_until <= moment)
    FROM tenure_jobs, (SELECT @clock AS moment) AS clock WHERE state = 'running' GROUP BY queue
) AS counted
GROUP BY queue
ORDER BY queue

-- name: report
INSERT INTO tenure_workers (owner, name, host, pid, queues, slots, started_at, seen_at)
SELECT :owner::text, :name::text, :host::text, :pid::integer, :queues::text, :slots::integer, moment, moment
FROM (SELECT @clock AS moment) AS clock
ON CONFLICT (owner) DO UPDATE SET seen_at = excluded.seen_at
RETURNING owner

-- name: foremost
-- What has been due longest in each lane: a row by the index for each, however deep the queue is.
WITH RECURSIVE
known (queue, priority) AS (SELECT NULL::text, NULL::integer WHERE FALSE),
@lanes,
clock AS MATERIALIZED (SELECT @clock AS moment)
SELECT lane.queue, due.task, floor(extract(epoch FROM (SELECT moment FROM clock) - due.run_at) * 1000)::bigint
FROM lane CROSS JOIN LATERAL (
    SELECT j.task, j.run_at FROM tenure_jobs AS j
    WHERE j.state = 'available' AND j.queue = lane.queue AND j.priority = lane.priority
        AND j.run_at <= (SELECT moment FROM clock)
    ORDER BY j.run_at, j.id
    LIMIT 1
) AS due

-- name: forget
DELETE FROM tenure_workers
WHERE owner = :owner::text OR seen_at <= (SELECT @clock) - :silent_ms::bigint * interval '1 millisecond'
RETURNING owner

-- name: workers
WITH held AS MATERIALIZED (
    SELECT owner, count(*) AS jobs FROM tenure_jobs WHERE state = 'running' GROUP BY owner
)
SELECT owner, name, host, pid, queues, slots, tenure_ms(started_at),
    floor(extract(epoch FROM (SELECT @clock) - seen_at) * 1000)::bigint, coalesce((SELECT jobs FROM held WHERE held.owner = w.owner), 0)
FROM tenure_workers AS w
ORDER BY started_at, owner

-- name: admit
-- differs: the server tells its identity itself
SELECT floor, identity IS NOT DISTINCT FROM tenure_identity() FROM tenure_store WHERE one = 1

-- name: lift_floor
UPDATE tenure_store SET floor = :generation::bigint WHERE one = 1 AND floor < :generation::bigint
RETURNING floor

-- name: raise_floor
-- differs: the server tells its identity itself
-- Checked again as it is carried out, so that of many workers that notice a changed identity only one raises (R10, R44).
UPDATE tenure_store SET
    floor = CASE
        WHEN identity IS NULL AND NOT :force::boolean THEN floor
        ELSE greatest(floor, (SELECT max(generation) FROM tenure_jobs)) + :step::bigint
    END,
    identity = tenure_identity()
WHERE one = 1 AND (:force::boolean OR identity IS DISTINCT FROM tenure_identity())
RETURNING floor
