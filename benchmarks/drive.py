"""A scheduler and the least of an API around it: writes become changes at once, and only time inside `step` counts.

Bindings confirm themselves, deletions take effect, status patches are stored; events are thrown away. So a benchmark
measures scheduling and nothing else, and still goes round the whole loop: queue, attempt, preemption, binding, watch.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fairlead.core.model.flow import Change, Doc, Happened, Reply, Verb, Write
from fairlead.core.model.kinds import POD, Kind

if TYPE_CHECKING:
    from fairlead.core.engine.scheduler import Scheduler

START = 1_767_225_600.0


class Driver:
    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.spent = 0.0
        self.longest = 0.0
        self.evicted = 0
        self._now = START
        self._pods: dict[tuple[str, str], Doc] = {}
        self._version = 0
        self._uids = 0

    def load(self, kind: Kind, docs: Iterable[Doc]) -> None:
        """Objects that are there before the clock runs."""
        self.scheduler.step(self._now, [Change(Happened.ADDED, kind, self._stored(kind, doc)) for doc in docs], ())

    def schedule(self, docs: Iterable[Doc], *, wanted: int | None = None) -> float:
        """Create pods and go on until they (or as many as wanted) have nodes; the seconds spent in the scheduler."""
        before, waiting = self.spent, {}
        changes = []
        for doc in docs:
            stored = self._stored(POD, doc)
            waiting[_key(stored)] = stored
            changes.append(Change(Happened.ADDED, POD, stored))
        goal = len(waiting) if wanted is None else wanted
        placed, idle, replies = 0, 0, []
        while placed < goal:
            writes = self._step(changes, replies)
            changes, bound = self._perform(writes)
            placed += bound
            replies = [Reply(write, {}) for write in writes]
            idle = 0 if writes else idle + 1
            if idle > 200:
                raise AssertionError(f"{goal - placed} of {goal} pods were not placed")
            if not writes:
                self._now += 1.0
        self._step(changes, replies)
        return self.spent - before

    def _step(self, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        started = time.perf_counter()
        writes = self.scheduler.step(self._now, changes, replies)
        took = time.perf_counter() - started
        self.spent += took
        self.longest = max(self.longest, took)
        self._now += 0.001
        return writes

    def _perform(self, writes: Sequence[Write]) -> tuple[list[Change], int]:
        changes: list[Change] = []
        bound = 0
        for write in writes:
            doc = self._pods.get((write.namespace, write.name)) if write.kind is POD else None
            if doc is None:
                continue
            if write.subresource == "binding":
                bound += 1
                spec = {**doc["spec"], "nodeName": write.body["target"]["name"]}
                changes.append(Change(Happened.MODIFIED, POD, self._stored(POD, {**doc, "spec": spec})))
            elif write.verb is Verb.DELETE:
                self.evicted += 1
                del self._pods[write.namespace, write.name]
                changes.append(Change(Happened.DELETED, POD, doc))
            elif write.subresource == "status":
                status = {**doc.get("status", {}), **write.body["status"]}
                changes.append(Change(Happened.MODIFIED, POD, self._stored(POD, {**doc, "status": status})))
        return changes, bound

    def _stored(self, kind: Kind, doc: Doc) -> Doc:
        """With what a server would have added."""
        self._version += 1
        metadata = {
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **doc["metadata"],
            "resourceVersion": str(self._version),
        }
        if "uid" not in metadata:
            self._uids += 1
            metadata["uid"] = f"uid-{self._uids}"
        stored = {**doc, "metadata": metadata}
        if kind is POD:
            stored.setdefault("status", {"phase": "Pending"})
            self._pods[_key(stored)] = stored
        return stored


def _key(doc: Doc) -> tuple[str, str]:
    return doc["metadata"]["namespace"], doc["metadata"]["name"]
