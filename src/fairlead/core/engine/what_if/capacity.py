"""capacity: how many more of a workload fit, which nodes to add for one, and which nodes can go.

    fit      copies of the workload are given to the scheduler until one waits
    need     the fewest nodes of each shape of the cluster with which the workload runs
    drain    the pods of a node are deleted, their controllers make them again, and the node is gone

Every pod is placed by the scheduler itself; nobody is evicted to find out how much fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.core.engine.what_if.least_change import ChangeSearch
from fairlead.core.engine.what_if.node_shapes import shapes_of
from fairlead.core.engine.what_if.trial import Trial, Victim
from fairlead.core.engine.what_if.workload import Workload
from fairlead.core.model.explanation import SCHEMA
from fairlead.core.model.flow import Happened
from fairlead.core.model.times import micro_timestamp

if TYPE_CHECKING:
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.engine.what_if.simulate import Branch
    from fairlead.core.model.flow import Doc

MOST = 1_000
"""Copies after which it is enough to know that so many fit."""
_NODES = 100
"""Nodes that are tried if none is named."""


def fit(scheduler: Scheduler, workload: Workload, now: float, most: int = MOST) -> Doc:
    """How many copies of a workload run together, and how many would if free room were in one place."""
    patient = _without_preemption(workload.anew or workload)
    free = _free_room(scheduler, patient)
    closed: frozenset[str] = frozenset()
    trial = Trial(scheduler, now)
    fitting, batch, message = 0, 1, ""
    while fitting < most:
        copies = [copy_of(patient, number) for number in range(fitting, min(most, fitting + batch))]
        for copy in copies:
            copy.put_into(trial)
        uids = [uid for copy in copies for uid in copy.uids]
        trial.run(partial(_all_placed, trial, uids), horizon=5.0)
        running = sum(all(map(trial.place_of, copy.uids)) for copy in copies)
        fitting += running
        if running < len(copies):
            message, closed = _refusal(scheduler, copies)
            break
        batch *= 2
    doc: Doc = {"apiVersion": SCHEMA, "kind": "CapacityFit", "at": micro_timestamp(trial.began), "fits": fitting}
    doc["more"] = fitting >= most
    ideal = min((sum(a for name, a in room.items() if name not in closed) // n for room, n in free), default=None)
    if ideal is not None:
        doc["ideal"] = ideal
        doc["closed"] = len(closed)
        doc["fragmentation"] = round(1 - min(1.0, fitting / ideal), 4) if ideal and fitting < most else 0.0
    return doc | ({"message": message} if message else {})


def _all_placed(trial: Trial, uids: Sequence[str]) -> bool:
    return all(map(trial.place_of, uids))


def need(scheduler: Scheduler, workload: Workload, branch: Branch, now: float) -> Doc:
    """The fewest nodes of each shape with which the workload runs."""
    search = ChangeSearch(scheduler, branch, now)
    doc: Doc = {"apiVersion": SCHEMA, "kind": "CapacityNeed", "at": micro_timestamp(max(now, scheduler.now))}
    if search.runs(workload):
        return doc | {"runs": True, "shapes": []}
    found: list[Doc] = []
    for shape in shapes_of(scheduler.cluster):
        number = search.nodes_needed(workload, shape)
        if number:
            found.append({"like": shape.example.name, "offers": shape.says, "nodes": number})
            if shape.differs:
                found[-1]["differs"] = dict(shape.differs)
    return doc | {"runs": False, "shapes": sorted(found, key=lambda one: one["nodes"])}


def drain(scheduler: Scheduler, names: Sequence[str], branch: Branch, now: float) -> Doc:
    """For each node whether it can go, and what would become of its pods."""
    table = scheduler.cluster.table
    known = list(names) or sorted(table.row_of, key=lambda name: len(table.pods[table.row_of[name]]))[:_NODES]
    nodes = [branch(partial(_without_node, scheduler, name, now)) for name in known if name in table.row_of]
    return {
        "apiVersion": SCHEMA,
        "kind": "CapacityDrain",
        "at": micro_timestamp(max(now, scheduler.now)),
        "nodes": nodes,
        "unknown": [name for name in known if name not in table.row_of],
    }


def _without_node(scheduler: Scheduler, name: str, now: float) -> Doc:
    trial = Trial(scheduler, now)
    table = scheduler.cluster.table
    row = table.row_of[name]
    node = table.nodes[row]
    assert node is not None
    gone = {pod.uid for pod in table.pods[row]}
    for pod in list(table.pods[row]):
        trial.delete(pod, again=pod.owner is not None and pod.owner.kind not in ("DaemonSet", "Node"))
    trial.take_node(Happened.DELETED, node)
    heirs = [victim for victim in trial.victims if victim.heir]
    trial.run(lambda: all(trial.place_of(victim.heir) for victim in heirs))
    own = gone
    heirs_of_own = {victim.heir for victim in trial.victims if victim.pod.uid in own}
    evicted = [one for one in trial.victims if one.pod.uid not in own | heirs_of_own]
    pods = list(_what_became(trial, [one for one in trial.victims if one.pod.uid in own]))
    victims = [{**doc, "from": one.node} for one, doc in zip(evicted, _what_became(trial, evicted), strict=True)]
    lost = [one for one in (*pods, *victims) if "node" not in one and not one.get("goes")]
    return {"name": name, "canGo": not lost, "pods": pods, "victims": victims}


def _what_became(trial: Trial, victims: Sequence[Victim]) -> Iterator[Doc]:
    for victim in victims:
        pod = victim.pod
        doc: Doc = {"namespace": pod.namespace, "name": pod.name}
        if victim.heir and (node := trial.place_of(victim.heir)):
            yield doc | {"node": node}
        elif victim.heir:
            explained = trial.scheduler.explain(pod.namespace, f"{pod.name}+")
            yield doc | {"message": explained.message if explained is not None else "it waits"}
        elif pod.owner is not None:
            yield doc | {"goes": True, "message": f"it is of a {pod.owner.kind} and goes with its node"}
        else:
            yield doc | {"message": "it has no controller that would make it again"}


def _refusal(scheduler: Scheduler, copies: Sequence[Workload]) -> tuple[str, frozenset[str]]:
    """Why the next one waits, and the nodes that it may never use, whoever leaves them."""
    for copy in copies:
        for pod in copy.pods:
            explained = scheduler.explain(pod["metadata"]["namespace"], pod["metadata"]["name"])
            if explained is not None and explained.verdict not in ("Scheduled", "Binding") and explained.message:
                final = [one for one in explained.blockers if one.final]
                return explained.message, frozenset(name for one in final for name in one.nodes)
    return "", frozenset()


def _free_room(scheduler: Scheduler, workload: Workload) -> list[tuple[dict[str, int], int]]:
    """Of each resource that the workload requests what is free by node, before anything is placed, and how much it
    requests."""
    from fairlead.core.model.pod import compile_pod

    asked: dict[str, int] = {}
    for document in workload.pods:
        for resource, amount in compile_pod(document, scheduler.cluster.shapes).request.items():
            asked[resource] = asked.get(resource, 0) + amount
    table, found = scheduler.cluster.table, []
    for resource, amount in asked.items():
        offered = table.allocatable.get(resource)
        if amount and offered is not None:
            free = np.maximum(offered - table.requested.get(resource, 0), 0)
            found.append(({name: int(free[row]) for name, row in table.row_of.items()}, amount))
    return found


def _without_preemption(workload: Workload) -> Workload:
    pods = [{**pod, "spec": {**pod["spec"], "preemptionPolicy": "Never"}} for pod in workload.pods]
    return Workload.of([*workload.objects, *pods])


def copy_of(workload: Workload, number: int) -> Workload:
    """The same workload under other names, so that several can be there at once."""
    names = {one["metadata"]["name"] for one in workload.objects}
    uids = {one["metadata"].get("uid") for one in (*workload.objects, *workload.pods)} - {None}
    new = {name: f"{name}-{number}" for name in names} | {uid: f"{uid}-{number}" for uid in uids}
    pods = [_renamed(pod, new) for pod in workload.pods]
    for document in pods:
        document["metadata"]["name"] = f"{document['metadata']['name']}-{number}"
    return Workload.of([*(_renamed(one, new) for one in workload.objects), *pods])


def _renamed(value: Any, new: Mapping[str, str]) -> Any:
    """A copy in which every text that is one of the names is replaced."""
    if isinstance(value, dict):
        return {key: _renamed(one, new) for key, one in value.items()}
    if isinstance(value, list):
        return [_renamed(one, new) for one in value]
    return new.get(value, value) if isinstance(value, str) else value
