"""`make soak MINUTES=30`: every scenario once and then the churn for the rest of the time; a line for each.

python -m soak --minutes 30 [--scheduler kube] [--only cuts,lost] [--short]
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable

from soak.churn import churn
from soak.disk import disk
from soak.history import history
from soak.overload import overload
from soak.scenarios import LONG, SCENARIOS, SHORT, Extent, Outcome
from soak.stage import FAIRLEAD, KUBE
from soak.sweep import sweep


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long the churn takes")
    parser.add_argument("--scheduler", choices=(FAIRLEAD, KUBE), default=FAIRLEAD)
    parser.add_argument("--only", default="", help="names of scenarios, separated by commas")
    parser.add_argument("--short", action="store_true", help="each scenario with less of everything")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, _end)
    scenarios: dict[str, Callable[[str, Extent], Outcome]] = {
        **SCENARIOS,
        "overload": lambda name, extent: overload(name),
        "disk": lambda name, extent: disk(extent),
        "history": lambda name, extent: history(extent),
        "sweep": lambda name, extent: sweep(extent),
        "churn": lambda name, extent: churn(name, minutes=chosen.minutes),
    }
    names = chosen.only.split(",") if chosen.only else list(scenarios)
    if unknown := [name for name in names if name not in scenarios]:
        parser.error(f"there is no scenario {unknown[0]}; there are {', '.join(scenarios)}")
    problems = 0
    for name in names:
        began = time.monotonic()
        try:
            outcome = scenarios[name](chosen.scheduler, SHORT if chosen.short else LONG)
        except TimeoutError as error:
            print(f"{chosen.scheduler}: {name}: {error}", flush=True)
            problems += 1
            continue
        print(f"{chosen.scheduler}: {outcome.line()} ({time.monotonic() - began:.0f} s)", flush=True)
        for problem in outcome.verdict.problems:
            print(f"  {problem}", flush=True)
            problems += 1
    return min(1, problems)


def _end(number: int, frame: object) -> None:
    sys.exit(1)


if __name__ == "__main__":
    sys.exit(main())
