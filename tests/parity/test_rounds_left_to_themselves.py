"""Recorded clusters scheduled by our own choices, with the original's slips fixed: what must hold however ties fall."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from fairlead.kube.replay.recording import Scenario, scenarios_in
from fairlead.volcano.config.build import profile_of_volcano
from fairlead.volcano.config.reading import load_volcano_config
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.replay.replay import recorded_cluster
from fairlead.volcano.rounds.action_table import run_actions
from fairlead.volcano.rounds.closing import close_round
from fairlead.volcano.rounds.opening import open_round
from fairlead.volcano.rounds.round import Round
from fairlead.volcano.rounds.settings import rounds_of

DATA = Path(__file__).parent / "data" / "volcano"
EVERY = 6


def round_of(scenario: Scenario, seed: int) -> Round:
    rounds = rounds_of(profile_of_volcano(load_volcano_config(scenario.doc["conf"], compatible=True)))
    fixed = rounds.__class__(rounds.actions, rounds.tiers, configurations=rounds.configurations)
    round = open_round(recorded_cluster(scenario), fixed, uid="ours", now=4e9, rng=Random(seed))
    for _ in run_actions(round):
        pass
    return round


@pytest.mark.parametrize("recording", ["volcano", "volcano-corners"])
def test_whatever_is_decided_holds_together(recording: str) -> None:
    for number, scenario in enumerate(scenarios_in(DATA / f"{recording}.jsonl.gz")):
        if number % EVERY == 0:
            round = round_of(scenario, seed=number)
            _nothing_is_given_twice(round)
            _no_gang_is_started_below_its_minimum(round)
            _what_is_kept_follows_from_the_tasks(round)
            close_round(round)
            round.overlay.hide()
            round.cluster.check()


def _nothing_is_given_twice(round: Round) -> None:
    """Who asks for something is only bound where there is room for all that is bound."""
    for task, row in round.outcome.binds:
        if not task.best_effort:
            idle = round.resources.at(round.resources.idle, row)
            assert idle.cpu >= -0.1, (task, idle)
            assert idle.memory >= -0.1, (task, idle)


def _no_gang_is_started_below_its_minimum(round: Round) -> None:
    bound = {task.job.uid: task.job for task, _ in round.outcome.binds if task.job is not None}
    for job in bound.values():
        evicted = sum(task.job is job for task, _ in round.outcome.evictions)
        assert job.counts.ready + job.counts.pending_best_effort + evicted >= job.min_available, job


def _what_is_kept_follows_from_the_tasks(round: Round) -> None:
    for job in round.jobs.values():
        for status in TaskStatus:
            assert job.counts.of(status) == sum(task.status is status for task in job.tasks.values())
    for row in round.rows.tolist():
        for name, used in round.resources.used.items():
            tasks = [task for task in round.resources.tasks_on(row) if task.status is not TaskStatus.PIPELINED]
            assert used[row] == sum(task.request.get(name) for task in tasks)
            assert round.resources.idle[name][row] + used[row] == round.resources.allocatable[name][row]
