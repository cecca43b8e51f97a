"""Racks that are passed over because their sums are too small would not have taken the gang: with and without that
bound the same gangs start, with as many members, and members are told the same."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.core.engine.gangs.domain_search import DomainCapacity
from tests.support.documents import RACK, group, member, pod, racks
from tests.support.scheduling import gang_scenario

loads = st.lists(st.integers(0, 4), min_size=6, max_size=6)
sizes = st.lists(st.integers(1, 3), min_size=1, max_size=7)


def _outcome(used: list[int], asked: list[int], minimum: int, *, tainted: int, preferred: bool) -> tuple[Any, ...]:
    """What becomes of a gang on three racks of two nodes: the verdict, how many are bound in how many racks, and what
    every member was told."""
    nodes = racks(3, 2)
    nodes[tainted]["spec"]["taints"] = [{"key": "k", "effect": "NoSchedule"}]
    wish = group("g", minimum, key=RACK)
    if preferred:
        wish["metadata"]["annotations"] = {"scheduling.fairlead.io/topology-mode": "Preferred"}
    stage = gang_scenario()
    busy = [pod(f"p{at}", cpu=str(cpu), on=f"r{at // 2}n{at % 2}") for at, cpu in enumerate(used) if cpu]
    stage.tell(*nodes, *busy)
    stage.tell(wish, *(member(f"g-{at}", "g", cpu=str(cpu)) for at, cpu in enumerate(asked)))
    explanation = stage.scheduler.explain_group("default", "g")
    told = [condition["message"] for at in range(len(asked)) for condition in stage.conditions(f"g-{at}")]
    bound = stage.binds()
    where = len({target[:2] for target in bound.values()}) if not preferred else 0
    best = explanation.domains[0].fits if explanation.domains and not bound else 0
    return explanation.verdict, explanation.message, len(bound), where, told if not bound else [], best


@given(loads, sizes, st.data(), st.integers(0, 5), st.booleans())
@settings(max_examples=80)
def test_passing_racks_over_changes_no_decision(
    used: list[int], asked: list[int], data: Any, tainted: int, preferred: bool
) -> None:
    minimum = data.draw(st.integers(1, len(asked)))
    bounded = _outcome(used, asked, minimum, tainted=tainted, preferred=preferred)
    with patch.object(DomainCapacity, "of", return_value=None):
        everywhere = _outcome(used, asked, minimum, tainted=tainted, preferred=preferred)
    assert bounded == everywhere
