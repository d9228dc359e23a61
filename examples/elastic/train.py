"""Counts to STEPS, and saves where it is: the smallest program that takes part, with `resize: restart` and `resize: signal`."""

import os
import time
from pathlib import Path

from jostle import elastic

saved, steps = Path(f"progress-{os.environ.get('JOSTLE_JOB_ID', 0)}"), int(os.environ.get("STEPS", "50"))
step = int(saved.read_text()) if saved.exists() else 0
with elastic.watch() as cards:
    print(f"from step {step} on GPU", *cards.now(), flush=True)
    while step < steps:
        if cards.changed():
            print(f"step {step}: now on GPU", *cards.now(), flush=True)
        time.sleep(0.1)  # work on cards.now()
        step += 1
        cards.save_if_told(lambda: saved.write_text(str(step)))  # noqa: B023
print("done", flush=True)
