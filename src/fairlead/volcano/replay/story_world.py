"""The world in which recorded stories of Volcano Jobs are lived through again: a Store and controllers on virtual time.

The controllers are those of a cluster with Volcano, with the original's quirks, and a scheduler on four nodes that
never fill; what they are made of is handed in. The kubelet is the story itself: bound pods change only when a step says
so, and a pod that is deleted vanishes a quarter of a second later, unless the story holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import delete, namespaced_name
from fairlead.cluster.housekeeping import ALL_CONTROLLERS
from fairlead.core.model import kinds as k
from fairlead.core.model.flow import Change, Doc, DocView, PatchType, Reply, Verb, Watch, Write
from fairlead.core.model.times import timestamp
from fairlead.runtime.virtual import VirtualClock
from fairlead.volcano.controller_settings import VolcanoSettings
from fairlead.volcano.kinds import (
    VC_COMMAND,
    VC_CRON_JOB,
    VC_HYPER_NODE,
    VC_JOB,
    VC_JOB_FLOW,
    VC_JOB_TEMPLATE,
    VC_POD_GROUP,
    VC_QUEUE,
)
from fairlead.volcano.records.keys import KeyPair
from fairlead.volcano.records.quirks import ORIGINAL, Quirks

if TYPE_CHECKING:
    from fairlead.core.model.flow import Controller
    from fairlead.core.model.kinds import Kind
    from fairlead.kube.replay.recorded_cluster import RecordedCluster

MakeScheduler = Callable[[DocView], "Controller"]
STORY_KINDS: Mapping[str, Kind] = {
    "KubeJob": k.JOB, "Job": VC_JOB, "CronJob": VC_CRON_JOB, "Command": VC_COMMAND, "PodGroup": VC_POD_GROUP,
    "Queue": VC_QUEUE, "JobFlow": VC_JOB_FLOW, "JobTemplate": VC_JOB_TEMPLATE, "HyperNode": VC_HYPER_NODE,
    "Pod": k.POD, "Deployment": k.DEPLOYMENT, "ReplicaSet": k.REPLICA_SET, "StatefulSet": k.STATEFUL_SET,
    "PersistentVolumeClaim": k.PERSISTENT_VOLUME_CLAIM, "Service": k.SERVICE, "ConfigMap": k.CONFIG_MAP,
    "Secret": k.SECRET, "Namespace": k.NAMESPACE, "NetworkPolicy": k.NETWORK_POLICY,
}  # fmt: skip
"""What stories call kinds; a bare Job is Volcano's."""
_NOT_THERE = frozenset({"node-lifecycle-controller", "taint-eviction-controller", "volume-provisioner"})
STORY_CONTROLLERS = tuple(name for name in ALL_CONTROLLERS if name not in _NOT_THERE)
"""The controllers of a cluster in which stories were recorded."""
_PRIORITIES = {"low": 10, "mid": 100, "high": 1000}
_START = 1_767_225_610.0  # ten seconds past a minute
_VANISHING = 0.25
_REST = 6.0


class _StoryKubelet(Reconciler[tuple[str, str]]):
    """Removes pods that are being deleted."""

    name = "story-kubelet"
    watches: Sequence[Watch] = (Watch(k.POD),)

    def __init__(self, view: DocView) -> None:
        super().__init__(view)
        self.holds = False
        self._going: dict[tuple[str, str], tuple[str, float]] = {}

    def observe(self, change: Change) -> None:
        pod, key = change.doc, namespaced_name(change.doc)
        if change.gone or not pod["metadata"].get("deletionTimestamp"):
            self._going.pop(key, None)
        elif key not in self._going:
            self._going[key] = pod["metadata"]["uid"], self.now + _VANISHING
            self.queue.add_at(key, self.now + _VANISHING)

    def visit(self, key: tuple[str, str], now: float) -> Iterable[Write]:
        if key not in self._going:
            return
        uid, due = self._going[key]
        if now < due:
            self.queue.add_at(key, due)
        elif not self.holds:
            metadata = {"namespace": key[0], "name": key[1], "uid": uid}
            yield delete(k.POD, {"metadata": metadata}, grace_seconds=0)


class _Sessions:
    """A scheduler that learns of changes once a second, half a second after steps happen: as in the recording, a pod
    that is deleted is mostly gone when the next session begins."""

    def __init__(self, scheduler: Controller) -> None:
        self.name = scheduler.name
        self._scheduler = scheduler
        self._held: list[Change] = []
        self._next = float("-inf")

    @property
    def watches(self) -> Sequence[Watch]:
        return self._scheduler.watches

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        if changes and not self._held:
            self._next = (now + 0.5) // 1 + 0.5
        self._held += changes
        if now < self._next:
            return self._scheduler.step(now, (), replies) if replies else []
        taken, self._held = self._held, []
        return self._scheduler.step(now, taken, replies)

    def wake_at(self) -> float | None:
        due = self._scheduler.wake_at()
        return self._next if self._held else due


def _keys() -> KeyPair:
    """Keys that look like keys: recordings have a word in their place."""
    return KeyPair("-----BEGIN RSA PRIVATE KEY-----", "ssh-rsa")


def story_settings(quirks: Quirks = ORIGINAL) -> VolcanoSettings:
    """The settings of Volcano's controllers and admission where stories were recorded."""
    return VolcanoSettings(all_webhooks=True, quirks=quirks, make_keys=_keys)


class StoryWorld:
    def __init__(self, namespace: str, cluster: RecordedCluster, make_scheduler: MakeScheduler | None = None) -> None:
        """`make_scheduler` makes one in the place of the cluster's own."""
        self.namespace = namespace
        clock = VirtualClock(_START)
        self.store = cluster.store(clock)
        self._kubelet = _StoryKubelet(self.store)
        scheduler = cluster.scheduler(self.store) if make_scheduler is None else make_scheduler(self.store)
        schedulers = [] if scheduler is None else [_Sessions(scheduler)]
        self._runtime = cluster.over(self.store, schedulers=schedulers, kubelet=self._kubelet).virtual(clock)
        self._populate()
        self.rest()

    def _populate(self) -> None:
        self._create(k.NAMESPACE, {"metadata": {"name": self.namespace}})
        for name, value in _PRIORITIES.items():
            self._create(k.PRIORITY_CLASS, {"metadata": {"name": name}, "value": value})
        for name in ("root", "default"):
            spec = {"weight": 1, "reclaimable": name != "root"}
            self._create(VC_QUEUE, {"metadata": {"name": name}, "spec": spec})
        room = {"cpu": "1000", "memory": "4000Gi", "pods": "1000", "nvidia.com/gpu": "1000"}
        for index in range(4):
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": timestamp(self.now)}
            status = {"allocatable": room, "capacity": room, "conditions": [ready]}
            self._create(k.NODE, {"metadata": {"name": f"node-{index}"}, "spec": {}, "status": status})

    def _create(self, kind: Kind, doc: Doc) -> Doc:
        doc = {"apiVersion": kind.api_version, "kind": kind.kind, **doc}
        return self.store.perform(Write(Verb.CREATE, kind, "", doc["metadata"]["name"], body=doc))

    @property
    def now(self) -> float:
        return self._runtime.now

    def place_of(self, kind: Kind) -> str:
        return self.namespace if kind.namespaced else ""

    # ---- what happens in steps ----

    def rest(self, seconds: float = _REST) -> None:
        """Let time pass until everything that follows at once has followed."""
        self._runtime.run(self.now + seconds)

    def create(self, kind: Kind, doc: Doc, *, dry: bool = False) -> Doc:
        params = {"dryRun": "All"} if dry else {}
        name = doc["metadata"].get("name", "")
        return self.store.perform(Write(Verb.CREATE, kind, self.place_of(kind), name, body=doc, params=params))

    def delete(self, kind: Kind, name: str, propagation: str) -> None:
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        self.store.perform(Write(Verb.DELETE, kind, self.place_of(kind), name, body=options))

    def evict(self, name: str) -> None:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": self.namespace}}
        self.store.perform(Write(Verb.CREATE, k.POD, self.namespace, name, body=body, subresource="eviction"))

    def patch(self, kind: Kind, name: str, patch: Any, *, status: bool) -> None:
        dialect = PatchType.JSON if isinstance(patch, list) else PatchType.MERGE
        part = "status" if status else ""
        self.store.perform(
            Write(Verb.PATCH, kind, self.place_of(kind), name, body=patch, subresource=part, patch_type=dialect)
        )

    def command(self, action: str, target: Doc) -> None:
        kind = STORY_KINDS[target["kind"]]
        found = self.store.get(kind, self.place_of(kind), target["name"]) or {"metadata": {"uid": "0"}}
        body = {
            "apiVersion": VC_COMMAND.api_version,
            "kind": "Command",
            "metadata": {"generateName": f"{target['name']}-", "namespace": self.namespace},
            "action": action,
            "target": {
                "apiVersion": kind.api_version,
                "kind": kind.kind,
                "name": target["name"],
                "uid": found["metadata"]["uid"],
                "controller": True,
            },
        }
        self.store.perform(Write(Verb.CREATE, VC_COMMAND, self.namespace, "", body=body))

    def hold(self) -> None:
        self._kubelet.holds = True

    def release(self) -> None:
        """The pods that were held vanish, and the kubelet is back."""
        self._kubelet.holds = False
        for pod in list(self.store.list(k.POD, self.namespace)):
            if pod["metadata"].get("deletionTimestamp"):
                self.store.perform(delete(k.POD, pod, grace_seconds=0))

    def set_phase(self, names: Iterable[str], step: Doc) -> None:
        """What the kubelet reports of bound pods that have not ended."""
        for name in names if step["phase"] != "none" else ():
            pod = self.store.get(k.POD, self.namespace, name)
            if pod is None or not pod["spec"].get("nodeName") or has_ended(pod):
                continue
            body = {"status": pod_status(pod, step, self.now)}
            write = Write(
                Verb.PATCH, k.POD, self.namespace, name, body=body, subresource="status", patch_type=PatchType.MERGE
            )
            self.store.perform(write)
            self._runtime.settle()

    def living_pods(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.store.list(k.POD, self.namespace)]

    def delete_groups(self) -> None:
        for group in list(self.store.list(VC_POD_GROUP, self.namespace)):
            self.delete(VC_POD_GROUP, group["metadata"]["name"], "Background")


def has_ended(pod: Doc) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def pod_status(pod: Doc, step: Doc, now: float) -> Doc:
    phase = step["phase"]
    ready = phase == "Running" and step.get("ready", True)
    statuses = []
    for index, container in enumerate(pod["spec"]["containers"]):
        code = 0
        if phase == "Failed" and index == step.get("container", 0):
            code = step.get("exitCode", 1)
        restarts = step.get("restarts", 0)
        statuses.append(_container_status(container, phase, code, ready=ready, restarts=restarts, now=now))
    conditions = [
        *(one for one in (pod.get("status") or {}).get("conditions") or () if one["type"] not in ("Ready",)),
        {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": timestamp(now)},
    ]
    status: Doc = {"phase": phase, "conditions": conditions}
    if phase != "Unknown" and not step.get("noContainers"):
        status["containerStatuses"] = statuses
    if step.get("reason"):
        status["reason"] = step["reason"]
    return status


def _container_status(container: Doc, phase: str, code: int, *, ready: bool, restarts: int, now: float) -> Doc:
    if phase in ("Succeeded", "Failed"):
        state: Doc = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
    elif phase == "Running":
        state = {"running": {"startedAt": timestamp(now)}}
    else:
        state = {"waiting": {"reason": "ContainerCreating"}}
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "restartCount": restarts,
        "state": state,
    }
