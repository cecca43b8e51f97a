"""Runs a random cluster through the real kube-apiserver and kube-scheduler, and writes down what was decided.

The line that comes out is a recording as `fairlead replay` reads it. Scores are read from the scheduler's log, which at
level 10 prints every plugin's score of every feasible node, and tells of every node and pod that came or went: nothing
goes on before the scheduler has heard of what was made. Nodes and existing pods are ordered by resourceVersion, which
is the order in which the scheduler came to know them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairlead.client.client import KubeApi
from fairlead.client.port import Query
from fairlead.core.model import kinds
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.core.model.kinds import Kind, Registry
from fairlead.errors import AlreadyExists, ApiError, Forbidden, Invalid, NotFound
from tests.support.fuzz.pods import NAMESPACES, PEACEFUL, PRIORITIES
from tests.support.fuzz.storage import DRIVER
from tests.support.fuzz.worlds import FuzzCluster

Doc = dict[str, Any]

_SCORED = re.compile(r'"Plugin scored node for pod" pod="([^"]+)" plugin="([^"]+)" node="([^"]+)" score=(\d+)')
_EVICTING = r'"Start the preemption asynchronously" preemptor="{}" .*numVictimsToDelete=(\d+)'
_EVICTED = r'"Preemptor Pod preempted victim Pod" preemptor="{}" victim="[^"/]+/([^"]+)"'
_AT_ONCE = 32
_SETTLE = 0.4
"""Seconds for the scheduler to hear of what it does not tell about: other kinds come by watches of their own."""
_PATIENCE = 180.0
_KINDS = Registry()
_MADE_IN_A_WORLD = (
    kinds.POD, kinds.PERSISTENT_VOLUME_CLAIM, kinds.PERSISTENT_VOLUME, kinds.STORAGE_CLASS, kinds.CSI_NODE,
    kinds.CSI_DRIVER, kinds.CSI_STORAGE_CAPACITY, kinds.SERVICE, kinds.REPLICA_SET, kinds.POD_DISRUPTION_BUDGET,
    kinds.RUNTIME_CLASS, kinds.NODE,
)  # fmt: skip


class Recorder:
    made_in_a_world: tuple[Kind, ...] = _MADE_IN_A_WORLD
    with_status: tuple[str, ...] = ("PodDisruptionBudget",)
    """Kinds whose status a world gives too."""

    def __init__(self, api: KubeApi, log: Path) -> None:
        self._api = api
        self._log = log
        self._limit = asyncio.Semaphore(_AT_ONCE)

    async def prepare(self) -> None:
        """What every cluster has: namespaces and priority classes."""
        for name in NAMESPACES[1:]:
            labels = {"team": name[-1]}
            await self._try(
                self._make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
            )
        for value in PRIORITIES:
            await self._try(
                self._make(
                    {
                        "apiVersion": "scheduling.k8s.io/v1",
                        "kind": "PriorityClass",
                        "metadata": {"name": f"p{value}"},
                        "value": value,
                    }
                )
            )
        await self._try(
            self._make(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "value": 1000,
                    "metadata": {"name": PEACEFUL},
                    "preemptionPolicy": "Never",
                }
            )
        )

    async def record(self, world: FuzzCluster, *, settle: float = _SETTLE) -> Doc:
        try:
            return await self._record(world, settle)
        finally:
            await self._clean_up()

    async def _record(self, world: FuzzCluster, settle: float) -> Doc:
        offset = self._log.stat().st_size
        nodes = await self._make_all(world.nodes)
        objects = await self._make_all(world.objects)
        await self._claims_are_bound(objects)
        await asyncio.sleep(settle)
        existing = await self._make_all(world.existing)
        objects = [await self._now(doc) for doc in objects]
        await self._heard("Add event for node", nodes, offset)
        await self._heard("Add event for scheduled pod", existing, offset)
        if objects:
            await asyncio.sleep(settle)
        recorded: Doc = {"seed": world.seed, "family": world.family, "nodes": nodes, "objects": objects,
                         "existing": existing, "decisions": []}  # fmt: skip
        for pod in world.pods:
            decision = await self._decide(pod)
            if decision is not None:
                recorded["decisions"].append(decision)
                if decision.get("nominated"):  # it goes on trying, and may evict others before it is gone
                    break
        return recorded

    # ---- one decision ----

    async def _decide(self, pod: Doc) -> Doc | None:
        offset = self._log.stat().st_size
        stored = await self._try(self._make(pod))
        if stored is None:
            return None
        provisioner = asyncio.create_task(self._provision(stored))
        try:
            tried, decided = await self._outcome(stored)
        finally:
            provisioner.cancel()
        status = decided.get("status") or {}
        node = decided["spec"].get("nodeName")
        message = None if node else _refusal(status)
        key = f"{stored['metadata']['namespace']}/{stored['metadata']['name']}"
        decision: Doc = {"pod": stored, "node": node, "message": message, "scores": self._scores(offset, key)}
        if status.get("nominatedNodeName") and not node:
            decision["nominated"] = status["nominatedNodeName"]
            decision["victims"] = await self._victims(offset, key)
        elif not node:
            decision["nominated"] = None
        if node and any("persistentVolumeClaim" in volume for volume in stored["spec"].get("volumes", ())):
            decision["claims"] = await self._bound_claims()
        await self._say_more(decision, tried, decided)
        if not node:
            await self._delete(decided)
            await self._forgotten(decided, offset)
        await self._settle_after(decision, decided)
        return decision

    async def _say_more(self, decision: Doc, tried: Doc, decided: Doc) -> None:
        """Add to a decision what only some worlds are about; the pod as it was tried, and once it was decided."""

    async def _settle_after(self, decision: Doc, decided: Doc) -> None:
        """Wait until everybody is done with a decision."""

    async def _victims(self, offset: int, preemptor: str) -> list[str]:
        """Whom the first attempt evicts: its beginning says how many, and each is told of when it is done."""
        async with asyncio.timeout(_PATIENCE):
            while True:
                told = self._told(offset)
                begun = re.search(_EVICTING.format(re.escape(preemptor)), told)
                evicted = re.findall(_EVICTED.format(re.escape(preemptor)), told)
                if begun is not None and len(evicted) >= int(begun[1]):
                    return list(evicted[: int(begun[1])])
                await asyncio.sleep(0.05)

    async def _outcome(self, stored: Doc) -> tuple[Doc, Doc]:
        """The pod as it was when it was first tried, and as of the decision."""
        metadata, tried = stored["metadata"], stored
        selector = f"metadata.name={metadata['name']}"
        async with asyncio.timeout(_PATIENCE):
            query = Query(
                namespace=metadata["namespace"], field_selector=selector, resource_version=metadata["resourceVersion"]
            )
            async for event in self._api.watch(kinds.POD, query):
                if event.type == "BOOKMARK":
                    continue
                if event.doc["spec"].get("nodeName") or _refusal(event.doc.get("status") or {}) is not None:
                    return tried, event.doc
                if not (event.doc.get("status") or {}).get("nominatedNodeName"):  # it is there before a slow bind, too
                    tried = event.doc
        raise AssertionError("the watch ended without a decision")

    async def _forgotten(self, pod: Doc, offset: int) -> None:
        """Wait until the scheduler knows that a pod is gone. One that room was made for may have been bound since."""
        added, deleted, removed = (
            f'"{what} pod" {_as_logged(pod)}'
            for what in ("Add event for scheduled", "Delete event for unscheduled", "Delete event for scheduled")
        )
        async with asyncio.timeout(_PATIENCE):
            told = ""
            while removed not in told and (deleted not in told or added in told):
                await asyncio.sleep(0.05)
                told = self._told(offset)

    async def _heard(self, what: str, docs: Sequence[Doc], offset: int) -> None:
        """Wait until the scheduler has told of all of these, in what it wrote after the offset."""
        waiting = {f'"{what}" {_as_logged(doc)}' for doc in docs}
        async with asyncio.timeout(_PATIENCE):
            while waiting:
                told = self._told(offset)
                waiting = {words for words in waiting if words not in told}
                await asyncio.sleep(0.05 if waiting else 0)

    def _told(self, offset: int) -> str:
        with self._log.open("rb") as log:
            log.seek(offset)
            return log.read().decode(errors="replace")

    def _scores(self, offset: int, key: str) -> dict[str, dict[str, int]]:
        """What the log says of this attempt; the first one, should there be several. (One that failed has none, and a
        later one may have been made before the pod was gone.)"""
        scores: dict[str, dict[str, int]] = {}
        attempt = f'"Attempting to schedule pod" pod="{key}"'
        first = attempt.join(self._told(offset).split(attempt, 2)[:2])
        for line in first.splitlines():
            found = _SCORED.search(line)
            if found and found[1] == key:
                scores.setdefault(found[3], {}).setdefault(found[2], int(found[4]))
        return scores

    async def _bound_claims(self) -> dict[str, str]:
        claims = (await self._api.list(kinds.PERSISTENT_VOLUME_CLAIM, Query(namespace="default"))).items
        return {
            doc["metadata"]["name"]: doc["spec"]["volumeName"]
            for doc in claims
            if "pv.kubernetes.io/bind-completed" in (doc["metadata"].get("annotations") or {})
        }

    # ---- storage ----

    async def _claims_are_bound(self, objects: Sequence[Doc]) -> None:
        """Wait for the claims that name their volume: the volume controller takes its time."""
        named = [doc for doc in objects if doc["kind"] == "PersistentVolumeClaim" and doc["spec"].get("volumeName")]
        async with asyncio.timeout(_PATIENCE):
            while named:
                named = [doc for doc in named if (await self._now(doc))["status"].get("phase") != "Bound"]
                await asyncio.sleep(0.1 if named else 0)

    async def _provision(self, pod: Doc) -> None:
        """Play the provisioner for the pod's claims that a node was selected for, until cancelled."""
        uses = [
            volume["persistentVolumeClaim"]["claimName"]
            for volume in pod["spec"].get("volumes", ())
            if volume["name"].startswith("made")
        ]
        done: set[str] = set()
        while len(done) < len(uses):
            for name in set(uses) - done:
                claim = await self._api.get(kinds.PERSISTENT_VOLUME_CLAIM, "default", name)
                if "volume.kubernetes.io/selected-node" in (claim["metadata"].get("annotations") or {}):
                    await self._try(self._make(_provisioned(claim)))
                    done.add(name)
            await asyncio.sleep(0.1)

    # ---- objects ----

    async def _make_all(self, docs: Sequence[Doc]) -> list[Doc]:
        async def bounded(doc: Doc) -> Doc | None:
            async with self._limit:
                return await self._try(self._make(doc))

        made = [doc for doc in await asyncio.gather(*(bounded(doc) for doc in docs)) if doc is not None]
        return sorted(made, key=lambda doc: int(doc["metadata"]["resourceVersion"]))

    async def _make(self, doc: Doc) -> Doc:
        kind, namespace, name = _address(doc)
        stored = await self._api.perform(Write(Verb.CREATE, kind, namespace, name, doc))
        if doc["kind"] in self.with_status and doc.get("status"):
            stored = await self._api.perform(
                Write(
                    Verb.PATCH,
                    kind,
                    namespace,
                    name,
                    {"status": doc["status"]},
                    subresource="status",
                    patch_type=PatchType.MERGE,
                )
            )
        return {**stored, "apiVersion": doc["apiVersion"], "kind": doc["kind"]}

    async def _now(self, doc: Doc) -> Doc:
        """An object as it is by now: the volume controller has had a look at claims and volumes."""
        kind, namespace, name = _address(doc)
        return {**await self._api.get(kind, namespace, name), "apiVersion": doc["apiVersion"], "kind": doc["kind"]}

    async def _try(self, making: Any) -> Doc | None:
        """None if the API server refuses to store it: not every random pod is a valid one."""
        try:
            made: Doc = await making
            return made
        except (Invalid, AlreadyExists, Forbidden):
            return None

    async def _clean_up(self) -> None:
        offset, gone = self._log.stat().st_size, {}
        for kind in self.made_in_a_world:
            listed = [doc for doc in (await self._api.list(kind)).items if doc["metadata"]["name"] != "kubernetes"]
            await asyncio.gather(
                *(self._delete({**doc, "apiVersion": kind.api_version, "kind": kind.kind}) for doc in listed)
            )
            gone[kind] = listed
        scheduled = [doc for doc in gone[kinds.POD] if doc["spec"].get("nodeName")]
        await self._heard("Delete event for scheduled pod", scheduled, offset)
        await self._heard("Delete event for node", gone[kinds.NODE], offset)
        if any(gone[kind] for kind in self.made_in_a_world if kind not in (kinds.POD, kinds.NODE)):
            await asyncio.sleep(_SETTLE)

    async def _delete(self, doc: Doc) -> None:
        kind, namespace, name = _address(doc)
        async with self._limit:
            try:
                if doc["metadata"].get("finalizers"):
                    body = {"metadata": {"finalizers": None}}
                    await self._api.perform(Write(Verb.PATCH, kind, namespace, name, body))
                await self._api.perform(Write(Verb.DELETE, kind, namespace, name, {"gracePeriodSeconds": 0}))
            except NotFound:
                pass
            except ApiError as error:
                raise AssertionError(f"{kind.kind} {name} cannot be deleted: {error}") from error


def _address(doc: Doc) -> tuple[Kind, str, str]:
    kind = _KINDS.by_kind(doc["apiVersion"], doc["kind"])
    assert kind is not None, doc["kind"]
    return kind, doc["metadata"].get("namespace") or "", doc["metadata"]["name"]


def _as_logged(doc: Doc) -> str:
    """An object as the scheduler's log refers to it."""
    metadata = doc["metadata"]
    return (
        f'pod="{metadata["namespace"]}/{metadata["name"]}"' if "namespace" in metadata else f'node="{metadata["name"]}"'
    )


def _provisioned(claim: Doc) -> Doc:
    metadata, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": metadata["namespace"],
                 "name": metadata["name"], "uid": metadata["uid"]}  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": spec["resources"]["requests"],
            "accessModes": spec["accessModes"],
            "claimRef": reference,
            "storageClassName": spec["storageClassName"],
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": DRIVER, "volumeHandle": name},
        },
    }


def _refusal(status: Doc) -> str | None:
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message") or "")
    return None
