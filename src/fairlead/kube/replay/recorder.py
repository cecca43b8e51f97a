"""Recorder: watches a cluster and writes down each decision that some scheduler made in it, as a recording has them.

It gets and keeps all that scheduling reads. When a pod that waited has a node, or is newly refused, the cluster
as it stood becomes one scenario with one decision, complete in itself. What the API does not show is left out and said
so: `partial` means that besides the chosen node there may have been others, and that victims are not known.

The API shows bindings in the order in which they were written. A scheduler that decides faster than it binds may have
known more of the pods before, so a busy cluster's recording is less exact than a quiet one's; of our own decisions
commit_order.py knows better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.core.model import kinds
from fairlead.core.model.flow import Happened, Watch

if TYPE_CHECKING:
    from fairlead.core.model.flow import Change, Doc
    from fairlead.core.model.kinds import Kind

Key = tuple[str, str]
"""Namespace and name."""

OBJECTS: tuple[Kind, ...] = (
    kinds.NAMESPACE, kinds.SERVICE, kinds.POD_DISRUPTION_BUDGET, kinds.REPLICA_SET, kinds.STATEFUL_SET,
    kinds.REPLICATION_CONTROLLER, kinds.STORAGE_CLASS, kinds.CSI_DRIVER, kinds.CSI_NODE, kinds.CSI_STORAGE_CAPACITY,
    kinds.VOLUME_ATTACHMENT, kinds.PERSISTENT_VOLUME, kinds.PERSISTENT_VOLUME_CLAIM, kinds.DEVICE_CLASS,
    kinds.RESOURCE_SLICE, kinds.RESOURCE_CLAIM,
)  # fmt: skip
WATCHES = (
    Watch(kinds.NODE),
    Watch(kinds.POD),
    *(Watch(kind, optional=True) for kind in OBJECTS),
)
_STORAGE = (kinds.PERSISTENT_VOLUME, kinds.PERSISTENT_VOLUME_CLAIM)
_DEVICES = (kinds.RESOURCE_CLAIM,)


@dataclass(slots=True)
class DecisionRecorder:
    """`take_changes` takes what happened and gives the scenarios that came of it. Pods that were refused before the
    first change are no news; a pod that is bound later without having been seen waiting was not scheduled."""

    made: int = 0
    _tables: dict[Kind, dict[Key, Doc]] = field(default_factory=dict)
    _waiting: dict[str, _Waiting] = field(default_factory=dict)
    _seated: dict[str, Doc] = field(default_factory=dict)

    def begin(self, changes: Iterable[Change]) -> None:
        """The cluster as it is. Pods come in the order of their resourceVersions, which is the best guess at the order
        in which the scheduler came to know them."""
        for change in sorted(changes, key=lambda change: _version(change.doc)):
            for _ in self._take(change):
                pass

    def take_changes(self, changes: Iterable[Change]) -> list[Doc]:
        return [scenario for change in changes for scenario in self._take(change)]

    def _take(self, change: Change) -> Iterator[Doc]:
        doc = _typed(change.kind, change.doc)
        if change.kind is kinds.POD:
            yield from self._take_pod(change.happened, doc)
            return
        table = self._tables.setdefault(change.kind, {})
        if change.gone:
            table.pop(_key(doc), None)
        else:
            table[_key(doc)] = doc

    # ---- pods ----

    def _take_pod(self, happened: Happened, doc: Doc) -> Iterator[Doc]:
        uid = doc["metadata"]["uid"]
        if happened is Happened.DELETED or doc.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            self._waiting.pop(uid, None)
            self._seated.pop(uid, None)
        elif doc["spec"].get("nodeName"):
            before = self._waiting.pop(uid, None)
            if before is not None:
                decision: Doc = {"node": doc["spec"]["nodeName"], "message": None, "partial": True}
                yield self._scenario(before, decision | self._allocations(doc))
            self._seated[uid] = doc
        else:
            yield from self._take_waiting(uid, doc)

    def _take_waiting(self, uid: str, doc: Doc) -> Iterator[Doc]:
        before, refusal = self._waiting.get(uid), _refusal(doc)
        if before is not None and refusal is not None and refusal != _refusal(before.doc):
            nominated = doc["status"].get("nominatedNodeName") or None
            decision: Doc = {"node": None, "message": refusal, "nominated": nominated}
            yield self._scenario(before, decision if nominated is None else {**decision, "partial": True})
        self._waiting[uid] = _Waiting(doc, self._storage_for(doc))

    def _storage_for(self, pod: Doc) -> dict[Kind, dict[Key, Doc]]:
        """Volumes and claims as they stand, if the pod has claims: binding them is part of scheduling it, so that they
        look different once it has its node."""
        volumes = pod["spec"].get("volumes") or ()
        taken = _STORAGE if any("persistentVolumeClaim" in v or "ephemeral" in v for v in volumes) else ()
        if pod["spec"].get("resourceClaims"):
            taken = (*taken, *_DEVICES)
        return {kind: dict(self._tables.get(kind, {})) for kind in taken}

    def _allocations(self, pod: Doc) -> Doc:
        """What the resource claims of a pod were given, if the watch has shown all of it."""
        namespace, claims = pod["metadata"].get("namespace") or "", self._tables.get(kinds.RESOURCE_CLAIM, {})
        made = {one["name"]: one.get("resourceClaimName") for one in pod["status"].get("resourceClaimStatuses") or ()}
        entries = pod["spec"].get("resourceClaims") or ()
        names = [entry.get("resourceClaimName") or made.get(entry["name"]) for entry in entries]
        found = {
            name: doc["status"]["allocation"]
            for name in names
            if name and (doc := claims.get((namespace, name), {})).get("status", {}).get("allocation")
        }
        if not found or len(found) < len(set(filter(None, names))):
            return {}
        return {"allocations": {name: {"allocation": allocation} for name, allocation in found.items()}}

    def _promised(self, *, besides: str) -> list[Doc]:
        """Other pods that wait for the room that was made for them: schedulers keep it for them."""
        others = (waiting.doc for uid, waiting in self._waiting.items() if uid != besides)
        return [doc for doc in others if doc.get("status", {}).get("nominatedNodeName")]

    # ---- the scenario ----

    def _scenario(self, before: _Waiting, decision: Doc) -> Doc:
        self.made += 1
        tables = {**self._tables, **(before.storage if decision["node"] is not None else {})}
        return {
            "recorded": True,
            "seed": self.made,
            "family": before.doc["spec"].get("schedulerName") or "default-scheduler",
            "nodes": sorted(tables.get(kinds.NODE, {}).values(), key=_version),
            "objects": [doc for kind in OBJECTS for doc in tables.get(kind, {}).values()],
            "existing": list(self._seated.values()),
            "waiting": self._promised(besides=before.doc["metadata"]["uid"]),
            "decisions": [{"pod": before.doc, "scores": {}, **decision}],
        }


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A pod as it was last seen without a node, and volumes and claims as they were then, if it has any."""

    doc: Doc
    storage: dict[Kind, dict[Key, Doc]]


def explains(explanation: Doc, decision: Doc) -> bool:
    """Whether an explanation is about this very decision: the scheduler may have tried the pod again since."""
    if explanation["pod"]["uid"] != decision["pod"]["metadata"]["uid"]:
        return False
    if decision["node"] is None:
        return bool(explanation.get("message") == decision["message"])
    return bool(explanation.get("node") == decision["node"])


def with_explanation(scenario: Doc, explanation: Doc) -> Doc:
    """A scenario of one of our own decisions: with the scores that are known of it and what extenders answered."""
    (decision,) = scenario["decisions"]
    decision = with_scores(decision, explanation)
    if explanation.get("extenders"):
        decision = {**decision, "extenders": explanation["extenders"]}
    return {**scenario, "by": "fairlead", "decisions": [decision]}


def with_scores(decision: Doc, explanation: Doc) -> Doc:
    """A decision with what the scheduler that made it says of it: which is all, if no more than two nodes were
    feasible, and else the scores of the best two."""
    chosen, second = explanation.get("chosen"), explanation.get("runnerUp")
    if chosen is None or decision["node"] is None or not explains(explanation, decision):
        return decision
    named = [scored for scored in (chosen, second) if scored is not None and scored["scores"]]
    known = {scored["node"]: scored["scores"] for scored in named}
    feasible = explanation["nodes"]["feasible"]
    complete = feasible == 1 or feasible == len(known)
    rest = {key: value for key, value in decision.items() if key != "partial" or not complete}
    return {**rest, "scores": known if feasible > 1 else {}}


def _refusal(pod: Doc) -> str | None:
    """Why a scheduler found no node. Gates and errors are no decisions."""
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition.get("message") or "" if condition.get("reason") == "Unschedulable" else None
    return None


def _typed(kind: Kind, doc: Doc) -> Doc:
    """The document with its type, and without what only the API server needs."""
    metadata = {key: value for key, value in doc["metadata"].items() if key != "managedFields"}
    return {**doc, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}


def _key(doc: Doc) -> Key:
    return doc["metadata"].get("namespace") or "", doc["metadata"]["name"]


def _version(doc: Doc) -> int:
    version = doc["metadata"].get("resourceVersion") or "0"
    return int(version) if version.isdigit() else 0
