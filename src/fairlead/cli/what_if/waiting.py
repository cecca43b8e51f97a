"""The least changes for what waits already: a pod, or a group with all of its pods. Their documents are read from the
API; in the trial they stand for those that wait.

Pods of a Volcano Job that is not let into its queue yet do not exist: they are made from the Job, as its controller
would make them, and belong to the group that exists.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.cli.what_if.asking import Whom, context_of_cluster, put_question
from fairlead.client.port import Query
from fairlead.console.cluster_access import ask_cluster
from fairlead.core.model import kinds
from fairlead.core.model.pod import compile_pod
from fairlead.core.model.shape import Shapes
from fairlead.errors import ApiError
from fairlead.koordinator.kinds import KOORD_POD_GROUP
from fairlead.koordinator.records.gangs import gang_name
from fairlead.volcano.kinds import GROUP_ANNOTATION, VC_JOB, VC_POD_GROUP

if TYPE_CHECKING:
    from fairlead.client.client import KubeApi
    from fairlead.console.scheduler_search import SchedulerChoice
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

_KOORDINATOR = KOORD_POD_GROUP.group


@dataclass(frozen=True, slots=True)
class WaitingObjects:
    """What waits: `objects` as they are, and the uids of the pods among them."""

    objects: list[Doc]
    uids: list[str] = field(default_factory=list)


def changes_for_pod(asked: SchedulerChoice, namespace: str, name: str) -> list[dict[str, Any]]:
    """What would let a waiting pod run, as documents, the cheapest first."""

    async def read(api: KubeApi, _: str) -> WaitingObjects:
        pod = _pending(await api.get(kinds.POD, namespace, name))
        return WaitingObjects([pod], [pod["metadata"]["uid"]])

    return _changes(asked, ask_cluster(read, asked.kubeconfig, asked.context))


def changes_for_group(asked: SchedulerChoice, group: Doc) -> list[dict[str, Any]]:
    """What would let a group run as a whole. `group` is the podGroup of its explanation: apiGroup, namespace, name."""

    async def read(api: KubeApi, _: str) -> WaitingObjects:
        return await _group(api, group["apiGroup"], group["namespace"], group["name"])

    found = ask_cluster(read, asked.kubeconfig, asked.context)
    return _changes(asked, found) if any(one["kind"] == "Pod" for one in found.objects) else []


def _changes(asked: SchedulerChoice, waiting: WaitingObjects) -> list[dict[str, Any]]:
    question = {
        "kind": "SimulateQuestion",
        "changes": True,
        "objects": waiting.objects,
        "replaces": waiting.uids,
    }
    answer = put_question(Whom(asked), question)
    found: list[dict[str, Any]] = answer.get("changes", [])
    return found


async def _group(api: KubeApi, group_api: str, namespace: str, name: str) -> WaitingObjects:
    """A group and those of its pods that have no node."""
    groups = [doc for kind in _group_kinds(group_api) if (doc := await _found(api, kind, namespace, name)) is not None]
    pods = [
        _pending(doc)
        for doc in (await api.list(kinds.POD, Query(namespace=namespace))).items
        if not doc["spec"].get("nodeName") and _is_member(doc, group_api, name)
    ]
    claims = [doc for pod in pods for doc in await _claims(api, pod)]
    if not pods and group_api == VC_POD_GROUP.group and groups:
        return WaitingObjects([*groups[:1], *await _pods_to_come(api, groups[0])])
    return WaitingObjects([*groups[:1], *claims, *pods], [pod["metadata"]["uid"] for pod in pods])


def _group_kinds(group_api: str) -> Iterable[Kind]:
    return (kind for kind in kinds.served_kinds() if kind.kind == "PodGroup" and kind.group == group_api)


async def _found(api: KubeApi, kind: Kind, namespace: str, name: str) -> Doc | None:
    try:
        doc = await api.get(kind, namespace, name)
    except ApiError:
        return None
    return {"apiVersion": kind.api_version, "kind": kind.kind, **doc}


def _pending(doc: Doc) -> Doc:
    """A pod as it came, with the claims that were made for it."""
    claims = (doc.get("status") or {}).get("resourceClaimStatuses")
    status = {"phase": "Pending", **({"resourceClaimStatuses": claims} if claims else {})}
    return {"apiVersion": "v1", "kind": "Pod", **doc, "status": status}


def _is_member(doc: Doc, group_api: str, name: str) -> bool:
    pod = compile_pod({"apiVersion": "v1", "kind": "Pod", **doc}, Shapes())
    if group_api == _KOORDINATOR:
        return gang_name(pod) == name
    return pod.group_ref is not None and pod.group_ref.api == group_api and pod.group_ref.name == name


async def _claims(api: KubeApi, pod: Doc) -> list[Doc]:
    """The claims that a pod may get devices by, so that a smaller one can be tried."""
    listed = (pod["status"].get("resourceClaimStatuses") or ()) if pod["spec"].get("resourceClaims") else ()
    names = [one["resourceClaimName"] for one in listed if one.get("resourceClaimName")]
    found = [await _found(api, kinds.RESOURCE_CLAIM, pod["metadata"]["namespace"], name) for name in names]
    return [doc for doc in found if doc is not None]


async def _pods_to_come(api: KubeApi, group: Doc) -> list[Doc]:
    """The pods that a Volcano Job will make for its group."""
    from fairlead.assembly.expansion import expand

    metadata = group["metadata"]
    owner = next((one for one in metadata.get("ownerReferences") or () if one["kind"] == "Job"), None)
    job = None if owner is None else await _found(api, VC_JOB, metadata["namespace"], owner["name"])
    if job is None:
        return []
    plain = {
        **job,
        "metadata": {
            key: job["metadata"][key]
            for key in ("name", "namespace", "labels", "annotations")
            if key in job["metadata"]
        },
    }
    plain.pop("status", None)
    made = expand([plain], await context_of_cluster(api, [plain]), now=time.time())
    return [_of_group(doc, metadata["name"]) for doc in made if doc["kind"] == "Pod"]


def _of_group(pod: Doc, group: str) -> Doc:
    annotations = {**(pod["metadata"].get("annotations") or {}), GROUP_ANNOTATION: group}
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}
