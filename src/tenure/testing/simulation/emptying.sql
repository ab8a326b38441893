-- Between two histories: the file as it was when it was new.

BEGIN;
DELETE FROM tenure_jobs;
DELETE FROM tenure_steps;
DELETE FROM tenure_history;
DELETE FROM tenure_workers;
DELETE FROM simulated_changes;
UPDATE tenure_store SET floor = 0;
COMMIT;
