"""Queues, PodGroups and pods as Volcano's webhooks would have them."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.errors import ApiError, BadRequest
from fairlead.testing.builders import Builder, namespace, pod, podgroup, queue
from fairlead.testing.harness import Harness
from fairlead.volcano.kinds import VC_QUEUE

BUDGET = "volcano.sh/jdb-min-available"


@pytest.fixture
def cluster() -> Harness:
    made = Harness(schedulers=[], housekeeping="none")
    made.apply(queue("root"), queue("default"))
    return made


def refusal(cluster: Harness, *objects: Builder | Doc) -> str:
    """What is said of the last of some objects."""
    for one in objects[:-1]:
        cluster.apply(one)
    with pytest.raises(ApiError) as refused:
        cluster.apply(objects[-1])
    return _why(refused.value)


def _why(error: ApiError) -> str:
    prefix = 'admission webhook "validatequeue.volcano.sh" denied the request: '
    assert error.message.startswith(prefix), error.message
    assert (error.code, error.status()["reason"]) == (400, "")
    return error.message.removeprefix(prefix)


def guaranteed(name: str, cpu: str, **more: Any) -> Builder:
    return queue(name).having(guarantee={"resource": {"cpu": cpu}}, **more)


# ---- what is made of them ----


def test_a_new_queue_gets_defaults_and_its_path_begins_at_the_root(cluster: Harness) -> None:
    notes = {"volcano.sh/hierarchy": "sci/dev", "volcano.sh/hierarchy-weights": "2/8"}
    made = cluster.apply(queue("q").annotated(notes))
    assert made["spec"]["reclaimable"] is True
    assert made["spec"]["weight"] == 1
    assert made["metadata"]["annotations"] == {
        "volcano.sh/hierarchy": "root/sci/dev",
        "volcano.sh/hierarchy-weights": "1/2/8",
    }
    kept = cluster.apply(queue("r").having(reclaimable=False, weight=0))
    assert (kept["spec"]["reclaimable"], kept["spec"]["weight"]) == (False, 1)


def test_a_group_without_a_queue_gets_its_namespaces(cluster: Harness) -> None:
    cluster.apply(namespace("team").annotated({"scheduling.volcano.sh/queue-name": "theirs"}), namespace("plain"))
    made = [
        cluster.apply(podgroup("a", 1, "team")), cluster.apply(podgroup("b", 1, "team").in_queue("own")),
        cluster.apply(podgroup("c", 1, "plain")),
    ]  # fmt: skip
    assert [group["spec"]["queue"] for group in made] == ["theirs", "own", "default"]


# ---- a queue by itself ----


def test_guarantee_is_within_deserved_and_deserved_within_capability(cluster: Harness) -> None:
    where = "requestBody.spec.deserved.cpu: Invalid value: "
    assert refusal(cluster, guaranteed("q", "4")) == where + '"<nil>": deserved[cpu] must be >= guarantee[cpu]=4'
    short = guaranteed("q", "4", deserved={"cpu": "2"})
    assert refusal(cluster, short) == where + '"2": deserved[cpu]=2 must be >= guarantee[cpu]=4'
    large = queue("q").capped_at(cpu="4").deserving(cpu="5000m")
    assert refusal(cluster, large) == where + '"5": deserved[cpu]=5 must be <= capability[cpu]=4'
    cluster.apply(guaranteed("q", "1", deserved={"cpu": "2"}, capability={"cpu": "3"}))


def test_amounts_of_a_queue_are_validated(cluster: Harness) -> None:
    found = refusal(cluster, queue("q").capped_at({"cpu": "-1", "nvidia.com/gpu": "500m"}))
    assert found == (
        '[requestBody.spec.capability.cpu: Invalid value: "-1": must be greater than or equal to 0, '
        'requestBody.spec.capability.nvidia.com/gpu: Invalid value: "500m": must be an integer]'
    )


@pytest.mark.parametrize(
    ("path", "weights", "expected"),
    [
        ("root/a", "1", 'Invalid value: "root/a": volcano.sh/hierarchy must have the same length with '
                        "volcano.sh/hierarchy-weights"),
        ("root/a", "1/x", 'Invalid value: "1/x": x in the 1/x is invalid number: strconv.ParseFloat: parsing "x": '
                          "invalid syntax"),
        ("root/a", "1/0", 'Invalid value: "1/0": 0 in the 1/0 must be larger than 0'),
        ("root/sci", "1/1", 'Invalid value: "root/sci": root/sci is not allowed to be in the sub path of root/sci/dev '
                            "of queue dev"),
    ],
)  # fmt: skip
def test_paths_of_the_older_hierarchy(cluster: Harness, path: str, weights: str, expected: str) -> None:
    dev = {"volcano.sh/hierarchy": "root/sci/dev", "volcano.sh/hierarchy-weights": "1/1/1"}
    notes = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    found = refusal(cluster, queue("dev").annotated(dev), queue("q").annotated(notes))
    assert found == f"requestBody.metadata.annotations: {expected}"


# ---- a queue among others ----


def below(name: str, parent: str, **spec: Any) -> Builder:
    return queue(name).having(parent=parent, **spec)


def test_a_parent_must_be_there_and_be_somebody_else(cluster: Harness) -> None:
    assert refusal(cluster, below("q", "q")) == "queue q cannot use itself as parent"
    missing = 'failed to get parent queue x of queue q: queue.scheduling.volcano.sh "x" not found'
    assert refusal(cluster, below("q", "x")) == missing
    cluster.apply(below("q", "root"))


def test_trees_have_five_levels_and_no_circles(cluster: Harness) -> None:
    deep = [queue("a"), below("b", "a"), below("c", "b"), below("d", "c"), below("e", "d"), below("f", "e")]
    assert refusal(cluster, *deep) == "queue f exceeds the maximum allowed depth of 5"
    assert refusal(cluster, below("a", "e")) == "queue a exceeds the maximum allowed depth of 5"


def test_a_queue_that_holds_pods_becomes_no_parent(cluster: Harness) -> None:
    cluster.apply(queue("busy"))
    status = {"status": {"allocated": {"pods": "3"}}}
    cluster.perform(Write(Verb.PATCH, VC_QUEUE, "", "busy", status, subresource="status"))
    found = refusal(cluster, below("q", "busy"))
    assert found == "queue busy cannot be the parent queue of queue q because it has allocated Pods: 3"


def test_a_capability_is_within_the_nearest_one_above(cluster: Harness) -> None:
    above = queue("top").capped_at(cpu="4", memory="8Gi")
    found = refusal(cluster, above, below("mid", "top"), below("q", "mid", capability={"cpu": "4500m"}))
    assert found == "queue q capability[cpu]=4500m exceeds its ancestor's capability=4"
    cluster.apply(below("q", "mid", capability={"cpu": "3", "memory": "6Gi"}))
    found = refusal(cluster, queue("top").capped_at(cpu="4", memory="5Gi"))
    assert found == "queue top capability[memory]=5Gi is smaller than its descendants' max capability=6Gi"


def test_children_together_have_no_more_than_their_parent(cluster: Harness) -> None:
    def child(name: str, guarantee: str, deserved: str) -> Builder:
        return guaranteed(name, guarantee, parent="top", deserved={"cpu": deserved})

    top = guaranteed("top", "3", deserved={"cpu": "6"})
    found = refusal(cluster, top, child("a", "2", "2"), child("b", "2", "2"))
    assert found == (
        "parent queue top validation failed: sum of children's guarantee (cpu 4000.00, memory 0.00) exceeds "
        "parent's guarantee limit (cpu 3000.00, memory 0.00)"
    )
    found = refusal(cluster, child("b", "1", "5"))
    assert found == (
        "parent queue top validation failed: sum of children's deserved (cpu 7000.00, memory 0.00) exceeds "
        "parent's deserved limit (cpu 6000.00, memory 0.00)"
    )
    cluster.apply(child("b", "1", "4"))
    found = refusal(cluster, guaranteed("top", "2", deserved={"cpu": "6"}))
    assert found.startswith("queue top validation failed: sum of children's guarantee (cpu 3000.00, memory 0.00)")


def test_what_a_parent_does_not_name_is_none(cluster: Harness) -> None:
    found = refusal(cluster, queue("top"), below("a", "top", deserved={"cpu": "1"}))
    assert "exceeds parent's deserved limit (cpu 0.00, memory 0.00)" in found


def test_the_roots_resources_stay(cluster: Harness) -> None:
    found = refusal(cluster, queue("root").capped_at(cpu="1"))
    assert found == "root queue's resource attributes (capability, deserved, guarantee) cannot be modified"
    cluster.apply(queue("root").weighing(5))


def test_an_old_queue_may_change_what_breaks_no_rule(cluster: Harness) -> None:
    """What was let in before, or came from a snapshot, is not looked at again unless it is touched."""
    cluster.apply(queue("q"))
    stored = cluster.get(VC_QUEUE, "q") or {}
    cluster.store.restore(VC_QUEUE, {**stored, "spec": {**stored["spec"], "parent": "gone"}})
    cluster.apply(queue("q").weighing(7))


# ---- the end ----


def test_root_default_and_parents_are_not_deleted(cluster: Harness) -> None:
    cluster.apply(queue("top"), below("a", "top"), below("b", "top"))
    expected = {
        "root": "`root` queue can not be deleted",
        "default": "`default` queue can not be deleted",
        "top": "queue top can not be deleted because it has 2 child queues: a, b",
    }
    for name, text in expected.items():
        with pytest.raises(BadRequest) as refused:
            cluster.delete(VC_QUEUE, name)
        assert _why(refused.value) == text
    for name in ("a", "b", "top"):
        cluster.delete(VC_QUEUE, name)


# ---- pods ----


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ({BUDGET: "0"}, f'invalid value <"0"> for {BUDGET}, it must be a positive integer'),
        ({BUDGET: "100%"},
         f'invalid value <"100%"> for {BUDGET}, it must be a valid percentage which between 1% ~ 99%'),
        ({BUDGET: "some"}, f'invalid value strconv.Atoi: parsing "some": invalid syntax for {BUDGET}'),
        ({BUDGET: "1", "volcano.sh/jdb-max-unavailable": "50%"},
         "not allow configure multiple annotations <[volcano.sh/jdb-min-available volcano.sh/jdb-max-unavailable]> "
         "at same time"),
    ],
)  # fmt: skip
def test_budgets_of_pods_are_validated(cluster: Harness, notes: dict[str, str], expected: str) -> None:
    with pytest.raises(BadRequest) as refused:
        cluster.apply(pod("p").annotated(notes).scheduled_by("volcano"))
    assert refused.value.message == f'admission webhook "validatepod.volcano.sh" denied the request: {expected}'
    cluster.apply(pod("p").annotated(notes))
    cluster.apply(pod("q").annotated({BUDGET: "30%"}).scheduled_by("volcano"))
