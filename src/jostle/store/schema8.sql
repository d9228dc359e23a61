-- Version 8.
ALTER TABLE job ADD COLUMN cpus INTEGER;                      -- cores of the host; NULL: it is not counted
ALTER TABLE job ADD COLUMN host_memory_mib INTEGER;           -- memory of the host, in all; NULL: it is not counted
ALTER TABLE job ADD COLUMN counters TEXT NOT NULL DEFAULT '{}';  -- JSON: how much of each counter
ALTER TABLE job ADD COLUMN nice INTEGER NOT NULL DEFAULT 0;   -- how much its processes give way to others
ALTER TABLE job ADD COLUMN grace REAL;                        -- s from SIGTERM to SIGKILL; NULL: as config.yaml says
-- Version 8. Allocations: jobs without commands, which hold cards; and the jobs that run inside them.
ALTER TABLE job ADD COLUMN inside INTEGER REFERENCES job;  -- the allocation on whose cards it runs; part of the key of its shape
ALTER TABLE job ADD COLUMN tied_to TEXT;                   -- JSON [pid, start ticks, boot id]: with the end of that process it is released
ALTER TABLE job ADD COLUMN awaited_by TEXT;                -- the same, of who waits for its cards; NULL: nobody, or they were told of them
ALTER TABLE job ADD COLUMN idle_release REAL;              -- s without a process of ours on its cards: then it is released
CREATE INDEX job_inside ON job (inside) WHERE inside IS NOT NULL AND ended_at IS NULL;
CREATE INDEX job_allocation ON job (name) WHERE commands = '[]' AND ended_at IS NULL;
-- Version 8. Jobs that get other cards while they run, and jobs that give way. `leg` of a run counts the lists of cards
-- that were in effect; `leg` of an order is its number.
ALTER TABLE job ADD COLUMN resize TEXT;                                    -- restart | signal; NULL: it keeps the cards it has
ALTER TABLE job ADD COLUMN when_stranger TEXT NOT NULL DEFAULT 'keep';     -- keep | requeue | pause
ALTER TABLE job ADD COLUMN yielded INTEGER NOT NULL DEFAULT 0;             -- runs that gave way to somebody else, in all
ALTER TABLE job ADD COLUMN yielded_lately INTEGER NOT NULL DEFAULT 0;      -- … and without much time in between
ALTER TABLE run ADD COLUMN leg INTEGER NOT NULL DEFAULT 1;
ALTER TABLE run ADD COLUMN yielding TEXT;                                  -- JSON: why it was told to give way
ALTER TABLE run ADD COLUMN paused TEXT;                                    -- JSON: whether it stands still, since when, how often, why
ALTER TABLE run ADD COLUMN paused_s REAL NOT NULL DEFAULT 0;               -- how long it stood still in all, as far as that is over
ALTER TABLE lease ADD COLUMN since REAL;                                   -- NULL: since its run began
CREATE TABLE leg (
    job       INTEGER NOT NULL,
    n         INTEGER NOT NULL,
    leg       INTEGER NOT NULL,        -- from 2 on
    uuids     TEXT NOT NULL,           -- JSON: the cards that the run is to use …
    before    TEXT NOT NULL,           -- … and those that it was to use until then
    reason    TEXT NOT NULL,           -- JSON
    clock_at  REAL NOT NULL,           -- when it was recorded, on the engine's clock
    at        REAL NOT NULL,
    done_at   REAL,                    -- when it had exactly these cards, or it was known that it will not
    outcome   TEXT,                    -- done | refused | lost | …; NULL: it is under way
    exit_code INTEGER,                 -- how the commands of the leg before ended, which had to begin again
    signal    INTEGER,
    PRIMARY KEY (job, n, leg)
) WITHOUT ROWID;
CREATE TABLE lease_past (              -- cards that a run held and gave back while it lived
    job      INTEGER NOT NULL,
    n        INTEGER NOT NULL,
    uuid     TEXT NOT NULL,
    idx      INTEGER NOT NULL,
    began_at REAL NOT NULL,
    ended_at REAL NOT NULL
);
CREATE INDEX lease_past_run ON lease_past (job, n);
