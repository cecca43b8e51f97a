"""pods/eviction: a delete that asks the pod's disruption budget first.

A budget that allows a disruption is charged for it and remembers the pod until the disruption controller has seen it
go; a budget that allows none answers 429, and kubectl drain tries again. Pods that have ended or do not run yet, and
pods that are not ready under a budget that does not protect such, go without asking. Everything is one batch: the
charge and the delete happen both or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.cluster.store.objects import metadata_of, private_copy
from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.selectors import selector_from_document
from fairlead.core.model.times import timestamp
from fairlead.errors import BadRequest, Forbidden, MethodNotAllowed, TooManyRequests

if TYPE_CHECKING:
    from fairlead.cluster.store.store import Store
    from fairlead.core.model.flow import Doc

MOST_DISRUPTED = 2000
RETRY_SECONDS = 10.0
VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."


def evict(store: Store, write: Write) -> Doc:
    """Evict the pod, or raise an ApiError and change nothing."""
    if write.verb is not Verb.CREATE or write.kind is not kinds.POD:
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    body = private_copy(write.body)
    if metadata_of(body).get("name") not in (None, "", write.name):
        raise BadRequest("name in URL does not match name in Eviction object")
    options = body.get("deleteOptions") or {}
    if not isinstance(options, dict):
        raise BadRequest('Eviction in version "v1" cannot be handled as a Eviction: deleteOptions must be an object')
    pod = store.read(kinds.POD, write.namespace, write.name)
    dry_run = bool(write.params.get("dryRun") or options.get("dryRun"))
    budget = None if _goes_unasked(pod) else _budget_of(store, pod)
    if budget is not None and not _unprotected(pod, budget):
        _charge(store, pod, budget, dry_run=dry_run)
    if dry_run:
        return _success()
    if "deletionTimestamp" not in pod["metadata"] and not _goes_unasked(pod):
        _mark(store, pod)
    store.perform(Write(Verb.DELETE, kinds.POD, write.namespace, write.name, body=options))
    return _success()


def _success() -> Doc:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _goes_unasked(pod: Doc) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _budget_of(store: Store, pod: Doc) -> Doc | None:
    metadata = pod["metadata"]
    found = [
        budget
        for budget in store.list(kinds.POD_DISRUPTION_BUDGET, metadata["namespace"])
        if _covers(budget, metadata.get("labels") or {})
    ]
    if len(found) > 1:
        raise BadRequest(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    return found[0] if found else None


def _covers(budget: Doc, labels: dict[str, str]) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    return selector is not None and selector_from_document(selector).matches(labels)


def _is_ready(pod: Doc) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def _unprotected(pod: Doc, budget: Doc) -> bool:
    """Whether a pod that is not ready may go: always, or when the budget is met without it."""
    if _is_ready(pod):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


def _charge(store: Store, pod: Doc, budget: Doc, *, dry_run: bool) -> None:
    """Take one disruption from the budget, or refuse."""
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    allowed, disrupted = status.get("disruptionsAllowed", 0), status.get("disruptedPods") or {}
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _violation(f"The disruption budget {name} is still being processed by the server.", RETRY_SECONDS)
    if allowed < 0:
        raise _refused(budget, "pdb disruptions allowed is negative")
    if len(disrupted) > MOST_DISRUPTED:
        raise _refused(budget, "DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    if allowed == 0:
        raise _violation(
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods and has"
            f" {status.get('currentHealthy', 0)} currently"
        )
    if dry_run:
        return
    charged = {
        **status,
        "disruptionsAllowed": allowed - 1,
        "disruptedPods": {**disrupted, pod["metadata"]["name"]: timestamp(store.clock())},
    }
    namespace = budget["metadata"]["namespace"]
    body = {**budget, "status": charged}
    store.perform(Write(Verb.UPDATE, kinds.POD_DISRUPTION_BUDGET, namespace, name, body=body, subresource="status"))


def _violation(why: str, retry_after: float | None = None) -> TooManyRequests:
    """With a time to wait, clients wait by themselves; without one, the client decides."""
    cause = {"reason": "DisruptionBudget", "message": why}
    return TooManyRequests(VIOLATES, details={"causes": [cause]}, retry_after=retry_after)


def _refused(budget: Doc, why: str) -> Forbidden:
    name = budget["metadata"]["name"]
    return Forbidden(
        f'poddisruptionbudgets.policy "{name}" is forbidden: {why}',
        details={"name": name, "group": "policy", "kind": "poddisruptionbudgets"},
    )


def _mark(store: Store, pod: Doc) -> None:
    """The condition by which controllers and users see why the pod went."""
    status = pod.get("status") or {}
    condition: dict[str, Any] = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastTransitionTime": timestamp(store.clock()),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    others = [one for one in status.get("conditions") or () if one.get("type") != "DisruptionTarget"]
    body = {**pod, "status": {**status, "conditions": [*others, condition]}}
    metadata = pod["metadata"]
    store.perform(
        Write(Verb.UPDATE, kinds.POD, metadata["namespace"], metadata["name"], body=body, subresource="status")
    )
