-- What a connection is asked before the first verb uses it, and what guards one that is not wholly ours.

-- part: clock
(clock_timestamp() + :shift_ms::bigint * interval '1 millisecond')

-- name: greet
-- A backend other than the one that the handshake announced means a pooler in between: then nothing may be set for the
-- session, because the session is shared. Otherwise plans are pinned, since the statistics of a queue are always stale.
SELECT pg_is_in_recovery(), current_setting('synchronous_commit'), current_setting('fsync'),
    ARRAY(
        SELECT relname::text FROM pg_class
        WHERE relpersistence <> 'p'
            AND oid IN (to_regclass('tenure_store'), to_regclass('tenure_jobs'), to_regclass('tenure_steps'))
    ),
    ARRAY(SELECT number FROM tenure_migrations),
    CASE WHEN NOT pg_is_in_recovery() THEN tenure_identity() END,
    pg_backend_pid() <> :pid::integer,
    current_setting('server_encoding'),
    CASE WHEN pg_backend_pid() = :pid::integer THEN (
        SELECT count(set_config(name, value, FALSE)) FROM (VALUES
            ('statement_timeout', :timeout_ms::text),
            ('idle_in_transaction_session_timeout', :timeout_ms::text),
            ('default_transaction_isolation', 'read committed'),
            ('array_nulls', 'on'),
            ('plan_cache_mode', 'force_generic_plan'),
            ('enable_seqscan', 'off'),
            ('enable_bitmapscan', 'off'),
            ('enable_hashjoin', 'off'),
            ('enable_mergejoin', 'off'),
            ('enable_material', 'off'),
            ('jit', 'off')
        ) AS own (name, value)
    ) END

-- name: expect
-- At the head of a transaction through a pooler: the same for this transaction only, and the right server (R43, R44).
SELECT tenure_expect(:identity::text), set_config('statement_timeout', :timeout_ms::text, TRUE),
    set_config('array_nulls', 'on', TRUE),
    set_config('enable_seqscan', 'off', TRUE), set_config('enable_bitmapscan', 'off', TRUE),
    set_config('enable_hashjoin', 'off', TRUE),
    set_config('enable_mergejoin', 'off', TRUE), set_config('enable_material', 'off', TRUE), set_config('jit', 'off', TRUE)

-- name: look
-- What a caller's own transaction is about to do, and with which table.
SELECT current_setting('synchronous_commit'), to_regclass('tenure_jobs')::oid::text

-- name: identify
SELECT tenure_identity()

-- name: clock
SELECT tenure_ms(@clock)
