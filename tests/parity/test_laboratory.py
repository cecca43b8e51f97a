"""Samples of the laboratory's reference runs: what the original programs recorded, run again by `fairlead lab`."""

from __future__ import annotations

from pathlib import Path

import pytest

from papers.reference.checks import CheckOptions, ReferenceCheck
from papers.reference.directories import checks_of
from papers.reference.openb import OpenbCurves

DATA = Path(__file__).parent / "data" / "lab"
OMEGA = checks_of(DATA / "omega", CheckOptions())
POOL = checks_of(DATA / "gpu-policies", CheckOptions())


@pytest.mark.parametrize("check", OMEGA, ids=lambda check: check.name)
def test_a_run_of_the_cluster_scheduler_simulator_is_repeated_exactly(check: ReferenceCheck) -> None:
    assert check.differences() == []


@pytest.mark.parametrize("check", POOL, ids=lambda check: check.name)
def test_every_job_of_a_batch_policy_starts_and_ends_as_recorded(check: ReferenceCheck) -> None:
    assert check.differences() == []


def test_a_run_of_the_fgd_paper_is_repeated_to_the_last_digit() -> None:
    run = OpenbCurves(DATA / "openb", "openb_pod_list_default", "04-GpuPacking", (42,))
    for name, gap in run.gaps(run.played([(42, 0)])).items():
        assert gap.max() <= 0.00501, name  # the recording has two digits
