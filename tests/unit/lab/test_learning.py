"""The environment keeps Gymnasium's contract, and what an agent does happens in the cluster."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from fairlead.errors import ConfigError
from fairlead.lab.learning import SchedulingEnv
from fairlead.lab.scenario.reading import check_scenario
from fairlead.lab.scenario.records import (
    ArrivalSpec,
    ClusterSpec,
    JobClassSpec,
    LabScenario,
    LoadSpec,
    PolicySpec,
    ShapeSpec,
    StopSpec,
    constant,
)


def scenario(count: int = 12) -> LabScenario:
    arrivals = ArrivalSpec(gap=constant(5.0), count=count)
    jobs = JobClassSpec(arrivals=arrivals, resources={"cpu": "2"}, duration=constant(60.0))
    return check_scenario(
        LabScenario(
            cluster=ClusterSpec(nodes=[ShapeSpec(count=3, resources={"cpu": "4", "memory": "8Gi", "pods": "10"})]),
            loads=[LoadSpec(name="steady", jobs=[jobs])],
            stop=StopSpec(at=3600.0),
        )
    )


def played(env: SchedulingEnv, choose: Any, seed: int = 1) -> tuple[list[Any], float]:
    seen, total = [], 0.0
    observation, info = env.reset(seed=seed)
    for _ in range(500):
        action = choose(observation)
        seen.append((info["pod"], int(action), info["time"]))
        observation, reward, over, cut, info = env.step(action)
        total += float(reward)
        if over or cut:
            return seen, total
    raise AssertionError("the run does not end")


def first_feasible(observation: Any) -> np.int64:
    return np.int64(np.flatnonzero(observation["feasible"])[0])


def test_a_policy_in_rounds_is_refused() -> None:
    rounds = replace(scenario(), policies=[PolicySpec(name="batch", volcano="default")])
    with pytest.raises(ConfigError, match="policy batch works in rounds"):
        SchedulingEnv(rounds)


def test_it_keeps_gymnasiums_contract() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(SchedulingEnv(scenario()), skip_render_check=True)


def test_an_agent_that_takes_the_first_node_runs_all_jobs_and_the_same_twice() -> None:
    env = SchedulingEnv(scenario())
    once = played(env, first_feasible)
    assert played(env, first_feasible) == once
    pods = {pod for pod, action, _ in once[0] if action < 3}
    assert len(pods) == 12
    assert env.time >= 60


def test_a_node_without_room_refuses_and_waiting_costs() -> None:
    env = SchedulingEnv(scenario(4))
    env.reset(seed=1)
    for _ in range(2):
        observation, reward, *_ = env.step(np.int64(0))
        assert reward == pytest.approx(0.0)
    assert list(observation["feasible"]) == [0, 1, 1, 1]
    pod = env.step(np.int64(0))[4]["pod"]
    assert pod
    _, patient = played(env, lambda seen: np.int64(3) if env.time < 600 else first_feasible(seen))
    _, eager = played(env, first_feasible)
    assert patient < eager <= 0.0
