"""The row of a pod: the one STATUS word that users read, and what went into it.

The word is the phase, unless a container has something more specific: a waiting reason, an exit code, an init container
on its way; and Terminating when the pod is being deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.cluster.tables.columns import NONE, age, human_duration, name
from fairlead.core.model.times import seconds_of

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc


@dataclass(slots=True)
class _Tally:
    """What is read off the container statuses, step by step."""

    reason: str
    total: int
    ready: int = 0
    restarts: int = 0
    sidecar_restarts: int = 0
    last_restart: float = 0.0
    last_sidecar_restart: float = 0.0


def pod_cells(pod: Doc, now: float) -> list[Any]:
    spec, status = pod.get("spec", {}), pod.get("status", {})
    tally = _read(pod)
    restarts = str(tally.restarts)
    if tally.restarts and tally.last_restart:
        restarts += f" ({human_duration(now - tally.last_restart)} ago)"
    return [
        name(pod),
        f"{tally.ready}/{tally.total}",
        tally.reason,
        restarts,
        age(pod, now),
        _address(status),
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _readiness_gates(spec, status),
    ]


def pod_conditions(pod: Doc) -> list[Doc]:
    """Rows of ended pods say so, for clients that hide them."""
    phase = pod.get("status", {}).get("phase")
    if phase == "Succeeded":
        message = "The pod has completed successfully."
    elif phase == "Failed":
        message = "The pod failed."
    else:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


def _read(pod: Doc) -> _Tally:
    spec, status = pod.get("spec", {}), pod.get("status", {})
    sidecars = {one["name"] for one in spec.get("initContainers", ()) if one.get("restartPolicy") == "Always"}
    tally = _Tally(status.get("reason") or status.get("phase", ""), len(spec.get("containers", ())) + len(sidecars))
    if _condition(status, "PodScheduled").get("reason") == "SchedulingGated":
        tally.reason = "SchedulingGated"
    initializing = _read_init_containers(tally, status, sidecars, len(spec.get("initContainers", ())))
    if not initializing or _condition(status, "Initialized").get("status") == "True":
        _read_containers(tally, status)
    if "deletionTimestamp" in pod["metadata"]:
        if status.get("reason") == "NodeLost":
            tally.reason = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            tally.reason = "Terminating"
    return tally


def _condition(status: Doc, kind: str) -> Doc:
    return next((one for one in status.get("conditions", ()) if one.get("type") == kind), {})


def _read_init_containers(tally: _Tally, status: Doc, sidecars: set[str], count: int) -> bool:
    """Whether the pod is still initializing."""
    for index, one in enumerate(status.get("initContainerStatuses", ())):
        tally.restarts += one.get("restartCount", 0)
        tally.last_restart = max(tally.last_restart, _finished(one))
        if one["name"] in sidecars:
            tally.sidecar_restarts += one.get("restartCount", 0)
            tally.last_sidecar_restart = max(tally.last_sidecar_restart, _finished(one))
        state = one.get("state", {})
        ended, waiting = state.get("terminated"), state.get("waiting", {})
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if one["name"] in sidecars and one.get("started"):
            tally.ready += bool(one.get("ready"))
            continue
        if ended is not None:
            tally.reason = "Init:" + _ending(ended)
        elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
            tally.reason = "Init:" + waiting["reason"]
        else:
            tally.reason = f"Init:{index}/{count}"
        return True
    return False


def _finished(container: Doc) -> float:
    ended = container.get("lastState", {}).get("terminated", {}).get("finishedAt")
    return seconds_of(ended) if ended else 0.0


def _ending(ended: Doc) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _read_containers(tally: _Tally, status: Doc) -> None:
    tally.restarts, tally.last_restart = tally.sidecar_restarts, tally.last_sidecar_restart
    running = False
    for one in reversed(status.get("containerStatuses", ())):
        tally.restarts += one.get("restartCount", 0)
        tally.last_restart = max(tally.last_restart, _finished(one))
        state = one.get("state", {})
        if state.get("waiting", {}).get("reason"):
            tally.reason = state["waiting"]["reason"]
        elif "terminated" in state:
            tally.reason = _ending(state["terminated"])
        elif one.get("ready") and "running" in state:
            running = True
            tally.ready += 1
    if tally.reason == "Completed" and running:
        ready = _condition(status, "Ready").get("status") == "True"
        tally.reason = "Running" if ready else "NotReady"


def _address(status: Doc) -> str:
    addresses = status.get("podIPs", ())
    return (addresses[0].get("ip") if addresses else status.get("podIP")) or NONE


def _readiness_gates(spec: Doc, status: Doc) -> str:
    gates = spec.get("readinessGates", ())
    if not gates:
        return NONE
    met = sum(_condition(status, gate.get("conditionType", "")).get("status") == "True" for gate in gates)
    return f"{met}/{len(gates)}"
