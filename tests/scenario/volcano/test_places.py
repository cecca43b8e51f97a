"""Where jobs with a network topology are, and where room was made for them, from round to round and after a restart.

The place of a job is found again from its pods. The place where room was made for it is kept, and after a restart read
from the nodes that its pods were nominated to.
"""

from __future__ import annotations

import pytest

from fairlead.core.engine.scheduler import Options, Scheduler
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Doc, Happened, Verb, Write
from fairlead.testing.builders import node, podgroup, priority_class
from fairlead.volcano.config.build import profile_of_volcano
from fairlead.volcano.config.reading import load_volcano_config
from fairlead.volcano.kinds import VC_HYPER_NODE
from tests.support.volcano import VolcanoHarness, conf

TEXT = conf(
    "allocate, gangpreempt",
    "priority; gang enablePreemptable: false",
    "predicates; nodeorder; network-topology-aware",
)
RACKS = {"s0": ("a0", "a1"), "s1": ("b0", "b1")}


class Racks(VolcanoHarness):
    """Two racks of two nodes with four cores each, and jobs that want to stay within one."""

    def __init__(self, *, compatible: bool = False) -> None:
        names = [name for rack in RACKS.values() for name in rack]
        built = [node(name).offers(cpu="4", memory="16Gi", pods="110") for name in names]
        super().__init__(TEXT, built, compatible=compatible)
        self.compatible = compatible
        self.apply(*(_rack(name, *nodes) for name, nodes in RACKS.items()))
        self.apply(priority_class("low", 10), priority_class("high", 1000))
        self.run(1)

    def near(self, name: str, minimum: int, *, members: int | None = None, cpu: str = "4", rank: str = "low") -> None:
        topology = {"mode": "hard", "highestTierAllowed": 1}
        self.apply(podgroup(name, minimum).having(networkTopology=topology, priorityClassName=rank))
        for at in range(members or minimum):
            self.apply(self.member(name, at, {"cpu": cpu}, pod_class=rank).ending_after("20s"))

    def nodes_of(self, name: str) -> list[str]:
        return sorted(at for pod, at in self.bindings().items() if pod.startswith(f"{name}-w-"))

    def promised(self, name: str) -> set[str]:
        """The nodes that the waiting pods of a job are promised."""
        pods = [pod for pod in self.list(kinds.POD) if pod["metadata"]["name"].startswith(f"{name}-w-")]
        return {pod["status"].get("nominatedNodeName", "") for pod in pods if not pod["spec"].get("nodeName")}

    def after_a_restart(self) -> dict[str, str]:
        """Where a scheduler that has just started, and knows only what the API says, puts the pods that wait."""
        profile = profile_of_volcano(load_volcano_config(TEXT, compatible=self.compatible))
        fresh = Scheduler([profile], Options(seed=7))
        listed = [Change(Happened.ADDED, watch.kind, doc) for watch in fresh.watches for doc in self.list(watch.kind)]
        writes = fresh.step(self.now, listed, [])
        for _ in range(20):
            writes += fresh.step(self.now, [], [])
        return {w.name: w.body["target"]["name"] for w in writes if w.subresource == "binding" and w.body is not None}


def _rack(name: str, *nodes: str) -> Doc:
    members = [{"type": "Node", "selector": {"exactMatch": {"name": one}}} for one in nodes]
    kind = VC_HYPER_NODE
    spec = {"tier": 1, "members": members}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}


def full() -> Racks:
    """Both racks are taken; an urgent job is promised one of them, whose pods take their time to end."""
    world = Racks()
    world.near("left", 2)
    world.run(2)
    world.near("right", 2)
    world.run(2)
    world.near("urgent", 2, rank="high")
    world.run(3)
    return world


def test_a_job_gets_the_rack_in_which_room_was_made_for_it() -> None:
    """Meanwhile the other rack becomes free, at once: that changes nothing."""
    world = full()
    promised = world.promised("urgent")
    assert promised in [set(rack) for rack in RACKS.values()], "both pods in one rack"
    spared = "left" if not promised & set(world.nodes_of("left")) else "right"
    for at in range(2):
        name = f"{spared}-w-{at}"
        world.perform(Write(Verb.DELETE, kinds.POD, "default", name, {"gracePeriodSeconds": 0}))
    world.run(3)
    assert world.nodes_of("urgent") == [], "there is room, but not where it was promised"
    world.run(60)
    assert set(world.nodes_of("urgent")) == promised


def test_a_promise_outlives_the_scheduler() -> None:
    """Everybody has gone, so that both racks would do: the promised one is taken."""
    world = full()
    promised = world.promised("urgent")
    _stop_scheduling(world)
    for name in ("left", "right"):
        for at in range(2):
            if world.get(kinds.POD, f"{name}-w-{at}") is not None:
                world.delete(kinds.POD, f"{name}-w-{at}")
    world.run(60)
    assert world.nodes_of("urgent") == []
    assert set(world.after_a_restart().values()) == promised


def _stop_scheduling(world: Racks) -> None:
    """The scheduler goes on watching and decides nothing any more."""
    world.scheduler.reconfigure([])


def test_a_promise_that_cannot_be_kept_is_void() -> None:
    """A node of the promised rack is gone: the job goes to the other one."""
    world = full()
    promised = world.promised("urgent")
    other = next(set(rack) for rack in RACKS.values() if set(rack) != promised)
    _stop_scheduling(world)
    for name in ("left", "right"):
        for at in range(2):
            if world.get(kinds.POD, f"{name}-w-{at}") is not None:
                world.delete(kinds.POD, f"{name}-w-{at}")
    world.run(60)
    world.patch(kinds.NODE, min(promised), {"spec": {"unschedulable": True}})
    assert set(world.after_a_restart().values()) == other


@pytest.mark.parametrize("restarted", [False, True])
def test_a_job_that_runs_stays_in_its_rack(restarted: bool) -> None:
    """One pod of two ended by accident; its successor would find more room in the other rack."""
    world = Racks()
    world.near("job", 2, cpu="1")
    world.run(3)
    rack = next(set(nodes) for nodes in RACKS.values() if set(nodes) & set(world.nodes_of("job")))
    for at, name in enumerate(sorted(rack)):
        world.apply(world.member("filler", at, {"cpu": "2"}).scheduled_by("default-scheduler").on(name))
    if restarted:
        _stop_scheduling(world)
    world.delete(kinds.POD, "job-w-0")
    world.run(40)
    world.apply(world.member("job", 0, {"cpu": "1"}, pod_class="low"))
    world.run(3)
    if restarted:
        assert set(world.after_a_restart()) == {"job-w-0"}
        assert set(world.after_a_restart().values()) <= rack
    else:
        assert set(world.nodes_of("job")) <= rack
        assert len(world.nodes_of("job")) == 2
