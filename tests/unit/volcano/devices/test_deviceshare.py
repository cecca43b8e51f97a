"""deviceshare: cards by memory, by number, as vGPUs, in fixed parts, and Ascend cards."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from fairlead.core.state.nodes import Nodes
from fairlead.errors import ConfigError
from fairlead.kube.binder import DefaultBinder
from fairlead.volcano.devices.device_config import DeviceConfig
from fairlead.volcano.devices.deviceshare import DeviceShare
from fairlead.volcano.devices.mig import Part, pick
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.arguments import Arguments
from fairlead.volcano.rounds.round import Round
from tests.support.cards import A100, OFFERS, REGISTER, containers
from tests.support.rounds import NOW, RoundScenario, open_with_cycles, scores, task

TWO = "g0,10,16000,NVIDIA-A100,true,hami-core:g1,10,16000,NVIDIA-A100,true,hami-core:"
ONE_OLD = "h0,2,8000,NVIDIA-T4,true,hami-core:"


def sharing(mode: str, config: DeviceConfig | None = None, **arguments: Any) -> DeviceShare:
    given: dict[str, Any] = {f"deviceshare.{mode}": True}
    given |= {f"deviceshare.{name}": value for name, value in arguments.items()}
    return DeviceShare.of(Arguments(given), config)


def refused(plugin: DeviceShare, round: Round, name: str) -> set[str]:
    return set(why_refused(plugin, round, name))


def why_refused(plugin: DeviceShare, round: Round, name: str) -> dict[str, str]:
    table = round.cluster.table
    return {
        table.name(int(row)): reject.reason.text
        for reject in plugin.predicate(task(round, name), Nodes(table, round.rows))
        for row, no in zip(round.rows, reject.rows, strict=True)
        if no
    }


def place(
    plugin: DeviceShare, round: Round, name: str, node: str, status: TaskStatus = TaskStatus.ALLOCATED
) -> str | None:
    """Put a task on a node; why that was not agreed to, None if it was."""
    placed = task(round, name)
    assert placed.job is not None
    placed.job.move(placed, status)
    placed.row = round.cluster.table.row_of[node]
    said = plugin.allocated(placed)
    return None if said is None else said.message


def take_back(plugin: DeviceShare, round: Round, name: str, status: TaskStatus = TaskStatus.PENDING) -> None:
    gone = task(round, name)
    assert gone.job is not None
    gone.job.move(gone, status)
    plugin.deallocated(gone)


def annotated(round: Round, name: str) -> dict[str, str]:
    notes: dict[str, str] = round.cycles[name].notes["DefaultBinder"]
    return notes


def wants(**amounts: str) -> dict[str, Any]:
    """Limits, which are requests too."""
    given = {f"volcano.sh/{name.replace('_', '-')}": amount for name, amount in amounts.items()}
    return {"asks": given, "limits": given}


# ---- GPUs by number ----


def gpus() -> RoundScenario:
    yard = RoundScenario().node("plain").queue("default").group("job")
    return yard.node("gpu", None, **{"volcano.sh/gpu-number": "2", "volcano.sh/gpu-memory": "32"})


def test_memory_must_fit_one_card() -> None:
    there = {"volcano.sh/gpu-index": "0"}
    yard = gpus().pod("there", "job", on="gpu", **wants(gpu_memory="10"), annotations=there)
    yard.pod("small", "job", **wants(gpu_memory="6")).pod("large", "job", **wants(gpu_memory="16"))
    yard.pod("huge", "job", **wants(gpu_memory="17")).pod("other", "job")
    plugin = sharing("GPUSharingEnable")
    round = open_with_cycles(yard, plugin)
    assert refused(plugin, round, "small") == set()
    assert why_refused(plugin, round, "huge") == {"gpu": "GpuShare no enough gpu memory on node gpu"}
    assert refused(plugin, round, "other") == set()
    assert place(plugin, round, "small", "gpu") is None
    assert annotated(round, "small")["volcano.sh/gpu-index"] == "0"
    assert place(plugin, round, "large", "gpu") is None
    assert annotated(round, "large")["volcano.sh/gpu-index"] == "1"
    take_back(plugin, round, "large")
    assert refused(plugin, round, "large") == set(), "its card is free again"


def test_containers_count_together_and_init_containers_by_the_largest() -> None:
    def memory(amount: int) -> dict[str, str]:
        return {"volcano.sh/gpu-memory": str(amount)}

    yard = gpus().pod("sum", "job", containers=containers(memory(8), memory(9)))
    yard.pod("most", "job", containers=containers(memory(8)), initContainers=containers(memory(8), memory(16)))
    yard.pod("too-much", "job", containers=containers(memory(8)), initContainers=containers(memory(17)))
    plugin = sharing("GPUSharingEnable")
    round = yard.open(plugin)
    assert [refused(plugin, round, name) for name in ("sum", "most", "too-much")] == [{"gpu"}, set(), {"gpu"}]


def test_whole_cards_are_those_that_nobody_uses() -> None:
    there = {"volcano.sh/gpu-index": "0"}
    yard = gpus().pod("there", "job", on="gpu", **wants(gpu_number="1"), annotations=there)
    yard.pod("one", "job", **wants(gpu_number="1")).pod("two", "job", **wants(gpu_number="2"))
    plugin = sharing("GPUNumberEnable")
    round = open_with_cycles(yard, plugin)
    assert why_refused(plugin, round, "two") == {"gpu": "GpuNumber no enough gpu number on node gpu"}
    assert place(plugin, round, "one", "gpu") is None
    assert annotated(round, "one")["volcano.sh/gpu-index"] == "1"
    assert place(plugin, round, "two", "gpu") == "GpuNumber no enough gpu number on node gpu"


def test_unhealthy_cards_are_not_used() -> None:
    yard = RoundScenario().queue("default").group("job").pod("x", "job", **wants(gpu_number="2"))
    room = {"volcano.sh/gpu-number": "2", "volcano.sh/gpu-memory": "32"}
    yard.node("sick", annotations={"volcano.sh/gpu-unhealthy-ids": "1"}, **room)
    plugin = sharing("GPUNumberEnable")
    assert refused(plugin, yard.open(plugin), "x") == {"sick"}


# ---- vGPUs ----


def vgpus() -> RoundScenario:
    yard = RoundScenario().queue("default").group("job").node("new", annotations={REGISTER: TWO}, **OFFERS)
    return yard.node("old", annotations={REGISTER: ONE_OLD}, **OFFERS).node("plain")


@pytest.mark.parametrize(
    ("wanted", "annotations", "refusing"),
    [
        (wants(vgpu_number="2", vgpu_memory="4000"), {}, {"old"}),
        (wants(vgpu_memory="9000"), {}, {"old"}),
        (wants(vgpu_number="1", vgpu_memory="17000"), {}, {"old", "new"}),
        (wants(vgpu_number="1"), {"nvidia.com/use-gputype": "t4"}, {"new"}),
        (wants(vgpu_number="1"), {"nvidia.com/nouse-gputype": "A100,V100"}, {"new"}),
        (wants(vgpu_number="1"), {"volcano.sh/vgpu-mode": "mig"}, {"new", "old"}),
        (wants(vgpu_number="1", vgpu_cores="101"), {}, {"new", "old"}),
    ],
)
def test_nodes_without_the_wanted_vgpu_are_refused(
    wanted: dict[str, Any], annotations: dict[str, str], refusing: set[str]
) -> None:
    plugin = sharing("VGPUEnable")
    round = vgpus().pod("x", "job", **wanted, annotations=annotations).open(plugin)
    assert refused(plugin, round, "x") == refusing


def test_cards_that_the_device_plugin_does_not_offer_are_none() -> None:
    yard = vgpus().node("half", annotations={REGISTER: TWO}, **(OFFERS | {"volcano.sh/vgpu-cores": "0"}))
    plugin = sharing("VGPUEnable")
    round = yard.pod("x", "job", **wants(vgpu_number="9")).open(plugin)
    assert refused(plugin, round, "x") == {"new", "old"}


def test_a_pod_is_shown_its_cards_and_they_are_counted() -> None:
    plugin = sharing("VGPUEnable", SchedulePolicy="binpack")
    yard = vgpus().pod("x", "job", **wants(vgpu_number="1", vgpu_memory="4000", vgpu_cores="60"))
    yard.pod("y", "job", **wants(vgpu_number="2", vgpu_memory="1000", vgpu_cores="50"))
    round = open_with_cycles(yard, plugin)
    assert place(plugin, round, "x", "new") is None
    told = annotated(round, "x")
    assert told["volcano.sh/vgpu-ids-new"] == told["volcano.sh/devices-to-allocate"] == "g0,NVIDIA,4000,60:"
    assert told["volcano.sh/vgpu-node"] == "new"
    assert told["volcano.sh/vgpu-time"] == told["volcano.sh/bind-time"] == str(int(NOW))
    assert told["volcano.sh/bind-phase"] == "allocating"
    assert why_refused(plugin, round, "y") == dict.fromkeys(("new", "old"), "hami-vgpuDeviceSharing error")
    take_back(plugin, round, "x")
    assert refused(plugin, round, "y") == {"old"}


def test_each_container_has_cards_of_its_own() -> None:
    """Two that want 10000 and one that wants 5000, on two cards of 16000."""
    large = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "10000"}
    small = {"volcano.sh/vgpu-memory": "5000"}
    yard = vgpus().pod("fits", "job", containers=containers(large, small, large))
    yard.pod("not", "job", containers=containers(large, large, large))
    plugin = sharing("VGPUEnable")
    round = open_with_cycles(yard, plugin)
    assert refused(plugin, round, "fits") == {"old"}
    assert refused(plugin, round, "not") == {"old", "new"}
    assert place(plugin, round, "fits", "new") is None
    ids = "g1,NVIDIA,10000,0:;g1,NVIDIA,5000,0:;g0,NVIDIA,10000,0:"
    assert annotated(round, "fits")["volcano.sh/vgpu-ids-new"] == ids


def test_a_share_of_memory_counts_only_where_the_configuration_names_it() -> None:
    half = wants(vgpu_number="1", vgpu_memory_percentage="50")
    named = DeviceConfig.of(
        {
            "nvidia": {
                "resourceCountName": "volcano.sh/vgpu-number",
                "resourceMemoryName": "volcano.sh/vgpu-memory",
                "resourceCoreName": "volcano.sh/vgpu-cores",
                "resourceMemoryPercentageName": "volcano.sh/vgpu-memory-percentage",
            }
        }
    )
    for config, memory in ((named, 8000), (None, 16000)):
        plugin = sharing("VGPUEnable", config)
        round = open_with_cycles(vgpus().pod("x", "job", **half), plugin)
        assert place(plugin, round, "x", "new") is None
        assert annotated(round, "x")["volcano.sh/vgpu-ids-new"] == f"g1,NVIDIA,{memory},0:"


def test_what_running_pods_have_is_read_from_their_annotations() -> None:
    ids = {"volcano.sh/vgpu-ids-new": "g0,NVIDIA,16000,0:;g1,NVIDIA,9000,0:"}
    yard = vgpus().pod("there", on="new", asks={}, annotations=ids).pod("x", "job", **wants(vgpu_memory="8000"))
    plugin = sharing("VGPUEnable")
    assert refused(plugin, yard.open(plugin), "x") == {"new"}


@pytest.mark.parametrize(("compatible", "refusing"), [(False, {"new"}), (True, set())])
def test_containers_that_share_a_card_count_each(compatible: bool, refusing: set[str]) -> None:
    ids = {"volcano.sh/vgpu-ids-new": "g0,NVIDIA,8000,0:;g0,NVIDIA,8000,0:g1,NVIDIA,16000,0:"}
    yard = vgpus().pod("there", on="new", asks={}, annotations=ids).pod("x", "job", **wants(vgpu_memory="8000"))
    plugin = sharing("VGPUEnable")
    assert refused(plugin, yard.open(plugin, compatible=compatible), "x") == refusing


def test_members_of_a_group_keep_off_each_others_cards_if_they_want_to() -> None:
    plugin = sharing("VGPUEnable")
    yard = vgpus()
    for name in ("x", "y", "z"):
        wish = {"volcano.sh/vgpu-podgroup-policy": "spread"}
        yard.pod(name, "job", **wants(vgpu_memory="100"), annotations=wish)
    round = open_with_cycles(yard, plugin)
    assert place(plugin, round, "x", "new") is None
    assert place(plugin, round, "y", "new") is None
    assert refused(plugin, round, "z") == {"new"}
    assert annotated(round, "x")["volcano.sh/vgpu-ids-new"].startswith("g1,"), "by default the last card first"


@pytest.mark.parametrize(
    ("policy", "compatible", "expected"),
    [
        ("binpack", False, {"new": 50 * 3, "old": 100 * 3, "plain": 0}),
        ("spread", False, {"new": 100 * 3, "old": 100 * 3, "plain": 0}),
        ("spread", True, {"new": 0, "old": 0, "plain": 0}),
        ("", False, {"new": 0, "old": 0, "plain": 0}),
    ],
)
def test_scheduling_policies_score_nodes(policy: str, compatible: bool, expected: dict[str, float]) -> None:
    plugin = sharing("VGPUEnable", SchedulePolicy=policy, ScheduleWeight=3)
    round = vgpus().pod("x", "job", **wants(vgpu_memory="8000")).open(plugin, compatible=compatible)
    assert scores(plugin, round, "x") == expected


# ---- who may not share ----


RULES = [{"team": "a"}, {"team": "b", "tier": "gold"}]


@pytest.mark.parametrize(
    ("labels", "refusing"),
    [
        ({"team": "a"}, {"old"}),
        ({"team": "b", "tier": "gold"}, set()),
        ({"team": "b"}, set()),
        ({}, set()),
    ],
)
def test_pods_of_one_rule_never_share_a_card(labels: dict[str, str], refusing: set[str]) -> None:
    plugin = sharing("VGPUEnable", GPUExclusiveRules=RULES)
    held = {"volcano.sh/vgpu-ids-new": "h0,NVIDIA,100,0:"}
    yard = vgpus().pod("there", on="old", asks={}, labels={"team": "a"}, annotations=held)
    yard.pod("x", "job", **wants(vgpu_memory="100"), labels=labels)
    assert refused(plugin, yard.open(plugin), "x") == refusing


def test_a_card_is_open_to_its_rule_again_when_the_pod_has_left() -> None:
    plugin = sharing("VGPUEnable", GPUExclusiveRules=RULES)
    yard = vgpus()
    for name in ("x", "y"):
        yard.pod(name, "job", **wants(vgpu_memory="100"), labels={"team": "a"})
    round = open_with_cycles(yard, plugin)
    assert place(plugin, round, "x", "old") is None
    assert refused(plugin, round, "y") == {"old"}
    take_back(plugin, round, "x")
    assert refused(plugin, round, "y") == set()


# ---- coming and going ----


def test_cards_of_who_is_evicted_can_be_promised_but_not_be_used_yet() -> None:
    plugin = sharing("VGPUEnable")
    ids = {"volcano.sh/vgpu-ids-new": "h0,NVIDIA,8000,0:"}
    yard = vgpus().pod("victim", "job", on="old", asks={}, annotations=ids)
    for name in ("promised", "placed"):
        yard.pod(name, "job", **wants(vgpu_memory="8000"))
    round = open_with_cycles(yard, plugin)
    assert "old" in refused(plugin, round, "promised")
    take_back(plugin, round, "victim", TaskStatus.RELEASING)
    assert refused(plugin, round, "promised") == set()
    assert place(plugin, round, "placed", "old") == "hami-vgpuDeviceSharing error"
    assert place(plugin, round, "promised", "old", TaskStatus.PIPELINED) is None
    assert "DefaultBinder" not in round.cycles["promised"].notes
    take_back(plugin, round, "promised")
    victim = task(round, "victim")
    round.jobs["default/job"].move(victim, TaskStatus.RUNNING)
    assert plugin.allocated(victim) is None
    assert "old" in refused(plugin, round, "promised"), "the eviction was undone"


def test_evicting_a_pod_frees_its_cards_in_a_trial() -> None:
    plugin = sharing("VGPUEnable", GPUExclusiveRules=[{"team": "a"}])
    ids, team = {"volcano.sh/vgpu-ids-new": "h0,NVIDIA,8000,0:"}, {"team": "a"}
    yard = vgpus().pod("victim", "job", on="old", asks={}, annotations=ids, labels=team)
    round = yard.pod("x", "job", **wants(vgpu_memory="8000"), labels=team).open(plugin)
    x, victim, row = task(round, "x"), task(round, "victim"), round.cluster.table.row_of["old"]
    assert not plugin.simulate_predicate(x, row)
    plugin.simulate_remove_task(x, victim, row)
    assert plugin.simulate_predicate(x, row)
    plugin.simulate_add_task(x, victim, row)
    assert not plugin.simulate_predicate(x, row)


def test_who_is_terminating_when_a_round_opens_holds_its_cards() -> None:
    plugin = sharing("VGPUEnable")
    yard = vgpus().pod("x", "job", **wants(vgpu_memory="8000"))
    yard.pod("leaving", "job", on="old", asks={}, annotations={"volcano.sh/vgpu-ids-new": "h0,NVIDIA,8000,0:"})
    round = yard.open(plugin)
    leaving = task(round, "leaving")
    round.jobs["default/job"].move(leaving, TaskStatus.RELEASING)
    plugin.open(round)
    assert refused(plugin, round, "x") == {"old"}


# ---- cards in fixed parts ----


CUT = "m0,10,40000,NVIDIA-A100-SXM4-40GB,true,mig:"


def cut(*pods: Sequence[str]) -> tuple[RoundScenario, DeviceShare]:
    yard = RoundScenario().queue("default").group("job").node("mig", annotations={REGISTER: CUT}, **OFFERS)
    for name, memory in pods:
        yard.pod(name, "job", **wants(vgpu_memory=memory))
    return yard, sharing("VGPUEnable", DeviceConfig.of(A100))


def test_the_smallest_part_that_fits_is_given_and_named_by_its_position() -> None:
    yard, plugin = cut(("small", "4000"), ("large", "9000"), ("other", "4000"))
    round = open_with_cycles(yard, plugin)
    assert place(plugin, round, "large", "mig") is None
    assert annotated(round, "large")["volcano.sh/vgpu-ids-new"] == "m0[group2-0],NVIDIA,9000,0:"
    assert place(plugin, round, "small", "mig") is None
    assert annotated(round, "small")["volcano.sh/vgpu-ids-new"] == "m0[group2-3],NVIDIA,4000,0:"
    assert place(plugin, round, "other", "mig") is None
    assert annotated(round, "other")["volcano.sh/vgpu-ids-new"] == "m0[group2-1],NVIDIA,4000,0:"


def test_all_parts_of_a_card_are_of_one_geometry() -> None:
    yard, plugin = cut(("small", "4000"), ("large", "9000"))
    round = open_with_cycles(yard, plugin)
    assert place(plugin, round, "small", "mig") is None
    assert annotated(round, "small")["volcano.sh/vgpu-ids-new"] == "m0[group1-0],NVIDIA,4000,0:"
    assert refused(plugin, round, "large") == {"mig"}
    take_back(plugin, round, "small")
    assert refused(plugin, round, "large") == set(), "an empty card may be cut anew"


def test_parts_in_use_are_read_from_annotations() -> None:
    yard, plugin = cut(("large", "9000"))
    for at in range(3):
        ids = {"volcano.sh/vgpu-ids-new": f"m0[group2-{at}],NVIDIA,9000,0:"}
        yard.pod(f"there{at}", on="mig", asks={}, annotations=ids)
    assert refused(plugin, yard.open(plugin), "large") == {"mig"}


def test_in_the_original_only_sizes_that_are_in_use_are_looked_at_on_a_card_that_is_cut() -> None:
    geometries = DeviceConfig.of(A100).nvidia.geometries_of("NVIDIA-A100-SXM4-40GB")
    assert geometries is not None
    used = [Part("group2", 3)]
    assert pick(geometries, used, 4000) == (Part("group2", 0), 10240)
    assert pick(geometries, used, 4000, only_used_sizes=True) is None
    assert pick(geometries, [], 4000, only_used_sizes=True) == (Part("group1", 0), 5120)


def test_a_model_that_nobody_knows_how_to_cut_is_shared_as_a_whole() -> None:
    yard, _ = cut(("small", "4000"))
    plugin = sharing("VGPUEnable")
    round = open_with_cycles(yard, plugin)
    assert place(plugin, round, "small", "mig") is None
    assert annotated(round, "small")["volcano.sh/vgpu-ids-new"] == "m0,NVIDIA,4000,0:"


# ---- locks ----


def test_a_node_is_locked_while_a_pod_gets_its_cards() -> None:
    plugin = sharing("VGPUEnable", NodeLockEnable=True)
    yard = vgpus().pod("x", "job", **wants(vgpu_memory="100")).pod("y", "job", **wants(vgpu_memory="100"))
    fresh, old = {"hamivgpu": "2027-01-15T07:58:00Z"}, {"hamivgpu": "2027-01-15T07:54:00Z"}
    yard.node("locked", annotations={REGISTER: TWO, **fresh}, **OFFERS)
    yard.node("expired", annotations={REGISTER: TWO, **old}, **OFFERS)
    round = open_with_cycles(yard, plugin)
    locked = "node locked locked for x hamivgpu lockname node locked has been locked within 5 minutes"
    assert place(plugin, round, "x", "locked") == locked
    assert place(plugin, round, "x", "expired") is None
    assert round.cycles["x"].notes["NodeLock"] == "hamivgpu"
    assert place(plugin, round, "y", "expired") is not None, "it was locked just now"
    take_back(plugin, round, "x")
    assert place(plugin, round, "y", "expired") is None


# ---- Ascend ----


def ascend_node(*cards: tuple[str, int], network: bool = False) -> str:
    return json.dumps(
        [
            {
                "id": name,
                "count": 7,
                "devmem": 21527,
                "devcore": 8,
                **({"custominfo": {"NetworkID": at}} if network else {}),
            }
            for name, at in cards
        ]
    )


def ascends() -> RoundScenario:
    yard = RoundScenario().queue("default").group("job").node("plain")
    register = {"hami.io/node-register-Ascend310P": ascend_node(("a0", 0), ("a1", 0))}
    return yard.node("npu", annotations=register, **{"huawei.com/Ascend310P": "14"})


def npu(memory: str | None = None, number: str = "1") -> dict[str, Any]:
    given = {"huawei.com/Ascend310P": number}
    return {"asks": given, "limits": given | ({"huawei.com/Ascend310P-memory": memory} if memory else {})}


def test_memory_of_ascend_cards_is_rounded_up_to_a_template() -> None:
    plugin = sharing("AscendHAMiVNPUEnable")
    round = open_with_cycles(ascends().pod("x", "job", **npu("4000")), plugin)
    assert refused(plugin, round, "x") == set()
    assert place(plugin, round, "x", "npu") is None
    told = annotated(round, "x")
    assert told["hami.io/Ascend310P-devices-to-allocate"] == "a0,Ascend310P,6144,0:;"
    assert told["hami.io/Ascend310P-devices-allocated"] == "a0,Ascend310P,6144,0:;"
    assert told["huawei.com/Ascend310P"] == '[{"UUID":"a0","temp":"vir02"}]'
    assert told["hami.io/vgpu-node"] == "npu"
    assert told["hami.io/bind-phase"] == "allocating"


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (npu("12288"), True),
        (npu("13000"), True),
        (npu(number="2"), True),
        (npu("6000", number="2"), False),
        (npu("30000"), False),
        (npu(number="3"), False),
    ],
)
def test_requests_for_ascend_cards_are_met_or_refused(wanted: dict[str, Any], fits: bool) -> None:
    """Several only whole, and no more memory than a card has."""
    plugin = sharing("AscendHAMiVNPUEnable")
    round = ascends().pod("x", "job", **wanted).open(plugin)
    assert (refused(plugin, round, "x") == set()) is fits


def test_who_holds_ascend_cards_is_read_from_annotations() -> None:
    plugin = sharing("AscendHAMiVNPUEnable", SchedulePolicy="binpack", ScheduleWeight=1)
    ids = {"hami.io/Ascend310P-devices-allocated": "a0,Ascend310P,12288,0:;"}
    yard = ascends().pod("there", on="npu", asks={}, annotations=ids).pod("x", "job", **npu("6144"))
    yard.pod("large", "job", **npu("12288")).pod("whole", "job", **npu())
    round = open_with_cycles(yard, plugin)
    assert scores(plugin, round, "x") == {"plain": 0, "npu": 57}, "12288 of 21527"
    for name, card in (("x", "a0"), ("large", "a1")):
        assert place(plugin, round, name, "npu") is None
        assert annotated(round, name)["hami.io/Ascend310P-devices-to-allocate"].startswith(f"{card},")
    assert why_refused(plugin, round, "whole") == {"npu": "no ascend device available"}


def test_cards_of_one_network_go_together() -> None:
    config = DeviceConfig.of({
        "vnpus": {
            "configs": [
                {
                    "commonWord": "Ascend910B3", "resourceName": "huawei.com/Ascend910B3",
                    "resourceMemoryName": "huawei.com/Ascend910B3-memory",
                    "memoryAllocatable": 21527, "memoryCapacity": 21527,
                }
            ]
        }
    })  # fmt: skip
    register = {
        "hami.io/node-register-Ascend910B3": ascend_node(("a", 0), ("b", 1), ("c", 1), ("d", 0), ("e", 1), network=True)
    }
    given = {"huawei.com/Ascend910B3": "3"}
    yard = RoundScenario().queue("default").group("job").pod("x", "job", asks=given, limits=given)
    yard.node("npu", annotations=register, **{"huawei.com/Ascend910B3": "5"})
    plugin = sharing("AscendHAMiVNPUEnable", config)
    round = open_with_cycles(yard, plugin)
    assert place(plugin, round, "x", "npu") is None
    told = annotated(round, "x")["hami.io/Ascend910B3-devices-to-allocate"]
    assert [entry.split(",")[0] for entry in told.split(":")[:3]] == ["b", "c", "e"]


# ---- all together ----


@pytest.mark.parametrize("other", ["GPUNumberEnable", "VGPUEnable", "AscendMindClusterVNPUEnable"])
def test_ways_of_sharing_that_exclude_each_other_or_are_not_built_are_refused(other: str) -> None:
    with pytest.raises(ConfigError):
        sharing("GPUSharingEnable", None, **{other: True})


def test_the_binding_carries_what_a_pod_is_given() -> None:
    plugin = sharing("GPUSharingEnable")
    round = open_with_cycles(gpus().pod("x", "job", **wants(gpu_memory="6")), plugin)
    assert place(plugin, round, "x", "gpu") is None
    write = DefaultBinder().bind(round.cycles["x"], task(round, "x").row)
    assert write.body is not None
    assert write.body["metadata"]["annotations"]["volcano.sh/gpu-index"] == "0"
