"""deviceshare: cards by memory, by number and as vGPUs."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.framework.cycle import Cycle
from fairlead.framework.profile import profile_of
from fairlead.framework.round import Round
from fairlead.model.tasks import TaskStatus
from fairlead.plugins.binder import DefaultBinder
from fairlead.plugins.volcano.arguments import Arguments
from fairlead.plugins.volcano.deviceshare import DeviceShare
from fairlead.state.nodes import Nodes
from tests.unit.plugins.volcano.yard import Yard, scores, task

REGISTER = "volcano.sh/node-vgpu-register"
TWO = "g0,10,16000,NVIDIA-A100,true,hami-core:g1,10,16000,NVIDIA-A100,true,hami-core:"
ONE_OLD = "h0,2,8000,NVIDIA-T4,true,hami-core:"


def sharing(mode: str, **arguments: Any) -> DeviceShare:
    given: dict[str, Any] = {f"deviceshare.{mode}": True}
    given |= {f"deviceshare.{name}": value for name, value in arguments.items()}
    return DeviceShare.of(Arguments(given))


def refused(plugin: DeviceShare, round: Round, name: str) -> set[str]:
    table = round.cluster.table
    return {
        table.name(int(row))
        for reject in plugin.predicate(task(round, name), Nodes(table, round.rows))
        for row, no in zip(round.rows, reject.rows, strict=True)
        if no
    }


def place(plugin: DeviceShare, round: Round, name: str, node: str) -> bool:
    """Put a task on a node; whether that was agreed to."""
    placed = task(round, name)
    assert placed.job is not None
    placed.job.move(placed, TaskStatus.ALLOCATED)
    placed.row = round.cluster.table.row_of[node]
    return plugin.allocated(placed) is None


def annotated(round: Round, name: str) -> dict[str, str]:
    notes: dict[str, str] = round.cycles[name].notes["DefaultBinder"]
    return notes


def open_with_cycles(yard: Yard, plugin: DeviceShare) -> Round:
    round = yard.round(plugin)
    profile = profile_of("volcano", [DefaultBinder()])
    for job in round.jobs.values():
        for one in job.tasks.values():
            round.cycles[one.uid] = Cycle(
                pod=one.pod, cluster=round.cluster, profile=profile, now=round.now, rng=round.rng
            )
    return round


def gpus() -> Yard:
    yard = Yard().node("plain").queue("default").group("job")
    return yard.node("gpu", **{"volcano.sh/gpu-number": "2", "volcano.sh/gpu-memory": "32"})


def asks(**amounts: str) -> dict[str, str]:
    return {f"volcano.sh/{name.replace('_', '-')}": amount for name, amount in amounts.items()}


def test_6_20_memory_must_fit_one_card() -> None:
    yard = gpus().pod("there", "job", on="gpu", asks=asks(gpu_memory="10"), annotations={"volcano.sh/gpu-index": "0"})
    yard.pod("small", "job", asks=asks(gpu_memory="6")).pod("large", "job", asks=asks(gpu_memory="16"))
    yard.pod("huge", "job", asks=asks(gpu_memory="17")).pod("other", "job")
    plugin = sharing("GPUSharingEnable")
    round = open_with_cycles(yard, plugin)
    assert refused(plugin, round, "small") == {"plain"}
    assert refused(plugin, round, "huge") == {"plain", "gpu"}
    assert refused(plugin, round, "other") == set()
    assert place(plugin, round, "small", "gpu")
    assert annotated(round, "small")["volcano.sh/gpu-index"] == "0"
    assert place(plugin, round, "large", "gpu")
    assert annotated(round, "large")["volcano.sh/gpu-index"] == "1"
    plugin.deallocated(task(round, "large"))
    assert refused(plugin, round, "large") == {"plain"}, "its card is free again"


def test_6_20_whole_cards_are_those_that_nobody_uses() -> None:
    yard = gpus().pod("there", "job", on="gpu", asks=asks(gpu_number="1"), annotations={"volcano.sh/gpu-index": "0"})
    yard.pod("one", "job", asks=asks(gpu_number="1")).pod("two", "job", asks=asks(gpu_number="2"))
    plugin = sharing("GPUNumberEnable")
    round = open_with_cycles(yard, plugin)
    assert refused(plugin, round, "two") == {"plain", "gpu"}
    assert place(plugin, round, "one", "gpu")
    assert annotated(round, "one")["volcano.sh/gpu-index"] == "1"
    assert refused(plugin, round, "one") == {"plain", "gpu"}


def vgpus() -> Yard:
    yard = Yard().queue("default").group("job").annotated_node("new", {REGISTER: TWO})
    return yard.annotated_node("old", {REGISTER: ONE_OLD}).node("plain")


@pytest.mark.parametrize(
    ("wanted", "annotations", "refusing"),
    [
        (asks(vgpu_number="2", vgpu_memory="4000"), {}, {"old"}),
        (asks(vgpu_memory="9000"), {}, {"old"}),
        (asks(vgpu_number="1", vgpu_memory="17000"), {}, {"old", "new"}),
        (asks(vgpu_number="1"), {"nvidia.com/use-gputype": "t4"}, {"new"}),
        (asks(vgpu_number="1"), {"nvidia.com/nouse-gputype": "A100,V100"}, {"new"}),
        (asks(vgpu_number="1"), {"volcano.sh/vgpu-mode": "mig"}, {"new", "old"}),
    ],
)
def test_6_20_which_nodes_have_a_vgpu(wanted: dict[str, str], annotations: dict[str, str], refusing: set[str]) -> None:
    plugin = sharing("VGPUEnable")
    round = vgpus().pod("x", "job", asks=wanted, annotations=annotations).round(plugin)
    assert refused(plugin, round, "x") == refusing | {"plain"}


def test_6_20_a_pod_is_told_its_cards_and_they_are_counted() -> None:
    plugin = sharing("VGPUEnable", SchedulePolicy="binpack")
    yard = vgpus().pod("x", "job", asks=asks(vgpu_number="1", vgpu_memory="4000", vgpu_cores="60"))
    yard.pod("y", "job", asks=asks(vgpu_number="2", vgpu_memory="1000", vgpu_cores="50"))
    round = open_with_cycles(yard, plugin)
    assert place(plugin, round, "x", "new")
    told = annotated(round, "x")
    assert told["volcano.sh/vgpu-ids-new"] == told["volcano.sh/devices-to-allocate"] == "g0,NVIDIA,4000,60:"
    assert told["volcano.sh/vgpu-node"] == "new"
    assert told["volcano.sh/bind-phase"] == "allocating"
    assert refused(plugin, round, "y") == {"new", "old", "plain"}, "a core is not given twice"
    round.jobs["default/job"].move(task(round, "x"), TaskStatus.PENDING)
    plugin.deallocated(task(round, "x"))
    assert refused(plugin, round, "y") == {"old", "plain"}


def test_6_20_what_running_pods_have_is_read_from_their_annotations() -> None:
    ids = {"volcano.sh/vgpu-ids-new": "g0,NVIDIA,16000,0:;g1,NVIDIA,9000,0:"}
    yard = vgpus().pod("there", on="new", asks={}, annotations=ids).pod("x", "job", asks=asks(vgpu_memory="8000"))
    plugin = sharing("VGPUEnable")
    assert refused(plugin, yard.round(plugin), "x") == {"new", "plain"}


def test_6_20_members_of_a_group_keep_off_each_others_cards_if_they_want_to() -> None:
    plugin = sharing("VGPUEnable")
    yard = vgpus()
    for name in ("x", "y", "z"):
        wish = {"volcano.sh/vgpu-podgroup-policy": "spread"}
        yard.pod(name, "job", asks=asks(vgpu_memory="100"), annotations=wish)
    round = open_with_cycles(yard, plugin)
    assert place(plugin, round, "x", "new")
    assert place(plugin, round, "y", "new")
    assert refused(plugin, round, "z") == {"new", "plain"}
    assert annotated(round, "x")["volcano.sh/vgpu-ids-new"].startswith("g1,"), "by default the last card first"


@pytest.mark.parametrize(
    ("policy", "compatible", "expected"),
    [
        ("binpack", False, {"new": 50 * 3, "old": 100 * 3, "plain": 0}),
        ("spread", False, {"new": 100 * 3, "old": 100 * 3, "plain": 0}),
        ("spread", True, {"new": 0, "old": 0, "plain": 0}),
    ],
)
def test_11_19_policies_among_nodes(policy: str, compatible: bool, expected: dict[str, float]) -> None:
    plugin = sharing("VGPUEnable", SchedulePolicy=policy, ScheduleWeight=3)
    round = vgpus().pod("x", "job", asks=asks(vgpu_memory="8000")).round(plugin, compatible=compatible)
    assert scores(plugin, round, "x") == expected


def test_only_one_way_of_sharing_at_a_time() -> None:
    both = DeviceShare.of(Arguments({"deviceshare.GPUSharingEnable": True, "deviceshare.VGPUEnable": True}))
    round = gpus().pod("x", "job", asks=asks(gpu_memory="99")).round(both)
    assert refused(both, round, "x") == set()


def test_the_binding_carries_what_a_pod_is_told() -> None:
    plugin = sharing("GPUSharingEnable")
    round = open_with_cycles(gpus().pod("x", "job", asks=asks(gpu_memory="6")), plugin)
    assert place(plugin, round, "x", "gpu")
    write = DefaultBinder().bind(round.cycles["x"], task(round, "x").row)
    assert write.body is not None
    assert write.body["metadata"]["annotations"]["volcano.sh/gpu-index"] == "0"
