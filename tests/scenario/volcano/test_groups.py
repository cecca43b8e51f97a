"""Queues that may have only so much of a group of nodes."""

from __future__ import annotations

import json

from fairlead.core.model import kinds
from fairlead.testing.builders import Builder, node, queue
from tests.support.volcano import VolcanoHarness, conf

TEXT = conf("enqueue, allocate, backfill", "priority; gang", "predicates; nodegroup; nodeorder")
LIMITS = "volcano.sh/nodegroup-resource-limits"


def world(limits: str, *, compatible: bool = False) -> VolcanoHarness:
    """Two nodes of the group gpu and one of the group cpu, with eight cores each."""
    groups = {"g0": "gpu", "g1": "gpu", "c0": "cpu"}
    nodes = [
        node(name).offers(cpu="8", memory="32Gi", pods="110").labelled({"volcano.sh/nodegroup-name": group})
        for name, group in groups.items()
    ]
    return VolcanoHarness(TEXT, nodes, queues=[limited(limits)], compatible=compatible)


def limited(limits: str) -> Builder:
    wish = {"requiredDuringSchedulingIgnoredDuringExecution": ["gpu", "cpu"]}
    return queue("a").having(affinity={"nodeGroupAffinity": wish}).annotated({LIMITS: limits})


def by_group(made: VolcanoHarness) -> dict[str, int]:
    counts = {"gpu": 0, "cpu": 0}
    for name in made.bindings().values():
        counts["cpu" if name == "c0" else "gpu"] += 1
    return counts


def said(made: VolcanoHarness, name: str) -> str:
    return next(c["message"] for c in made.pod(name)["status"]["conditions"] if c["type"] == "PodScheduled")


def test_a_queue_has_no_more_of_a_group_than_it_may() -> None:
    made = world(json.dumps({"gpu": {"cpu": "4"}, "cpu": {"cpu": "6"}}))
    made.gang("job", 1, members=8, queue="a", asks={"cpu": "2"})
    made.run(5)
    assert by_group(made) == {"gpu": 2, "cpu": 3}
    waiting = next(name for name in made.phases() if name not in made.bindings())
    assert said(made, waiting) == "0/3 nodes are unavailable: 3 node group resource limit exceeded."
    gone = next(name for name, at in made.bindings().items() if at == "c0")
    made.delete(kinds.POD, gone)
    made.run(60)
    assert by_group(made) == {"gpu": 2, "cpu": 3}, "what is given back can be had again"


def test_a_group_without_a_limit_has_none() -> None:
    made = world(json.dumps({"gpu": {"cpu": "2"}}))
    made.gang("job", 1, members=6, queue="a", asks={"cpu": "2"})
    made.run(5)
    assert by_group(made) == {"gpu": 1, "cpu": 4}


def test_a_gang_that_would_exceed_the_limit_of_a_node_group_does_not_start() -> None:
    made = world(json.dumps({"gpu": {"cpu": "4"}, "cpu": {"cpu": "0"}}))
    made.gang("job", 3, queue="a", asks={"cpu": "2"})
    made.run(5)
    assert made.bindings() == {}


def test_limits_that_cannot_be_read_leave_nothing() -> None:
    for text in ("{", "[1]", '{"gpu": {"cpu": "many"}}'):
        made = world(text)
        made.gang("job", 1, queue="a", asks={"cpu": "1"})
        made.run(5)
        assert said(made, "job-w-0") == "0/3 nodes are unavailable: 3 node group resource limit annotation invalid."


def test_the_original_of_1_15_knows_no_such_limits() -> None:
    made = world(json.dumps({"gpu": {"cpu": "0"}, "cpu": {"cpu": "0"}}), compatible=True)
    made.gang("job", 1, queue="a", asks={"cpu": "1"})
    made.run(5)
    assert len(made.bindings()) == 1
