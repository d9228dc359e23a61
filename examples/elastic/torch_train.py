"""Fits a line on as many cards as there are: python -m jostle.torchrun torch_train.py

On SIGTERM all processes agree on it after the same step, the first one saves, and all leave. Whoever begins goes on from
what was saved last, whatever number of processes that was; a checkpoint in between is for ends without warning.
"""

import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

told: list[int] = []
signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))  # a handler that only takes note: it may come twice
steps, pause = int(os.environ.get("STEPS", "200")), float(os.environ.get("PAUSE", "0.1"))
saved = Path(f"torch-{os.environ.get('JOSTLE_JOB_ID', '0')}.pt")
cuda = torch.cuda.is_available()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
dist.init_process_group("nccl" if cuda else "gloo")
rank, world = dist.get_rank(), dist.get_world_size()

model = torch.nn.Linear(1, 1, device=device)
torch.nn.init.zeros_(model.weight)
torch.nn.init.zeros_(model.bias)
step = 0
if saved.exists():
    found = torch.load(saved, map_location=device)
    model.load_state_dict(found["model"])
    step = found["step"]
learner = DistributedDataParallel(model)
optimizer = torch.optim.SGD(learner.parameters(), lr=0.01)
x = torch.linspace(-1, 1, 12, device=device).reshape(-1, 1)[rank::world]  # each has its part: 12 can be shared by 1, 2, 3 or 4
y = 3 * x + 1


def save() -> None:
    if rank == 0:
        torch.save({"step": step, "model": model.state_dict()}, f"{saved}.new")
        os.replace(f"{saved}.new", saved)
        print(f"saved step {step}", flush=True)


if rank == 0:
    print(f"from step {step} with {world} processes", flush=True)
while step < steps:
    loss = torch.nn.functional.mse_loss(learner(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean = torch.tensor([loss.item() / world, float(len(told))], device=device)
    dist.all_reduce(mean)  # the loss of all, and whether anybody was told to end
    if rank == 0:
        print(f"step {step} loss {mean[0].item():.6f}", flush=True)
    step += 1
    if mean[1].item():
        save()
        sys.exit(143)
    if step % 50 == 0:
        save()
    time.sleep(pause)
save()
dist.destroy_process_group()
