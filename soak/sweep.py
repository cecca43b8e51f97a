"""Two thousand runs, each with a restart, silence or lateness at one event: every end state is the undisturbed one."""

from __future__ import annotations

from itertools import islice

from soak.scenarios import Extent, Outcome
from soak.validator import Verdict
from tests.support.sweep.sweeping import cases, problem, share

RUNS = 2000


def sweep(extent: Extent) -> Outcome:
    """On virtual time, without any process. In short it is what `make test` does."""
    chosen = list(islice(cases(), RUNS)) if extent == Extent() else list(share(4))
    problems = [found for case in chosen if (found := problem(case))]
    return Outcome("sweep over recorded runs", Verdict(inconsistent=problems), {"runs": float(len(chosen))})
