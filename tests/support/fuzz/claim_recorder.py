"""Records decisions about pods with resource claims: claims made for them, allocations before and after.

kube-controller-manager makes claims from templates and gives devices back. A pod that found no node goes before the
next one comes, and the claims that were made for it go with it, as the garbage collector would have it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairlead.client.client import KubeApi
from fairlead.client.port import Query
from fairlead.core.model import kinds
from fairlead.core.model.device_claims import EXTENDED_ANNOTATION
from fairlead.core.model.flow import Verb, Write
from fairlead.errors import NotFound
from tests.support.fuzz.recorder import Recorder

Doc = dict[str, Any]

_ENTRY_KINDS = {"resourceClaimName": "ResourceClaim", "resourceClaimTemplateName": "ResourceClaimTemplate"}
_PATIENCE = 180.0
_GAVE_UP = "timed out trying to allocate devices"


class ClaimRecorder(Recorder):
    made_in_a_world = (
        kinds.POD, kinds.RESOURCE_CLAIM, kinds.RESOURCE_CLAIM_TEMPLATE, kinds.RESOURCE_SLICE, kinds.DEVICE_CLASS,
        kinds.NODE,
    )  # fmt: skip
    with_status = ("ResourceClaim",)

    def __init__(self, api: KubeApi, log: Path) -> None:
        super().__init__(api, log)
        self._stored: set[tuple[str, str]] = set()
        self.pause = 0.2
        """Seconds for the scheduler to hear that devices are free again."""

    async def prepare(self) -> None:
        await super().prepare()
        body = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        await self._api.perform(Write(Verb.PATCH, kinds.NAMESPACE, "", "default", body))

    async def _make(self, doc: Doc) -> Doc:
        made = await super()._make(doc)
        self._stored.add((doc["kind"], doc["metadata"]["name"]))
        return made

    async def _clean_up(self) -> None:
        await super()._clean_up()
        self._stored.clear()

    async def _decide(self, pod: Doc) -> Doc | None:
        """Nothing is recorded of a pod whose claims the API server did not store: it would wait for ever. Nor of one
        for which the scheduler gave up searching: how far it comes in ten seconds depends on the machine, and we come
        to the end."""
        for entry in pod["spec"].get("resourceClaims") or ():
            if any((kind, entry[field]) not in self._stored for field, kind in _ENTRY_KINDS.items() if field in entry):
                return None
        decision = await super()._decide(pod)
        return None if decision is not None and _GAVE_UP in (decision["message"] or "") else decision

    async def _say_more(self, decision: Doc, tried: Doc, decided: Doc) -> None:
        decision["pod"] = tried
        created = [_untouched(doc) for doc in await self._own(tried) if not _is_extended(doc)]
        if created:
            decision["created"] = created
        reason = _reason(decided)
        if not decision["node"] and reason == "SchedulerError":
            decision["reason"] = reason
        status = (decided.get("status") or {}).get("extendedResourceClaimStatus")
        if status:
            decision["extended"] = status

    async def _settle_after(self, decision: Doc, decided: Doc) -> None:
        if not decision["node"]:
            for claim in await self._own(decided):
                await self._delete({**claim, "apiVersion": kinds.RESOURCE_CLAIM.api_version, "kind": "ResourceClaim"})
            await self._reservations_are_dropped(decided["metadata"]["uid"])
            await asyncio.sleep(self.pause)
        decision["allocations"] = {
            doc["metadata"]["name"]: _standing(doc)
            for doc in await self._claims()
            if (doc.get("status") or {}).get("allocation")
        }

    async def _reservations_are_dropped(self, uid: str) -> None:
        async with asyncio.timeout(_PATIENCE):
            while True:
                states = [doc.get("status") or {} for doc in await self._claims()]
                if not any(user["uid"] == uid for status in states for user in status.get("reservedFor") or ()):
                    return
                await asyncio.sleep(0.05)

    async def _own(self, pod: Doc) -> list[Doc]:
        return [
            doc
            for doc in await self._claims()
            if any(owner["uid"] == pod["metadata"]["uid"] for owner in doc["metadata"].get("ownerReferences") or ())
        ]

    async def _claims(self) -> list[Doc]:
        with suppress(NotFound):
            return (await self._api.list(kinds.RESOURCE_CLAIM, Query(namespace="default"))).items
        return []


def _untouched(claim: Doc) -> Doc:
    """A claim as the controller made it."""
    metadata = {name: value for name, value in claim["metadata"].items() if name != "finalizers"}
    return {
        "apiVersion": kinds.RESOURCE_CLAIM.api_version,
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": claim["spec"],
        "status": {},
    }


def _standing(claim: Doc) -> Doc:
    status = claim["status"]
    found: Doc = {"allocation": status["allocation"]}
    if status.get("reservedFor"):
        found["reservedFor"] = [user["name"] for user in status["reservedFor"]]
    if _is_extended(claim):
        found["spec"] = claim["spec"]
    return found


def _is_extended(claim: Doc) -> bool:
    return (claim["metadata"].get("annotations") or {}).get(EXTENDED_ANNOTATION) == "true"


def _reason(pod: Doc) -> str:
    return next(
        (
            condition.get("reason") or ""
            for condition in (pod.get("status") or {}).get("conditions") or ()
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        ),
        "",
    )
