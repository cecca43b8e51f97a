"""The policy Random of the FGD paper: its runs differ by their draws alone, and more of them are made before a
difference from a recording is believed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairlead.gpu_share.gpu_shares import GpuRequest
from papers.fragmentation.policies import RANDOM
from papers.fragmentation.run import FragmentationCurves, place_all
from papers.fragmentation.trace import TraceNode, TracePod, arrivals
from papers.reference.openb import OpenbCurves

NODES = [TraceNode(f"n{i}", 96_000, 1 << 19, 8, "T4") for i in range(6)]
PODS = [TracePod(f"p{i}", 4000, 1024, GpuRequest(1, milli, ())) for i, milli in enumerate((200, 500, 700, 1000) * 20)]


def test_a_draw_is_repeated_and_another_one_differs() -> None:
    coming = arrivals(PODS, NODES, 42)
    first, again, other = (place_all(RANDOM, PODS, coming, draw).fragmented for draw in (0, 0, 1))
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()


class Recorded(OpenbCurves):
    """Runs of which the first three are three points away from the recording, and all others as recorded."""

    def __init__(self, policy: str, seeds: tuple[int, ...], others: tuple[int, ...] = ()) -> None:
        super().__init__(Path(), "openb_pod_list_x", policy, seeds, others)

    def _run(self, seed: int, draw: int) -> FragmentationCurves:
        made.append((seed, draw))
        level = np.full(131, 3.0 if len(made) <= 3 else 0.0)
        return FragmentationCurves(level, level, level)

    def _recorded(self, curve: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return np.zeros(131)


made: list[tuple[int, int]] = []


@pytest.fixture(autouse=True)
def _nothing_made() -> None:
    made.clear()


def test_random_is_run_with_other_seeds_and_draws_before_it_is_said_to_differ() -> None:
    # Three runs are 3 points away and all others exact.
    assert Recorded(RANDOM, (42, 43, 44), (45, 46)).differences() == []
    assert made == [(42, 0), (43, 0), (44, 0), (42, 0), (43, 0), (44, 0), (45, 0), (46, 0)]


def test_with_all_recorded_seeds_random_is_run_with_other_draws() -> None:
    assert Recorded(RANDOM, (42, 43)).differences() == []
    assert made == [(42, 0), (43, 0), (42, 1), (43, 1), (42, 2), (43, 2)]


def test_a_policy_that_can_be_repeated_is_run_once_for_each_seed() -> None:
    found = Recorded("05-BestFit", (42, 43, 44), (45,)).differences()
    assert len(found) == 3
    assert made == [(42, 0), (43, 0), (44, 0)]
