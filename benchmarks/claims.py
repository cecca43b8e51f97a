"""Resource claims: the scheduler alone on 500 nodes of ten devices, as in scheduler_perf's workloads of that shape.

Writes are answered as an API server would answer them, and shown by the watch in the next step; only the time inside
`Scheduler.step` counts. In the steady state ten pods are under way at any time, and a pod that was bound is deleted
with its claim.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from benchmarks.row import Row
from benchmarks.scheduling import START
from fairlead.assembly.schedulers import default_scheduler
from fairlead.core.model.flow import Change, Doc, Happened, Reply, Write
from fairlead.core.model.kinds import DEVICE_CLASS, NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE
from fairlead.testing.builders import node

DRIVER = "test-driver.cdi.k8s.io"
NODES, DEVICES, PODS, STEADY = 500, 10, 2_500, 2_000
BARS = {"Empty": 1_000.0, "Half": 1_000.0, "Full": 500.0}


class ClaimWorld:
    """A scheduler, and what an API server would make of its writes."""

    def __init__(self, *, nodes: int = NODES, devices: int = DEVICES, **device: Any) -> None:
        self.scheduler = default_scheduler()
        self.spent = self.used = 0.0
        self._version = count(1)
        self._docs: dict[tuple[str, str], Doc] = {}
        self._changes: list[Change] = []
        self._replies: list[Reply] = []
        selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
        self.tell(DEVICE_CLASS, {"metadata": {"name": "test-class"}, "spec": {"selectors": selectors}})
        for number in range(nodes):
            name = f"node-{number}"
            self.tell(NODE, node(name).offers({"cpu": "64", "memory": "256Gi", "pods": "110"}).doc())
            self.tell(
                RESOURCE_SLICE,
                {
                    "metadata": {"name": f"{name}-slice"},
                    "spec": {
                        "driver": DRIVER,
                        "nodeName": name,
                        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                        "devices": [_device(at, device) for at in range(devices)],
                    },
                },
            )
        self.step()

    def tell(self, kind: Any, doc: Doc, happened: Happened = Happened.ADDED) -> Doc:
        metadata = {"uid": f"{kind.kind}-{doc['metadata']['name']}", **doc["metadata"]}
        doc = {**doc, "metadata": {**metadata, "resourceVersion": str(next(self._version))}}
        self._docs[kind.kind, doc["metadata"]["name"]] = doc
        self._changes.append(Change(happened, kind, doc))
        return doc

    def add_pod(self, name: str, spec: Doc) -> None:
        """A pod with a claim of its own, as the claim controller leaves it."""
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"Pod-{name}", "controller": True}
        metadata = {"name": f"{name}-c", "namespace": "default", "ownerReferences": [owner]}
        self.tell(RESOURCE_CLAIM, {"metadata": metadata, "spec": spec, "status": {}})
        self.tell(
            POD,
            {
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "schedulerName": "default-scheduler",
                    "containers": [{"name": "c", "image": "pause"}],
                    "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
                },
                "status": {
                    "phase": "Pending",
                    "resourceClaimStatuses": [{"name": "c", "resourceClaimName": f"{name}-c"}],
                },
            },
        )

    def remove(self, name: str) -> None:
        """A pod is deleted, and the claim controller gives its devices back."""
        claim, pod = self._docs[RESOURCE_CLAIM.kind, f"{name}-c"], self._docs[POD.kind, name]
        self.tell(POD, pod, Happened.DELETED)
        self.tell(RESOURCE_CLAIM, {**claim, "status": {}}, Happened.DELETED)

    def step(self) -> list[str]:
        """One step of the scheduler; returns the names of the pods that it bound."""
        changes, replies, self._changes, self._replies = self._changes, self._replies, [], []
        start, start_cpu = time.perf_counter(), time.process_time()
        writes = self.scheduler.step(START + self.spent, changes, replies)
        self.spent, self.used = self.spent + time.perf_counter() - start, self.used + time.process_time() - start_cpu
        self._replies = [Reply(write, self._answered(write)) for write in writes]
        return [write.name for write in writes if write.subresource == "binding"]

    @property
    def busy(self) -> bool:
        return bool(self._changes or self._replies)

    def _answered(self, write: Write) -> Doc:
        if write.subresource == "binding":
            pod = self._docs[POD.kind, write.name]
            spec = {**pod["spec"], "nodeName": write.body["target"]["name"]}
            return self.tell(POD, {**pod, "spec": spec}, Happened.MODIFIED)
        if write.kind is not RESOURCE_CLAIM:
            return dict(write.body)
        claim = self._docs[RESOURCE_CLAIM.kind, write.name]
        metadata = {**claim["metadata"], **write.body.get("metadata", {})}
        status = {**claim["status"], **write.body.get("status", {})}
        return self.tell(RESOURCE_CLAIM, {**claim, "metadata": metadata, "status": status}, Happened.MODIFIED)


def _device(at: int, more: Doc) -> Doc:
    attributes = {
        "model": {"string": "A100"},
        "family": {"string": "GPU"},
        "driverVersion": {"version": "1.2.3"},
        "dra.example.com/numa": {"int": at},
    }
    return {"name": f"instance-{at}", "attributes": attributes, "capacity": {"memory": {"value": "1Gi"}}, **more}


def _claim(number: int = 1, **more: Any) -> Doc:
    exactly = {"deviceClassName": "test-class", "allocationMode": "ExactCount", "count": number, **more}
    return {"devices": {"requests": [{"name": "req-0", "exactly": exactly}]}}


def _fill(world: ClaimWorld, names: Sequence[str]) -> None:
    for name in names:
        world.add_pod(name, _claim())
    left = len(names)
    while left:
        left -= len(world.step())
        if left and not world.busy:
            raise AssertionError(f"{left} pods were not placed")


def bench_templates() -> Iterable[Row]:
    world = ClaimWorld()
    _fill(world, [f"first-{number}" for number in range(PODS)])
    world.spent = world.used = 0.0
    _fill(world, [f"second-{number}" for number in range(PODS)])
    note = f"2,500 of 5,000 devices are in use before; {world.used / PODS * 1e6:,.0f} µs CPU per pod"
    yield Row("ClaimTemplates/500Nodes", PODS / world.spent, "pods/s", 2_000, nodes=NODES, pods=PODS, note=note)


def bench_steady_state() -> Iterable[Row]:
    for name, used in (("Empty", 0), ("Half", NODES * DEVICES // 2), ("Full", NODES * DEVICES - 10)):
        world = ClaimWorld()
        _fill(world, [f"old-{number}" for number in range(used)])
        world.spent = world.used = 0.0
        bound = made = 0
        while bound < STEADY:
            while made - bound < 10:
                world.add_pod(f"pod-{made}", _claim())
                made += 1
            for pod in world.step():
                bound += 1
                world.remove(pod)
        cpu = world.used / STEADY * 1e6
        note = f"ten pods under way, {used:,} of {NODES * DEVICES:,} devices in use; {cpu:,.0f} µs CPU per pod"
        value = STEADY / world.spent
        yield Row(f"ClaimSteadyState/{name}", value, "pods/s", BARS[name], nodes=NODES, pods=STEADY, note=note)


def bench_backtracking() -> Iterable[Row]:
    """A request for eight devices of which seven match, beside another request: no node can serve it."""
    world = ClaimWorld(nodes=100, devices=16)
    expression = f'device.attributes["dra.example.com"].numa < 7 && device.capacity["{DRIVER}"].memory.isInteger()'
    spec = _claim(8, selectors=[{"cel": {"expression": expression}}])
    spec["devices"]["requests"].append({"name": "req-1", "exactly": _claim()["devices"]["requests"][0]["exactly"]})
    tried = 50
    start = world.spent
    for number in range(tried):
        world.add_pod(f"pod-{number}", spec)
        world.step()
    value = (world.spent - start) / tried * 1e3
    note = "8 of 16 devices of which 7 match, and one more: the original visits all subsets on every node"
    yield Row("ClaimInVain/100Nodes", value, "ms", 50, nodes=100, pods=tried, note=note, higher_is_better=False)
