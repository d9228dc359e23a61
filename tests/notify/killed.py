"""A channel at work in a process of its own, which a failpoint may kill: `killed.py HOME PORT FROM TO`, rounds in virtual time.

It reads, gathers and sends as the notifier does; time goes from FROM to TO in steps of ten seconds, and jobs end on the way.
"""

import sys

from jostle.notify.deliver import deliver
from jostle.notify.outbox import Outbox
from jostle.store.store import Store
from tests.notify.scene import AT, hook, settings

ENDS = {1: AT + 100, 2: AT + 110, 3: AT + 200, 4: AT + 300}

if __name__ == "__main__":
    home, port, now, until = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
    store = Store(home)
    outbox = Outbox(home, hook(port, "failed", "finished"), settings(gather=20.0), deliver, "lab-1")
    while now <= until:
        ended = {row[0] for row in store.db.execute("SELECT job FROM event WHERE job IS NOT NULL")}
        for job, at in ENDS.items():
            if at <= now and job not in ended:
                with store.transaction():
                    store.event(at, "failed" if job % 2 else "succeeded", batch=1, job=job, run=1)
        outbox.step(now, None)
        now += 10.0
