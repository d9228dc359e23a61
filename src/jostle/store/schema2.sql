-- Version 2: experiments. What a job stands for in a sweep, what it was made of, and what is worth knowing of a batch.
ALTER TABLE job ADD COLUMN params TEXT;       -- JSON {key: text}: its values in a sweep
ALTER TABLE job ADD COLUMN fingerprint TEXT;  -- of all that decides what it computes: equal ones need not run twice
ALTER TABLE batch ADD COLUMN about TEXT;      -- JSON: the file it came from, the frozen code it runs
CREATE INDEX job_done ON job (fingerprint) WHERE fingerprint IS NOT NULL;
