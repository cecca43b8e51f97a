"""Stories about gangs: what a user does on a small cluster, step by step, and what shows of it from outside.

Three nodes of four CPUs; n0 and n1 are one rack, n2 another. Where the original leaves a choice to chance the stories
leave none: what is compared is how many of which group run, what a group's condition says, and what waiting pods were
told.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fairlead.client.client import KubeApi
from fairlead.client.port import Query
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.group import SCHEDULED_CONDITIONS
from fairlead.core.model.kinds import NODE, POD, POD_GROUP, PRIORITY_CLASS, Kind
from fairlead.errors import NotFound

RACK = "example.com/rack"


@dataclass
class Seen:
    """What shows after a step."""

    running: Mapping[str, int]
    conditions: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    told: Mapping[str, set[str]] = field(default_factory=dict)


class Cluster:
    """A user's hands and eyes."""

    def __init__(self, api: KubeApi, groups: Kind = POD_GROUP, *, quiet: float = 4.5) -> None:
        self.api = api
        self.groups = groups
        """In which version of the API groups are written."""
        self._quiet = quiet
        """Seconds in which nothing changes, after which nothing is expected to: more than the longest backoff."""

    async def furnish(self) -> None:
        for number in range(3):
            await self._node(f"n{number}", rack="r0" if number < 2 else "r1")
        for name, value, policy in (("high", 1000, ""), ("gentle", 1000, "Never"), ("low", 10, "")):
            body = {"metadata": {"name": name}, "value": value} | ({"preemptionPolicy": policy} if policy else {})
            await self.create(PRIORITY_CLASS, {"apiVersion": PRIORITY_CLASS.api_version, **body})

    async def clear(self) -> None:
        """Delete what a story made. Nobody else takes the finalizer from a group that has no pods."""
        for kind in (POD, self.groups):
            for doc in (await self.api.list(kind, Query(namespace="default"))).items:
                name = doc["metadata"]["name"]
                if doc["metadata"].get("finalizers"):
                    free = {"metadata": {"finalizers": None}}
                    await self.api.perform(Write(Verb.PATCH, kind, "default", name, free))
                await self._delete(kind, name)
        for _ in range(300):
            if not (await self.api.list(POD, Query(namespace="default"))).items:
                return
            await asyncio.sleep(0.2)
        raise AssertionError("pods do not go")

    # ---- hands ----

    async def group(self, name: str, minimum: int = 0, *, key: str = "", **spec: Any) -> None:
        policy = {"gang": {"minCount": minimum}} if minimum else {"basic": {}}
        if key:
            spec["schedulingConstraints"] = {"topology": [{"key": key}]}
        body = {"metadata": {"name": name}, "spec": {"schedulingPolicy": policy, **spec}}
        await self.create(self.groups, {"apiVersion": self.groups.api_version, "kind": "PodGroup", **body})

    async def members(self, group: str, count: int, *, first: int = 0, cpu: str = "1", **spec: Any) -> None:
        for number in range(first, first + count):
            await self.pod(f"{group}-{number}", cpu=cpu, schedulingGroup={"podGroupName": group}, **spec)

    async def gang(self, name: str, *, minimum: int, members: int, key: str = "") -> None:
        await self.group(name, minimum, key=key)
        await self.members(name, members)

    async def pod(self, name: str, *, cpu: str = "1", **spec: Any) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}
        await self.create(POD, {"metadata": {"name": name}, "spec": spec})

    async def delete_pods(self, *names: str) -> None:
        for name in names:
            await self._delete(POD, name)

    async def _node(self, name: str, rack: str) -> None:
        labels = {"kubernetes.io/hostname": name, RACK: rack}
        offered = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        await self.create(NODE, {"metadata": {"name": name, "labels": labels}})
        status = {"status": {"capacity": offered, "allocatable": offered}}
        await self.api.perform(Write(Verb.PATCH, NODE, "", name, status, subresource="status"))

    async def create(self, kind: Kind, body: dict[str, Any]) -> None:
        namespace = "default" if kind.namespaced else ""
        await self.api.perform(Write(Verb.CREATE, kind, namespace, body["metadata"]["name"], body))

    async def _delete(self, kind: Kind, name: str) -> None:
        with suppress(NotFound):  # a victim, perhaps
            await self.api.perform(Write(Verb.DELETE, kind, "default", name, {"gracePeriodSeconds": 0}))

    # ---- eyes ----

    async def look(self, *, groups: bool = True) -> Seen:
        """Wait until nothing has changed for a while. Not every server has `groups`."""
        seen, quiet = await self._now(groups), 0.0
        while quiet < self._quiet:
            await asyncio.sleep(0.5)
            now = await self._now(groups)
            seen, quiet = now, 0.0 if now.running != seen.running else quiet + 0.5
        return seen

    async def _now(self, groups: bool) -> Seen:
        pods = (await self.api.list(POD, Query(namespace="default"))).items
        running = Counter(_group_of(doc) for doc in pods if doc["spec"].get("nodeName"))
        told: dict[str, set[str]] = {}
        for doc in pods:
            if not doc["spec"].get("nodeName"):
                told.setdefault(_group_of(doc), set()).add(_message(doc))
        # Those without pods may be of an earlier story.
        populated = {_group_of(doc) for doc in pods}
        known = (await self.api.list(self.groups, Query(namespace="default"))).items if groups else ()
        named = ((doc["metadata"]["name"], doc) for doc in known)
        type_ = SCHEDULED_CONDITIONS[self.groups.version]
        conditions = {name: _scheduled(doc, type_) for name, doc in named if name in populated}
        return Seen(dict(sorted(running.items())), dict(sorted(conditions.items())), told)

    async def racks(self, group: str) -> set[str]:
        pods = (await self.api.list(POD, Query(namespace="default"))).items
        nodes = {doc["spec"]["nodeName"] for doc in pods if _group_of(doc) == group and doc["spec"].get("nodeName")}
        return {"r0" if node in ("n0", "n1") else "r1" for node in nodes}


def _group_of(doc: Mapping[str, Any]) -> str:
    """Pods without a group go by the beginning of their name."""
    group: str = (doc["spec"].get("schedulingGroup") or {}).get("podGroupName") or doc["metadata"]["name"].split("-")[0]
    return group


def _message(doc: Mapping[str, Any]) -> str:
    conditions = doc.get("status", {}).get("conditions", ())
    return next((c.get("message", "") for c in conditions if c["type"] == "PodScheduled"), "")


def _scheduled(doc: Mapping[str, Any], type_: str) -> tuple[str, str, str]:
    for condition in doc.get("status", {}).get("conditions", ()):
        if condition["type"] == type_:
            return condition["status"], condition["reason"], condition.get("message", "")
    return "", "", ""


# ---- the stories ----


async def members_and_groups_appear(cluster: Cluster) -> list[Any]:
    """Members wait for their group and for each other; a basic group waits for nobody."""
    await cluster.gang("whole", minimum=3, members=3)
    await cluster.gang("too-large", minimum=13, members=13)
    await cluster.gang("lonely", minimum=4, members=2)
    await cluster.members("groupless", 2)
    await cluster.gang("basic", minimum=0, members=2)
    first = await cluster.look()
    await cluster.members("lonely", 2, first=2)
    await cluster.group("groupless", 2)
    return [first.running, first.conditions, first.told, (await cluster.look()).running]


async def members_beyond_the_minimum(cluster: Cluster) -> list[Any]:
    """Those that fit start, the others later; a group that was scheduled stays so."""
    await cluster.gang("elastic", minimum=2, members=14)
    first = await cluster.look()
    bound = [
        doc["metadata"]["name"]
        for doc in (await cluster.api.list(POD, Query(namespace="default"))).items
        if doc["spec"].get("nodeName")
    ]
    await cluster.delete_pods(*bound[:1])
    second = await cluster.look()
    return [first.running, first.conditions, second.running, second.conditions]


async def the_most_important_members_first(cluster: Cluster) -> list[Any]:
    """Members are placed by priority, whoever came first."""
    await cluster.members("ranked", 10)
    await cluster.members("ranked", 4, first=10, priorityClassName="high")
    await cluster.look()  # pods and groups come by watches of their own: all members shall be known before the group
    await cluster.group("ranked", 4)
    seen = await cluster.look()
    pods = (await cluster.api.list(POD, Query(namespace="default"))).items
    important = [doc for doc in pods if doc["spec"].get("priorityClassName") == "high" and doc["spec"].get("nodeName")]
    return [seen.running, len(important)]


async def members_behind_gates_and_of_others(cluster: Cluster) -> list[Any]:
    """A gated member is known and not placed; one of another scheduler is neither ours nor nobody's."""
    await cluster.group("gated", 3)
    await cluster.members("gated", 2)
    await cluster.members("gated", 1, first=2, schedulingGates=[{"name": "example.com/later"}])
    await cluster.group("mixed", 2)
    await cluster.members("mixed", 1)
    await cluster.members("mixed", 1, first=1, schedulerName="somebody-else")
    first = await cluster.look()
    opened = {"spec": {"schedulingGates": None}}
    await cluster.api.perform(Write(Verb.PATCH, POD, "default", "gated-2", opened))
    second = await cluster.look()
    return [first.running, first.conditions["gated"], second.running, second.conditions["gated"]]


async def one_rack(cluster: Cluster) -> list[Any]:
    """In one rack or not at all; later members follow, and wait for room there."""
    await cluster.gang("racked", minimum=5, members=5, key=RACK)
    await cluster.gang("no-rack", minimum=9, members=9, key=RACK)
    await cluster.gang("no-label", minimum=1, members=1, key="example.com/row")
    first = await cluster.look()
    await cluster.members("racked", 5, first=5)
    second = await cluster.look()
    told = {group: second.told[group] for group in ("racked", "no-label")}
    return [first.running, first.conditions, second.running, await cluster.racks("racked"), told]


async def room_is_made_for_all(cluster: Cluster) -> list[Any]:
    """As many as it takes are evicted, and nobody where it would not help."""
    for number in range(3):
        await cluster.pod(f"low-{number}", cpu="4", priorityClassName="low")
    before = await cluster.look()
    await cluster.group("vain", 4, priorityClassName="high")
    await cluster.members("vain", 4, cpu="4", priorityClassName="high")
    vain = await cluster.look()
    await cluster.group("urgent", 2, priorityClassName="high")
    await cluster.members("urgent", 2, cpu="4", priorityClassName="high")
    after = await cluster.look()
    return [before.running, vain.running, after.running, after.conditions["urgent"][:2]]


async def who_never_preempts(cluster: Cluster) -> list[Any]:
    """One member that preempts nobody is enough, and equal priority is no reason."""
    for number in range(3):
        await cluster.pod(f"low-{number}", cpu="4", priorityClassName="low")
    await cluster.look()
    await cluster.group("gentle", 2, priorityClassName="high")
    await cluster.members("gentle", 1, cpu="4", priorityClassName="high")
    await cluster.members("gentle", 1, first=1, cpu="4", priorityClassName="gentle")
    await cluster.group("equal", 1, priorityClassName="low")
    await cluster.members("equal", 1, cpu="4", priorityClassName="low")
    return [(await cluster.look()).running]


async def a_group_goes_as_a_whole(cluster: Cluster) -> list[Any]:
    """Of a group with disruptionMode PodGroup all go, or none."""
    whole: Any = "PodGroup" if cluster.groups is POD_GROUP else {"all": {}}
    await cluster.group("cheap", 2, priorityClassName="low", disruptionMode=whole)
    await cluster.members("cheap", 3, cpu="4", priorityClassName="low")
    before = await cluster.look()
    await cluster.group("dear", 1, priorityClassName="high")
    await cluster.members("dear", 1, cpu="4", priorityClassName="high")
    after = await cluster.look()
    return [before.running, after.running]


# ---- what only the next Kubernetes does ----


async def who_waits_for_whom(cluster: Cluster) -> list[Any]:
    """Members wait for their group and for each other, gated ones too; and a rack that is too small for all."""
    await cluster.gang("whole", minimum=3, members=3)
    await cluster.gang("too-large", minimum=13, members=13)
    await cluster.gang("lonely", minimum=4, members=2)
    await cluster.members("groupless", 2)
    await cluster.gang("no-rack", minimum=9, members=9, key=RACK)
    first = await cluster.look()
    await cluster.members("lonely", 2, first=2)
    await cluster.group("groupless", 2)
    second = await cluster.look()
    return [first.running, _verdicts(first), second.running, _verdicts(second)]


async def room_is_made_in_one_rack(cluster: Cluster) -> list[Any]:
    """A gang that must be close together evicts whoever is in its way there, and nobody elsewhere."""
    for number in range(3):
        await cluster.pod(f"low{number}-x", cpu="4", priorityClassName="low")
    before = await cluster.look()
    await cluster.group("scattered", 3, key=RACK, priorityClassName="high")
    await cluster.members("scattered", 3, cpu="4", priorityClassName="high")
    vain = await cluster.look()
    await cluster.group("near", 2, key=RACK, priorityClassName="high")
    await cluster.members("near", 2, cpu="4", priorityClassName="high")
    after = await cluster.look()
    survivors = sum(count for name, count in after.running.items() if name.startswith("low"))
    gang = {name: count for name, count in after.running.items() if not name.startswith("low")}
    return [before.running, vain.running, gang, survivors, await cluster.racks("near"), _verdicts(after)]


async def a_minimum_is_lowered(cluster: Cluster) -> list[Any]:
    """What did not fit starts with fewer."""
    await cluster.gang("modest", minimum=14, members=14)
    before = await cluster.look()
    fewer = {"spec": {"schedulingPolicy": {"gang": {"minCount": 12}}}}
    await cluster.api.perform(Write(Verb.PATCH, cluster.groups, "default", "modest", fewer))
    after = await cluster.look()
    return [before.running, _verdicts(before), after.running, _verdicts(after)]


def _verdicts(seen: Seen) -> dict[str, tuple[str, str]]:
    """Without the words, which differ from one version of the original to the next."""
    return {name: said[:2] for name, said in seen.conditions.items()}


Story = Callable[[Cluster], Awaitable[list[Any]]]
STORIES: tuple[Story, ...] = (
    members_and_groups_appear, members_beyond_the_minimum, the_most_important_members_first,
    members_behind_gates_and_of_others, one_rack, room_is_made_for_all, who_never_preempts, a_group_goes_as_a_whole,
)  # fmt: skip
NEXT_STORIES: tuple[Story, ...] = (
    who_waits_for_whom, members_beyond_the_minimum, room_is_made_for_all, who_never_preempts, a_group_goes_as_a_whole,
    room_is_made_in_one_rack, a_minimum_is_lowered,
)  # fmt: skip
