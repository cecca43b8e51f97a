"""QuotaUsage: which pod counts in which quota, and the trees of all quotas, kept up to date with the cluster.

Every pod that is there counts in the request of its quota, and in its use once it has a node. Changes of pods come from
the cluster's log of pods; a change of the quotas themselves builds the trees anew and counts all pods again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from fairlead.core.model.quantity import nanos_to_units
from fairlead.core.state.pod_states import PodPlace
from fairlead.koordinator.kinds import KOORD_ELASTIC_QUOTA
from fairlead.koordinator.quotas.accounts import LendingTree, TreeRules
from fairlead.koordinator.records.quotas import DEFAULT, PREEMPTIBLE_LABEL, quota_named_for, quotas_by_namespace
from fairlead.koordinator.records.reservations import is_reserve_pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fairlead.core.model.pod import Pod
    from fairlead.core.model.shape import PodShape
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.pod_states import PodState
    from fairlead.koordinator.quotas.accounts import QuotaAccountState
    from fairlead.koordinator.records.quotas import ElasticQuota


@dataclass(frozen=True, slots=True)
class UsageRules:
    """`several_trees`, `no_default` and `ignores_terminating` are feature gates of the original, `hears_late` is a slip
    of it (KoordinatorQuirks.quota_learns_of_pods_late)."""

    tree: TreeRules
    several_trees: bool = False
    no_default: bool = False
    ignores_terminating: bool = False
    counts_pods_late: bool = False


@dataclass(frozen=True, slots=True)
class Counted:
    """How a pod is counted at the moment."""

    tree: str
    quota: str
    amounts: Mapping[str, int]
    fixed: bool
    placed: bool
    pod: Pod = field(compare=False)
    listing: int = field(compare=False)
    """Which listing of quotas the pod's quota was looked up in."""


@dataclass(slots=True)
class _Listing:
    """The quotas as they were listed last, by key; how many listings there were, and the version of the last."""

    quotas: dict[str, ElasticQuota] = field(default_factory=dict)
    number: int = 0
    version: int = -1


def request_of(pod: Pod) -> Mapping[str, int]:
    """A pod's requests, only of the resources that it names."""
    return _request_of_shape(pod.shape)


@lru_cache(maxsize=4096)
def _request_of_shape(shape: PodShape) -> Mapping[str, int]:
    """Worked out once for all pods of a template, which share their shape."""
    return {name: nanos_to_units(name, nanos) for name, nanos in shape.exact_request.items()}


def is_fixed(pod: Pod) -> bool:
    """Whether a pod may not be preempted."""
    return pod.labels.get(PREEMPTIBLE_LABEL) == "false"


class QuotaUsage:
    def __init__(self, cluster: Cluster, rules: UsageRules) -> None:
        self._cluster = cluster
        self._rules = rules
        self._index = cluster.object_index.of(KOORD_ELASTIC_QUOTA)
        self._quotas: dict[str, ElasticQuota] = {}
        self._listing = _Listing()
        self._static_mark = self._pod_mark = -1
        self._counted: dict[str, Counted] = {}
        self.uncounted: set[str] = set()
        """Pods without a place that are not counted yet, if pods are counted late, by uid."""
        self.counted_until = float("-inf")
        self._members: dict[tuple[str, str], dict[str, None]] = {}
        """The uids of the pods that are counted in a quota and have a place, by tree and quota."""
        self.trees: dict[str, LendingTree] = {}
        self._tree_of: dict[str, str] = {}
        self._of_namespace: dict[str, str] = {}

    # ---- which quota ----

    def quota_of(self, pod: Pod) -> tuple[str, str]:
        """The tree and the quota of a pod; empty names if it has none."""
        name = self._named(pod)
        if name in self._tree_of:
            return self._tree_of[name], name
        return ("", "") if self._rules.no_default else ("", DEFAULT)

    def _named(self, pod: Pod) -> str:
        rules = self._rules
        return quota_named_for(pod.labels, pod.namespace, self._index, self._of_namespace, no_default=rules.no_default)

    def place_of(self, quota: ElasticQuota) -> tuple[str, str]:
        """The tree and the name under which a quota has its account."""
        return self._tree_of.get(quota.name, ""), quota.name

    def account(self, tree: str, quota: str) -> QuotaAccountState | None:
        return self.trees[tree].quotas.get(quota) if tree in self.trees else None

    # ---- catching up ----

    def catch_up(self) -> None:
        cluster = self._cluster
        if self._listing.version != self._index.version or not self.trees:
            self._listing.version = self._index.version
            listed = dict(self._index.items())
            if listed != self._listing.quotas or not self.trees:
                self._listing.quotas = listed
                self._listing.number += 1
                quotas = {quota.name: quota for quota in listed.values()}
                if quotas != self._quotas or not self.trees:
                    self._rebuild(quotas)
        if self._static_mark != cluster.table.static.mark:
            self._static_mark = cluster.table.static.mark
            self._set_totals()
        changed = cluster.pod_log.since(self._pod_mark) if self._pod_mark >= 0 else None
        self._pod_mark = cluster.pod_log.mark
        self._count(
            cluster.pods if changed is None else changed, late=self._rules.counts_pods_late and changed is not None
        )
        if changed is None:
            self._count([uid for uid in self._counted if uid not in cluster.pods])

    def count_late(self, now: float) -> None:
        """Count the pods that came before this moment."""
        if self.uncounted and now > self.counted_until:
            counted, self.uncounted = sorted(self.uncounted), set()
            self._count(counted)
            for uid in counted:  # those who keep the objects of quotas look again
                self._cluster.pod_log.touch(uid)
        self.counted_until = max(now, self.counted_until)

    def _rebuild(self, quotas: dict[str, ElasticQuota]) -> None:
        self._quotas = quotas
        self._of_namespace = quotas_by_namespace(quotas.values())
        self._counted.clear()
        self._members.clear()
        by_tree: dict[str, dict[str, ElasticQuota]] = {"": {}}
        for quota in quotas.values():
            tree = quota.tree if self._rules.several_trees else ""
            by_tree.setdefault(tree, {})[quota.name] = quota
        self.trees = {tree: LendingTree(tree, members, self._rules.tree) for tree, members in by_tree.items()}
        self._tree_of = {name: tree for tree, members in self.trees.items() for name in members.quotas}
        self._static_mark = self._pod_mark = -1

    def _set_totals(self) -> None:
        """The nodes' amounts belong to the default tree, less what other trees have."""
        table = self._cluster.table
        alive = table.alive[: table.high]
        total = {name: int(column[: table.high][alive].sum()) for name, column in table.allocatable.items()}
        for quota in self._quotas.values():
            if not self._rules.several_trees or not quota.tree or not quota.is_tree_root or quota.total is None:
                continue
            self.trees[quota.tree].set_total(quota.total)
            if not quota.ignores_default_tree:
                total = {name: amount - quota.total.get(name, 0) for name, amount in {**quota.total, **total}.items()}
        self.trees[""].set_total(total)

    def _count(self, uids: Iterable[str], *, late: bool = False) -> None:
        for uid in dict.fromkeys(uids):
            pod_state = self._cluster.pods.get(uid)
            if late and uid not in self._counted and pod_state is not None and pod_state.place is PodPlace.PENDING:
                self.uncounted.add(uid)
            else:
                self.uncounted.discard(uid)
                self._recount(uid, pod_state)

    def _recount(self, uid: str, pod_state: PodState | None) -> None:
        old = self._counted.get(uid)
        if old is not None and pod_state is not None and self._counts_as(old, pod_state.seen):
            placed = pod_state.place is not PodPlace.PENDING
            if placed is old.placed:
                return
            new: Counted | None = replace(old, placed=placed)
        else:
            new = self._describe(pod_state)
        if old == new:
            return
        if old is not None and (new is None or (old.tree, old.quota) != (new.tree, new.quota)):
            self._members.get((old.tree, old.quota), {}).pop(uid, None)
            self._change(old, -1, request=True, used=old.placed)
            old = None
        if new is not None:
            if old is None or old.amounts != new.amounts or old.fixed != new.fixed:
                if old is not None:
                    self._change(old, -1, request=True, used=old.placed)
                self._change(new, 1, request=True, used=new.placed)
            elif old.placed != new.placed:
                self._change(new, 1 if new.placed else -1, request=False, used=True)
            self._counted[uid] = new
            if new.placed:
                self._members.setdefault((new.tree, new.quota), {})[uid] = None
            else:
                self._members.get((new.tree, new.quota), {}).pop(uid, None)
        else:
            self._counted.pop(uid, None)

    def _counts_as(self, counted: Counted, pod: Pod) -> bool:
        """Whether a pod is in the same quota with the same amounts as when it was counted."""
        before = counted.pod
        return counted.listing == self._listing.number and (
            before is pod
            or (
                before.shape is pod.shape
                and before.labels == pod.labels
                and before.namespace == pod.namespace
                and before.terminating == pod.terminating
            )
        )

    def _describe(self, pod_state: PodState | None) -> Counted | None:
        if pod_state is None or (self._rules.ignores_terminating and pod_state.seen.terminating):
            return None
        pod = pod_state.seen
        if is_reserve_pod(pod):  # the pods that use a reservation are counted, not the reservation
            return None
        tree, quota = self.quota_of(pod)
        account = self.account(tree, quota)
        if account is None:
            return None
        amounts = {name: amount for name, amount in request_of(pod).items() if name in account.max}
        placed = pod_state.place is not PodPlace.PENDING
        return Counted(tree, quota, amounts, is_fixed(pod), placed, pod, self._listing.number)

    def _change(self, counted: Counted, sign: int, *, request: bool, used: bool) -> None:
        tree = self.trees[counted.tree]
        delta = {name: sign * amount for name, amount in counted.amounts.items()}
        fixed = delta if counted.fixed else {}
        if request:
            tree.change_request(counted.quota, delta, fixed)
        if used:
            tree.change_used(counted.quota, delta, fixed)

    def placed_in(self, quota: tuple[str, str]) -> Iterator[tuple[Pod, int]]:
        """The pods of a quota that have a place, with their rows."""
        for uid in self._members.get(quota, ()):
            pod_state = self._cluster.pods[uid]
            yield pod_state.pod, pod_state.row

    def counts_in(self, uid: str) -> tuple[str, str] | None:
        """The tree and quota in which a pod is counted."""
        counted = self._counted.get(uid)
        return None if counted is None else (counted.tree, counted.quota)
