"""Decisions recorded from the real koord-scheduler 1.8.0, decided again: nodes, scores, messages, what was written on
pods, and what stood in quotas and reservations. A part of the recordings; data/README.md says how they were made.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.koordinator.gangs import preemption
from fairlead.koordinator.gangs.preemption import JobRoom, JobVictims
from fairlead.kube.replay.recording import scenarios_in
from fairlead.kube.replay.replay import Report
from tests.support.replays import replayed

DATA = Path(__file__).parent / "data" / "koordinator"
PARTS = 2
"""The recording is replayed in as many parts, so that workers can share it."""
FAMILIES = {"quota", "gang", "reservation", "device", "loadaware", "numa", "qos", "mix"}


@pytest.mark.parametrize("part", range(PARTS))
def test_every_recorded_decision_of_koordinator_is_ours_too(part: int) -> None:
    report = Report()
    for number, scenario in enumerate(scenarios_in(DATA / "decisions.jsonl.gz")):
        if number % PARTS == part:
            for differences in replayed(scenario):
                report.add(scenario.family, differences)
    assert report.differences == []
    assert report.total > 200


def test_the_recording_has_all_families() -> None:
    assert {scenario.family for scenario in scenarios_in(DATA / "decisions.jsonl.gz")} == FAMILIES


def test_gangs_evict_whom_the_original_evicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the node that was recorded, the victims are the recorded ones. What a node costs depends in the original on
    the order in which it keeps the node's pods, which is left to chance, so the recorded node counts as cheapest."""
    wanted: dict[str, int] = {}
    found: list[JobRoom | str] = []
    search = JobVictims.search

    def on_recorded_node(self: JobVictims) -> JobRoom | str:
        wanted["row"] = self._cycle.cluster.table.row_of[nominated]
        found.append(search(self))
        return found[-1]

    monkeypatch.setattr(JobVictims, "search", on_recorded_node)
    monkeypatch.setattr(
        preemption, "_costs", lambda potential, *, together: {row: row != wanted["row"] for row in potential}
    )
    for scenario in scenarios_in(DATA / "job-preemption.jsonl.gz"):
        decision = next(decision for decision in scenario.doc["decisions"] if decision.get("nominated"))
        nominated = decision["nominated"]
        found.clear()
        for differences in replayed(scenario):
            assert not differences
        room = found[0]  # a second try of the group waits for victims that are terminating
        assert isinstance(room, JobRoom)
        assert set(room.nodes.values()) == {nominated}
        assert sorted(pod.name for pod in room.victims) == sorted(decision["victims"])
