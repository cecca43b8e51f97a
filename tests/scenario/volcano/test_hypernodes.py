"""HyperNodes that are made from labels of nodes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc
from fairlead.testing.builders import Builder, node
from fairlead.testing.harness import Harness
from fairlead.volcano.kinds import VC_HYPER_NODE
from fairlead.volcano.records.quirks import ORIGINAL
from fairlead.volcano.topology.controller import CONFIG_KEY, CONFIG_NAME, HyperNodeDiscovery
from tests.support.volcano import config_map

LAYERS = ["zone", "rack", "kubernetes.io/hostname"]


def discovery(types: dict[str, list[str]], **more: Any) -> list[Doc]:
    described = {name: [{"nodeLabel": key} for key in keys] for name, keys in types.items()}
    source = {"source": "label", "enabled": True, "config": {"networkTopologyTypes": described}, **more}
    return config_map(CONFIG_NAME, CONFIG_KEY, {"networkTopologyDiscovery": [source]})


def at(name: str, zone: str = "", rack: str = "") -> Builder:
    labels = {"zone": zone, "rack": rack}
    return node(name).labelled({key: value for key, value in labels.items() if value})


class Network(Harness):
    def found(self) -> dict[str, list[str]]:
        """Tier and label of every HyperNode -> its members, HyperNodes by their own label."""
        docs = list(self.list(VC_HYPER_NODE))
        short = {doc["metadata"]["name"]: self._label(doc) for doc in docs}
        return {self._label(doc): sorted(short.get(name, name) for name in _members(doc)) for doc in docs}

    @staticmethod
    def _label(doc: Doc) -> str:
        spec, labels = doc["spec"], doc["metadata"]["labels"]
        return f"{spec['tier']}/{labels.get('zone', '')}/{labels.get('rack', '')}".rstrip("/")


def _members(doc: Doc) -> list[str]:
    return [member["selector"]["exactMatch"]["name"] for member in doc["spec"]["members"]]


def test_racks_are_tier_one_and_zones_of_racks_tier_two() -> None:
    network = Network(nodes=[at("a", "z1", "r1"), at("b", "z1", "r1"), at("c", "z1", "r2"), at("d", "z2", "r3")])
    network.apply(*discovery({"fabric": LAYERS}))
    network.run(1)
    assert network.found() == {
        "1//r1": ["a", "b"],
        "1//r2": ["c"],
        "1//r3": ["d"],
        "2/z1": ["1//r1", "1//r2"],
        "2/z2": ["1//r3"],
    }
    for doc in network.list(VC_HYPER_NODE):
        tier = doc["spec"]["tier"]
        assert doc["metadata"]["name"].startswith(f"hypernode-fabric-tier{tier}-")
        assert doc["metadata"]["labels"]["volcano.sh/network-topology-source"] == "label"
        assert doc["spec"]["tierName"] == ("rack" if tier == 1 else "zone")
        assert {member["type"] for member in doc["spec"]["members"]} == {"Node" if tier == 1 else "HyperNode"}


def test_they_follow_nodes_that_come_go_and_are_labelled_anew() -> None:
    network = Network(nodes=[at("a", "z1", "r1"), at("b", "z1", "r2")])
    network.apply(*discovery({"fabric": LAYERS}))
    network.run(1)
    names = {doc["metadata"]["name"] for doc in network.list(VC_HYPER_NODE)}
    network.apply(at("b", "z1", "r1"))
    network.run(1)
    assert network.found() == {"1//r1": ["a", "b"], "2/z1": ["1//r1"]}
    assert {doc["metadata"]["name"] for doc in network.list(VC_HYPER_NODE)} < names
    network.delete(kinds.NODE, "a")
    network.delete(kinds.NODE, "b")
    network.run(1)
    assert network.found() == {}


def test_a_node_counts_up_to_the_first_label_that_it_does_not_have() -> None:
    network = Network(nodes=[at("a", "z1", "r1"), at("b", "", "r1"), at("c", "z1", ""), at("d")])
    network.apply(*discovery({"fabric": LAYERS}))
    network.run(1)
    assert network.found() == {"1//r1": ["a", "b"], "2/z1": ["1//r1"]}


RACKS_OF_ONE_NAME = [at("a", "z1", "r1"), at("b", "z2", "r1")]


def test_racks_of_one_name_in_two_zones_are_two() -> None:
    network = Network(nodes=RACKS_OF_ONE_NAME)
    network.apply(*discovery({"fabric": LAYERS}))
    network.run(1)
    assert network.found() == {"1/z1/r1": ["a"], "1/z2/r1": ["b"], "2/z1": ["1/z1/r1"], "2/z2": ["1/z2/r1"]}


def test_the_original_makes_one_of_them() -> None:
    def kept(view: Any) -> HyperNodeDiscovery:
        return HyperNodeDiscovery(view, read_yaml=yaml.safe_load, quirks=ORIGINAL)

    network = Network(nodes=RACKS_OF_ONE_NAME, housekeeping="-volcano-hypernode-controller", controllers=[kept])
    network.apply(*discovery({"fabric": LAYERS}))
    network.run(1)
    assert network.found() == {"1//r1": ["a", "b"], "2/z1": ["1//r1"], "2/z2": ["1//r1"]}


def test_hyper_nodes_of_others_and_of_a_source_that_is_switched_off_stay() -> None:
    network = Network(nodes=[at("a", "z1", "r1")])
    kind = VC_HYPER_NODE
    member = {"type": "Node", "selector": {"exactMatch": {"name": "a"}}}
    network.apply(
        {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": "mine", "labels": {}},
            "spec": {"tier": 1, "members": [member]},
        }
    )
    network.run(1)
    assert len(list(network.list(kind))) == 1
    network.apply(*discovery({"fabric": LAYERS}))
    network.run(1)
    assert len(list(network.list(kind))) == 3
    network.apply(*discovery({"fabric": LAYERS}, enabled=False))
    network.run(1)
    assert len(list(network.list(kind))) == 3


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        (discovery({"fabric": LAYERS}, source="ufm"), 'networkTopologyDiscovery[0].source: no discovery by "ufm" here'),
        (discovery({"fabric": ["zone", "zone"]}), "networkTopologyTypes.fabric: there are duplicate labels"),
        (discovery({"a-name-of-21-characters": LAYERS}), "the name has more than 20 characters"),
        (config_map(CONFIG_NAME, CONFIG_KEY, "a: [b"), "yaml: "),
    ],
)
def test_a_wrong_configuration_is_reported_by_an_event(documents: list[Doc], said: str) -> None:
    network = Network(nodes=[at("a", "z1", "r1")])
    network.apply(*documents)
    network.run(1)
    (event,) = [one for one in network.list(kinds.EVENT) if one["reason"] == "InvalidConfiguration"]
    assert said in event["message"]
    assert network.found() == {}
