"""Gangs: the scheduler alone, as in benchmarks/scheduling.py, with pods that start together or not at all.

Only the time inside `step` counts, from the moment the pods are known until every bind has been sent.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.row import Row
from benchmarks.scheduling import NODES, START, basic_nodes
from fairlead.assembly.schedulers import default_scheduler
from fairlead.core.model.flow import Change, Doc, Happened, Reply
from fairlead.core.model.kinds import NODE, POD, POD_GROUP
from fairlead.runtime.collecting import collect_rarely
from fairlead.testing.builders import pod

if TYPE_CHECKING:
    from fairlead.core.engine.scheduler import Scheduler

LARGE, RACK_SIZE, SMALL, GANGS = 1_000, 50, 10, 1_000
TOO_MANY = 400
"""More than fifty nodes hold."""
RACK = "example.com/rack"


def _group(name: str, minimum: int, key: str = "") -> Change:
    spec: Doc = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    if key:
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    metadata = {"name": name, "namespace": "default", "uid": f"group-{name}", "resourceVersion": "1"}
    body = {"apiVersion": POD_GROUP.api_version, "kind": "PodGroup", "metadata": metadata, "spec": spec}
    return Change(Happened.ADDED, POD_GROUP, body)


def _members(group: str, count: int) -> list[Doc]:
    template = pod("template").asks(cpu="1", memory="2Gi").doc()
    spec = {**template["spec"], "schedulingGroup": {"podGroupName": group}}
    return [
        {
            **template,
            "spec": spec,
            "status": {"phase": "Pending"},
            "metadata": {
                **template["metadata"],
                "name": f"{group}-{number}",
                "uid": f"{group}-{number}",
                "resourceVersion": "1",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
        }
        for number in range(count)
    ]


def _in_racks(changes: Sequence[Change]) -> list[Change]:
    racked = []
    for number, change in enumerate(changes):
        metadata: dict[str, Any] = dict(change.doc["metadata"])
        metadata["labels"] = {**metadata.get("labels", {}), RACK: f"rack-{number // RACK_SIZE}"}
        racked.append(Change(Happened.ADDED, NODE, {**change.doc, "metadata": metadata}))
    return racked


def _warm(nodes: Sequence[Change]) -> Scheduler:
    """A scheduler that knows its nodes and has seen a gang: a first pod pays for what all others use."""
    scheduler = default_scheduler()
    scheduler.step(START, nodes, ())
    docs = _members("warm", 2)
    _run(scheduler, [_group("warm", 2)], docs)
    scheduler.step(START, [Change(Happened.DELETED, POD, doc) for doc in docs], ())
    collect_rarely()  # what was made until here is no part of what a gang costs
    return scheduler


def _run(scheduler: Scheduler, groups: Sequence[Change], pods: Sequence[Doc]) -> float:
    """Seconds spent until all pods are bound and the watch has shown it."""
    by_name = {doc["metadata"]["name"]: doc for doc in pods}
    changes: Sequence[Change] = [*groups, *(Change(Happened.ADDED, POD, doc) for doc in pods)]
    replies: list[Reply] = []
    bound, spent = 0, 0.0
    while bound < len(pods) or changes:
        began = time.perf_counter()
        writes = scheduler.step(START + spent, changes, replies)
        spent += time.perf_counter() - began
        bindings = [write for write in writes if write.subresource == "binding"]
        if not (bindings or changes or replies):
            raise AssertionError(f"{len(pods) - bound} members were not placed")
        bound += len(bindings)
        replies = [Reply(write, write.body) for write in writes]
        changes = [
            Change(
                Happened.MODIFIED,
                POD,
                {**by_name[w.name], "spec": {**by_name[w.name]["spec"], "nodeName": w.body["target"]["name"]}},
            )
            for w in bindings
        ]
    return spent


def bench_large_gang() -> Iterable[Row]:
    scheduler = _warm(basic_nodes(NODES))
    pods = _members("large", LARGE)
    scheduler.step(START, [Change(Happened.ADDED, POD, doc) for doc in pods], ())
    began = time.perf_counter()
    writes = scheduler.step(START, [_group("large", LARGE)], ())
    taken = time.perf_counter() - began
    binds = sum(1 for write in writes if write.subresource == "binding")
    assert binds == LARGE, f"only {binds} binds were sent"
    note = "one Statement, from the group's arrival to the last bind sent"
    yield Row(
        "GangOf1000/5000Nodes", taken * 1000, "ms", 300, higher_is_better=False, nodes=NODES, pods=LARGE, note=note
    )


def bench_rack() -> Iterable[Row]:
    scheduler = _warm(_in_racks(basic_nodes(NODES)))
    pods = _members("rack", RACK_SIZE)
    scheduler.step(START, [Change(Happened.ADDED, POD, doc) for doc in pods], ())
    began = time.perf_counter()
    writes = scheduler.step(START, [_group("rack", RACK_SIZE, RACK)], ())
    taken = time.perf_counter() - began
    racks = {int(w.body["target"]["name"].split("-")[1]) // RACK_SIZE for w in writes if w.subresource == "binding"}
    assert len(racks) == 1, f"the gang is spread over {len(racks)} racks"
    note = f"the best of {NODES // RACK_SIZE} racks for {RACK_SIZE} members"
    yield Row(
        "GangInOneRack/5000Nodes",
        taken * 1000,
        "ms",
        300,
        higher_is_better=False,
        nodes=NODES,
        pods=RACK_SIZE,
        note=note,
    )


def bench_no_rack() -> Iterable[Row]:
    """A gang that is too large for any rack: what it costs to say so, and in how many racks it was tried."""
    scheduler = _warm(_in_racks(basic_nodes(NODES)))
    members = _members("none", TOO_MANY)
    scheduler.step(START, [Change(Happened.ADDED, POD, doc) for doc in members], ())
    began = time.perf_counter()
    scheduler.step(START, [_group("none", TOO_MANY, RACK)], ())
    taken = time.perf_counter() - began
    note = f"tried in {scheduler.pods.gangs.domains_tried} of {NODES // RACK_SIZE} racks"
    yield Row(
        "GangInNoRack/5000Nodes", taken * 1000, "ms", 300, higher_is_better=False, nodes=NODES, pods=TOO_MANY, note=note
    )


def bench_many_gangs() -> Iterable[Row]:
    scheduler = _warm(basic_nodes(NODES))
    names = [f"gang-{number}" for number in range(GANGS)]
    pods = [doc for name in names for doc in _members(name, SMALL)]
    spent = _run(scheduler, [_group(name, SMALL) for name in names], pods)
    yield Row(
        "1000GangsOf10/5000Nodes", len(pods) / spent, "pods/s", 5_000, nodes=NODES, pods=len(pods), note="core only"
    )
