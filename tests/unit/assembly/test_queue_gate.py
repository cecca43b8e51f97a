"""The gate SchedulerPopFromBackoffQ reaches the queue of a scheduler that is made of a configuration."""

from __future__ import annotations

import pytest

from fairlead.assembly.schedulers import SchedulerAssembly
from fairlead.kube.config.gates import OWN_GATES, parse_feature_gates
from fairlead.testing import Harness, node, pod


@pytest.mark.parametrize(("state", "within_the_second"), [("true", True), ("false", False)])
def test_a_refused_pod_whose_node_comes_is_tried_at_once_or_after_its_backoff(
    state: str, within_the_second: bool
) -> None:
    gates = parse_feature_gates(f"SchedulerPopFromBackoffQ={state}", defaults=OWN_GATES)
    with Harness(nodes=1, schedulers=SchedulerAssembly(gates=gates)) as cluster:
        cluster.apply(pod("big").asks(cpu="20"))
        cluster.run(0.1)
        cluster.apply(node("roomy").offers(cpu="32"))
        cluster.run(0.5)
        assert bool(cluster.bindings()) is within_the_second
        cluster.run(2)
        assert cluster.bindings() == {"big": "roomy"}
