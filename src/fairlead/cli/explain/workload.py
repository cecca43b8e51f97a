"""`fairlead explain deployment NAME` and its like, and `fairlead explain` alone: who waits, grouped by reason.

A workload is as placed as its pods are. They are found by their owners and read from the API; what a waiting pod was
answered stands in its PodScheduled condition, so no scheduler has to be asked, and it works on any cluster.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from fairlead.cli.explain.quota_lacks import quota_lacks
from fairlead.client.port import Query
from fairlead.console.gang_text import lack_lines
from fairlead.core.model import kinds
from fairlead.errors import FairleadError, NotFound
from fairlead.volcano.kinds import VC_JOB

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console

    from fairlead.client.client import KubeApi
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

WORKLOADS: Mapping[str, Kind] = {
    "deployment": kinds.DEPLOYMENT,
    "replicaset": kinds.REPLICA_SET,
    "statefulset": kinds.STATEFUL_SET,
    "daemonset": kinds.DAEMON_SET,
    "job": kinds.JOB,
}
NO_SCHEDULER = "NoScheduler"
"""The reason of the Event by which a cluster of ours says that nobody serves a pod's schedulerName."""
_NOT_CREATED = "not created; `kubectl describe` of the owner says why"
_NOBODY: Mapping[str, Any] = {"placed": 0, "waiting": []}
_NAMED = 5
"""Pods that are named for each reason."""


async def workload_explanation(api: KubeApi, word: str, namespace: str, name: str) -> dict[str, Any]:
    """Where the pods of a workload are, as a document like an Explanation."""
    kind, owner = await _owner(api, word, namespace, name)
    owners = {owner["metadata"]["uid"]}
    if kind is kinds.DEPLOYMENT:
        sets = (await api.list(kinds.REPLICA_SET, Query(namespace=namespace))).items
        owners |= {one["metadata"]["uid"] for one in sets if _owner_uids(one) & owners}
    pods = [one for one in (await api.list(kinds.POD, Query(namespace=namespace))).items if _owner_uids(one) & owners]
    facts = {"workload": kind.kind, "namespace": namespace, "name": name}
    if ended := _ended(owner):
        return {
            "kind": "WorkloadExplanation",
            **facts,
            "verdict": "Completed",
            "ended": ended,
            **_NOBODY,
            "pods": len(pods),
        }
    explained = _summed_up(pods, facts, await _unserved(api, pods), wanted=_wanted(owner))
    missing = sum(len(one["pods"]) for one in explained["waiting"] if one["message"] == _NOT_CREATED)
    template = owner["spec"].get("template")
    if missing and template and (lacks := await quota_lacks(api, namespace, template, missing)):
        explained["lacks"] = lacks
    return explained


async def _owner(api: KubeApi, word: str, namespace: str, name: str) -> tuple[Kind, Doc]:
    """The object of a workload. A job may be a plain one or one of Volcano's."""
    for kind in (WORKLOADS[word], *((VC_JOB,) if word == "job" else ())):
        try:
            return kind, await api.get(kind, namespace, name)
        except NotFound:
            continue
    raise FairleadError(f'{WORKLOADS[word].resource} "{name}" not found in namespace "{namespace}"')


async def waiting_explanation(api: KubeApi, namespace: str) -> dict[str, Any]:
    """Everything that waits in a namespace, or in all of them."""
    pods = (await api.list(kinds.POD, Query(namespace=namespace, field_selector="spec.nodeName="))).items
    living = [one for one in pods if not _has_ended(one)]
    return _summed_up(living, {"namespace": namespace}, await _unserved(api, living))


async def _unserved(api: KubeApi, pods: Sequence[Doc]) -> dict[str, str]:
    """What Events say of pods whose schedulerName nobody serves, by uid."""
    if all(_condition_message(pod) for pod in pods if not pod["spec"].get("nodeName")):
        return {}
    events = (await api.list(kinds.EVENT, Query(field_selector=f"reason={NO_SCHEDULER}"))).items
    return {event["involvedObject"].get("uid", ""): str(event.get("message", "")) for event in events}


def _summed_up(
    pods: Sequence[Doc], facts: dict[str, Any], unserved: Mapping[str, str], *, wanted: int | None = None
) -> dict[str, Any]:
    placed = sum(bool(pod["spec"].get("nodeName")) for pod in pods)
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for pod in pods:
        if not pod["spec"].get("nodeName") and not _has_ended(pod):
            reason = _condition_message(pod) or unserved.get(pod["metadata"]["uid"]) or _untried(pod)
            by_reason[reason].append(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
    missing = max(0, (wanted or 0) - len(pods))
    if missing:
        by_reason[_NOT_CREATED] = [""] * missing
    waits = [{"message": message, "pods": names} for message, names in by_reason.items()]
    waits.sort(key=lambda one: -len(one["pods"]))
    return {
        "kind": "WorkloadExplanation",
        **facts,
        "verdict": "Waits" if waits else "Scheduled",
        "placed": placed,
        "pods": len(pods),
        "waiting": waits,
    }


def _condition_message(pod: Doc) -> str:
    """Why a pod waits, in the words of the scheduler that tried it; "" if nobody did."""
    gates = [one["name"] for one in pod["spec"].get("schedulingGates") or ()]
    if gates:
        return f"held by its scheduling gates: {', '.join(gates)}"
    for one in (pod.get("status") or {}).get("conditions") or ():
        if one["type"] == "PodScheduled" and one["status"] != "True" and one.get("message"):
            return str(one["message"])
    return ""


def _untried(pod: Doc) -> str:
    return f'no scheduler has tried it yet (its schedulerName is "{pod["spec"].get("schedulerName", "")}")'


def _wanted(owner: Doc) -> int | None:
    spec = owner.get("spec") or {}
    if owner.get("kind") != "Job":
        return spec.get("replicas")
    status = owner.get("status") or {}
    over = any(
        one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in status.get("conditions") or ()
    )
    if over or spec.get("suspend"):
        return None
    parallelism, completions = int(spec.get("parallelism", 1)), spec.get("completions")
    return parallelism if completions is None else min(parallelism, int(completions))


def _ended(owner: Doc) -> str:
    """How a job ended; empty if it did not."""
    status = owner.get("status") or {}
    phase = str((status.get("state") or {}).get("phase") or "")
    if phase in ("Completed", "Failed", "Terminated", "Aborted"):
        return phase
    over = (one["type"] for one in status.get("conditions") or () if one["status"] == "True")
    return next((one for one in over if one in ("Complete", "Failed")), "")


def _owner_uids(doc: Doc) -> set[str]:
    return {one["uid"] for one in doc["metadata"].get("ownerReferences") or ()}


def _has_ended(pod: Doc) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def show_workload(console: Console, document: dict[str, Any], *, verbose: bool = False) -> None:
    """Print how many pods have a node, why the others wait, and what would help if the document says it."""
    from fairlead.cli.what_if.text import shortened, show_changes

    if "workload" in document:
        what = f"{document['workload']} {document['namespace']}/{document['name']}"
        if document.get("ended"):
            console.print(f"{what} has ended: {document['ended']}")
            return
        console.print(f"{what}: {document['placed']} of {document['pods']} pods have a node")
    elif not document["waiting"]:
        console.print("nothing waits for a node")
    for index, one in enumerate(document["waiting"]):
        count = len(one["pods"])
        if index or "workload" in document:
            console.print()
        console.print(f"{count} pod{'s'[: count != 1]}: {shortened(one['message'], verbose)}")
        if any(one["pods"]):
            console.print(f"  {_named(one['pods'])}")
    for line in lack_lines(document):
        console.print(line)
    show_changes(console, document)


def _named(names: Iterable[str]) -> str:
    known = [name for name in names if name]
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    return ", ".join(known[:_NAMED]) + more
