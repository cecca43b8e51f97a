"""ElasticQuota: refuses pods whose quota, or one above it, has not enough left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fairlead.core.framework.extended_plugin import ExtendedPlugin
from fairlead.core.framework.plugin import Interest, PostFilterResult
from fairlead.core.model.events import POD, ActionType, ClusterEvent
from fairlead.core.model.lack import Lack
from fairlead.core.model.quantity import format_quantity
from fairlead.core.model.reasons import SKIP, Status, failed, unresolvable, unschedulable
from fairlead.koordinator.kinds import ELASTIC_QUOTA_EVENTS, KOORD_ELASTIC_QUOTA
from fairlead.koordinator.quotas.accounts import TreeRules
from fairlead.koordinator.quotas.preemption import QuotaVictims
from fairlead.koordinator.quotas.revoking import QuotaRevoker, RevokeRules
from fairlead.koordinator.quotas.status import QuotaStatusWriter
from fairlead.koordinator.quotas.usage import QuotaUsage, UsageRules, is_fixed, request_of
from fairlead.koordinator.records.quotas import ROOT

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.refusals import Refusals
    from fairlead.core.model.flow import Write
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.koordinator.quotas.accounts import LendingTree, QuotaAccountState

_COUNTS_AFTER = 1.0
"""So many seconds later a pod counts that came when nothing else happens (KoordinatorQuirks)."""


@dataclass(frozen=True, slots=True)
class QuotaSettings:
    """`by_runtime` limits quotas by what they are granted, otherwise by their maximum. `checks_parents` asks the quotas
    above too. `namespace` is where the built-in quotas live."""

    usage: UsageRules = field(default_factory=lambda: UsageRules(TreeRules()))
    by_runtime: bool = True
    checks_parents: bool = False
    namespace: str = "koordinator-system"
    protects_default: bool = True
    """Pods of the default quota are nobody's victims."""
    others_preempt: bool = False
    """After a refusal by a quota, preemption that knows nothing of quotas may still evict (KoordinatorQuirks)."""
    names_nodes: bool = False
    """Nodes without victims are listed one by one (KoordinatorQuirks)."""
    revoke: RevokeRules | None = None
    """How pods of quotas that use too much are evicted; None if they are not."""


class ElasticQuotaPlugin(ExtendedPlugin):
    name = "ElasticQuota"
    kinds_read = (KOORD_ELASTIC_QUOTA,)

    def __init__(self, settings: QuotaSettings) -> None:
        self._settings = settings
        self._usage: tuple[Cluster, QuotaUsage] | None = None
        self._status_writer: tuple[Cluster, QuotaStatusWriter] | None = None
        self._revoker: QuotaRevoker | None = None
        self.refreshed: dict[str, QuotaAccountState] = {}
        """The quotas whose runtime the last check worked out anew."""

    def events(self) -> Sequence[Interest]:
        return (
            Interest(ClusterEvent(POD, ActionType.DELETE)),
            Interest(ClusterEvent(ELASTIC_QUOTA_EVENTS, ActionType.ALL)),
        )

    def looks_at_pods(self, cycle: Cycle) -> bool:
        return False

    def usage(self, cluster: Cluster) -> QuotaUsage:
        """The quotas of a cluster, up to date. When they are seen for the first time, every leaf is worked out. The
        plugin keeps them, and what writes their status, not the cluster: the rules by which pods are counted and shares
        are lent are settings, so that a plugin with new rules begins with new sums."""
        if self._usage is None or self._usage[0] is not cluster:
            self._usage = (cluster, QuotaUsage(cluster, self._settings.usage))
            self._usage[1].catch_up()
            self.refresh_leaves(cluster)
        self._usage[1].catch_up()
        return self._usage[1]

    def _count_late(self, cluster: Cluster, now: float) -> None:
        if self._settings.usage.counts_pods_late and self._usage is not None and self._usage[0] is cluster:
            self._usage[1].count_late(now)

    def refresh_leaves(self, cluster: Cluster) -> None:
        """Work out the runtime of every leaf, which is done now and then whether or not pods come."""
        for tree in self.usage(cluster).trees.values():
            for leaf in sorted(tree.leaves(), key=lambda state: state.name):
                list(tree.refresh(leaf.name))

    def sync(self, cluster: Cluster, now: float) -> Iterable[Write]:
        self._count_late(cluster, now)
        if self._status_writer is None or self._status_writer[0] is not cluster:
            guarantees = self._settings.usage.tree.guarantees
            status_writer = QuotaStatusWriter(cluster, self.usage, self.refresh_leaves, guarantees=guarantees)
            self._status_writer = (cluster, status_writer)
            if self._settings.revoke is not None and self._settings.by_runtime:
                self._revoker = QuotaRevoker(cluster, self._settings.revoke)
        yield from self._status_writer[1].step(now)
        if self._revoker is not None:
            yield from self._revoker.step(self.usage(cluster), now)

    def sync_at(self) -> float | None:
        status_writers = (self._status_writer[1] if self._status_writer is not None else None, self._revoker)
        times = [status_writer.wake_at() for status_writer in status_writers if status_writer is not None]
        if self._usage is not None and self._usage[1].uncounted:
            times.append(self._usage[1].counted_until + _COUNTS_AFTER)
        return min((at for at in times if at is not None), default=None)

    def pre_filter(self, cycle: Cycle) -> Status | None:
        self._count_late(cycle.cluster, cycle.now)
        usage, pod = self.usage(cycle.cluster), cycle.pod
        tree_name, name = usage.quota_of(pod)
        self.refreshed = {}
        if not name:
            return SKIP
        tree = usage.trees[tree_name]
        if self._settings.by_runtime:
            self.refreshed = {state.name: state for state in tree.refresh(name)}
        account = tree.quotas.get(name)
        if account is None:
            return failed("Could not find the specified ElasticQuota")
        asked = {key: amount for key, amount in request_of(pod).items() if key in account.max}
        return self._check(account, asked, fixed=is_fixed(pod)) or self._check_parents(tree, account, asked)

    def lacks(self, pods: Sequence[Pod], cluster: Cluster) -> Iterable[Lack]:
        """The quotas of pods, and those above, of which the pods together request more than is left."""
        usage = self.usage(cluster)
        asked: dict[tuple[str, str], dict[str, int]] = {}
        for pod in pods:
            sums = asked.setdefault(usage.quota_of(pod), {})
            for name, amount in request_of(pod).items():
                sums[name] = sums.get(name, 0) + amount
        for (tree_name, name), sums in asked.items():
            tree = usage.trees.get(tree_name)
            account = tree.quotas.get(name) if tree is not None and name else None
            while tree is not None and account is not None and account.name != ROOT:
                limit = self.limit(account)
                holders = self._holders(usage, tree_name, account.name)
                for resource, amount in sums.items():
                    free = limit[resource] - account.used.get(resource, 0) if resource in limit else amount
                    if amount > free:
                        held = [
                            (key, request[resource], "it has a place")
                            for key, request in holders
                            if request.get(resource)
                        ]
                        missing = amount - max(0, free)
                        yield Lack.of_units("ElasticQuota", account.name, resource, amount, free, missing, held)
                account = tree.quotas.get(account.parent)

    def quota_use(self, pods: Sequence[Pod], cluster: Cluster) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
        """What the pods' own quotas use at the moment, and may use at most."""
        usage = self.usage(cluster)
        found: dict[str, Mapping[str, Mapping[str, str]]] = {}
        for tree_name, name in dict.fromkeys(map(usage.quota_of, pods)):
            account = usage.account(tree_name, name)
            if account is not None:
                used = {resource: account.used.get(resource, 0) for resource in account.max}
                found[name] = {"used": _texts(used), "max": _texts(account.max)}
        return found

    def _holders(self, usage: QuotaUsage, tree: str, quota: str) -> list[tuple[str, Mapping[str, int]]]:
        return [(pod.key, request_of(pod)) for pod, _ in usage.placed_in((tree, quota))]

    # ---- PostFilter ----

    def post_filter(self, cycle: Cycle, refusals: Refusals) -> PostFilterResult:
        usage = self.usage(cycle.cluster)
        account = usage.account(*usage.quota_of(cycle.pod))
        if account is None:
            return PostFilterResult(unschedulable())
        protects = self._settings.protects_default
        limit = self.limit(account)
        rescued = QuotaVictims(
            cycle, refusals, usage, account, limit, protects_default=protects, names_nodes=self._settings.names_nodes
        ).post_filter()
        early = refusals.diagnosis.early
        if rescued.status.ok or early is None or early.plugin != self.name or self._settings.others_preempt:
            return rescued
        # No eviction outside of the quota can help a pod that its quota refuses.
        return replace(rescued, status=unresolvable(*rescued.status.reasons))

    def limit(self, account: QuotaAccountState) -> Mapping[str, int]:
        """What a quota may use at the moment."""
        return account.runtime if self._settings.by_runtime else account.max

    def _check(self, account: QuotaAccountState, asked: Mapping[str, int], *, fixed: bool) -> Status | None:
        limit = self.limit(account)
        exceeded = _exceeded(account.used, asked, limit)
        if exceeded:
            return unschedulable(
                f"Insufficient quotas, quotaName: {account.name}, runtime: {amounts_text(limit)}, used:"
                f" {amounts_text(account.used)}, pod's request: {amounts_text(asked)}, exceedDimensions:"
                f" [{' '.join(exceeded)}]"
            )
        exceeded = _exceeded(account.fixed.used, asked, account.min) if fixed else []
        if exceeded:
            return unschedulable(
                f"Insufficient non-preemptible quotas, quotaName: {account.name}, min: {amounts_text(account.min)},"
                f" nonPreemptibleUsed: {amounts_text(account.fixed.used)}, pod's request: {amounts_text(asked)},"
                f" exceedDimensions: [{' '.join(exceeded)}]"
            )
        return None

    def _check_parents(self, tree: LendingTree, account: QuotaAccountState, asked: Mapping[str, int]) -> Status | None:
        if not self._settings.checks_parents:
            return None
        names = [account.name]
        parent = account.parent
        while parent != ROOT:
            names.insert(0, parent)
            above = tree.quotas.get(parent)
            if above is None:
                return failed(f"Could not find the elasticQuota {parent}, quotaNameTopo: [{' '.join(names)}]")
            limit = self.limit(above)
            exceeded = [key for key in _exceeded(above.used, asked, limit) if key in asked]
            if exceeded:
                return unschedulable(
                    f"Insufficient quotas, quotaNameTopo: [{' '.join(names)}], runtime: {amounts_text(limit)}, used:"
                    f" {amounts_text(above.used)}, pod's request: {amounts_text(asked)}, exceedDimensions:"
                    f" [{' '.join(exceeded)}]"
                )
            parent = above.parent
        return None


def _exceeded(used: Mapping[str, int], asked: Mapping[str, int], limit: Mapping[str, int]) -> list[str]:
    """The resources of which more would be used than the limit says; what it does not name is not limited."""
    return sorted(
        key
        for key, amount in limit.items()
        if (key in used or key in asked) and used.get(key, 0) + asked.get(key, 0) > amount
    )


def _texts(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: format_quantity(amount, name) for name, amount in amounts.items()}


def amounts_text(amounts: Mapping[str, int]) -> str:
    """`cpu:2,memory:4Gi` in the order of the texts."""
    if not amounts:
        return "<empty>"
    return ",".join(sorted(f"{name}:{format_quantity(amount, name)}" for name, amount in amounts.items()))
