"""kill -9 the engine N times at random moments and at every failpoint, and see whether anything was lost, doubled or misplaced.

    python tests/torture/run.py --kills 1000 [--seed S] [--no-failpoints] [--json] [-v]
    python tests/torture/run.py --bug requeue_on_restart          one seeded bug: exit 0 if it was caught
    python tests/torture/run.py --bugs [NAME…]                    all of them (or these): which invariant catches which
    python tests/torture/run.py --bugs [NAME…] --control          the same plans without the bugs: nothing may be found
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import harness
import seeded


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--kills", type=int, default=60)
    p.add_argument("--seed", type=int, default=None)
    p.add_argument("--failpoints", action=argparse.BooleanOptionalAction, default=True)
    p.add_argument("--bug", choices=sorted(seeded.BUGS))
    p.add_argument("--bugs", nargs="*", metavar="NAME")
    p.add_argument("--control", action="store_true")
    p.add_argument("--json", action="store_true")
    p.add_argument("-v", "--verbose", action="store_true")
    args = p.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all is cleaned up
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1 << 32)
    if args.bug or args.bugs is not None:
        return bugs([args.bug] if args.bug else args.bugs or sorted(seeded.BUGS), seed, args)
    report = harness.torture(args.kills, seed, points=args.failpoints, verbose=args.verbose)
    print(json.dumps(report) if args.json else words(report), flush=True)
    return 1 if report["violations"] else 0


def words(report: dict[str, object]) -> str:
    phases, missed, found = report["by_phase"], report["not_reached"], report["violations"]
    assert isinstance(phases, dict) and isinstance(missed, dict) and isinstance(found, list)
    lines = [f"{report['kills']} effective kills in {report['seconds']} s, seed {report['seed']}"]
    lines += [f"  {n:5}  {phase}" for phase, n in phases.items()]
    lines += [f"  armed, but not reached {n} times: {phase}" for phase, n in missed.items()]
    lines.append(
        f"{report['jobs']} jobs, {report['processes']} processes ({report['neighbour_processes']} more of the neighbour's); "
        f"slowest restart {report['slowest_restart_s']} s, over {harness.PROMISED:g} s: {report['slow_restarts'] or 'none'}"
    )
    counts = {kind: sum(1 for v in found if v[0] == kind) for kind in ("lost", "doubled", "orphaned", "overlap", "exit code")}
    lines.append(", ".join(f"{n} {kind}" for kind, n in counts.items()) + f"; {len(found)} violations in all")
    lines += [f"  {kind}: {text}" for kind, text in found[:40]]
    return "\n".join(lines)


def bugs(names: list[str], seed: int, args: argparse.Namespace) -> int:
    reports, as_json, verbose = {}, args.json, args.verbose
    for name in names:
        report = seeded.hunt(name, seed, verbose, seeded=not args.control)
        reports[name] = report
        if not as_json:
            caught = ", ".join(report["caught_by"]) or ("nothing, as it must be" if report["harmless"] else "NOTHING")
            print(f"{name:28} {report['kills']:3} kills {report['seconds']:5.1f} s  {caught}", flush=True)
            if verbose:
                print(json.dumps(report["violations"][:8], indent=1), flush=True)
    if as_json:
        print(json.dumps(reports), flush=True)
    wrong = [name for name, r in reports.items() if bool(r["caught_by"]) == r["harmless"]]
    if wrong and not as_json:
        print(f"seed {seed}: not as expected: {', '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
