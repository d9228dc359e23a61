-- Version 1. One process writes; final states are final by constraint, whatever the code above believes.
-- Instants that people see are wall time (…_at); `not_before` and `ready_at` are on the engine's own clock (see engine/clock.py).

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- What a submit captured of its surroundings, once for all that share it. Never shown unasked.
CREATE TABLE context (
    id     INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    data   TEXT NOT NULL
);

CREATE TABLE batch (
    id           INTEGER PRIMARY KEY,
    key          TEXT,                 -- what it was made of; the same command attaches to it again
    name         TEXT,
    owner        TEXT,                 -- JSON [pid, start ticks] of the attached client
    policy       TEXT NOT NULL,
    submitted_at REAL NOT NULL
);
-- Submits that carried an idempotency key: whoever got no answer may ask again and gets the same one.
CREATE TABLE once (
    key   TEXT PRIMARY KEY,
    at    REAL NOT NULL,
    batch INTEGER NOT NULL,
    first INTEGER NOT NULL,
    count INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX batch_key ON batch (key) WHERE key IS NOT NULL;

-- Jobs of one shape are alike in everything that decides when and where they fit.
CREATE TABLE shape (
    id  INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE           -- JSON [batch, priority, min, max, memory_mib, share, time_limit, avoid]
);

CREATE TABLE job (
    id           INTEGER PRIMARY KEY,
    batch        INTEGER NOT NULL REFERENCES batch,
    context      INTEGER NOT NULL REFERENCES context,
    shape        INTEGER NOT NULL REFERENCES shape,
    name         TEXT NOT NULL,
    queue        TEXT,
    place        REAL NOT NULL,        -- order within queue and file; `move` changes it
    sort         REAL NOT NULL,        -- order within its shape: the place, or a rank drawn once
    priority     INTEGER NOT NULL,
    gpus_min     INTEGER NOT NULL,
    gpus_max     INTEGER NOT NULL,
    memory_mib   INTEGER,
    share        INTEGER NOT NULL,
    commands     TEXT NOT NULL,
    env          TEXT NOT NULL,
    workdir      TEXT NOT NULL,
    log          TEXT,
    time_limit   REAL,
    retry        TEXT,
    leftovers    TEXT NOT NULL,
    tags         TEXT NOT NULL,
    retry_of     INTEGER REFERENCES job,
    begin_at     REAL,
    submitted_at REAL NOT NULL,
    -- written by people, through the engine
    intent       TEXT NOT NULL DEFAULT 'run' CHECK (intent IN ('run', 'hold', 'cancel', 'kill')),
    -- written by the engine alone
    state        TEXT NOT NULL DEFAULT 'queued' CHECK (state IN
                 ('queued', 'starting', 'running', 'stopping', 'succeeded', 'failed', 'cancelled', 'skipped')),
    ready        INTEGER NOT NULL DEFAULT 0,  -- 1: head of its queue, nothing it waits for, not held; 2: the same, from not_before on
    blocked      INTEGER NOT NULL DEFAULT 0,  -- jobs it still comes after
    not_before   REAL NOT NULL DEFAULT 0,
    ready_at     REAL NOT NULL DEFAULT 0,
    attempt      INTEGER NOT NULL DEFAULT 0,  -- runs so far
    retries      INTEGER NOT NULL DEFAULT 0,  -- runs that failed and were followed by another
    avoid        TEXT NOT NULL DEFAULT '[]',
    exit_code    INTEGER,
    error_type   TEXT,
    reason       TEXT,                        -- of its end, or of its back-off
    started_at   REAL,
    ended_at     REAL
);
CREATE INDEX job_ready ON job (shape, sort) WHERE ready = 1;
CREATE INDEX job_wake ON job (not_before) WHERE ready = 2;
CREATE INDEX job_queue ON job (queue, place) WHERE queue IS NOT NULL AND state IN ('queued', 'starting', 'running', 'stopping');
CREATE INDEX job_queue_ready ON job (queue) WHERE queue IS NOT NULL AND ready > 0;
CREATE INDEX job_unfinished ON job (batch, id) WHERE state IN ('queued', 'starting', 'running', 'stopping');
CREATE INDEX job_open ON job (state) WHERE state IN ('starting', 'running', 'stopping');
CREATE INDEX job_retry ON job (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX job_batch ON job (batch, id);
CREATE INDEX job_ended ON job (ended_at, state) WHERE ended_at IS NOT NULL;

CREATE TRIGGER job_final BEFORE UPDATE OF state ON job
WHEN OLD.state IN ('succeeded', 'failed', 'cancelled', 'skipped') AND NEW.state <> OLD.state
BEGIN SELECT RAISE(ABORT, 'a final state is final'); END;

CREATE TABLE dep (
    job   INTEGER NOT NULL REFERENCES job,
    needs INTEGER NOT NULL REFERENCES job,
    any   INTEGER NOT NULL,            -- 1: however it ends
    PRIMARY KEY (job, needs)
) WITHOUT ROWID;
CREATE INDEX dep_needs ON dep (needs);

CREATE TABLE run (
    job        INTEGER NOT NULL REFERENCES job,
    n          INTEGER NOT NULL,
    uni_id     TEXT NOT NULL UNIQUE,
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
CREATE INDEX run_open ON run (state) WHERE state <> 'ended';

CREATE TRIGGER run_final BEFORE UPDATE OF state, outcome, exit_code ON run WHEN OLD.state = 'ended'
BEGIN SELECT RAISE(ABORT, 'an ended run has ended'); END;

CREATE TABLE lease (
    job           INTEGER NOT NULL,
    n             INTEGER NOT NULL,
    uuid          TEXT NOT NULL,
    idx           INTEGER NOT NULL,
    mib           INTEGER,             -- NULL: the whole card
    used_at_start INTEGER NOT NULL,
    PRIMARY KEY (job, n, uuid)
) WITHOUT ROWID;
CREATE INDEX lease_gpu ON lease (uuid);

-- Journal, audit, history and live feed in one.
CREATE TABLE event (
    seq   INTEGER PRIMARY KEY AUTOINCREMENT,
    at    REAL NOT NULL,
    kind  TEXT NOT NULL,
    batch INTEGER,
    job   INTEGER,
    run   INTEGER,
    data  TEXT
);
CREATE INDEX event_job ON event (job) WHERE job IS NOT NULL;
