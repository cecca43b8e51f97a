"""The least changes for what waits already: a pod, a group, or any owner of pods. The question is `simulate`'s,
about the objects as they are in the cluster: the owner of a waiting pod is asked about with all of its pods, because a
change is made in its template and holds for all of them.

Changes are commands then, and not edits of a file that nobody named.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairlead.assembly.applying import as_written
from fairlead.assembly.questions import named_claims
from fairlead.cli.what_if.asking import Whom, listed_objects, live_object, put_question
from fairlead.console.cluster_access import ask_cluster
from fairlead.core.model import kinds
from fairlead.core.model.pod import compile_pod
from fairlead.core.model.shape import Shapes
from fairlead.koordinator.kinds import KOORD_POD_GROUP
from fairlead.koordinator.records.gangs import gang_name

if TYPE_CHECKING:
    from fairlead.client.client import KubeApi
    from fairlead.console.scheduler_search import SchedulerChoice
    from fairlead.core.model.flow import Doc

_KOORDINATOR = KOORD_POD_GROUP.group


def changes_for(asked: SchedulerChoice, kind: kinds.Kind, namespace: str, name: str) -> Doc:
    """What would let an object's pods run that wait: `changes`, the cheapest first, and how many were `tried`. An empty
    answer if it has no pods."""

    async def read(api: KubeApi, _: str) -> list[Doc]:
        about = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"namespace": namespace, "name": name}}
        found = await live_object(api, about)
        if found is None:
            return []
        if kind.kind == "PodGroup":
            return await _written(api, [found, *await _members(api, kind.group, namespace, name)])
        return await _written(api, [found])

    return _changes(asked, ask_cluster(read, asked.kubeconfig, asked.context))


def changes_for_group(asked: SchedulerChoice, group: Doc) -> Doc:
    """`changes_for` a group, given as the podGroup of its explanation: apiGroup, namespace, name."""
    namespace, name = group["namespace"], group["name"]

    async def read(api: KubeApi, _: str) -> list[Doc]:
        known = [kind for kind in kinds.served_kinds() if kind.kind == "PodGroup" and kind.group == group["apiGroup"]]
        found = [doc for kind in known if (doc := await live_object(api, _named(kind, namespace, name))) is not None]
        return await _written(api, [*found[:1], *await _members(api, group["apiGroup"], namespace, name)])

    return _changes(asked, ask_cluster(read, asked.kubeconfig, asked.context))


def _changes(asked: SchedulerChoice, documents: Sequence[Doc]) -> Doc:
    if not documents:
        return {}
    question = {"kind": "SimulateQuestion", "changes": True, "commands": True}
    answer = put_question(Whom(asked), question, documents)
    return {field: answer[field] for field in ("changes", "tried", "exists") if field in answer}


async def _written(api: KubeApi, objects: Sequence[Doc]) -> list[Doc]:
    """The objects that somebody wrote from which these came, each once, with the claims that they name."""
    found: dict[str, Doc] = {}
    for one in objects:
        top = await _origin(api, one)
        found.setdefault(top["metadata"]["uid"], top)
        if top["kind"] == "Pod":
            for namespace, name in sorted(named_claims([top])):
                claim = await live_object(api, _named(kinds.RESOURCE_CLAIM, namespace, name))
                if claim is not None:
                    found.setdefault(claim["metadata"]["uid"], claim)
    return [as_written(doc) for doc in found.values()]


async def _origin(api: KubeApi, doc: Doc) -> Doc:
    """The object itself, or its controller, and so on."""
    namespace = doc["metadata"].get("namespace", "")
    owner = next((one for one in doc["metadata"].get("ownerReferences") or () if one.get("controller")), None)
    if owner is None or owner["kind"] in ("CronJob", "Node"):
        return doc
    about = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    above = await live_object(api, {**about, "metadata": {"namespace": namespace, "name": owner["name"]}})
    return doc if above is None else await _origin(api, above)


async def _members(api: KubeApi, group_api: str, namespace: str, name: str) -> list[Doc]:
    pods = await listed_objects(api, kinds.POD, namespace)
    return [doc for doc in pods if _is_member(doc, group_api, name)]


def _is_member(doc: Doc, group_api: str, name: str) -> bool:
    pod = compile_pod(doc, Shapes())
    if group_api == _KOORDINATOR:
        return gang_name(pod) == name
    return pod.group_ref is not None and pod.group_ref.api == group_api and pod.group_ref.name == name


def _named(kind: kinds.Kind, namespace: str, name: str) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": name}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
