"""Takes the place of torch.distributed.run, as far as a launcher can tell: same options, workers in sessions of their own, a
signal passed on to them and answered with exit code 1, exit code 1 for any failure, 0 when all workers have ended well.

It writes down what it was started with: EVIDENCE/agents, one line each.
"""

import argparse
import json
import os
import signal
import stat
import subprocess
import sys

parser = argparse.ArgumentParser(allow_abbrev=False)
for name in ("nnodes", "nproc-per-node", "rdzv-backend", "rdzv-endpoint", "rdzv-conf", "local-addr", "max-restarts"):
    parser.add_argument(f"--{name}")
parser.add_argument("script")
parser.add_argument("arguments", nargs=argparse.REMAINDER)


def told(number: int, frame: object) -> None:
    raise InterruptedError


def tell(workers: list[subprocess.Popen[bytes]]) -> None:
    for worker in workers:
        if worker.poll() is None:
            os.killpg(worker.pid, signal.SIGTERM)


def note(**more: object) -> None:
    line = json.dumps({"pid": os.getpid(), **more})
    fd = os.open(f"{os.environ['EVIDENCE']}/agents", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, line.encode() + b"\n")
    os.close(fd)


def main() -> int:
    given = parser.parse_args()
    with open(given.rdzv_endpoint, "r+b") as meeting:  # as FileStore opens it
        found = os.fstat(meeting.fileno())
        file = {"links": found.st_nlink, "size": found.st_size, "regular": stat.S_ISREG(found.st_mode), "uid": found.st_uid}
    wanted = ("CUDA_VISIBLE_DEVICES", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "GLOO_SOCKET_IFNAME")
    note(**vars(given), file=file, env={name: os.environ.get(name) for name in wanted})
    if not given.nproc_per_node.isdecimal():
        return 0  # it would count the cards of the host
    world, workers = int(given.nproc_per_node), []
    signal.signal(signal.SIGTERM, told)
    try:
        for rank in range(world):
            env = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world)}
            argv = [sys.executable, given.script, *given.arguments]
            workers.append(subprocess.Popen(argv, env=env, start_new_session=True))
        while (codes := [worker.poll() for worker in workers]) != [0] * world:
            if any(codes):
                break
            signal.sigtimedwait([signal.SIGCHLD], 0.05)
        else:
            return 0
    except InterruptedError:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tell(workers)
    for worker in workers:
        worker.wait()
    return 1


if __name__ == "__main__":
    sys.exit(main())
