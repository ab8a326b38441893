-- How every job stands: when it is due, and the columns of `Stood`.

SELECT run_at, id, state, generation, owner, worker, lease_until, attempts, takeovers, max_attempts, max_takeovers, result,
    progress, ended
FROM tenure_jobs
ORDER BY id
