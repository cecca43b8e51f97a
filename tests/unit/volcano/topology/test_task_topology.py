"""task-topology: buckets of roles; and rescheduling."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model.usage import NodeUsage, UsageBoard
from fairlead.volcano.plugins.rescheduling import Rescheduling
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.arguments import Arguments
from fairlead.volcano.topology.buckets import JobBuckets, rules_of
from fairlead.volcano.topology.task_topology import TaskTopology
from tests.support.rounds import NOW, RoundScenario, measured, scores, task

TOPOLOGY = "volcano.sh/task-topology"


def training(*, ps: int = 2, worker: int = 4, **annotations: str) -> RoundScenario:
    yard = RoundScenario().node("a", cpu="8").node("b", cpu="8").queue("default")
    said = {f"{TOPOLOGY}-{key.replace('_', '-')}": value for key, value in annotations.items()}
    yard.group("job", annotations=said)
    for role, count in (("ps", ps), ("worker", worker)):
        for number in range(count):
            role_of = {"volcano.sh/task-spec": role}
            yard.pod(f"job-{role}-{number}", "job", asks={"cpu": "1"}, annotations=role_of)
    return yard


def buckets_of(yard: RoundScenario) -> list[list[str]]:
    round = yard.open()
    job = round.jobs["default/job"]
    rules = rules_of(job)
    assert rules is not None
    names = {int(row): round.cluster.table.name(int(row)) for row in round.rows}
    found = JobBuckets(rules, job.tasks.values(), names).of
    listed: dict[int, list[str]] = {}
    for uid, bucket in found.items():
        listed.setdefault(bucket.place, []).append(uid.removeprefix("job-"))
    return [sorted(names) for names in listed.values()]


def test_servers_keep_apart_and_workers_spread_over_them() -> None:
    yard = training(affinity="ps,worker", anti_affinity="ps")
    assert sorted(buckets_of(yard)) == [["ps-0", "worker-0", "worker-2"], ["ps-1", "worker-1", "worker-3"]]


def test_a_role_that_likes_itself_stays_together() -> None:
    assert buckets_of(training(ps=0, affinity="worker")) == [["worker-0", "worker-1", "worker-2", "worker-3"]]


@pytest.mark.parametrize("said", ["ps,nobody", "ps,ps"])
def test_a_role_that_there_is_not_or_twice_makes_the_job_be_ignored(said: str) -> None:
    assert rules_of(training(affinity=said).open().jobs["default/job"]) is None


def test_tasks_on_nodes_make_the_first_buckets() -> None:
    yard = training(affinity="ps,worker", anti_affinity="ps")
    yard.pod("job-ps-9", "job", on="b", annotations={"volcano.sh/task-spec": "ps"})
    assert "ps-9" in buckets_of(yard)[0]


def test_tasks_come_bucket_by_bucket_and_in_the_users_order() -> None:
    plugin = TaskTopology()
    yard = training(affinity="ps,worker", anti_affinity="ps", task_order="worker,ps")
    round = yard.pod("job-other-0", "job", annotations={"volcano.sh/task-spec": "other"}).open(plugin)
    worker, ps = task(round, "job-worker-0"), task(round, "job-ps-0")
    other = task(round, "job-other-0")
    assert plugin.task_order(worker, ps) < 0 < plugin.task_order(ps, worker)
    assert plugin.task_order(worker, other) < 0
    assert plugin.task_order(other, other) == 0


def test_a_node_is_as_good_as_much_of_the_bucket_fits() -> None:
    plugin = TaskTopology()
    yard = training(ps=0, affinity="worker").node("small", cpu="2").node("tiny", cpu="500m")
    round = yard.open(plugin)
    assert scores(plugin, round, "job-worker-0") == {"a": 100, "b": 100, "small": 50, "tiny": 0}


def test_who_is_placed_draws_the_others() -> None:
    plugin = TaskTopology()
    round = training(ps=0, affinity="worker").open(plugin)
    placed = task(round, "job-worker-0")
    _move(round, placed, TaskStatus.ALLOCATED, row=0)
    plugin.allocated(placed)
    assert scores(plugin, round, "job-worker-1") == {"a": 100, "b": 75}


def _move(round: Any, moved: Any, status: TaskStatus, *, row: int) -> None:
    moved.job.move(moved, status)
    moved.row = row


@pytest.mark.parametrize(("compatible", "after"), [(False, {"a": 100, "b": 100}), (True, {"a": 100, "b": 75})])
def test_a_task_that_was_only_tried_is_taken_back(compatible: bool, after: dict[str, float]) -> None:
    plugin = TaskTopology()
    round = training(ps=0, affinity="worker").open(plugin, compatible=compatible)
    placed = task(round, "job-worker-0")
    _move(round, placed, TaskStatus.ALLOCATED, row=0)
    plugin.allocated(placed)
    _move(round, placed, TaskStatus.PENDING, row=0)
    plugin.deallocated(placed)
    assert scores(plugin, round, "job-worker-1") == after


# ---- rescheduling ----


def unbalanced() -> tuple[RoundScenario, UsageBoard]:
    yard = RoundScenario().node("hot", cpu="10").node("cold", cpu="10").queue("default").group("job")
    for number, priority in ((0, 10), (1, 1), (2, 5)):
        yard.pod(f"p{number}", "job", on="hot", asks={"cpu": "2"}, priority=priority)
    return yard, measured(hot=NodeUsage(90, 20, NOW), cold=NodeUsage(5, 5, NOW))


def relieving(source: UsageBoard, *, period: str = "5m", **targets: int) -> Rescheduling:
    params = {"thresholds": {"cpu": 30, "memory": 30, "pod": 30}, "targetThresholds": {"cpu": 60} | targets}
    strategies = [{"name": "lowNodeUtilization", "params": params}]
    return Rescheduling.of(Arguments({"interval": "2m", "metricsPeriod": period, "strategies": strategies}), source)


def test_lesser_pods_leave_a_busy_node_until_it_is_not() -> None:
    yard, source = unbalanced()
    plugin = relieving(source)
    round = yard.open(plugin)
    running = [task(round, f"p{number}") for number in range(3)]
    assert [victim.name for victim in plugin.victim_tasks(running)] == ["p1", "p2"]
    assert plugin.victim_tasks(running) == [], "not again within the interval"
    plugin.open(yard.open(plugin, now=NOW + 121))
    assert plugin.victim_tasks(running)


def test_nothing_moves_unless_some_are_busy_and_some_are_not() -> None:
    yard, _ = unbalanced()
    for usage in (NodeUsage(50, 20, NOW), NodeUsage(10, 10, NOW)):
        plugin = relieving(measured(hot=usage, cold=NodeUsage(5, 5, NOW)))
        round = yard.open(plugin)
        assert plugin.victim_tasks([task(round, "p0")]) == []
    silent = Rescheduling()
    yard.open(silent)
    assert silent.victim_tasks([]) == []


def test_of_equal_priority_those_who_were_promised_less_go_first() -> None:
    yard, source = unbalanced()
    amounts = {"cpu": "1", "memory": "1Gi"}
    yard.pod("guaranteed", "job", on="hot", asks=amounts, limits=amounts, priority=0)
    yard.pod("burstable", "job", on="hot", asks={"cpu": "1"}, priority=0)
    yard.pod("best-effort", "job", on="hot", asks={}, priority=0).pod("none", "job", on="hot", asks=amounts)
    plugin = relieving(source, cpu=85)
    round = yard.open(plugin)
    victims = [victim.name for victim in plugin.victim_tasks(list(round.jobs["default/job"].tasks.values()))]
    assert victims == ["none"], "ten percent is enough"
    plugin = relieving(source, cpu=50)
    yard.open(plugin)
    victims = [victim.name for victim in plugin.victim_tasks(list(round.jobs["default/job"].tasks.values()))]
    assert victims[:4] == ["none", "best-effort", "burstable", "guaranteed"]


def test_the_period_that_there_is_is_used_whatever_the_arguments_say() -> None:
    yard, source = unbalanced()
    for period, compatible, moves in (("5m", False, True), ("5m", True, False), ("10m", True, True)):
        plugin = relieving(source, period=period)
        round = yard.open(plugin, compatible=compatible)
        assert bool(plugin.victim_tasks([task(round, "p1")])) is moves


def test_a_negative_budget_does_not_stop_the_original() -> None:
    """Cold has 1.5 cores left below its target, and the first pod to move asks for three."""
    yard = RoundScenario().node("hot", cpu="10").node("cold", cpu="10").queue("default").group("job")
    for number in range(3):
        yard.pod(f"p{number}", "job", on="hot", asks={"cpu": "3"}, priority=number)
    source = measured(hot=NodeUsage(95, 20, NOW), cold=NodeUsage(5, 5, NOW))
    for compatible, moved in ((False, 1), (True, 3)):
        plugin = relieving(source, cpu=20, period="10m")
        round = yard.open(plugin, compatible=compatible)
        running = [task(round, f"p{number}") for number in range(3)]
        assert len(plugin.victim_tasks(running)) == moved


def test_old_and_missing_numbers_move_nobody() -> None:
    yard, _ = unbalanced()
    for source in (measured(hot=NodeUsage(90, 20, NOW), cold=NodeUsage(5, 5, NOW - 301)), measured()):
        plugin = relieving(source)
        round = yard.open(plugin)
        assert plugin.victim_tasks([task(round, "p1")]) == []


def test_a_strategy_that_is_not_known_moves_nobody() -> None:
    yard, source = unbalanced()
    plugin = Rescheduling.of(Arguments({"strategies": [{"name": "other"}]}), source)
    round = yard.open(plugin)
    assert plugin.victim_tasks([task(round, "p1")]) == []
