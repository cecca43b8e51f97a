"""Decisions recorded from the real kube-scheduler 1.36.4, decided again: feasible nodes, scores, messages, victims,
and what resource claims are given.

The recordings are small clusters made at random; data/README.md says how they were made and what agreement means.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.assembly.assemble import profiles_of
from fairlead.assembly.loading import read_config
from fairlead.kube.replay.recording import scenarios_in
from fairlead.kube.replay.replay import KubeReplay, Report

DATA = Path(__file__).parent / "data" / "kube"
RECORDINGS = {"decisions": 5194, "storage": 607, "preemption": 250, "corners": 4400, "edges": 1052, "claims": 2909}
PARTS = 4
"""Each recording is replayed in as many parts, so that workers can share it."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("recording", RECORDINGS)
def test_every_recorded_decision_is_ours_too(recording: str, part: int) -> None:
    profiles = profiles_of(read_config(DATA / "scheduler-config.yaml"), compatible=True)
    report = Report()
    for number, scenario in enumerate(scenarios_in(DATA / f"{recording}.jsonl.gz")):
        if number % PARTS == part:
            for differences in KubeReplay(scenario, profiles).decisions():
                report.add(scenario.family, differences)
    assert report.differences == []
    assert report.total > 0


@pytest.mark.parametrize("recording", RECORDINGS)
def test_the_recordings_are_whole(recording: str) -> None:
    decisions = sum(len(scenario.doc["decisions"]) for scenario in scenarios_in(DATA / f"{recording}.jsonl.gz"))
    assert decisions == RECORDINGS[recording]
