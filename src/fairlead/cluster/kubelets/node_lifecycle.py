"""Nodes that fall silent, and the taints that their conditions stand for.

    Lease renewed, or a simulated node that is not set to fail ──▶ conditions are the kubelet's
    no renewal, or set to fail, for the grace period ──▶ Ready and the pressures become Unknown

    Ready False    node.kubernetes.io/not-ready        NoSchedule and NoExecute
    Ready Unknown  node.kubernetes.io/unreachable      NoSchedule and NoExecute
    pressures, no network, cordoned                    NoSchedule, each under its own key

Silence is measured on our own clock from when a renewal was seen, never from the times in it. Of a simulated node the
annotation that makes it fail says the same, so nobody has to renew a thousand Leases for this controller. A node of
somebody else that never had a Lease has no kubelet to fall silent and keeps the conditions it was given: nodes written
by hand stay as written. What the taints do to pods is in pod_eviction.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import condition, delete, patch, patch_status
from fairlead.cluster.kubelets.simulated_nodes import fails_from, is_simulated
from fairlead.core.model.flow import Change, Doc, DocView, Watch, Write
from fairlead.core.model.kinds import LEASE, NODE
from fairlead.core.model.times import timestamp

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"

_KUBELETS_OWN = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_BY_CONDITION = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_OURS = frozenset(
    [(key, "NoSchedule") for key in (*_BY_CONDITION.values(), UNSCHEDULABLE)]
    + [(NOT_READY, "NoExecute"), (UNREACHABLE, "NoExecute")]
)


class NodeLifecycle(Reconciler[str]):
    name = "node-controller"
    watches: Sequence[Watch] = (Watch(NODE), Watch(LEASE, namespace="kube-node-lease"))

    def __init__(self, view: DocView, *, grace: float = 50.0, announce: bool = True) -> None:
        """`grace`: how long a node may be silent; longer if its Lease says that it renews less often."""
        super().__init__(view, announce=announce)
        self._grace = grace
        self._registered: set[str] = set()
        self._renewed_at: dict[str, float] = {}
        self._renewals: dict[str, str] = {}
        self._graces: dict[str, float] = {}
        self._failing_since: dict[str, tuple[float, float]] = {}
        """By simulated node, what its annotation says and since when it is silent."""

    def observe(self, change: Change) -> None:
        name = change.doc["metadata"]["name"]
        gone = change.gone
        if change.kind is NODE:
            self.queue.add(name)
        elif gone:
            for known in (self._renewed_at, self._renewals, self._graces):
                known.pop(name, None)
        else:
            self._note_lease(name, change.doc.get("spec") or {})

    def _note_lease(self, name: str, lease: Doc) -> None:
        renewal = lease.get("renewTime") or ""
        if self._renewals.get(name) == renewal:
            return
        if name not in self._renewed_at:
            self.queue.add(name)
        self._renewals[name] = renewal
        self._renewed_at[name] = self.now
        self._graces[name] = max(self._grace, 1.25 * (lease.get("leaseDurationSeconds") or 0))

    # Visits

    def visit(self, key: str, now: float) -> Iterable[Write]:
        node = self.view.get(NODE, "", key)
        if node is None:
            self._registered.discard(key)
            self._failing_since.pop(key, None)
            yield from self._remove_lease(key)
            return
        if key not in self._registered:
            self._registered.add(key)
            yield from self.event(
                NODE, node, "RegisteredNode", f"Node {key} event: Registered Node {key} in Controller"
            )
        silent_at = self._silent_at(key, node, now)
        if now < silent_at:
            if silent_at < float("inf"):
                self.queue.add_at(key, silent_at)
        elif (condition(node, "Ready") or {}).get("status") != "Unknown":
            yield from self._declare_silent(node, now)
            return
        yield from self._taint(node, now)

    def _silent_at(self, name: str, node: Doc, now: float) -> float:
        """When the grace period of a silent node ends; for one that renews its Lease, when it would."""
        if not is_simulated(node):
            return self._renewed_at[name] + self._graces[name] if name in self._renewed_at else float("inf")
        failing_since = fails_from(node)
        if failing_since is None:
            self._failing_since.pop(name, None)
            return float("inf")
        known = self._failing_since.get(name)
        if known is None or known[0] != failing_since:
            known = self._failing_since[name] = (failing_since, max(failing_since, now))
        return known[1] + self._grace

    def _remove_lease(self, name: str) -> Iterable[Write]:
        lease = self.view.get(LEASE, "kube-node-lease", name) if name in self._renewed_at else None
        if lease is not None:
            yield delete(LEASE, lease)

    def _declare_silent(self, node: Doc, now: float) -> Iterable[Write]:
        known = {one["type"]: one for one in (node.get("status") or {}).get("conditions") or ()}
        for type_ in _KUBELETS_OWN:
            known[type_] = _unknown(known.get(type_), type_, now)
        yield patch_status(NODE, node, {"conditions": list(known.values())})
        yield from self.event(
            NODE, node, "NodeNotReady", f"Node {node['metadata']['name']} status is now: NodeNotReady"
        )

    def _taint(self, node: Doc, now: float) -> Iterable[Write]:
        present = node["spec"].get("taints") or []
        wanted = _wanted_taints(node)
        others = [one for one in present if (one["key"], one["effect"]) not in _OURS]
        ours = {(one["key"], one["effect"]): one for one in present if (one["key"], one["effect"]) in _OURS}
        if set(ours) == set(wanted):
            return
        taints = others + [
            ours.get(pair) or {"key": pair[0], "effect": pair[1], "timeAdded": timestamp(now)} for pair in wanted
        ]
        version = node["metadata"]["resourceVersion"]  # somebody may be tainting at the same time
        yield patch(NODE, node, {"metadata": {"resourceVersion": version}, "spec": {"taints": taints}})


def _wanted_taints(node: Doc) -> list[tuple[str, str]]:
    wanted = []
    for one in (node.get("status") or {}).get("conditions") or ():
        key = _BY_CONDITION.get((one["type"], one["status"]))
        if key is not None:
            wanted.append((key, "NoSchedule"))
            if one["type"] == "Ready":
                wanted.append((key, "NoExecute"))
    if node["spec"].get("unschedulable"):
        wanted.append((UNSCHEDULABLE, "NoSchedule"))
    return wanted


def _unknown(known: Doc | None, type_: str, now: float) -> Doc:
    if known is not None and known["status"] == "Unknown":
        return known
    reason, message = "NodeStatusUnknown", "Kubelet stopped posting node status."
    if known is None:
        reason, message = "NodeStatusNeverUpdated", "Kubelet never posted node status."
    return {
        **(known or {"type": type_, "lastHeartbeatTime": timestamp(now)}),
        "status": "Unknown",
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamp(now),
    }
