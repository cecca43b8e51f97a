"""question_about: a question about objects, some of which may be there already, as `kubectl diff` is about both.

    objects ─┬─▶ made from nothing (expansion.py) ──────────────────────────────▶ what a changed template would give
             └─▶ applied to what exists, in a Store of its own ─▶ controllers ──▶ which pods stay, come and go

What exists is what the question is about: it is not counted a second time. A pod that runs stays on its node, one that
waits is tried again under its own name, and one that a changed template replaces goes as its controller lets it go.
Neither half decides anything about nodes; the scheduler that is asked does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.assembly.expansion import applied, expand
from fairlead.cluster.controllers.workloads.rollout import desired, is_rolling, limits
from fairlead.core.engine.what_if.sources import sources_of, target_of
from fairlead.core.engine.what_if.workload import Workload, kind_of
from fairlead.core.model import kinds
from fairlead.koordinator.kinds import KOORD_POD_GROUP
from fairlead.volcano.kinds import VC_POD_GROUP

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

DEPENDENTS: tuple[Kind, ...] = (
    kinds.REPLICA_SET, kinds.CONTROLLER_REVISION, kinds.JOB, kinds.POD, kinds.RESOURCE_CLAIM,
    kinds.PERSISTENT_VOLUME_CLAIM, VC_POD_GROUP, KOORD_POD_GROUP,
)  # fmt: skip
"""Kinds of what belongs to an object that exists."""
_ENDED = ("Succeeded", "Failed")


def question_about(
    documents: Sequence[Doc],
    context: Iterable[Doc],
    live: Sequence[Doc],
    *,
    now: float,
    settings: Sequence[object] = (),
    commands: bool = False,
) -> Doc:
    """The fields of a question (core/engine/what_if/answers.py). `live` is the `live_tree` of the documents; with
    `commands` changes of what exists are made by commands, otherwise in the file. Raises ConfigError for what the API
    would refuse."""
    context = list(context)
    if not live:
        return {"objects": expand(documents, context, now=now, settings=settings)}
    after = applied(documents, context, live, now=now, settings=settings)
    known = {doc["metadata"]["uid"] for doc in live}
    counting = (kinds.RESOURCE_QUOTA.kind,)  # of these, what the pods that are there use is taken already
    free = [doc for doc in context if doc["kind"] not in counting and doc["metadata"].get("uid") not in known]
    anew = expand(documents, free, now=now, settings=settings)
    there = {doc["metadata"]["uid"]: doc for doc in live if doc["kind"] == "Pod" and not _has_ended(doc)}
    owners = [doc for doc in after if doc["kind"] in ("Deployment", "StatefulSet")]
    base = _part(after, there, owners, {uid for doc in after if (uid := doc["metadata"].get("uid")) in there})
    uids = {doc["metadata"]["uid"] for doc in live}
    first = [doc for doc in live if uids.isdisjoint(one["uid"] for one in doc["metadata"].get("ownerReferences") or ())]
    question = {**base, "exists": sorted(map(target_of, first)), "anew": _part(anew, there, owners, set())}
    question["anew"]["removes"] = [
        doc for doc in live if doc["kind"] == "PodGroup" and doc["metadata"].get("ownerReferences")
    ]
    return {**question, "commands": commands}


def _part(objects: Sequence[Doc], there: Mapping[str, Doc], owners: Sequence[Doc], kept: set[str]) -> Doc:
    """Objects and pods as they would be after it, and what becomes of the pods that are there."""
    pods = [doc for doc in objects if doc["kind"] == "Pod" and not _has_ended(doc)]
    shown = [_pending(there[uid]) if (uid := doc["metadata"]["uid"]) in kept else doc for doc in pods]
    shown.sort(key=lambda doc: not doc["spec"].get("nodeName"))
    gone = {uid: doc for uid, doc in there.items() if uid not in kept}
    rollouts = list(_rollouts(owners, gone, [doc for doc in pods if doc["metadata"]["uid"] not in kept]))
    rolling = {uid for one in rollouts for uid in one["old"]}
    running = [uid for uid in kept if there[uid]["spec"].get("nodeName")]
    return {
        "objects": [*(doc for doc in objects if doc["kind"] != "Pod" and kind_of(doc) is not None), *shown],
        "replaces": sorted((gone.keys() - rolling) | (kept - set(running))),
        "running": sorted(running),
        "rollouts": rollouts,
    }


def _rollouts(owners: Sequence[Doc], gone: Mapping[str, Doc], new: Sequence[Doc]) -> Iterable[Doc]:
    """The rollouts of Deployments and StatefulSets some of whose pods go and come."""
    leaving, coming = _by_target(list(gone.values())), _by_target(new)
    for owner in owners:
        target = target_of(owner)
        old, made = leaving.get(target, []), coming.get(target, [])
        if not old or not made:
            continue
        numbers: Doc = {"target": target, "replicas": desired(owner), "surge": 0, "unavailable": 1}
        if owner["kind"] == "StatefulSet":
            old, made = (sorted(some, key=_ordinal, reverse=True) for some in (old, made))
            in_turn = owner["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady"
            waits = any(not doc["spec"].get("nodeName") for doc in old)
            numbers |= {"ordered": True, "stuck": in_turn and waits}
        elif is_rolling(owner):
            numbers["surge"], numbers["unavailable"] = limits(owner)
        else:
            continue
        yield numbers | {"old": _uids(old), "new": _uids(made)}


def _by_target(pods: Sequence[Doc]) -> dict[str, list[Doc]]:
    sources = sources_of(Workload.of(pods))
    return {one.target: [pods[at] for at in one.pods] for one in sources}


def _uids(pods: Sequence[Doc]) -> list[str]:
    return [doc["metadata"]["uid"] for doc in pods]


def _ordinal(pod: Doc) -> int:
    return int(pod["metadata"]["name"].rpartition("-")[2])


def _has_ended(pod: Doc) -> bool:
    return (pod.get("status") or {}).get("phase") in _ENDED or bool(pod["metadata"].get("deletionTimestamp"))


def _pending(doc: Doc) -> Doc:
    """A pod that waits as it came, with the claims that were made for it; one that runs as it is."""
    if doc["spec"].get("nodeName"):
        return doc
    listed = (doc.get("status") or {}).get("resourceClaimStatuses")
    return {**doc, "status": {"phase": "Pending", **({"resourceClaimStatuses": listed} if listed else {})}}


# ---- what exists ----


def live_tree(found: Sequence[Doc], listed: Sequence[Doc]) -> list[Doc]:
    """Of objects that exist all that belongs to them. `listed` are all objects of DEPENDENTS in their namespaces."""
    tree = {doc["metadata"]["uid"]: doc for doc in found}
    grown = -1
    while grown != len(tree):
        grown = len(tree)
        for doc in listed:
            if any(one["uid"] in tree for one in doc["metadata"].get("ownerReferences") or ()):
                tree.setdefault(doc["metadata"]["uid"], doc)
    return list(tree.values())


def in_namespace(doc: Doc, namespace: str) -> Doc:
    """The document in the namespace that is meant if it names none."""
    kind = kind_of(doc)
    if doc["metadata"].get("namespace") or (kind is not None and not kind.namespaced):
        return doc
    return {**doc, "metadata": {**doc["metadata"], "namespace": namespace or "default"}}


def named_claims(pods: Iterable[Doc]) -> set[tuple[str, str]]:
    """Namespace and name of the ResourceClaims that pods name, not those that are made for them."""
    return {
        (pod["metadata"]["namespace"], one["resourceClaimName"])
        for pod in pods
        for one in pod["spec"].get("resourceClaims") or ()
        if one.get("resourceClaimName")
    }
