"""What core.states allows is all that the database takes: a trigger of the writing connection, made from that very table.

The schema itself holds only that what has ended stays as it is; that is for whoever else may write into the file.
"""

from __future__ import annotations

from jostle.core.states import TRANSITIONS

# comparisons: a list would be made anew for each row, which takes longer than all else that an end writes
_WAYS = " OR ".join(f"OLD.state = '{state}' AND NEW.state = '{to}'" for state, ways in TRANSITIONS.items() for to in ways)

HELD = f"""
CREATE TEMP TRIGGER job_way BEFORE UPDATE OF state ON main.job
WHEN OLD.ended_at IS NULL AND OLD.state <> NEW.state AND NOT ({_WAYS})
BEGIN SELECT RAISE(ABORT, 'a job cannot go from this state to that one'); END;
"""
