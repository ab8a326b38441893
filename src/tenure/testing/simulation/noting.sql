-- What the simulation adds to a SQLite store: a note of each change of a job, made in the transaction that changes it.
-- Columns are those of `Stood`, as they were (o_) and as they are (n_); a new job has no old ones.

CREATE TABLE simulated_changes (
    o_id, o_state, o_generation, o_owner, o_worker, o_lease_until, o_attempts, o_takeovers, o_max_attempts,
    o_max_takeovers, o_result, o_progress, o_ended,
    n_id, n_state, n_generation, n_owner, n_worker, n_lease_until, n_attempts, n_takeovers, n_max_attempts,
    n_max_takeovers, n_result, n_progress, n_ended
);

CREATE TRIGGER simulated_new AFTER INSERT ON tenure_jobs BEGIN
    INSERT INTO simulated_changes VALUES (
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
        NEW.id, NEW.state, NEW.generation, NEW.owner, NEW.worker, NEW.lease_until, NEW.attempts, NEW.takeovers,
        NEW.max_attempts, NEW.max_takeovers, NEW.result, NEW.progress, NEW.ended
    );
END;

CREATE TRIGGER simulated_changed AFTER UPDATE ON tenure_jobs BEGIN
    INSERT INTO simulated_changes VALUES (
        OLD.id, OLD.state, OLD.generation, OLD.owner, OLD.worker, OLD.lease_until, OLD.attempts, OLD.takeovers,
        OLD.max_attempts, OLD.max_takeovers, OLD.result, OLD.progress, OLD.ended,
        NEW.id, NEW.state, NEW.generation, NEW.owner, NEW.worker, NEW.lease_until, NEW.attempts, NEW.takeovers,
        NEW.max_attempts, NEW.max_takeovers, NEW.result, NEW.progress, NEW.ended
    );
END;

CREATE TRIGGER simulated_gone AFTER DELETE ON tenure_jobs BEGIN
    INSERT INTO simulated_changes VALUES (
        OLD.id, OLD.state, OLD.generation, OLD.owner, OLD.worker, OLD.lease_until, OLD.attempts, OLD.takeovers,
        OLD.max_attempts, OLD.max_takeovers, OLD.result, OLD.progress, OLD.ended,
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    );
END;
