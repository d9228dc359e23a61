"""Stands for a training: says which cards it was given, and takes its time."""

import sys
import time

print("trains on", sys.argv[sys.argv.index("--gpus") + 1], flush=True)
time.sleep(600)
