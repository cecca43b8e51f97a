"""All kubelets of the simulated nodes, as one controller.

A bound pod starts after its start delay, runs for its run time and ends with its exit code, as pod_script.py reads
them from its annotations; a pod without a run time runs until it is deleted. A deleted pod is removed after its
terminate delay, at the latest when its grace period is over. A pod that works with a gang (gang_work.py) uses up its
run time only while enough of the gang run. A node reports itself Ready once and then renews its Lease; a node set to
fail falls silent, and its pods stand still until it recovers.

Keys are (namespace, name) of pods and ("", name) of nodes. Invariant: what is due is computed from the document and
the script alone, so a kubelet that is restarted goes on where the last one stopped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import condition, create, delete, patch_status
from fairlead.cluster.kubelets.gang_work import GangWork, Work
from fairlead.cluster.kubelets.pod_script import PodScript, default_for, read_script
from fairlead.cluster.kubelets.pod_status import (
    ended_status,
    is_declared_unready,
    last_end,
    ready_again_status,
    restarted_status,
    restarting_status,
    restarts,
    running_since,
    running_status,
    with_condition,
)
from fairlead.cluster.kubelets.simulated_nodes import (
    address_of,
    fails_from,
    healthy_conditions,
    healthy_status,
    is_simulated,
    simulated_node,
)
from fairlead.core.model.flow import Change, Doc, DocView, Happened, Reply, Verb, Watch, Write
from fairlead.core.model.kinds import LEASE, NODE, POD
from fairlead.core.model.times import micro_timestamp, seconds_of
from fairlead.errors import NotFound

__all__ = ["Kubelet", "PodScript", "renewal_for", "simulated_node"]

LEASE_NAMESPACE = "kube-node-lease"
_DELETED = Happened.DELETED
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""
_FIRST_CRASH_DELAY, _LONGEST_CRASH_DELAY = 10.0, 300.0
_DEADLINE = "Pod was active on the node longer than the specified deadline"

Key = tuple[str, str]


@dataclass(slots=True)
class _Pod:
    """What the kubelet keeps of a pod: as little as possible, since there may be very many."""

    uid: str
    node: str
    script: PodScript
    bound_at: float
    phase: str = "Pending"
    ends_at: float | None = None  # when a running pod's containers end, or a waiting one's restart
    gone_by: float | None = None  # when a deleted pod is removed
    is_held: bool = False  # removed as far as the kubelet is concerned; finalizers keep the object
    declared_unready: bool = False  # by the node controller, while this node was lost
    work: Work | None = None  # of a pod that works with a gang
    crashed: bool = False  # whether the containers of a pod that works with a gang wait to be started again
    doc: Doc | None = None  # only until the pod runs


@dataclass(slots=True)
class _Host:
    uid: str
    ip: str
    silent_from: float | None
    is_ready: bool
    leased: bool = False
    renew_at: float = float("-inf")
    pods: dict[Key, None] = field(default_factory=dict)

    def is_silent(self, now: float) -> bool:
        return self.silent_from is not None and self.silent_from <= now


class Kubelet(Reconciler[Key]):
    name = "kubelet"
    watches: Sequence[Watch] = (Watch(NODE), Watch(POD))  # passing over a pod without a node is less than a selector

    def __init__(
        self,
        view: DocView,
        *,
        rng: Random,
        default: PodScript | None = None,
        renew_interval: float | None = 10.0,
        jobs: DocView | None = None,
    ) -> None:
        """`default` is what pods do that say nothing; `renew_interval` None means no Leases (see node_lifecycle).
        `jobs` has the objects that pods belong to, if the caller can read all kinds (see gang_work)."""
        super().__init__(view)
        self._rng = rng
        self._default = default or PodScript()
        self._renew_interval = renew_interval
        self._hosts: dict[str, _Host] = {}
        self._pods: dict[Key, _Pod] = {}
        self._homeless: dict[str, dict[Key, None]] = {}  # bound to a node that was not seen yet
        self._gangs = GangWork(jobs)
        self._last_address = 0

    def observe(self, change: Change) -> None:
        if change.kind is NODE:
            self._observe_node(change)
            return
        doc = change.doc
        metadata = doc["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        node = doc["spec"].get("nodeName") if "spec" in doc else None
        pod = self._pods.get(key)
        if change.happened is _DELETED or not node:
            if pod is not None:
                self._drop(key, metadata.get("uid", ""))
            return
        if pod is None or pod.uid != metadata["uid"]:
            pod = self._take_in(key, doc, node)
        self._read(pod, doc)
        if pod.work is not None:
            self._count(key, pod, pod.work)
        if pod.is_held:
            return
        if pod.gone_by is not None or pod.phase == "Pending" or pod.declared_unready or pod.work is not None:
            self.queue.add(key)
        elif pod.ends_at is not None:
            host = self._hosts.get(node)
            if pod.ends_at > self.now and host is not None and host.silent_from is None:
                self.queue.add_at(key, pod.ends_at)  # a visit would do the same
            else:
                self.queue.add(key)

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        return self._visit_pod(key, now) if key[0] else self._visit_node(key[1], now)

    # Nodes

    def _observe_node(self, change: Change) -> None:
        name = change.doc["metadata"]["name"]
        if change.gone or not is_simulated(change.doc):
            host = self._hosts.pop(name, None)
            if host is not None:
                self._homeless.setdefault(name, {}).update(host.pods)
            return
        host = self._host(name, change.doc)
        before = (host.silent_from, host.is_ready)
        host.silent_from = fails_from(change.doc)
        host.is_ready = _reports_ready(change.doc)
        host.ip = _address(change.doc)
        if before != (host.silent_from, host.is_ready):
            for key in host.pods:
                self.queue.add(key)
        self.queue.add(("", name))

    def _host(self, name: str, node: Doc) -> _Host:
        host = self._hosts.get(name)
        if host is None or host.uid != node["metadata"]["uid"]:
            pods = host.pods if host is not None else self._homeless.pop(name, {})
            host = _Host(uid=node["metadata"]["uid"], ip="", silent_from=None, is_ready=False, pods=pods)
            self._hosts[name] = host
            for key in pods:
                self.queue.add(key)
                if (work := self._pods[key].work) is not None:
                    self._count(key, self._pods[key], work)
        return host

    def _visit_node(self, name: str, now: float) -> Iterable[Write]:
        host = self._hosts.get(name)
        if host is None:
            return
        if host.is_silent(now):
            for key in host.pods:
                if (work := self._pods[key].work) is not None:
                    self._count(key, self._pods[key], work)
            return
        if host.silent_from is not None:
            self.queue.add_at(("", name), host.silent_from)
        if not host.is_ready:
            yield from self._report_ready(name, now)
        if self._renew_interval is not None:
            yield from self._renew(name, host, self._renew_interval, now)

    def _report_ready(self, name: str, now: float) -> Iterable[Write]:
        node = self.view.get(NODE, "", name)
        if node is None:
            return
        status = node.get("status") or {}
        report = healthy_status(name, now=now) | {"conditions": healthy_conditions(now, status.get("conditions") or ())}
        if status.get("addresses"):
            del report["addresses"]
        if not status.get("allocatable"):
            resources = status.get("capacity") or {"cpu": "8", "memory": "32Gi", "pods": "110"}
            report |= {"capacity": resources, "allocatable": resources}
        yield patch_status(NODE, node, report)

    def _renew(self, name: str, host: _Host, interval: float, now: float) -> Iterable[Write]:
        if now < host.renew_at:
            self.queue.add_at(("", name), host.renew_at)
            return
        # The first renewal comes at a random time, so that thousands of nodes do not renew at once.
        pause = interval if host.leased else interval * self._rng.random()
        host.renew_at = now + pause
        self.queue.add_at(("", name), host.renew_at)
        if host.leased:
            yield Write(Verb.PATCH, LEASE, LEASE_NAMESPACE, name, body={"spec": {"renewTime": micro_timestamp(now)}})
        else:
            host.leased = True
            yield create(LEASE, _lease(name, host.uid, seconds=round(4 * interval), now=now))

    def refused(self, key: Key, reply: Reply, now: float) -> None:
        host = self._hosts.get(key[1])
        if host is not None and reply.write.kind is LEASE:
            host.renew_at = now
            if isinstance(reply.error, NotFound) and reply.write.verb is Verb.PATCH:
                host.leased = False

    # Pods

    def _take_in(self, key: Key, doc: Doc, node: str) -> _Pod:
        if key in self._pods:
            self._drop(key, "")
        default = default_for(doc, self._default)
        script = read_script(doc["metadata"].get("annotations") or {}, self._rng, default)
        work = self._gangs.join(key, doc, script.run_time)
        pod = _Pod(uid=doc["metadata"]["uid"], node=node, script=script, bound_at=self.now, work=work)
        self._pods[key] = pod
        host = self._hosts.get(node)
        (host.pods if host is not None else self._homeless.setdefault(node, {}))[key] = None
        self._remember_address((doc.get("status") or {}).get("podIP") or "")
        return pod

    def _drop(self, key: Key, uid: str) -> None:
        pod = self._pods.get(key)
        if pod is None or (uid and pod.uid != uid):
            return
        del self._pods[key]
        host = self._hosts.get(pod.node)
        (host.pods if host is not None else self._homeless.get(pod.node, {})).pop(key, None)
        if pod.work is not None:
            self._visit_all(self._gangs.leave(key, pod.work))

    def _read(self, pod: _Pod, doc: Doc) -> None:
        """What the newest document says of phase, end and deletion."""
        phase = pod.phase = (doc.get("status") or {}).get("phase") or "Pending"
        pod.doc, pod.declared_unready = None, False
        if phase == "Pending":
            pod.doc = doc
        elif phase == "Running":
            pod.crashed = pod.work is not None and last_end(doc) is not None
            if pod.work is None or pod.crashed:
                pod.ends_at = self._end_of(pod, doc)
            pod.declared_unready = is_declared_unready(doc)
        else:
            pod.ends_at = None
        deleted = doc["metadata"].get("deletionTimestamp")
        pod.is_held = bool(
            deleted and doc["metadata"].get("finalizers") and not doc["metadata"].get("deletionGracePeriodSeconds")
        )
        if deleted and pod.gone_by is None:
            wait = pod.script.terminate_delay if pod.phase == "Running" else 0.0
            pod.gone_by = min(self.now + wait, max(self.now, seconds_of(deleted)))

    def _end_of(self, pod: _Pod, doc: Doc) -> float | None:
        """When the containers end, or when those that crashed start again. Seconds in documents are whole ones, so
        what was known more exactly stays."""
        ended = last_end(doc)
        if ended is not None:
            return pod.ends_at if pod.ends_at is not None else ended + _crash_delay(restarts(doc))
        since = running_since(doc)
        if since is None:
            return None
        if pod.ends_at is not None:
            return pod.ends_at
        return _earlier(None if pod.script.run_time is None else since + pod.script.run_time, _deadline(doc))

    def _visit_pod(self, key: Key, now: float) -> Iterable[Write]:
        pod = self._pods.get(key)
        host = self._hosts.get(pod.node) if pod is not None else None
        if pod is None or pod.is_held or host is None or host.is_silent(now):
            return ()
        works = pod.phase == "Running" and not pod.crashed and pod.gone_by is None
        changed = self._work(key, pod, pod.work, now) if works and pod.work is not None else ()
        if changed:
            return changed
        due = self._due(pod)
        if due is None or now < due:
            if due is not None:
                self.queue.add_at(key, due)
            return self._ready_again(key, pod, host, now) if pod.declared_unready else ()
        if pod.gone_by is not None:
            return self._remove(key, pod)
        if pod.phase == "Pending":
            return self._start(pod, host, now)
        return self._end(key, pod, now)

    # Work of gangs

    def _count(self, key: Key, pod: _Pod, work: Work) -> None:
        host = self._hosts.get(pod.node)
        stands_still = pod.crashed or host is None or host.is_silent(self.now)
        runs = pod.phase == "Running" and not stands_still
        self._visit_all(self._gangs.count(key, work, runs=runs, succeeded=pod.phase == "Succeeded"))

    def _visit_all(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self.queue.add(key)

    def _work(self, key: Key, pod: _Pod, work: Work, now: float) -> Sequence[Write]:
        """Let a running pod work or wait, as its gang does; returns what its condition then says, if that changed."""
        if pod.ends_at is not None and pod.ends_at <= now:
            return ()
        self._count(key, pod, work)
        doc = self.view.get(POD, *key)
        if doc is None or doc["metadata"]["uid"] != pod.uid:
            return ()
        changed = self._gangs.turn(work, now)
        pod.ends_at = _earlier(work.ends_at, _deadline(doc))
        if not changed:
            return ()
        return (_report(doc, with_condition(doc, self._gangs.condition(work, now))),)

    def _due(self, pod: _Pod) -> float | None:
        if pod.gone_by is not None:
            return pod.gone_by
        if pod.phase == "Pending":
            return pod.bound_at + pod.script.start_delay
        return pod.ends_at

    def _ready_again(self, key: Key, pod: _Pod, host: _Host, now: float) -> Iterable[Write]:
        doc = self.view.get(POD, *key) if host.is_ready else None
        if doc is not None and doc["metadata"]["uid"] == pod.uid and is_declared_unready(doc):
            yield _report(doc, ready_again_status(doc, now=now))

    def _remove(self, key: Key, pod: _Pod) -> Iterable[Write]:
        doc = {"metadata": {"namespace": key[0], "name": key[1], "uid": pod.uid}}
        yield delete(POD, doc, grace_seconds=0)

    def _start(self, pod: _Pod, host: _Host, now: float) -> Iterable[Write]:
        doc = pod.doc
        if doc is None:
            return ()
        ip = host.ip if doc["spec"].get("hostNetwork") else self._next_address()
        status = running_status(doc, now=now, pod_ip=ip, host_ip=host.ip)
        run_time, deadline = pod.script.run_time, doc["spec"].get("activeDeadlineSeconds")
        if run_time is None or (deadline is not None and deadline < run_time):
            run_time = deadline
        pod.ends_at = None if run_time is None or pod.work is not None else now + run_time
        return (_report(doc, status),)

    def _end(self, key: Key, pod: _Pod, now: float) -> Iterable[Write]:
        doc = self.view.get(POD, *key)
        if doc is None or doc["metadata"]["uid"] != pod.uid or doc["status"].get("phase") != "Running":
            return ()
        if _is_past_deadline(doc, now):
            status = ended_status(doc, now=now, exit_code=137, reason="DeadlineExceeded", message=_DEADLINE)
            return (_report(doc, status),)
        if _restarts_after(doc, pod.script.exit_code):
            return (self._restart(pod, doc, now),)
        return (_report(doc, ended_status(doc, now=now, exit_code=pod.script.exit_code)),)

    def _restart(self, pod: _Pod, doc: Doc, now: float) -> Write:
        wait = _crash_delay(restarts(doc))
        if last_end(doc) is None and wait > 0:
            pod.ends_at = now + wait
            return _report(doc, restarting_status(doc, now=now, exit_code=pod.script.exit_code, wait=wait))
        pod.ends_at = now + (pod.script.run_time or 0.0)
        if pod.work is not None:
            pod.work.begin_anew(pod.script.run_time)
            pod.ends_at = None
        return _report(doc, restarted_status(doc, now=now, exit_code=pod.script.exit_code))

    # Addresses of pods: 10.0.0.0/8, counted up

    def _next_address(self) -> str:
        self._last_address = self._last_address % 0xFFFFFE + 1
        return f"10.{self._last_address >> 16}.{self._last_address >> 8 & 255}.{self._last_address & 255}"

    def _remember_address(self, address: str) -> None:
        if address.startswith("10."):
            _, high, middle, low = address.split(".")
            self._last_address = max(self._last_address, int(high) << 16 | int(middle) << 8 | int(low))


def renewal_for(controllers: Collection[str]) -> float | None:
    """How often Leases have to be renewed beside these controllers: our own node controller needs none, and on virtual
    time nobody else looks."""
    return None if "node-lifecycle-controller" in controllers else 10.0


def _report(pod: Doc, status: Doc) -> Write:
    return patch_status(POD, pod, status, conforms=True)


def _reports_ready(node: Doc) -> bool:
    ready = condition(node, "Ready")
    return ready is not None and ready["status"] == "True" and bool(node["status"].get("allocatable"))


def _address(node: Doc) -> str:
    for one in (node.get("status") or {}).get("addresses") or ():
        if one.get("type") == "InternalIP":
            address: str = one["address"]
            return address
    return address_of(node["metadata"]["name"])


def _lease(name: str, node_uid: str, *, seconds: int, now: float) -> Doc:
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node_uid}
    return {
        "apiVersion": LEASE.api_version,
        "kind": "Lease",
        "metadata": {"namespace": LEASE_NAMESPACE, "name": name, "ownerReferences": [owner]},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": max(1, seconds), "renewTime": micro_timestamp(now)},
    }


def _restarts_after(pod: Doc, exit_code: int) -> bool:
    policy = pod["spec"].get("restartPolicy", "Always")
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _deadline(pod: Doc) -> float | None:
    seconds = pod["spec"].get("activeDeadlineSeconds")
    return None if seconds is None else seconds_of(pod["status"]["startTime"]) + float(seconds)


def _is_past_deadline(pod: Doc, now: float) -> bool:
    deadline = _deadline(pod)
    return deadline is not None and now >= deadline


def _earlier(one: float | None, other: float | None) -> float | None:
    return one if other is None or (one is not None and one <= other) else other


def _crash_delay(restart_count: int) -> float:
    """None before the first restart, then 10 s, 20 s, ... 5 min."""
    if not restart_count:
        return 0.0
    return min(_FIRST_CRASH_DELAY * 2.0 ** min(restart_count - 1, 10), _LONGEST_CRASH_DELAY)
