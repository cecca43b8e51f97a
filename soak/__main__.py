"""`make soak MINUTES=30`: every scenario in turn until the time is over, then a table of what was found.

python -m soak --minutes 30 [--scheduler kube] [--only cuts,lost]
"""

from __future__ import annotations

import argparse
import signal
import sys
import time

from soak.churn import churn
from soak.overload import overload
from soak.scenarios import SCENARIOS


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--scheduler", choices=("fairlead", "kube"), default="fairlead")
    parser.add_argument("--only", default="", help="names of scenarios, separated by commas")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    scenarios = {**SCENARIOS, "overload": overload, "churn": lambda name: churn(name, minutes=chosen.minutes / 3)}
    names = chosen.only.split(",") if chosen.only else list(scenarios)
    ends, problems = time.monotonic() + 60 * chosen.minutes, 0
    while True:
        for name in names:
            outcome = scenarios[name](chosen.scheduler)
            print(f"{chosen.scheduler}: {outcome.line()}", flush=True)
            for problem in outcome.verdict.problems:
                print(f"  {problem}", flush=True)
                problems += 1
            if time.monotonic() > ends:
                return min(1, problems)
        if chosen.only:
            return min(1, problems)


if __name__ == "__main__":
    sys.exit(main())
