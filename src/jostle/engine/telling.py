"""What living runs are told by a plan that is recorded: to end, to give way, to stand still, to go on."""

from __future__ import annotations

from jostle.core.plan import Continue, Pause, Plan, Stop, Yield
from jostle.core.reasons import kept
from jostle.engine.carried import Carried
from jostle.failpoint import failpoint


def tell(plan: Plan, carried: Carried, now: float) -> None:
    for d in plan.decisions:
        if isinstance(d, Yield):
            carried.runs[d.run].yielding = True
            failpoint("engine.before_stop")
            carried.stop(carried.runs[d.run], kill=False)
        elif isinstance(d, Stop):
            run = carried.runs[d.run]
            first = not run.told_to_stop
            run.state, run.told_to_stop = "stopping", True
            if first or d.kill:
                failpoint("engine.before_stop")
                carried.stop(run, kill=d.kill)
        elif isinstance(d, Pause | Continue):
            its = carried.runs[d.run].stillness
            assert its is not None
            if isinstance(d, Pause):
                its.paused(d.times, kept(d.reason), now)
            else:
                its.continued(kept(d.reason), now)
            failpoint("pause.before_order")
            carried.pause(carried.runs[d.run])
            failpoint("pause.ordered")
