-- Version 3. Less to write at each start and end: no index that nobody reads, none that changes with each state, and no counter
-- beside the events (their newest is never removed, so no number comes twice).
DROP INDEX lease_gpu;
DROP INDEX job_batch;
DROP INDEX job_unfinished;
DROP INDEX job_open;
CREATE INDEX job_batch ON job (batch);  -- every index ends with the id
CREATE INDEX job_unfinished ON job (batch) WHERE ended_at IS NULL;
CREATE INDEX job_open ON job (queue) WHERE queue IS NOT NULL AND ended_at IS NULL AND state <> 'queued';

CREATE TABLE run3 (
    job        INTEGER NOT NULL REFERENCES job,
    n          INTEGER NOT NULL,
    uni_id     TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('starting', 'running', 'stopping', 'ended')),
    boot       TEXT NOT NULL,
    shim_pid   INTEGER,
    shim_ticks INTEGER,
    memory_mib INTEGER,
    share      INTEGER NOT NULL,
    log        TEXT NOT NULL,
    clock_at   REAL NOT NULL,          -- start, on the engine's clock
    started_at REAL NOT NULL,
    ended_at   REAL,
    outcome    TEXT,                   -- succeeded | failed | cancelled | voided | lost
    exit_code  INTEGER,
    signal     INTEGER,
    error_type TEXT,
    peak_mib   INTEGER,
    rss_mib    INTEGER,
    leftovers  TEXT,
    PRIMARY KEY (job, n)
) WITHOUT ROWID;
INSERT INTO run3 SELECT * FROM run;
DROP TABLE run;
ALTER TABLE run3 RENAME TO run;
CREATE INDEX run_open ON run (job, n) WHERE ended_at IS NULL;
CREATE TRIGGER run_final BEFORE UPDATE OF state, outcome, exit_code ON run WHEN OLD.state = 'ended'
BEGIN SELECT RAISE(ABORT, 'an ended run has ended'); END;

CREATE TABLE event3 (
    seq   INTEGER PRIMARY KEY,
    at    REAL NOT NULL,
    kind  TEXT NOT NULL,
    batch INTEGER,
    job   INTEGER,
    run   INTEGER,
    data  TEXT
);
INSERT INTO event3 SELECT * FROM event;
DROP TABLE event;
ALTER TABLE event3 RENAME TO event;
CREATE INDEX event_job ON event (job) WHERE job IS NOT NULL;
