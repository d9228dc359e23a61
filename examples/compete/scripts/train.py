"""train.py DATASET: a training that needs no GPU and takes a moment. With FAIL=oom or FAIL=error it fails as real ones do."""

import os
import sys
import time

dataset = sys.argv[1]
settings = os.path.join(os.path.dirname(__file__), "..", "experiments", dataset, "hyperparameters")
print(f"data set {dataset} on GPU {os.environ.get('CUDA_VISIBLE_DEVICES', 'none')}")
if os.path.exists(settings):
    with open(settings) as f:
        print(f.read().strip())
if os.environ.get("FAIL") == "oom":
    sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
if os.environ.get("FAIL") == "error":
    raise RuntimeError("shapes do not match")
for epoch in range(3):
    time.sleep(0.1)
    print(f"epoch {epoch}: loss {1 / (epoch + 1):.3f}")
print("Test Accuracy: 91.25")
