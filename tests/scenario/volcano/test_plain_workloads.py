"""Workloads without a group of their own that name Volcano's scheduler."""

from __future__ import annotations

from fairlead.core.model import kinds
from fairlead.testing.builders import job, node, pod
from tests.support.volcano import VolcanoHarness, conf

SHIPPED = conf(
    "enqueue, allocate, backfill", "priority; gang; conformance", "overcommit; drf; predicates; proportion; nodeorder"
)


def test_a_plain_job_that_limits_itself_to_a_gpu_runs() -> None:
    with_cards = node("card").offers({"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "2"})
    world = VolcanoHarness(SHIPPED, [with_cards])
    card = {"nvidia.com/gpu": "1"}
    world.apply(job("train").of(pod("t").scheduled_by("volcano").asks(cpu="1").asks(card).limited_to(card)))
    world.run(5)
    (member,) = world.list(kinds.POD)
    assert member["spec"].get("nodeName") == "card"
