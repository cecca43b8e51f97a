"""The status a kubelet reports for a pod that starts, ends or restarts, as documents.

    Pending ──running_status──▶ Running ──ended_status──▶ Succeeded, Failed
                                  │  ▲
               restarting_status  ▼  │  restarted_status
                              Running, CrashLoopBackOff

All containers of a pod share its fate: they start, end and restart together. Conditions of others (PodScheduled,
readiness gates) are kept.

Invariant: a status of a stored pod conforms (see Write): a server keeps it as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fairlead.core.model.durations import format_duration
from fairlead.core.model.times import seconds_of, timestamp

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc


def running_status(pod: Doc, *, now: float, pod_ip: str, host_ip: str) -> Doc:
    status: dict[str, Any] = {
        "phase": "Running",
        "conditions": _conditions(pod, now, ready=True),
        "hostIP": host_ip,
        "hostIPs": _shared_addresses(host_ip),
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "startTime": timestamp(now),
        "containerStatuses": [_running(pod, container, now) for container in pod["spec"]["containers"]],
    }
    if pod["spec"].get("initContainers"):
        status["initContainerStatuses"] = [_initialised(pod, one, now) for one in pod["spec"]["initContainers"]]
    return status


def ended_status(pod: Doc, *, now: float, exit_code: int, reason: str = "", message: str = "") -> Doc:
    """The last status; `reason` and `message` are for pods that were stopped (DeadlineExceeded)."""
    failed = bool(exit_code or reason)
    statuses = [
        {**one, "ready": False, "started": False, "state": {"terminated": _terminated(one, now, exit_code)}}
        for one in _container_statuses(pod)
    ]
    status: dict[str, Any] = {
        "phase": "Failed" if failed else "Succeeded",
        "conditions": _conditions(pod, now, ready=False, reason="PodFailed" if failed else "PodCompleted"),
        "containerStatuses": statuses,
    }
    if reason:
        status |= {"reason": reason, "message": message}
    return status


def restarting_status(pod: Doc, *, now: float, exit_code: int, wait: float) -> Doc:
    """Containers that ended and wait to be started again."""
    name, namespace, uid = (pod["metadata"].get(field, "") for field in ("name", "namespace", "uid"))
    statuses = []
    for one in _container_statuses(pod):
        whom = f"container={one['name']} pod={name}_{namespace}({uid})"
        text = f"back-off {format_duration(int(wait))} restarting failed {whom}"
        waiting = {"reason": "CrashLoopBackOff", "message": text}
        ended = {"terminated": _terminated(one, now, exit_code)}
        statuses.append({**one, "ready": False, "started": False, "state": {"waiting": waiting}, "lastState": ended})
    return {
        "conditions": _conditions(pod, now, ready=False, reason="ContainersNotReady"),
        "containerStatuses": statuses,
    }


def restarted_status(pod: Doc, *, now: float, exit_code: int) -> Doc:
    """Containers that run once more; `exit_code` is how they ended if they were not waiting."""
    statuses = []
    for one in _container_statuses(pod):
        last = one.get("lastState") or {}
        if "running" in (one.get("state") or {}):
            last = {"terminated": _terminated(one, now, exit_code)}
        again = {"ready": True, "started": True, "state": {"running": {"startedAt": timestamp(now)}}, "lastState": last}
        statuses.append({**one, **again, "restartCount": one.get("restartCount", 0) + 1})
    return {"phase": "Running", "conditions": _conditions(pod, now, ready=True), "containerStatuses": statuses}


def ready_again_status(pod: Doc, *, now: float) -> Doc:
    """The pod as it was before its node was lost and found."""
    return {"conditions": _conditions(pod, now, ready=True)}


def with_condition(pod: Doc, new: Doc) -> Doc:
    """A status in which `new` is in the place of the condition of its type."""
    known = (pod.get("status") or {}).get("conditions") or ()
    others = [_without_nulls(one) if None in one.values() else one for one in known if one["type"] != new["type"]]
    return {"conditions": [*others, new]}


def is_declared_unready(pod: Doc) -> bool:
    """Whether somebody else said that this pod is not ready though its containers are."""
    conditions = (pod.get("status") or {}).get("conditions")
    if not conditions:
        return False
    ready = containers = ""
    for one in conditions:
        if one["type"] == "Ready":
            ready = one["status"]
        elif one["type"] == "ContainersReady":
            containers = one["status"]
    return containers == "True" and ready == "False" and not pod["spec"].get("readinessGates")


def restarts(pod: Doc) -> int:
    return max((one.get("restartCount", 0) for one in _container_statuses(pod)), default=0)


def running_since(pod: Doc) -> float | None:
    """When the containers were last started; None while none is running."""
    for one in _container_statuses(pod):
        running = (one.get("state") or {}).get("running")
        if running is not None:
            return seconds_of(running["startedAt"])
    return None


def last_end(pod: Doc) -> float | None:
    """When a container that waits to be restarted ended."""
    for one in _container_statuses(pod):
        terminated = (one.get("lastState") or {}).get("terminated")
        if "waiting" in (one.get("state") or {}) and terminated is not None:
            return seconds_of(terminated["finishedAt"])
    return None


def _container_statuses(pod: Doc) -> list[Doc]:
    statuses: list[Doc] = (pod.get("status") or {}).get("containerStatuses") or []
    return statuses


def _running(pod: Doc, container: Doc, now: float) -> Doc:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "containerID": f"fairlead://{pod['metadata']['uid']}/{container['name']}",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": _shared_running(timestamp(now)),
        "lastState": _NO_STATE,
    }


def _initialised(pod: Doc, container: Doc, now: float) -> Doc:
    """An init container is done before the others start; a sidecar (restartPolicy Always) runs beside them."""
    status = _running(pod, container, now)
    if container.get("restartPolicy") == "Always":
        return status
    return {**status, "started": False, "state": {"terminated": _terminated(status, now, 0)}}


def _terminated(status: Doc, now: float, exit_code: int) -> Doc:
    started = ((status.get("state") or {}).get("running") or {}).get("startedAt") or timestamp(now)
    return {
        "exitCode": exit_code,
        "reason": "Error" if exit_code else "Completed",
        "startedAt": started,
        "finishedAt": timestamp(now),
        "containerID": status.get("containerID", ""),
    }


def _conditions(pod: Doc, now: float, *, ready: bool, reason: str = "") -> list[Doc]:
    known = {one["type"]: one for one in (pod.get("status") or {}).get("conditions") or ()}
    gates = pod["spec"].get("readinessGates")
    gated = bool(gates) and any((known.get(gate["conditionType"]) or {}).get("status") != "True" for gate in gates)
    conditions, since = [], timestamp(now)
    for type_, status, why in _wanted(ready, gated, reason):
        one = known.pop(type_, None)
        stands_since = one.get("lastTransitionTime") if one is not None and one.get("status") == status else None
        conditions.append(_shared_condition(type_, status, stands_since or since, why))
    conditions += [_without_nulls(one) if None in one.values() else one for one in known.values()]
    return conditions


@lru_cache
def _wanted(ready: bool, gated: bool, reason: str) -> Sequence[tuple[str, str, str]]:
    """Type, status and reason of each condition that a kubelet sets."""
    ended = reason in ("PodCompleted", "PodFailed")
    return tuple(
        (type_, "True" if holds else "False", why)
        for type_, holds, why in (
            ("PodReadyToStartContainers", not ended, ""),
            ("Initialized", True, "PodCompleted" if reason == "PodCompleted" else ""),
            ("Ready", ready and not gated, reason or ("ReadinessGatesNotReady" if gated else "")),
            ("ContainersReady", ready, reason),
        )
    )


def _without_nulls(condition: Doc) -> Doc:
    """A binding leaves a null in PodScheduled."""
    return {name: value for name, value in condition.items() if value is not None}


_NO_STATE: Doc = {}
"""Documents are never modified, so that one serves for all pods: many small ones are most of what a pod takes."""


@lru_cache(maxsize=1024)
def _shared_running(since: str) -> Doc:
    """One document for all containers that start in the same second."""
    return {"running": {"startedAt": since}}


@lru_cache(maxsize=16384)
def _shared_addresses(host_ip: str) -> list[Doc]:
    """One list for all pods of a node."""
    return [{"ip": host_ip}]


@lru_cache(maxsize=1024)
def _shared_condition(type_: str, status: str, since: str, reason: str) -> Doc:
    """One document for all pods that start or end in the same second."""
    new = {"type": type_, "status": status, "lastTransitionTime": since}
    if reason:
        new["reason"] = reason
    return new
