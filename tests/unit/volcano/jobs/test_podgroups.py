"""PodGroups for plain pods of a Volcano scheduler."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

from fairlead.cluster.housekeeping import housekeepers
from fairlead.cluster.store.store import Store, StoreApi
from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.runtime.live import LiveRuntime
from fairlead.runtime.worlds import Remote
from fairlead.testing.builders import PodBuilder, deployment, namespace, node, pod, priority_class
from fairlead.testing.harness import Harness
from fairlead.volcano.jobs.podgroups import MINIMUM_ANNOTATION, QUEUE_ANNOTATION
from fairlead.volcano.kinds import GROUP_ANNOTATION, VC_POD_GROUP


def cluster() -> Harness:
    return Harness(nodes=[node("a")], schedulers=[])


def plain(name: str, **requests: str) -> PodBuilder:
    return pod(name).scheduled_by("volcano").asks(**requests)


def only_group(cluster: Harness, where: str = "default") -> Doc:
    (group,) = cluster.list(VC_POD_GROUP, namespace=where)
    return group


def test_a_pod_on_its_own_owns_a_group_of_one_and_is_shown_its_name() -> None:
    world = cluster()
    world.apply(plain("p", cpu="2", memory="1Gi"))
    world.run(1)
    group, member = only_group(world), world.pod("p")
    assert group["metadata"]["name"] == f"podgroup-{member['metadata']['uid']}"
    assert member["metadata"]["annotations"][GROUP_ANNOTATION] == group["metadata"]["name"]
    assert group["spec"]["minMember"] == 1
    assert group["spec"]["queue"] == "default"
    assert group["status"]["phase"] == "Pending"
    (owner,) = group["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Pod", "p")
    needs = group["spec"]["minResources"]
    assert (needs["cpu"], needs["memory"], needs["pods"], needs["requests.cpu"]) == ("2", "1Gi", "1", "2")


def test_devices_are_needed_by_their_plain_names_too() -> None:
    world = cluster()
    world.apply(plain("p").limited_to({"nvidia.com/gpu": "2"}).asks({"nvidia.com/gpu": "2"}))
    world.run(1)
    needs = only_group(world)["spec"]["minResources"]
    assert needs["nvidia.com/gpu"] == needs["requests.nvidia.com/gpu"] == "2"
    assert "limits.nvidia.com/gpu" not in needs, "no node offers this, so the group would wait for ever"


def test_limits_are_needed_of_cpu_memory_and_ephemeral_storage_alone() -> None:
    world = cluster()
    amounts = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "2Gi", "hugepages-2Mi": "4Mi", "example.com/nic": "3"}
    world.apply(plain("p").limited_to(amounts).asks(amounts))
    world.run(1)
    needs = only_group(world)["spec"]["minResources"]
    assert {name for name in needs if name.startswith("limits.")} == {
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
    }
    assert (needs["hugepages-2Mi"], needs["requests.hugepages-2Mi"]) == ("4Mi", "4Mi")


def test_pods_of_other_schedulers_and_pods_with_a_group_are_left_alone() -> None:
    world = cluster()
    world.apply(pod("kube"), plain("has").annotated({GROUP_ANNOTATION: "mine"}))
    world.run(1)
    assert not world.list(VC_POD_GROUP)


def test_the_pods_of_a_deployment_share_the_group_of_their_replica_set() -> None:
    world = cluster()
    template = plain("t", cpu="1")
    world.apply(deployment("web").replicas(3).of(template))
    world.run(1)
    (owner,) = world.list(kinds.REPLICA_SET)
    group = only_group(world)
    assert group["metadata"]["name"] == f"podgroup-{owner['metadata']['uid']}"
    assert group["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"
    names = {one["metadata"]["annotations"][GROUP_ANNOTATION] for one in world.list(kinds.POD)}
    assert names == {group["metadata"]["name"]}


def test_scaling_to_nothing_deletes_the_group_and_scaling_up_makes_it_anew() -> None:
    world = cluster()
    world.apply(deployment("web").replicas(2).of(plain("t", cpu="1")))
    world.run(1)
    first = only_group(world)["metadata"]["uid"]
    world.patch(kinds.DEPLOYMENT, "web", {"spec": {"replicas": 0}})
    world.run(60)
    assert not world.list(VC_POD_GROUP)
    world.patch(kinds.DEPLOYMENT, "web", {"spec": {"replicas": 2}})
    world.run(1)
    assert only_group(world)["metadata"]["uid"] != first


def _owned(world: Harness, annotations: dict[str, str]) -> Doc:
    owner: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "rs", "namespace": "default", "annotations": annotations},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "rs"}},
            "template": plain("t", cpu="1").labelled(app="rs").template(),
        },
    }
    world.apply(owner)
    world.run(1)
    return only_group(world)


def test_a_minimum_and_volcanos_annotations_are_inherited_from_the_owner() -> None:
    group = _owned(cluster(), {MINIMUM_ANNOTATION: "2", "volcano.sh/sla-waiting-time": "1h", "other": "x"})
    assert group["spec"]["minMember"] == 2
    assert group["spec"]["minResources"]["cpu"] == "2"
    assert group["metadata"]["annotations"] == {"volcano.sh/sla-waiting-time": "1h"}


def test_a_minimum_that_cannot_be_read_is_1() -> None:
    assert _owned(cluster(), {MINIMUM_ANNOTATION: "-3"})["spec"]["minMember"] == 1
    assert _owned(cluster(), {MINIMUM_ANNOTATION: "many"})["spec"]["minMember"] == 1


def test_queue_class_topology_and_protection_come_from_the_pod() -> None:
    world = cluster()
    world.apply(priority_class("high", 100))
    annotations = {
        QUEUE_ANNOTATION: "team",
        "volcano.sh/preemptable": "false",
        "volcano.sh/network-topology-highest-tier": "2",
        "volcano.sh/network-topology-mode": "soft",
        "unrelated": "x",
    }
    world.apply(plain("p").annotated(annotations).of_priority("high").labelled({"volcano.sh/cooldown-time": "5m"}))
    world.run(1)
    group = only_group(world)
    assert (group["spec"]["queue"], group["spec"]["priorityClassName"]) == ("team", "high")
    assert group["spec"]["networkTopology"] == {"mode": "soft", "highestTierAllowed": 2}
    assert group["metadata"]["annotations"] == {"volcano.sh/preemptable": "false"}
    assert group["metadata"]["labels"] == {"volcano.sh/cooldown-time": "5m"}


def test_a_namespace_may_name_the_queue() -> None:
    world = cluster()
    world.apply(namespace("team-a").annotated({QUEUE_ANNOTATION: "a"}))
    world.run(1)
    world.apply(plain("p").in_namespace("team-a"))
    world.run(1)
    assert only_group(world, "team-a")["spec"]["queue"] == "a"


def test_a_pod_that_goes_before_its_group_is_made_leaves_nothing() -> None:
    world = cluster()
    world.apply(plain("p"))
    world.delete(kinds.POD, "p")
    world.run(60)
    assert not world.list(VC_POD_GROUP)


async def test_what_the_controller_reads_on_a_remote_cluster_is_what_it_watches() -> None:
    """A mirror has only the kinds that somebody watches; alone in its process nobody else does."""
    store = Store(clock=time.time, rng=random.Random(1))
    pod_ = plain("p", cpu="1").doc()
    store.perform(Write(Verb.CREATE, kinds.POD, "default", "p", pod_))
    world = Remote(StoreApi(store))
    runtime = LiveRuntime(world, housekeepers(world.view, names=["volcano-podgroup-controller"]))
    running = asyncio.ensure_future(runtime.run_until_stopped())
    async with asyncio.timeout(60):
        while not any(GROUP_ANNOTATION in (one["metadata"].get("annotations") or {}) for one in store.list(kinds.POD)):
            assert not running.done()
            await asyncio.sleep(0.02)
    runtime.stop()
    await running
    (group,) = store.list(VC_POD_GROUP)
    assert group["spec"]["queue"] == "default"
