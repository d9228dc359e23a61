-- Version 4. A run says whether the files that its job is made of were still those of the fingerprint when it began; and a job
-- how many of its tries are not its own fault.
ALTER TABLE job ADD COLUMN inputs TEXT;  -- JSON [[path, sha256, [inode, size, mtime, ctime]] …]; see backends/local/inputs.py
ALTER TABLE run ADD COLUMN inputs TEXT;  -- same | other | unknown; NULL: nobody looked
ALTER TABLE job ADD COLUMN excused INTEGER NOT NULL DEFAULT 0;  -- tries that a faulty card failed

-- Whoever has begun heads its queue until it ends: found by that, and not only while it runs.
DROP INDEX job_open;
CREATE INDEX job_begun ON job (queue) WHERE queue IS NOT NULL AND ended_at IS NULL AND attempt > 0;
