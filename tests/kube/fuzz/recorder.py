"""Runs a random cluster through the real kube-apiserver and kube-scheduler, and writes down what was decided.

The line that comes out is a recording as `fairlead replay` reads it. Scores are read from the scheduler's log, which at
level 10 prints every plugin's score of every feasible node. Nodes and existing pods are ordered by resourceVersion,
which is the order in which the scheduler came to know them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairlead.api.client import KubeApi
from fairlead.errors import AlreadyExists, ApiError, Invalid, NotFound
from fairlead.model import kinds
from fairlead.model.flow import PatchType, Verb, Write
from fairlead.model.kinds import Kind, Registry
from tests.kube.fuzz.worlds import NAMESPACES, PRIORITIES, World

Doc = dict[str, Any]

_SCORED = re.compile(r'"Plugin scored node for pod" pod="([^"]+)" plugin="([^"]+)" node="([^"]+)" score=(\d+)')
_AT_ONCE = 32
_SETTLE = 0.4
"""Seconds for the scheduler to hear of what was made; kinds other than pods come by watches of their own."""
_KINDS = Registry()


class Recorder:
    def __init__(self, api: KubeApi, log: Path) -> None:
        self._api = api
        self._log = log
        self._limit = asyncio.Semaphore(_AT_ONCE)

    async def prepare(self) -> None:
        """What every cluster has: namespaces and priority classes."""
        for name in NAMESPACES[1:]:
            labels = {"team": name[-1]}
            await self._try(self._make({"apiVersion": "v1", "kind": "Namespace",
                                        "metadata": {"name": name, "labels": labels}}))  # fmt: skip
        for value in PRIORITIES:
            await self._try(self._make({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                                        "metadata": {"name": f"p{value}"}, "value": value}))  # fmt: skip

    async def record(self, world: World) -> Doc:
        try:
            return await self._record(world)
        finally:
            await self._clean_up()

    async def _record(self, world: World) -> Doc:
        nodes = await self._make_all(world.nodes)
        objects = await self._make_all(world.objects)
        await asyncio.sleep(_SETTLE)
        existing = await self._make_all(world.existing)
        objects = [await self._now(doc) for doc in objects]
        await asyncio.sleep(_SETTLE)
        recorded: Doc = {"seed": world.seed, "family": world.family, "nodes": nodes, "objects": objects,
                         "existing": existing, "decisions": []}  # fmt: skip
        there = list(existing)
        for pod in world.pods:
            decision = await self._decide(pod, there)
            if decision is not None:
                recorded["decisions"].append(decision)
                gone = set(decision.get("victims") or ())
                there = [doc for doc in there if doc["metadata"]["name"] not in gone]
                there += [decision["pod"]] if decision["node"] else []
        return recorded

    # ---- one decision ----

    async def _decide(self, pod: Doc, there: Sequence[Doc]) -> Doc | None:
        offset = self._log.stat().st_size
        stored = await self._try(self._make(pod))
        if stored is None:
            return None
        decided = await self._outcome(stored)
        status = decided.get("status") or {}
        node = decided["spec"].get("nodeName")
        message = None if node else _refusal(status)
        decision: Doc = {
            "pod": stored, "node": node, "message": message,
            "scores": self._scores(offset, f"{stored['metadata']['namespace']}/{stored['metadata']['name']}"),
        }  # fmt: skip
        if status.get("nominatedNodeName") and not node:
            await asyncio.sleep(_SETTLE)
            left = {doc["metadata"]["uid"] for doc in (await self._api.list(kinds.POD)).items}
            decision["nominated"] = status["nominatedNodeName"]
            decision["victims"] = [d["metadata"]["name"] for d in there if d["metadata"]["uid"] not in left]
        elif not node:
            decision["nominated"] = None
        if node and any("persistentVolumeClaim" in volume for volume in stored["spec"].get("volumes", ())):
            decision["claims"] = await self._bound_claims()
        if not node:
            await self._delete(decided)
            await asyncio.sleep(_SETTLE / 4)
        return decision

    async def _outcome(self, stored: Doc) -> Doc:
        """The pod as of the first decision about it."""
        metadata = stored["metadata"]
        selector = f"metadata.name={metadata['name']}"
        async with asyncio.timeout(60):
            async for event in self._api.watch(
                kinds.POD, namespace=metadata["namespace"], field_selector=selector,
                resource_version=metadata["resourceVersion"],
            ):  # fmt: skip
                if event.type == "BOOKMARK":
                    continue
                if event.doc["spec"].get("nodeName") or _refusal(event.doc.get("status") or {}) is not None:
                    return event.doc
        raise AssertionError("the watch ended without a decision")

    def _scores(self, offset: int, key: str) -> dict[str, dict[str, int]]:
        """What the log says of this attempt; the first one, should there be several."""
        scores: dict[str, dict[str, int]] = {}
        with self._log.open("rb") as log:
            log.seek(offset)
            for line in log.read().decode(errors="replace").splitlines():
                found = _SCORED.search(line)
                if found and found[1] == key:
                    scores.setdefault(found[3], {}).setdefault(found[2], int(found[4]))
        return scores

    async def _bound_claims(self) -> dict[str, str]:
        claims = (await self._api.list(kinds.PERSISTENT_VOLUME_CLAIM, namespace="default")).items
        return {
            doc["metadata"]["name"]: doc["spec"]["volumeName"]
            for doc in claims
            if "pv.kubernetes.io/bind-completed" in (doc["metadata"].get("annotations") or {})
        }

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
        if doc["kind"] == "PodDisruptionBudget":
            stored = await self._api.perform(
                Write(Verb.PATCH, kind, namespace, name, {"status": doc["status"]}, subresource="status",
                      patch_type=PatchType.MERGE)
            )  # fmt: skip
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
        except (Invalid, AlreadyExists):
            return None

    async def _clean_up(self) -> None:
        for kind in (kinds.POD, kinds.PERSISTENT_VOLUME_CLAIM, kinds.PERSISTENT_VOLUME, kinds.STORAGE_CLASS,
                     kinds.SERVICE, kinds.POD_DISRUPTION_BUDGET, kinds.NODE):  # fmt: skip
            listed = (await self._api.list(kind)).items
            await asyncio.gather(*(self._delete({**doc, "apiVersion": kind.api_version, "kind": kind.kind})
                                   for doc in listed if doc["metadata"]["name"] != "kubernetes"))  # fmt: skip
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


def _refusal(status: Doc) -> str | None:
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message") or "")
    return None
