"""A Scheduler on a stage: documents in, writes out, and plugins that do what a test says. No API, no clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np

from fairlead.engine.scheduler import Options, Scheduler
from fairlead.errors import ApiError
from fairlead.framework.plugin import Interest, Plugin, Rescued, Wait
from fairlead.framework.profile import Profile, profile_of
from fairlead.model import kinds
from fairlead.model.flow import Change, Doc, Happened, Reply, Verb, Write
from fairlead.model.kinds import Kind
from fairlead.model.pod import Pod
from fairlead.model.reasons import Reason, Reject, Status
from fairlead.plugins.binder import DefaultBinder
from fairlead.plugins.node_basics import PrioritySort, SchedulingGates
from fairlead.plugins.resources import NodeResourcesFit

T0 = 1_767_225_600.0


class Scripted(Plugin):
    """Every point answers with what a test put there, and notes that it was asked."""

    def __init__(self, name: str, log: list[str] | None = None) -> None:
        self.name = name
        self.log = log if log is not None else []
        self.prepared: Any = None
        self.refused: dict[str, tuple[str, bool]] = {}
        self.points: dict[str, int] = {}
        self.reserved: Any = None
        self.permitted: Any = None
        self.errand: Any = None
        self.rescued: Rescued | None = None
        self.interests: Sequence[Interest] | None = None

    def events(self) -> Sequence[Interest] | None:
        return self.interests

    def prepare(self, cycle: Any) -> Any:
        self.log.append(f"{self.name}.prepare")
        return _answer(self.prepared)

    def filter(self, cycle: Any, nodes: Any) -> Iterable[Reject]:
        self.log.append(f"{self.name}.filter")
        names = [nodes.table.name(int(row)) for row in nodes.row_numbers()]
        for reason in sorted(set(self.refused.values())):
            mask = np.array([self.refused.get(name) == reason for name in names], dtype=np.bool_)
            yield Reject(Reason(self.name, reason[0], reason[1]), mask)

    def score(self, cycle: Any, nodes: Any) -> Any:
        self.log.append(f"{self.name}.score")
        return np.array([self.points.get(nodes.table.name(int(row)), 0) for row in nodes.row_numbers()], dtype=np.int64)

    def reserve(self, cycle: Any, row: int) -> Status | None:
        self.log.append(f"{self.name}.reserve")
        return _answer(self.reserved)

    def unreserve(self, cycle: Any, row: int) -> None:
        self.log.append(f"{self.name}.unreserve")

    def permit(self, cycle: Any, row: int) -> Status | Wait | None:
        self.log.append(f"{self.name}.permit")
        return _answer(self.permitted)

    def prebind(self, cycle: Any, row: int) -> Any:
        return _answer(self.errand)

    def postbind(self, cycle: Any, row: int) -> None:
        self.log.append(f"{self.name}.postbind")


class Rescuer(Plugin):
    def __init__(self, name: str, answer: Callable[[], Rescued]) -> None:
        self.name = name
        self._answer = answer

    def rescue(self, cycle: Any, refusals: Any) -> Rescued:
        return self._answer()


def _answer(scripted: Any) -> Any:
    if isinstance(scripted, Exception):
        raise scripted
    return scripted


def standard(*more: Plugin) -> tuple[Plugin, ...]:
    return (PrioritySort(), SchedulingGates(), NodeResourcesFit(), *more, DefaultBinder())


class Stage:
    """`tell` brings documents, `run` lets the scheduler step, `answer` replies to its writes."""

    def __init__(self, *plugins: Plugin, nodes: int = 0, profiles: Sequence[Profile] = (), **options: Any) -> None:
        listed = profiles or [profile_of("default-scheduler", standard(*plugins))]
        self.scheduler = Scheduler(listed, Options(**options))
        self.now = T0
        self.writes: list[Write] = []
        self._versions = count(1)
        self._unanswered: list[Write] = []
        self._documents: dict[tuple[str, str], Doc] = {}
        if nodes:
            self.tell(*(node(f"n{i}") for i in range(nodes)))

    @property
    def cluster(self) -> Any:
        return self.scheduler.cluster

    @property
    def backlog(self) -> Any:
        return self.scheduler.backlog

    def tell(self, *docs: Doc, happened: Happened = Happened.ADDED) -> list[Write]:
        return self.run(*(Change(happened, self._kind(doc), self._versioned(doc)) for doc in docs))

    def change(self, doc: Doc, **spec: Any) -> list[Write]:
        """A newer version of an object, with some of its spec replaced."""
        return self.tell({**doc, "spec": {**doc.get("spec", {}), **spec}}, happened=Happened.MODIFIED)

    def gone(self, doc: Doc) -> list[Write]:
        return self.tell(doc, happened=Happened.DELETED)

    def run(self, *changes: Change, replies: Sequence[Reply] = (), after: float = 0.0) -> list[Write]:
        self.now += after
        writes = self.scheduler.step(self.now, changes, replies)
        self.writes += writes
        self._unanswered += writes
        self.scheduler.cluster.check()
        return writes

    def answer(self, error: ApiError | None = None, *, to: str = "") -> list[Write]:
        """Reply to every write that has none yet; those to the named subresource fail if there is an error."""
        replies = [Reply(w, {}, error if error is not None and (not to or w.subresource == to) else None)
                   for w in self._unanswered]  # fmt: skip
        self._unanswered = []
        return self.run(replies=replies)

    def binds(self) -> dict[str, str]:
        return {w.name: w.body["target"]["name"] for w in self.writes if w.subresource == "binding"}

    def events(self, reason: str) -> list[Doc]:
        return [
            w.body for w in self.writes
            if w.kind is kinds.EVENT_V1 and w.verb is Verb.CREATE and w.body["reason"] == reason
        ]  # fmt: skip

    def conditions(self, name: str) -> list[Doc]:
        return [
            w.body["status"]["conditions"][0] for w in self.writes
            if w.subresource == "status" and w.name == name and "conditions" in w.body["status"]
        ]  # fmt: skip

    def _kind(self, doc: Doc) -> Kind:
        kind = kinds.Registry().by_kind(doc.get("apiVersion", "v1"), doc["kind"])
        assert kind is not None
        return kind

    def _versioned(self, doc: Doc) -> Doc:
        return {**doc, "metadata": {**doc["metadata"], "resourceVersion": str(next(self._versions))}}


def node(name: str, **allocatable: str) -> Doc:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10", **allocatable}},
    }


def pod(name: str, *, cpu: str = "1", on: str = "", priority: int = 0, **spec: Any) -> Doc:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
            "schedulerName": "default-scheduler",
            "priority": priority,
            **({"nodeName": on} if on else {}),
            **spec,
        },
        "status": {"phase": "Pending"},
    }


def deleting(doc: Doc) -> Doc:
    return {**doc, "metadata": {**doc["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}


def seen(stage: Stage, name: str) -> Pod:
    return next(pod_state.seen for pod_state in stage.cluster.pods.values() if pod_state.seen.name == name)
