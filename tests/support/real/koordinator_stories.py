"""Stories about Koordinator's objects: what a user does on a small cluster, step by step, and what shows of it.

Two nodes of eight CPUs; n1 has two GPUs, n0 says how its CPUs are laid out. What is compared is on which node each pod
runs or what it was told, the devices, CPUs and the reservation that it was given, and the phases of reservations.
Stories leave nothing to chance: where both nodes would do, the story names one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fairlead.client.port import Query
from fairlead.core.model import kinds as k
from fairlead.core.model.kinds import Kind
from fairlead.koordinator.agents.node_topologies import node_topology
from fairlead.koordinator.kinds import (
    KOORD_DEVICE,
    KOORD_ELASTIC_QUOTA,
    KOORD_NODE_TOPOLOGY,
    KOORD_POD_GROUP,
    KOORD_RESERVATION,
)
from tests.support.koordinator import GANG, GPU, QUOTA, SCHEDULING, elastic_quota, gpu_devices, koord_group
from tests.support.koordinator import koord_reservation as reservation
from tests.support.real.audited import Lab
from tests.support.real.contenders import node_document, pod_document

NAME = "koord-scheduler"
PATIENCE = 60.0
HALF = {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"}
WHOLE = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100"}
Seen = Mapping[str, Any]
Story = Callable[["Cluster"], Awaitable[list[Seen]]]


class Cluster:
    """A user's hands and eyes."""

    def __init__(self, lab: Lab, *, quiet: float) -> None:
        self.lab = lab
        self.quiet = quiet
        """Seconds in which nothing changes, after which nothing is expected to: more than the longest backoff and
        delay."""

    async def furnish(self) -> None:
        for name in ("n0", "n1"):
            node = node_document(name, cpu="8")
            if name == "n1":
                cards = {GPU: "200", "koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory-ratio": "200"}
                node["status"]["allocatable"] = node["status"]["capacity"] = {**node["status"]["capacity"], **cards}
            await self.lab.make(k.NODE, node)
        await self.lab.make(KOORD_DEVICE, for_server(gpu_devices("n1", count=2)))
        topology = node_topology(node_document("n0", cpu="8"))
        assert topology is not None
        await self.lab.make(KOORD_NODE_TOPOLOGY, topology)
        for name, value in (("high", 1000), ("low", 10)):
            await self.lab.make(k.PRIORITY_CLASS, {"metadata": {"name": name}, "value": value})

    async def ready(self) -> None:
        """Until the scheduler has placed a first pod."""
        await self.make(pod("first"))
        await self.lab.until(k.POD, "first", lambda doc: doc["spec"].get("nodeName"))
        await self.lab.delete(k.POD, "first")

    async def make(self, *documents: dict[str, Any]) -> None:
        for one in documents:
            kind = next(kind for kind in MADE if kind.kind == one["kind"] and kind.api_version == one["apiVersion"])
            await self.lab.make(kind, for_server(one))

    async def clear(self) -> None:
        for kind in MADE:
            for doc in (await self.lab.api.list(kind, Query(namespace="default" if kind.namespaced else ""))).items:
                if not doc["metadata"]["name"].startswith("koordinator-"):
                    await self.lab.delete(kind, doc["metadata"]["name"])
        await self.settled()

    async def settled(self) -> Seen:
        """What shows once nothing changes any more."""
        last, since, ends = await self._look(), 0.0, PATIENCE
        while since < self.quiet and ends > 0:
            await asyncio.sleep(0.5)
            ends -= 0.5
            now = await self._look()
            since = since + 0.5 if now == last else 0.0
            last = now
        return last

    async def gone(self, *names: str) -> None:
        """Until some pods are gone, or patience ends: what has a delay and a period takes longer than to settle."""
        ends = PATIENCE
        while ends > 0 and set(names) & set(await self._look()):
            await asyncio.sleep(0.5)
            ends -= 0.5

    async def _look(self) -> Seen:
        pods = (await self.lab.api.list(k.POD, Query(namespace="default"))).items
        reservations = (await self.lab.api.list(KOORD_RESERVATION)).items
        return {
            **{one["metadata"]["name"]: _of_pod(one) for one in pods},
            **{f"reservation {one['metadata']['name']}": _of_reservation(one) for one in reservations},
        }


MADE: tuple[Kind, ...] = (k.POD, KOORD_POD_GROUP, KOORD_RESERVATION, KOORD_ELASTIC_QUOTA)


def for_server(document: dict[str, Any]) -> dict[str, Any]:
    """A server gives uids and times itself."""
    metadata = {key: value for key, value in document["metadata"].items() if key not in ("uid", "creationTimestamp")}
    return {**document, "metadata": metadata}


def pod(
    name: str,
    *,
    cpu: str = "1",
    on: str = "",
    quota: str = "",
    gang: str = "",
    labels: Mapping[str, str] | None = None,
    devices: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod that is gone as soon as it is deleted."""
    one = pod_document(name, cpu=cpu, **dict(devices or {}))
    resources = one["spec"]["containers"][0]["resources"]
    if devices:
        resources["limits"] = dict(devices)
    own = dict(labels or {})
    if quota:
        own[QUOTA + "name"] = quota
    if gang:
        own["pod-group.scheduling.sigs.k8s.io"] = gang
    one["metadata"] |= {"labels": own, "annotations": dict(annotations or {})}
    if on:
        spec["nodeSelector"] = {"kubernetes.io/hostname": on}
    one["spec"] |= {"schedulerName": NAME, "terminationGracePeriodSeconds": 0, **spec}
    return one


def holding(name: str, request: Mapping[str, str], on: str, **spec: Any) -> dict[str, Any]:
    """A reservation on a node for pods with the label app=guest."""
    made = reservation(name, request=request, owners={"app": "guest"}, **spec)
    template = made["spec"]["template"]["spec"]
    template |= {"schedulerName": NAME, "nodeSelector": {"kubernetes.io/hostname": on}}
    template["containers"][0] |= {"image": "x"}
    limits = {name: amount for name, amount in request.items() if name != "cpu"}
    if limits:
        template["containers"][0]["resources"]["limits"] = limits
    return made


GUEST = {"app": "guest"}
OWN_CPUS = {"koordinator.sh/qosClass": "LSR", "koordinator.sh/priority-class": "koord-prod"}
"""Labels of pods that are bound to CPUs."""


def _of_pod(doc: dict[str, Any]) -> Any:
    annotations = doc["metadata"].get("annotations") or {}
    given = annotations.get(SCHEDULING + "device-allocated")
    minors = {kind: sorted(one["minor"] for one in of) for kind, of in json.loads(given).items()} if given else {}
    room = annotations.get(SCHEDULING + "reservation-allocated")
    bound = json.loads(annotations.get(SCHEDULING + "resource-status") or "{}").get("cpuset", "")
    if node := doc["spec"].get("nodeName"):
        return node, minors, bound, json.loads(room)["name"] if room else ""
    conditions = (doc.get("status") or {}).get("conditions") or ()
    return next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "")


def _of_reservation(doc: dict[str, Any]) -> Any:
    status = doc.get("status") or {}
    return status.get("phase", ""), status.get("nodeName", "")


# ---- the stories ----


async def a_quota_is_used_up(cluster: Cluster) -> list[Seen]:
    """The third pod is told what its quota has and what it would use."""
    await cluster.make(elastic_quota("team", least={"cpu": "2"}, most={"cpu": "4"}))
    await cluster.make(*(pod(f"p{at}", cpu="2", quota="team", on="n0") for at in range(2)))
    first = await cluster.settled()
    await cluster.make(pod("p2", cpu="2", quota="team", on="n0"))
    return [first, await cluster.settled()]


async def a_parent_quota_limits_both_children(cluster: Cluster) -> list[Seen]:
    await cluster.make(
        elastic_quota("dept", least={"cpu": "4"}, most={"cpu": "4"}, is_parent=True),
        elastic_quota("a", least={"cpu": "1"}, most={"cpu": "4"}, parent="dept"),
        elastic_quota("b", least={"cpu": "1"}, most={"cpu": "4"}, parent="dept"),
    )
    await asyncio.sleep(1.5)
    await cluster.make(pod("a0", cpu="3", quota="a", on="n0"))
    first = await cluster.settled()
    await cluster.make(pod("b0", cpu="1", quota="b", on="n0"), pod("a1", cpu="1", quota="a", on="n0"))
    return [first, await cluster.settled()]


async def what_was_lent_is_taken_back(cluster: Cluster) -> list[Seen]:
    """A quota uses what another has not asked for; when that one asks, pods above the own share go."""
    await cluster.make(
        elastic_quota("all", least={"cpu": "6"}, most={"cpu": "6"}, is_parent=True),
        elastic_quota("owner", least={"cpu": "4"}, most={"cpu": "6"}, parent="all"),
        elastic_quota("guest", least={"cpu": "2"}, most={"cpu": "6"}, parent="all"),
    )
    await asyncio.sleep(1.5)
    await cluster.make(pod("g0", cpu="2", quota="guest", on="n0", priorityClassName="high"))
    await cluster.make(*(pod(f"g{at}", cpu="2", quota="guest", on="n0", priorityClassName="low") for at in (1, 2)))
    first = await cluster.settled()
    await cluster.make(pod("o0", cpu="4", quota="owner", on="n1"))
    await cluster.gone("g1", "g2")
    return [first, await cluster.settled()]


async def a_gang_waits_for_room(cluster: Cluster) -> list[Seen]:
    await cluster.make(pod("there", cpu="7", on="n0"), pod("too", cpu="6", on="n1"))
    await cluster.settled()
    await cluster.make(koord_group("g", least=3))
    await cluster.make(*(pod(f"g{at}", cpu="2", gang="g") for at in range(3)))
    first = await cluster.settled()
    await cluster.lab.delete(k.POD, "there")
    await asyncio.sleep(cluster.quiet)
    then = await cluster.settled()
    return [{name: bool(where) and isinstance(where, tuple) for name, where in one.items()} for one in (first, then)]


async def members_are_missing(cluster: Cluster) -> list[Seen]:
    await cluster.make(koord_group("g", least=2))
    await cluster.make(pod("g0", gang="g", on="n0"))
    first = await cluster.settled()
    await cluster.make(pod("g1", gang="g", on="n0"))
    return [first, await cluster.settled()]


async def a_gang_preempts_for_all_its_members(cluster: Cluster) -> list[Seen]:
    await cluster.make(pod("low0", cpu="6", on="n0", priorityClassName="low"))
    await cluster.make(pod("low1", cpu="6", on="n1", priorityClassName="low"))
    first = await cluster.settled()
    await cluster.make(koord_group("g", least=2, annotations={GANG + "mode": "Strict"}))
    for at in range(2):
        await cluster.make(pod(f"g{at}", cpu="6", gang="g", on=f"n{at}", priorityClassName="high"))
    return [first, await cluster.settled()]


async def a_reservation_keeps_room_for_its_owner(cluster: Cluster) -> list[Seen]:
    """The stranger goes before the owner comes: koord-scheduler does not try it again when the reservation has ended,
    and we do."""
    await cluster.make(holding("room", {"cpu": "6"}, "n0"))
    first = await cluster.settled()
    await cluster.make(pod("stranger", cpu="4", on="n0"))
    then = await cluster.settled()
    await cluster.lab.delete(k.POD, "stranger")
    await cluster.make(pod("guest", cpu="4", on="n0", labels=GUEST))
    return [first, then, await cluster.settled()]


async def a_restricted_reservation_gives_no_more_than_it_has(cluster: Cluster) -> list[Seen]:
    await cluster.make(holding("room", {"cpu": "2"}, "n0", allocateOnce=False, allocatePolicy="Restricted"))
    await cluster.settled()
    must = {SCHEDULING + "reservation-affinity": json.dumps({"name": "room"})}
    await cluster.make(pod("large", cpu="3", on="n0", labels=GUEST, annotations=must))
    await cluster.make(pod("small", cpu="2", on="n0", labels=GUEST, annotations=must))
    return [await cluster.settled()]


async def a_reservation_holds_devices(cluster: Cluster) -> list[Seen]:
    await cluster.make(holding("cards", {"cpu": "1", **WHOLE}, "n1", allocateOnce=False))
    first = await cluster.settled()
    await cluster.make(pod("one", devices=WHOLE, on="n1"))
    await cluster.settled()
    await cluster.make(pod("two", devices=WHOLE, on="n1"))
    then = await cluster.settled()
    await cluster.make(pod("guest", devices=HALF, on="n1", labels=GUEST))
    return [first, then, await cluster.settled()]


async def a_reservation_holds_cpus(cluster: Cluster) -> list[Seen]:
    """CPUs that a reservation holds are given to nobody but its owners, and are the reservation's again when those go:
    what shows are the CPUs that pods are bound to."""
    room = holding("room", {"cpu": "4"}, "n0", allocateOnce=False, allocatePolicy="Restricted")
    room["spec"]["template"]["metadata"]["labels"] = OWN_CPUS
    await cluster.make(room)
    first = await cluster.settled()
    await cluster.make(pod("stranger", cpu="4", on="n0", labels=OWN_CPUS))
    then = await cluster.settled()
    await cluster.make(pod("guest", cpu="2", on="n0", labels={**GUEST, **OWN_CPUS}))
    inside = await cluster.settled()
    await cluster.lab.delete(k.POD, "guest")
    await cluster.make(pod("late", cpu="2", on="n0", labels=OWN_CPUS))
    await cluster.settled()
    await cluster.make(pod("heir", cpu="4", on="n0", labels={**GUEST, **OWN_CPUS}))
    return [first, then, inside, await cluster.settled()]


async def a_node_keeps_something_for_itself(cluster: Cluster) -> list[Seen]:
    """An annotation takes CPUs off what a node can allocate; pods fit again when it goes."""
    key = "node.koordinator.sh/reservation"
    kept = {key: json.dumps({"resources": {"cpu": "6"}, "applyPolicy": "Default"})}
    await cluster.lab.patch(k.NODE, "n0", {"metadata": {"annotations": kept}})
    await cluster.make(pod("large", cpu="4", on="n0"), pod("small", cpu="2", on="n0"))
    first = await cluster.settled()
    await cluster.lab.patch(k.NODE, "n0", {"metadata": {"annotations": {key: None}}})
    return [first, await cluster.settled()]


async def cards_are_shared(cluster: Cluster) -> list[Seen]:
    await cluster.make(pod("whole", devices=WHOLE, on="n1"))
    await cluster.settled()
    await cluster.make(pod("half", devices=HALF, on="n1"))
    await cluster.settled()
    await cluster.make(pod("other", devices=WHOLE, on="n1"))
    return [await cluster.settled()]


async def a_reservation_takes_over_a_running_pod(cluster: Cluster) -> list[Seen]:
    """Pre-allocation: the node is full, and the reservation is placed on top of its owner."""
    running = pod("guest", cpu="6", on="n0", labels={**GUEST, "pod.koordinator.sh/is-pre-allocatable": "true"})
    await cluster.make(running)
    await cluster.settled()
    await cluster.lab.patch(k.POD, "guest", {"status": {"phase": "Running"}}, subresource="status")
    await cluster.make(
        holding("room", {"cpu": "6"}, "n0", preAllocation=True, allocatePolicy="Restricted", allocateOnce=False)
    )
    return [await cluster.settled()]


STORIES: tuple[Story, ...] = (
    a_quota_is_used_up, a_parent_quota_limits_both_children, what_was_lent_is_taken_back, a_gang_waits_for_room,
    members_are_missing, a_gang_preempts_for_all_its_members, a_reservation_keeps_room_for_its_owner,
    a_restricted_reservation_gives_no_more_than_it_has, a_reservation_holds_devices, a_reservation_holds_cpus,
    cards_are_shared, a_reservation_takes_over_a_running_pod, a_node_keeps_something_for_itself,
)  # fmt: skip
