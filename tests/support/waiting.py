"""A Backlog with small made-up plugins, for the tests of the queue. Time is whatever number a test says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from fairlead.core.engine.queue.backlog import Backlog
from fairlead.core.engine.queue.entry import Entry
from fairlead.core.framework.plugin import Hint, Interest, Plugin
from fairlead.core.framework.profile import profile_of
from fairlead.core.model import kinds
from fairlead.core.model.events import ActionType, ClusterEvent
from fairlead.core.model.flow import Happened
from fairlead.core.model.pod import Pod
from fairlead.core.model.reasons import Reject, Status, unresolvable
from tests.support.scenario import Scenario, put

PROFILE = "default-scheduler"
T0 = 1000.0


class ByPriority(Plugin):
    name = "ByPriority"

    def queue_key(self, pod: Pod, since: float) -> tuple[float, ...]:
        return -pod.priority, since


class FilterPlugin(Plugin):
    """A plugin that filters; what it listens to is up to the test."""

    def __init__(self, name: str, interests: Sequence[Interest] | None = ()) -> None:
        self.name = name
        self._interests = interests

    def events(self) -> Sequence[Interest] | None:
        return self._interests

    def filter(self, cycle: object, nodes: object) -> Iterable[Reject]:
        return ()


class GatePlugin(Plugin):
    """Refuses to queue the pods whose names are in `shut`."""

    def __init__(self, name: str, interests: Sequence[Interest] = ()) -> None:
        self.name = name
        self._interests = interests
        self.shut: set[str] = set()
        self.asked: list[str] = []
        self.answer: Status = unresolvable(f"{name} is shut")

    def events(self) -> Sequence[Interest]:
        return self._interests

    def pre_enqueue(self, pod: Pod, cluster: object) -> Status | None:
        self.asked.append(pod.name)
        return self.answer if pod.name in self.shut else None


def on(resource: str, action: int, hint: Any = None) -> Interest:
    return Interest(ClusterEvent(resource, action), hint)


def saying(hint: Hint) -> Any:
    return lambda pod, old, new: hint


NODE_ADD = ClusterEvent("Node", ActionType.ADD)
POD_GONE = ClusterEvent("AssignedPod", ActionType.DELETE)


class QueueScenario(Scenario):
    """A cluster and its Backlog. `fit` listens to new nodes, `ports` to pods that leave; `gate` is open at first."""

    def __init__(self, *more: Plugin, **settings: Any) -> None:
        self.fit = FilterPlugin("Fit", (on("Node", ActionType.ADD),))
        self.ports = FilterPlugin("Ports", (on("Pod", ActionType.DELETE),))
        self.gate = GatePlugin("Gate", (on("Pod", ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),))
        self.plugins: tuple[Plugin, ...] = (ByPriority(), self.gate, self.fit, self.ports, *more)
        super().__init__()
        self.backlog = Backlog({PROFILE: profile_of(PROFILE, self.plugins)}, self.cluster, **settings)
        self._uids = count(1)

    def pod(self, name: str, *, uid: str = "", nominated: str = "", node: str = "", **spec: Any) -> Pod:
        """A pod that the cluster knows. Labels and gates by those names, all else goes into its spec."""
        metadata: dict[str, Any] = {"namespace": "default", "name": name, "uid": uid or f"{name}-{next(self._uids)}"}
        if labels := spec.pop("labels", None):
            metadata["labels"] = labels
        if gates := spec.pop("gates", None):
            spec["schedulingGates"] = [{"name": gate} for gate in gates]
        if node:
            spec["nodeName"] = node
        document = {
            "metadata": metadata,
            "spec": {"containers": [{"name": "main"}], **spec},
            "status": {"nominatedNodeName": nominated} if nominated else {},
        }
        applied = put(self.cluster, kinds.POD, document, Happened.MODIFIED)
        assert applied is not None
        assert isinstance(applied.new, Pod)
        return applied.new

    def gone(self, pod: Pod) -> None:
        document = {"metadata": {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid}, "spec": {}}
        self.remove(kinds.POD, document)

    def add(self, name: str, now: float = T0, **spec: Any) -> Pod:
        pod = self.pod(name, **spec)
        self.backlog.add(pod, now)
        return pod

    def pop(self, now: float = T0) -> Entry:
        entry = self.backlog.pop(now)
        assert entry is not None
        return entry

    def fail(self, entry: Entry, *plugins: str, now: float = T0, pending: Iterable[str] = ()) -> Entry:
        """The attempt came to nothing: because of these plugins, or of an error if there are none."""
        entry.refuse(frozenset(plugins), frozenset(pending), message="no")
        self.backlog.put_back(entry, now)
        return entry

    def park(self, name: str, *plugins: str, now: float = T0, pending: Iterable[str] = (), **spec: Any) -> Pod:
        """A pod that was tried once and refused by these plugins."""
        pod = self.add(name, now, **spec)
        self.fail(self.pop(now), *plugins, now=now, pending=pending)
        assert self.queue(pod) == "unschedulable"
        return pod

    def queue(self, pod: Pod) -> str:
        waiting = self.backlog.where(pod.uid)
        return waiting.queue if waiting else "gone"

    def drain(self, now: float = T0) -> list[str]:
        """Names in the order they are popped."""
        names = []
        while (entry := self.backlog.pop(now)) is not None:
            names.append(entry.pod.name)
            self.backlog.done(entry.pod.uid)
        return names
