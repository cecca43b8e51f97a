"""The sharding controller, and schedulers that live by what it says."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from fairlead.core.model import kinds
from fairlead.errors import ConfigError
from fairlead.testing.builders import node, pod
from fairlead.testing.harness import Harness
from fairlead.volcano.kinds import VC_NODE_SHARD
from fairlead.volcano.rounds.partition import Partition, Sharding
from fairlead.volcano.sharding.controller import CONFIG_NAME, ShardingController
from fairlead.volcano.sharding.shard_policies import (
    CONFIG_KEY,
    DEFAULT_SCHEDULERS,
    ShardConfig,
    ShardNode,
    divide,
    is_worth_writing,
    read_shard_config,
    scheduler_of_words,
)
from tests.support.sharding import Shared
from tests.support.volcano import config_map

DEFAULTS = tuple(scheduler_of_words(words) for words in DEFAULT_SCHEDULERS)


def nodes(*uses: float, **labels: str) -> list[ShardNode]:
    return [ShardNode(f"n{index}", use, labels) for index, use in enumerate(uses)]


class Shards(Harness):
    def desired(self) -> dict[str, list[str]]:
        return {doc["metadata"]["name"]: doc["spec"]["nodesDesired"] for doc in self.list(VC_NODE_SHARD)}

    def fill(self, node_name: str, cpu: str, name: str = "") -> None:
        self.apply(pod(name or f"load-{node_name}").on(node_name).asks(cpu=cpu))


def sharing(**changes: Any) -> list[Any]:
    described = {
        "schedulerConfigs": [
            {"name": "calm", "policies": [{"name": "allocation-rate", "arguments": {"maxCPUUtil": 0.4}}]},
            {"name": "busy", "policies": [{"name": "allocation-rate", "arguments": {"minCPUUtil": 0.6}}]},
        ],
        **changes,
    }
    return config_map(CONFIG_NAME, CONFIG_KEY, described)


def test_by_default_calm_nodes_are_volcanos_and_busy_ones_the_agents() -> None:
    assert divide(DEFAULTS, nodes(0.3, 0.8, 0.65, 0.6), in_batches=False) == {
        "volcano": ["n3", "n0"],
        "agent-scheduler": ["n1"],
    }


def test_uses_are_compared_in_hundredths_and_the_busiest_come_first() -> None:
    assert divide(DEFAULTS[:1], nodes(0.604, 0.606, 0.1), in_batches=False) == {"volcano": ["n0", "n2"]}


def test_a_warm_node_goes_before_a_busier_one() -> None:
    warm = ShardNode("warm", 0.75, {"node.volcano.sh/warmup": "true"})
    assert divide(DEFAULTS[1:], [*nodes(0.95, 0.7), warm], in_batches=False)["agent-scheduler"][0] == "warm"


def test_the_limit_of_nodes_holds_for_all_and_in_the_original_for_every_fifty() -> None:
    scheduler = scheduler_of_words("s:volcano:0:1:false:1:10")
    many = nodes(*[0.5] * 120)
    assert len(divide([scheduler], many, in_batches=False)["s"]) == 10
    assert len(divide([scheduler], many, in_batches=True)["s"]) == 30


def test_a_shard_is_written_when_its_size_or_a_tenth_of_it_changed() -> None:
    names = [f"n{index}" for index in range(30)]
    assert not is_worth_writing(names, names[::-1])
    assert not is_worth_writing(names, [*names[:28], "x", "y"])
    assert is_worth_writing(names, [*names[:27], "x", "y", "z"])
    assert is_worth_writing(names, names[:-1])
    assert is_worth_writing(["a"], ["b"])


def test_shards_follow_pods_and_nodes() -> None:
    cluster = Shards(nodes=3)
    cluster.run(1)
    assert cluster.desired() == {}
    cluster.fill("node-1", "6")
    cluster.apply(*sharing())
    cluster.run(1)
    assert cluster.desired() == {"calm": ["node-0", "node-2"], "busy": ["node-1"]}
    cluster.fill("node-2", "7")  # by more than half: at once
    cluster.run(1)
    assert cluster.desired() == {"calm": ["node-0"], "busy": ["node-2", "node-1"]}
    cluster.fill("node-0", "4")
    cluster.run(5)
    assert cluster.desired()["calm"] == ["node-0"]
    cluster.run(60)  # with the next period
    assert cluster.desired() == {"calm": [], "busy": ["node-2", "node-1"]}
    cluster.apply(node("node-9"))
    cluster.run(1)
    assert cluster.desired()["calm"] == ["node-9"]
    cluster.delete(VC_NODE_SHARD, "calm")
    cluster.run(1)
    assert cluster.desired()["calm"] == ["node-9"]


def test_without_a_config_map_the_flags_say_who_shares() -> None:
    def given(view: Any) -> ShardingController:
        return ShardingController(view, read_yaml=yaml.safe_load, default=ShardConfig(DEFAULTS))

    cluster = Shards(nodes=3, housekeeping="-volcano-sharding-controller", controllers=[given])
    cluster.run(1)
    assert cluster.desired() == {"volcano": ["node-0", "node-1", "node-2"], "agent-scheduler": []}
    (event,) = [one for one in cluster.list(kinds.EVENT) if one["reason"] == "TooFewNodes"]
    assert event["message"] == "0 nodes for scheduler agent-scheduler, which shall have 2 at least"


def test_schedulers_place_pods_on_the_nodes_of_their_shards() -> None:
    calm, busy = (Partition(sharding=Sharding.HARD, shard=name) for name in ("calm", "busy"))
    cluster = Shared(calm, nodes=[node("node-0"), node("node-1")])
    cluster.apply(pod("load").on("node-0").asks(cpu="6"), *sharing())
    cluster.run(3)
    cluster.gang("g", 2, "1")
    cluster.run(5)
    assert cluster.nodes_of("g-") == ["node-1", "node-1"]
    assert cluster.used("calm") == ["node-1"]
    assert busy != calm


def policies(*said: Any) -> Any:
    return {"schedulerConfigs": [{"name": "a", "policies": list(said)}]}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "sharding.yaml: not a mapping"),
        ({"schedulers": []}, 'there is no field "schedulers"'),
        ({"shardSyncPeriod": "soon"}, 'shardSyncPeriod: "soon" is not a duration'),
        ({"schedulerConfigs": [{"type": "volcano"}]}, "schedulerConfigs[0]: every scheduler needs a name of its own"),
        (
            {"schedulerConfigs": [{"name": "a", "policies": 5}]},
            "schedulerConfigs[0]: policies: not a list",
        ),
        (policies({"name": "warmup", "arguments": 5}), "schedulerConfigs[0].policies[0]: not a mapping"),
        (policies({"name": "warmup", "arguments": {"label": 5}}), '[0].policies[0]: there is no field "label"'),
        (policies({"name": "warmup", "weight": "x"}), '[0].policies[0]: weight: "x" is not a number'),
        (policies({"name": "warm"}), '[0].policies[0]: there is no policy "warm"'),
        (policies({"name": "node-limit", "arguments": {"maxNodes": "x"}}), 'maxNodes: "x" is not a number'),
        (policies({"name": "allocation-rate", "arguments": {"minCPUUtil": 2}}), "are from 0 to 1"),
    ],
)
def test_a_wrong_configuration_names_the_field(document: Any, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_shard_config(document)
    assert said in str(raised.value)
    cluster = Shards(nodes=1)
    cluster.apply(*config_map(CONFIG_NAME, CONFIG_KEY, document))
    cluster.run(1)
    (event,) = [one for one in cluster.list(kinds.EVENT) if one["reason"] == "InvalidConfiguration"]
    assert said in event["message"]
    assert cluster.desired() == {}
