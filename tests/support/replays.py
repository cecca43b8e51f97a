"""Replays of recorded scenarios as `fairlead replay` makes them, without a configuration of the user's."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.assembly.recorded import recorded_cluster, recorded_profile
from fairlead.kube.replay.recording import ReplayMeans, Scenario
from fairlead.kube.replay.replay import DecisionDifference

_MEANS = ReplayMeans(lambda scenario: [], recorded_profile, recorded_cluster)


def replayed(scenario: Scenario) -> Iterator[list[DecisionDifference]]:
    """The differences of each decision, for recordings that have their configuration with them."""
    return scenario.form.decisions(scenario, _MEANS)
