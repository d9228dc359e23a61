-- Version 5. A run is carried by one of several backends, on one of their nodes. What a backend needs to find it again is its handle,
-- a text that means something to that backend alone: of runs on this host the shim (pid and start ticks) and the boot it lived in.
CREATE TABLE run5 (
    job        INTEGER NOT NULL REFERENCES job,
    n          INTEGER NOT NULL,
    uni_id     TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('starting', 'running', 'stopping', 'ended')),
    backend    TEXT NOT NULL DEFAULT 'local',
    node       TEXT NOT NULL DEFAULT 'local',  -- '': whoever it was handed to chooses
    handle     TEXT NOT NULL DEFAULT '',
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
    inputs     TEXT,                   -- same | other | unknown; NULL: nobody looked
    PRIMARY KEY (job, n)
) WITHOUT ROWID;
INSERT INTO run5 (job, n, uni_id, state, handle, memory_mib, share, log, clock_at, started_at, ended_at, outcome, exit_code, signal,
                  error_type, peak_mib, rss_mib, leftovers, inputs)
    SELECT job, n, uni_id, state, json_object('pid', shim_pid, 'ticks', shim_ticks, 'boot', boot), memory_mib, share, log, clock_at,
           started_at, ended_at, outcome, exit_code, signal, error_type, peak_mib, rss_mib, leftovers, inputs FROM run;
DROP TABLE run;
ALTER TABLE run5 RENAME TO run;
CREATE INDEX run_open ON run (job, n) WHERE ended_at IS NULL;
CREATE TRIGGER run_final BEFORE UPDATE OF state, outcome, exit_code ON run WHEN OLD.state = 'ended'
BEGIN SELECT RAISE(ABORT, 'an ended run has ended'); END;
