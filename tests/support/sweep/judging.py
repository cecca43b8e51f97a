"""The end state of a run, as far as it must not depend on who restarted: what runs, phases, counts, invariants.

Uids, times, random ends of names and the node among equal ones are left out.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc
from fairlead.core.model.kinds import Kind
from fairlead.core.model.quantity import parse_quantity, to_units
from fairlead.core.model.quota import has_ended
from fairlead.volcano.kinds import VC_POD_GROUP
from tests.support.sweep.stories import World

State = Counter[tuple[str, ...]]
_UNCOUNTED = {kinds.EVENT, kinds.LEASE}
_OF_NO_MATTER = frozenset(
    {"observedGeneration", "currentRevision", "updateRevision", "retryCount", "version", "hostIP"}
)


def end_state(world: World) -> State:
    """How often there is an object of this kind, name and state."""
    state: State = Counter()
    for kind in world.harness.store.registry:
        if kind.stored_as is None and kind not in _UNCOUNTED:
            for doc in world.harness.list(kind):
                metadata = doc["metadata"]
                state[kind.resource, metadata.get("namespace", ""), _name(kind, doc), _condition(kind, doc)] += 1
    return state


def difference(found: State, wanted: State) -> list[str]:
    return [f"too much: {' '.join(key)} x{count}" for key, count in (found - wanted).items()] + [
        f"missing: {' '.join(key)} x{count}" for key, count in (wanted - found).items()
    ]


def broken_invariants(world: World) -> list[str]:
    """What holds whatever happened: in the scheduler, on nodes, for disks and devices."""
    scheduler, problems = world.scheduler, []
    scheduler.cluster.check()
    scheduler.backlog.check()
    problems += [f"it raised over {name}" for name in scheduler.guard.quarantine.raised]
    if scheduler.guard.audit.found:
        problems.append(f"memory and API differed {scheduler.guard.audit.found} times")
    problems += [f"a binding has not ended: {uid}" for uid in scheduler.bindings]
    problems += [f"{name} holds too much" for name, left in _room(world).items() if left < 0]
    problems += [f"{what} was given twice" for what, count in _given(world).items() if count > 1]
    return problems


def _name(kind: Kind, doc: Doc) -> str:
    """The name, or that of the owner for objects whose names end at random."""
    metadata = doc["metadata"]
    owner = next((one for one in metadata.get("ownerReferences") or () if one.get("controller")), None)
    if owner is None or owner["kind"] == "StatefulSet" or not metadata.get("generateName"):
        return str(metadata["name"]) if kind is not kinds.PERSISTENT_VOLUME else "of a claim"
    return f"of {owner['kind']} {owner['name']}"


def _condition(kind: Kind, doc: Doc) -> str:
    status = doc.get("status") or {}
    said = dict(_numbers(kind, status))
    if kind is kinds.POD:
        said = {"phase": status.get("phase"), "placed": bool(doc["spec"].get("nodeName"))}
    elif kind is kinds.RESOURCE_CLAIM:
        said = {"allocated": bool(status.get("allocation")), "for": len(status.get("reservedFor") or ())}
    said["going"] = bool(doc["metadata"].get("deletionTimestamp"))
    said["finalizers"] = sorted(doc["metadata"].get("finalizers") or ())
    return str(sorted(said.items(), key=str))


def _numbers(kind: Kind, status: Any, path: str = "") -> list[tuple[str, Any]]:
    """Counts and phases, also of parts; conditions by their types."""
    found: list[tuple[str, Any]] = []
    for key, value in status.items():
        if key in _OF_NO_MATTER:
            continue
        if key == "conditions" and kind is VC_POD_GROUP:
            continue  # what was true at some time
        if key == "conditions":
            found += [(path + one["type"], one["status"]) for one in value if "type" in one]
        elif isinstance(value, int) or key in ("phase", "used", "hard"):
            found.append((path + key, value))
        elif isinstance(value, dict):
            found += _numbers(kind, value, f"{path}{key}.")
    return found


def _room(world: World) -> dict[str, int]:
    """Milli-CPU that each node has left."""
    cluster = world.harness
    room = {
        doc["metadata"]["name"]: _milli(doc["status"]["allocatable"].get("cpu", "0"))
        for doc in cluster.list(kinds.NODE)
    }
    for doc in cluster.list(kinds.POD):
        if not has_ended(doc) and (where := doc["spec"].get("nodeName")) in room:
            for container in doc["spec"]["containers"]:
                room[where] -= _milli((container.get("resources", {}).get("requests") or {}).get("cpu", "0"))
    return room


def _given(world: World) -> Counter[str]:
    """How often each disk and each device was given away."""
    given: Counter[str] = Counter()
    for doc in world.harness.list(kinds.PERSISTENT_VOLUME_CLAIM):
        given[f"disk {doc['spec'].get('volumeName') or doc['metadata']['uid']}"] += 1
    for doc in world.harness.list(kinds.RESOURCE_CLAIM):
        allocation = (doc.get("status") or {}).get("allocation") or {}
        for result in (allocation.get("devices") or {}).get("results") or ():
            given[f"device {result['pool']}/{result['device']}"] += 1
    return given


def _milli(text: str) -> int:
    return to_units("cpu", parse_quantity(text))
