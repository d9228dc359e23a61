-- Version 2: experiments. What a job stands for in a sweep, what it was made of, and what is worth knowing of a batch.
ALTER TABLE job ADD COLUMN params TEXT;       -- JSON {key: text}: its values in a sweep
ALTER TABLE job ADD COLUMN fingerprint TEXT;  -- of all that decides what it computes: equal ones need not run twice
ALTER TABLE batch ADD COLUMN about TEXT;      -- JSON: the file it came from, the frozen code it runs
CREATE INDEX job_done ON job (fingerprint) WHERE fingerprint IS NOT NULL;

-- Unfinished is what has no end: one comparison, where a list of states was looked through for each index at each write.
DROP INDEX job_queue;
DROP INDEX job_unfinished;
DROP INDEX job_open;
CREATE INDEX job_queue ON job (queue, place) WHERE queue IS NOT NULL AND ended_at IS NULL;
CREATE INDEX job_unfinished ON job (batch, id) WHERE ended_at IS NULL;
CREATE INDEX job_open ON job (queue) WHERE ended_at IS NULL AND state <> 'queued';
DROP TRIGGER job_final;
CREATE TRIGGER job_final BEFORE UPDATE OF state ON job WHEN OLD.ended_at IS NOT NULL AND NEW.state <> OLD.state
BEGIN SELECT RAISE(ABORT, 'a final state is final'); END;
