"""The worked examples do what they say, as plugins named in a configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from examples.maintenance import not_in_maintenance
from examples.tiers import LABEL, TIERS, Tiers

from fairlead import node_filter
from fairlead.assembly.registry import PluginRegistry
from fairlead.errors import ConfigError
from fairlead.testing.agree import agree, any_node, any_pod
from fairlead.testing.builders import node, pod
from fairlead.testing.harness import Harness

EXAMPLES = Path(__file__).parents[4] / "examples"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def configured(name: str, *nodes: Any) -> Harness:
    return Harness(nodes=nodes, config=EXAMPLES / f"{name}.yaml")


def test_maintenance_keeps_pods_off_and_prefers_cool_nodes() -> None:
    hot, cold = node("hot").annotated(temperature="95"), node("cold").annotated(temperature="5")
    cluster = configured("maintenance", hot, cold, node("ill").labelled(maintenance="true").annotated(temperature="0"))
    cluster.apply(pod("p"))
    cluster.run(1)
    explanation = cluster.explain("p")
    assert explanation is not None
    assert explanation.chosen is not None
    assert (explanation.feasible_nodes, explanation.chosen.node) == (2, "cold")
    assert explanation.chosen.scores["cool_nodes"] == 190


def test_tiers_refuse_lower_nodes_and_prefer_the_pods_own() -> None:
    cluster = Harness(nodes=[node(tier).labelled({LABEL: tier}) for tier in TIERS], plugins=[Tiers()])
    cluster.apply(pod("p").labelled({LABEL: "silver"}))
    cluster.run(1)
    explanation = cluster.explain("p")
    assert explanation is not None
    assert explanation.chosen is not None
    assert (cluster.bindings(), explanation.feasible_nodes) == ({"p": "silver"}, 2)
    assert explanation.chosen.scores["Tiers"] == 100


def test_tiers_agree_with_the_same_policy_as_a_function() -> None:
    @node_filter(reason="node(s) of too low a tier")
    def high_enough(pod: Any, node: Any) -> bool:
        return TIERS.index(node.labels.get(LABEL, "bronze")) >= TIERS.index(pod.labels.get(LABEL, "bronze"))

    class OnlyTheFilter(Tiers):
        score = Tiers.__mro__[1].score  # type: ignore[assignment]

    agree(
        high_enough,
        OnlyTheFilter(),
        make_node=lambda rng, name: any_node(rng, name).labelled({LABEL: rng.choice(TIERS)}),
        make_pod=lambda rng, name: any_pod(rng, name).labelled({LABEL: rng.choice(TIERS)}),
    )


def test_prices_come_from_the_file_and_the_cheapest_node_wins() -> None:
    types = ("p4d.24xlarge", "m5.large", "m5.xlarge", "unheard-of")
    cluster = configured("prices", *(node(f"n{at}").labelled({INSTANCE_TYPE: kind}) for at, kind in enumerate(types)))
    cluster.apply(pod("p"))
    cluster.run(1)
    explanation = cluster.explain("p")
    assert explanation is not None
    assert explanation.chosen is not None
    assert (explanation.chosen.node, explanation.chosen.scores["Prices"]) == ("n1", 500)


def test_a_plugin_that_refuses_its_args_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match=r"args\.prices must map instance types to prices"):
        PluginRegistry().create("examples.prices:Prices", {})


def test_the_function_of_the_example_is_a_function() -> None:
    class Row:
        labels = {"maintenance": "true"}

    assert not not_in_maintenance(None, Row())  # type: ignore[arg-type]
