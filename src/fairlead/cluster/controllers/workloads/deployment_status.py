"""What a Deployment says of itself: counts, and the conditions Available, Progressing and ReplicaFailure.

`kubectl rollout status` and `kubectl wait` read nothing else. Reasons and messages are those that people search for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.cluster.controllers.workloads.rollout import desired, limits, reported, total
from fairlead.cluster.controllers.writes import condition
from fairlead.core.model.times import seconds_of, timestamp

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

NO_DEADLINE = 2**31 - 1


def deployment_status(deployment: Doc, new: Doc | None, old: Sequence[Doc]) -> Doc:
    """The counts; conditions are added by `judged`."""
    everything = [*old] if new is None else [new, *old]
    available = sum(reported(one, "availableReplicas") for one in everything)
    status = {
        "observedGeneration": deployment["metadata"].get("generation") or 0,
        "replicas": sum(reported(one, "replicas") for one in everything),
        "updatedReplicas": reported(new, "replicas"),
        "readyReplicas": sum(reported(one, "readyReplicas") for one in everything),
        "availableReplicas": available,
        "unavailableReplicas": max(0, total(everything) - available),
        "terminatingReplicas": sum(reported(one, "terminatingReplicas") for one in everything),
    }
    collisions = (deployment.get("status") or {}).get("collisionCount")
    return status if collisions is None else {**status, "collisionCount": collisions}


def is_complete(deployment: Doc, status: Doc) -> bool:
    replicas = desired(deployment)
    return bool(
        status["updatedReplicas"] == status["replicas"] == status["availableReplicas"] == replicas
        and status["observedGeneration"] >= (deployment["metadata"].get("generation") or 0)
    )


def judged(deployment: Doc, new: Doc | None, status: Doc, failure: Doc | None, now: float) -> list[Doc]:
    """`status.conditions` for these counts. `failure` is a ReplicaFailure of one of the ReplicaSets."""
    conditions = {one["type"]: one for one in (deployment.get("status") or {}).get("conditions") or ()}
    _put(conditions, _availability(deployment, status), now)
    progress = _progress(deployment, new, status, now)
    if deadline_of(deployment) is None:
        conditions.pop("Progressing", None)
    elif progress is not None:
        _put(conditions, progress, now)
    conditions.pop("ReplicaFailure", None)
    if failure is not None:
        conditions["ReplicaFailure"] = {**failure, "lastUpdateTime": failure.get("lastTransitionTime")}
    return list(conditions.values())


def deadline_of(deployment: Doc) -> float | None:
    """Seconds without progress after which the rollout has failed."""
    seconds = deployment["spec"].get("progressDeadlineSeconds")
    return None if seconds is None or seconds == NO_DEADLINE else float(seconds)


def _availability(deployment: Doc, status: Doc) -> Doc:
    if status["availableReplicas"] >= desired(deployment) - limits(deployment)[1]:
        return _condition("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    return _condition(
        "Available", "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
    )


def _progress(deployment: Doc, new: Doc | None, status: Doc, now: float) -> Doc | None:
    known = condition(deployment, "Progressing")
    reason = (known or {}).get("reason")
    if deployment["spec"].get("paused"):
        return _condition("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused")
    if reason == "DeploymentPaused":
        return _condition("Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed")
    if reason == "NewReplicaSetAvailable" and status["replicas"] == status["updatedReplicas"]:
        return None
    name = f'ReplicaSet "{new["metadata"]["name"]}"' if new else f'Deployment "{deployment["metadata"]["name"]}"'
    if is_complete(deployment, status):
        return _condition("Progressing", "True", "NewReplicaSetAvailable", f"{name} has successfully progressed.")
    if _moved(deployment.get("status") or {}, status):
        return _condition("Progressing", "True", "ReplicaSetUpdated", f"{name} is progressing.")
    if known is not None and _timed_out(deployment, known, now):
        return _condition("Progressing", "False", "ProgressDeadlineExceeded", f"{name} has timed out progressing.")
    return None


def _moved(before: Doc, after: Doc) -> bool:
    """Whether a rollout came closer to its end."""

    def old(field: str) -> int:
        return int(before.get(field) or 0)

    gained = any(after[field] > old(field) for field in ("updatedReplicas", "readyReplicas", "availableReplicas"))
    return gained or bool(after["replicas"] - after["updatedReplicas"] < old("replicas") - old("updatedReplicas"))


def _timed_out(deployment: Doc, progress: Doc, now: float) -> bool:
    if progress.get("reason") in ("NewReplicaSetAvailable", "DeploymentPaused"):
        return False
    due = gives_up_at(deployment, progress)
    return due is not None and due <= now


def gives_up_at(deployment: Doc, progress: Doc) -> float | None:
    deadline = deadline_of(deployment)
    since = progress.get("lastUpdateTime")
    return None if deadline is None or not since else seconds_of(since) + deadline


def _condition(type_: str, status: str, reason: str, message: str) -> Doc:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def _put(conditions: dict[str, Doc], new: Doc, now: float) -> None:
    """Set a condition; times move only if something changed (for progress: at every sign of it)."""
    old = conditions.get(new["type"])
    is_news = old is None or (old["status"], old["reason"]) != (new["status"], new["reason"])
    if not is_news and new["reason"] != "ReplicaSetUpdated":
        return
    since = old["lastTransitionTime"] if old is not None and old["status"] == new["status"] else timestamp(now)
    conditions.pop(new["type"], None)  # what is new comes last
    conditions[new["type"]] = {**new, "lastUpdateTime": timestamp(now), "lastTransitionTime": since}


def founded(conditions: Sequence[Doc], name: str, now: float) -> list[Doc]:
    """Conditions after the ReplicaSet of the current template was created."""
    by_type = {one["type"]: one for one in conditions}
    created = _condition("Progressing", "True", "NewReplicaSetCreated", f'Created new replica set "{name}"')
    _put(by_type, created, now)
    return list(by_type.values())
