"""QuotaRevoker: evicts pods of quotas that have used more than they are granted for too long.

It is on with `monitorAllQuotas`. A quota's pods are collected from the least important up until the rest is within the
runtime, then those that fit after all are handed back, the most important first. Pods that are not preemptible stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write
from fairlead.koordinator.quotas.usage import is_fixed, request_of
from fairlead.koordinator.records.quotas import ROOT, SYSTEM
from fairlead.kube.preemption.victims import by_importance

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.koordinator.quotas.accounts import QuotaAccountState
    from fairlead.koordinator.quotas.usage import QuotaUsage


@dataclass(frozen=True, slots=True)
class RevokeRules:
    """`delay` is how many seconds a quota may use too much; it is looked at every `interval` seconds."""

    delay: float = 120.0
    interval: float = 1.0


class QuotaRevoker:
    def __init__(self, cluster: Cluster, rules: RevokeRules) -> None:
        self._cluster = cluster
        self._rules = rules
        self._over_since: dict[tuple[str, str], float] = {}
        self._seen: tuple[int, int] = (-1, -1)
        self._last = float("-inf")

    def step(self, usage: QuotaUsage, now: float) -> Iterator[Write]:
        at = self.wake_at()
        if at is None or now < at:
            return
        self._last, self._seen = now, self._marks()
        for tree_name, tree in usage.trees.items():
            for leaf in tree.leaves():
                list(tree.refresh(leaf.name))  # what a quota is granted changes with what others request
            for name, account in tree.quotas.items():
                if name in (ROOT, SYSTEM):
                    continue
                key = (tree_name, name)
                if not _exceeds(account.used, account.runtime):
                    self._over_since.pop(key, None)
                elif now - self._over_since.setdefault(key, now) > self._rules.delay:
                    self._over_since[key] = now
                    placed = [pod for pod, _ in usage.placed_in(key)]
                    yield from map(_eviction, to_revoke(account, placed, now))

    def wake_at(self) -> float | None:
        if self._seen != self._marks():
            return self._last + self._rules.interval
        if not self._over_since:
            return None
        return max(self._last + self._rules.interval, min(self._over_since.values()) + self._rules.delay)

    def _marks(self) -> tuple[int, int]:
        return self._cluster.pod_log.mark, self._cluster.table.static.mark


def to_revoke(account: QuotaAccountState, placed: list[Pod], now: float) -> list[Pod]:
    """The pods that are evicted so that a quota uses no more than its runtime, as far as that is possible."""
    used = dict(account.used)
    collected: list[Pod] = []
    for pod in reversed(by_importance(placed, now)):
        if not _exceeds(used, account.runtime):
            break
        if not is_fixed(pod):
            _add(used, pod, -1)
            collected.append(pod)
    if _exceeds(used, account.runtime):
        return collected
    revoked: list[Pod] = []
    for pod in reversed(collected):
        _add(used, pod, 1)
        if _exceeds(used, account.runtime):
            _add(used, pod, -1)
            revoked.append(pod)
    return revoked


def _exceeds(used: Mapping[str, int], limit: Mapping[str, int]) -> bool:
    return any(used.get(name, 0) > amount for name, amount in limit.items())


def _add(used: dict[str, int], pod: Pod, sign: int) -> None:
    for name, amount in request_of(pod).items():
        if name in used:
            used[name] += sign * amount


def _eviction(pod: Pod) -> Write:
    metadata = {"name": pod.name, "namespace": pod.namespace}
    options = {"preconditions": {"uid": pod.uid}}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
    return Write(Verb.CREATE, kinds.POD, pod.namespace, pod.name, body, subresource="eviction")
