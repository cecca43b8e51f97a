"""Two workloads, six policies and three seeds of the FGD paper, within the bounds for three seeds.

It needs no cluster; it is here because it takes some minutes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from papers.reference.checks import CheckOptions, ReferenceCheck
from papers.reference.directories import checks_of

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=70)]

DATA = Path(__file__).parents[1] / "parity" / "data" / "lab" / "openb"
CHECKS = checks_of(DATA, CheckOptions())


def test_there_are_two_workloads_and_six_policies() -> None:
    assert len(CHECKS) == 12


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_the_curves_of_a_policy_are_those_of_the_paper(check: ReferenceCheck) -> None:
    assert check.differences() == []
