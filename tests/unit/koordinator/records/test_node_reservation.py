"""What Koordinator's annotation keeps of a node is not there for pods."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.core.model.flow import Happened
from fairlead.core.model.node import compile_node
from fairlead.koordinator.records.node_reservation import reserved_amounts
from tests.support.documents import node
from tests.support.koordinator import KoordScenario, koord_pod

KEY = "node.koordinator.sh/reservation"
GI = 1 << 30
HAS = {"cpu": "8", "memory": "16Gi", "pods": "110", "kubernetes.io/batch-cpu": "4000"}


def offered(written: Any) -> dict[str, int]:
    text = written if isinstance(written, str) else json.dumps(written)
    metadata = {"name": "n", "annotations": {KEY: text}}
    return compile_node({"metadata": metadata, "status": {"allocatable": HAS}}).allocatable


@pytest.mark.parametrize(
    ("written", "cpu", "memory"),
    [
        ({"resources": {"cpu": "1500m", "memory": "4Gi"}}, 6500, 12),
        ({"resources": {"cpu": "2"}, "applyPolicy": "Default"}, 6000, 16),
        ({"reservedCPUs": "0-2,5"}, 4000, 16),
        ({"resources": {"cpu": "7", "memory": "1Gi"}, "reservedCPUs": "0"}, 7000, 15),
        ({"resources": {"cpu": "20", "example.com/other": "1"}}, 0, 16),
        ({"resources": {"cpu": "2"}, "applyPolicy": "ReservedCPUsOnly"}, 8000, 16),
        ({"reservedCPUs": "0-1", "applyPolicy": "ReservedCPUsOnly"}, 8000, 16),
        ({"resources": {"kubernetes.io/batch-cpu": "1000"}}, 8000, 16),
        ({"resources": {"cpu": "many"}}, 8000, 16),
        ({"reservedCPUs": "all"}, 8000, 16),
        ("null", 8000, 16),
        ("{", 8000, 16),
        ("", 8000, 16),
    ],
)
def test_what_is_kept_is_taken_off_what_can_be_allocated(written: Any, cpu: int, memory: int) -> None:
    found = offered(written)
    expected = {"cpu": cpu, "memory": memory * GI, "pods": 110, "kubernetes.io/batch-cpu": 4000}
    assert {name: found[name] for name in expected} == expected
    assert set(found) == set(offered("")), "nothing is offered that the node does not have"


def test_amounts_are_known_whatever_the_policy_says() -> None:
    written = {"resources": {"cpu": "2", "memory": "1Gi"}, "applyPolicy": "ReservedCPUsOnly"}
    assert reserved_amounts({KEY: json.dumps(written)}) == {"cpu": 2000, "memory": GI}
    assert reserved_amounts({}) == {}


def test_pods_fit_when_the_node_keeps_less() -> None:
    scenario, plain = KoordScenario(), node("n0")
    keeping = {**plain, "metadata": {**plain["metadata"], "annotations": {KEY: '{"resources":{"cpu":"3"}}'}}}
    scenario.tell(keeping, koord_pod("large", cpu="2"), koord_pod("small", cpu="1"))
    scenario.settle()
    assert scenario.placed() == {"small": "n0"}
    assert "Insufficient cpu" in scenario.message("large")
    scenario.tell(plain, happened=Happened.MODIFIED)
    scenario.play_out()
    assert scenario.placed() == {"small": "n0", "large": "n0"}
