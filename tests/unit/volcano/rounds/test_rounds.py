"""Rounds step by step: who is let in, who is placed in which order, what is said when it is over."""

from __future__ import annotations

import pytest

from fairlead.testing.builders import pod, queue
from fairlead.volcano.plugins.gang import GangTierPlugin
from fairlead.volcano.plugins.predicates import Predicates
from fairlead.volcano.plugins.priority import Priority
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.action_table import run_actions
from fairlead.volcano.rounds.arguments import Arguments
from fairlead.volcano.rounds.closing import close_round
from fairlead.volcano.rounds.node_search import enough
from fairlead.volcano.rounds.round import Round
from fairlead.volcano.rounds.settings import Rounds
from tests.support.documents import GROUP
from tests.support.rounds import ROLE, cluster_of, gang, round_over, small_node, task


def run(round: Round) -> Round:
    for _ in run_actions(round):
        pass
    return round


def binds(round: Round) -> dict[str, str]:
    return {t.name: round.cluster.table.name(row) for t, row in round.outcome.binds}


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [(50, 50), (100, 100), (101, 100), (200, 100), (500, 230), (1000, 420), (2500, 750), (5000, 500), (5625, 281),
     (10000, 500), (20000, 1000)],
)  # fmt: skip
def test_fewer_of_many_nodes_are_looked_at(nodes: int, wanted: int) -> None:
    assert enough(nodes, Rounds((), ())) == wanted


def test_all_nodes_are_looked_at_if_asked_to() -> None:
    assert enough(1000, Rounds((), (), percentage=100)) == 1000
    assert enough(1000, Rounds((), (), percentage=20)) == 200
    assert enough(1000, Rounds((), (), min_feasible=500)) == 500


def test_a_gang_of_three_with_room_for_two_binds_nobody_and_says_who_could_be() -> None:
    round = run(
        round_over(cluster_of(small_node("a", "1"), small_node("b", "1"), *gang("job", 3, at_least=3, cpu="1")))
    )
    assert binds(round) == {}
    closing = close_round(round)
    assert sorted(report.reason for report in closing.pods) == ["Schedulable", "Schedulable", "Unschedulable"]
    assert sorted(report.message for report in closing.pods)[1:] == [
        f"Pod default/{name} can possibly be assigned to {node}, once minAvailable is satisfied"
        for name, node in _nearly_placed(round)
    ]
    (condition,) = closing.groups[0].conditions
    assert (condition.type, condition.reason) == ("Unschedulable", "NotEnoughResources")
    assert condition.message == (
        "1/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; "
        "Pending: 1 Unschedulable, 2 Schedulable. "
        "Origin reason is job-2: 0/2 nodes are unavailable: 2 Insufficient cpu."
    )


def _nearly_placed(round: Round) -> list[tuple[str, str]]:
    tasks = [t for job in round.jobs.values() for t in job.tasks.values()]
    return sorted((t.name, round.cluster.table.name(t.last.row)) for t in tasks if t.last is not None)


def test_elastic_tasks_come_one_a_turn_so_that_jobs_stay_in_step() -> None:
    cluster = cluster_of(small_node("a", "5"), *gang("x", 4, at_least=1, cpu="1"), *gang("y", 4, at_least=1, cpu="1"))
    placed = binds(run(round_over(cluster)))
    assert len(placed) == 5
    assert sum(name.startswith("x") for name in placed) in (2, 3, 4)
    assert {"x-0", "y-0"} <= set(placed)


def test_a_role_that_found_no_node_is_not_tried_again() -> None:
    cluster = cluster_of(small_node("a", "1"), *gang("job", 3, at_least=1, role="worker", cpu="2"))
    round = run(round_over(cluster))
    texts = [errors.message for errors in next(iter(round.jobs.values())).fit_errors.values()]
    assert texts[0] == "0/1 nodes are unavailable: 1 Insufficient cpu."
    assert texts[1] == "Task job-1 with role spec worker has already predicated failed, skip"


def test_siblings_of_a_role_skip_nodes_that_refused_the_first() -> None:
    roles = {GROUP: "job", ROLE: "worker"}
    group, *_ = gang("job", 0, at_least=2)
    big = pod("job-w-0").annotated(roles).scheduled_by("volcano").asks(cpu="2")
    small = pod("job-w-1").annotated(roles).scheduled_by("volcano").asks(cpu="1")
    round = run(round_over(cluster_of(small_node("a", "1"), small_node("b", "2"), group, big, small)))
    assert binds(round) == {}, "a would have had room for the second"
    (errors,) = round.jobs["default/job"].fit_errors.values()
    assert errors.message == "0/2 nodes are unavailable: 2 Insufficient cpu."


def test_nobody_of_a_fifo_queue_overtakes_unless_compatible() -> None:
    first, *big = gang("big", 2, at_least=2, cpu="4")
    second, *small = gang("small", 1, at_least=1, cpu="1")
    fifo = queue("default").having(dequeueStrategy="fifo")
    for compatible, placed in ((False, {}), (True, {"small-0": "a"})):
        cluster = cluster_of(fifo, small_node("a"), first, *big, second, *small)
        assert binds(run(round_over(cluster, compatible=compatible))) == placed


def test_a_pod_that_asks_for_nothing_goes_where_predicates_let_it() -> None:
    cluster = cluster_of(small_node("a").tainted("k"), small_node("b"), *gang("job", 1, at_least=1))  # type: ignore[attr-defined]
    plugins = (Priority(), GangTierPlugin(), Predicates.of(Arguments()))
    assert binds(run(round_over(cluster, plugins=plugins))) == {"job-0": "b"}


def test_several_reasons_of_one_node_are_reported_until_a_final_one() -> None:
    full = small_node("a", pods="0").tainted("k")  # type: ignore[attr-defined]
    cluster = cluster_of(full, *gang("job", 1, at_least=1))
    round = run(round_over(cluster, plugins=(Priority(), GangTierPlugin(), Predicates.of(Arguments()))))
    (errors,) = next(iter(round.jobs.values())).fit_errors.values()
    assert errors.message == (
        "0/1 nodes are unavailable: 1 node(s) had untolerated taint(s), 1 node(s) pod number exceeded."
    )


@pytest.mark.parametrize(
    ("phase", "statuses", "expected"),
    [
        ("Pending", [TaskStatus.PENDING], "Pending"),
        ("Inqueue", [TaskStatus.PENDING], "Inqueue"),
        ("Inqueue", [TaskStatus.RUNNING, TaskStatus.BOUND], "Running"),
        ("Running", [TaskStatus.SUCCEEDED, TaskStatus.FAILED], "Completed"),
        ("Running", [TaskStatus.RUNNING, TaskStatus.PENDING], "Pending"),
        ("Running", [TaskStatus.SUCCEEDED, TaskStatus.RUNNING], "Running"),
    ],
)
def test_phases_follow_from_who_is_scheduled(phase: str, statuses: list[TaskStatus], expected: str) -> None:
    members = gang("job", len(statuses), at_least=2, status={"phase": phase}, cpu="1")
    round = round_over(cluster_of(small_node("a"), *members), plugins=(Priority(),))
    for number, status in enumerate(statuses):
        round.jobs["default/job"].move(task(round, f"job-{number}"), status)
    assert close_round(round).groups[0].phase == expected


def test_a_gang_that_runs_and_lost_members_is_unknown() -> None:
    round = round_over(cluster_of(small_node("a"), *gang("job", 2, at_least=2, cpu="1")))
    round.jobs["default/job"].move(task(round, "job-0"), TaskStatus.RUNNING)
    assert close_round(round).groups[0].phase == "Unknown"


def test_enqueue_lets_in_who_names_no_minimum_and_asks_about_the_others() -> None:
    group, *_ = gang("job", 0, at_least=1, status={"phase": "Pending"})
    round = run(round_over(cluster_of(small_node("a"), group), actions=("enqueue",)))
    assert round.jobs["default/job"].phase == "Inqueue"


def test_allocate_lets_groups_in_where_nothing_else_does() -> None:
    members = gang("job", 1, at_least=1, status={"phase": "Pending"}, cpu="1")
    assert binds(run(round_over(cluster_of(small_node("a"), *members)))) == {"job-0": "a"}


def test_queues_are_given_what_their_descendants_have() -> None:
    group, member = gang("job", 1, at_least=1, cpu="1")
    child = queue("child").having(parent="root")
    cluster = cluster_of(queue("root"), child, small_node("a"), group.having(queue="child"), member)
    closing = close_round(run(round_over(cluster)))
    assert {name: amounts.cpu for name, amounts in closing.allocated.items()} == {
        "default": 0,
        "root": 1000,
        "child": 1000,
    }
