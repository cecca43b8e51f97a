"""What is said of groups that wait: those that are not counted yet, and pods that wait beyond a minimum."""

from __future__ import annotations

from fairlead.testing import Harness, node, pod, podgroup, queue


def cluster_with(members: int, least: int) -> Harness:
    """Queue prod on four cores, with a group whose pods ask for one each."""
    cluster = Harness(nodes=[node("only").offers(cpu="4")], volcano="default")
    cluster.run(3)
    cluster.apply(queue("prod").weighing(3))
    cluster.run(3)
    pods = [pod(f"w-{at}").asks(cpu="1").in_group("w").scheduled_by("volcano") for at in range(members)]
    group = podgroup("w", least).in_queue("prod").having(minResources={"cpu": str(least)})
    cluster.apply(group, *pods)
    cluster.run(10)
    return cluster


def test_a_queue_says_which_of_its_groups_are_not_counted_yet() -> None:
    cluster = cluster_with(members=20, least=20)
    scheduler = cluster.assembled.scheduler
    assert scheduler is not None
    explained = scheduler.explain_queue("prod")
    assert explained is not None
    why = explained.to_document()["why"]
    expected = "1 of its groups is not counted, in what it asks for and deserves, before enqueue lets them in: 20 cpu"
    assert any(one.startswith(expected) for one in why), why
    assert "it has all that it deserves: others come first, and it reclaims nothing" not in why


def test_pods_that_wait_beyond_the_minimum_are_not_said_to_be_refused_by_nobody() -> None:
    cluster = cluster_with(members=6, least=2)
    scheduler = cluster.assembled.scheduler
    assert scheduler is not None
    explained = scheduler.explain_group("default", "w")
    assert explained is not None
    (nodes,) = [check for check in explained.to_document()["checks"] if check["check"] == "nodes"]
    assert nodes["passed"] is not True
    assert nodes["text"] != "no node refused it"
