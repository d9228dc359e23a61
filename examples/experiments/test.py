"""A stand-in for a training script: no GPU, no packages, a tenth of a second. It prints what real ones print.

python test.py --cfp configs/SVHN_alpha0.05.yaml --algo OursV14 [--gamma_reg 1e-3] [--lambda_max 50] [--seed 42]
"""

import argparse
import math
import random
import time

GAIN = {"FedAvg": 0.0, "FedETF": 2.1, "OursV7": 3.4, "OursV14": 4.8}


def config(path):
    """`key: value` lines; enough for these files, so that nothing has to be installed."""
    values = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            key, colon, value = line.split("#")[0].partition(":")
            if colon and value.strip():
                values[key.strip()] = value.strip()
    return values


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cfp", required=True, help="config file")
    p.add_argument("--algo", required=True)
    p.add_argument("--gamma_reg", type=float, default=1e-3)
    p.add_argument("--lambda_max", type=float, default=50)
    p.add_argument("--seed", type=int, help="default: that of the config file")
    p.add_argument("--seconds", type=float, default=0.1)
    args = p.parse_args()
    settings = config(args.cfp)
    seed = args.seed if args.seed is not None else int(settings["seed"])
    chance = random.Random(f"{seed} {args.algo} {settings['dataset']}")
    best = float(settings["base_accuracy"]) + GAIN.get(args.algo, 1.0) + chance.gauss(0, 0.4)
    best -= 0.6 * abs(math.log10(max(args.gamma_reg, 1e-6)) + 3)  # best at 1e-3
    best -= 1.5 * abs(math.log(args.lambda_max / 50))  # best at 50
    rounds = int(settings["rounds"])
    print(f"{args.algo} on {settings['dataset']}, seed {seed}, gamma {args.gamma_reg}, lambda {args.lambda_max}", flush=True)
    for k in range(1, rounds + 1):
        time.sleep(args.seconds / rounds)
        print(f"round {k}/{rounds}", flush=True)
        print(f"The test accuracy of {args.algo}: {best - 20 * math.exp(-k * 5 / rounds):.2f}", flush=True)


if __name__ == "__main__":
    main()
