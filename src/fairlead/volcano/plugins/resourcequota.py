"""resourcequota: a group is let in only if its namespace's quotas have room for its minimum. Scopes do not count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.core.model import kinds
from fairlead.core.model.quantity import format_quantity
from fairlead.volcano.rounds.tiers import TierPlugin, Vote

if TYPE_CHECKING:
    from fairlead.core.model.quota import NamespaceQuota
    from fairlead.volcano.rounds.round import Job, Round


class ResourceQuotaPlugin(TierPlugin):
    name = "resourcequota"

    def open(self, round: Round) -> None:
        self._round = round
        self._quotas: dict[str, list[NamespaceQuota]] = {}
        for quota in round.cluster.object_index.of(kinds.RESOURCE_QUOTA).values():
            self._quotas.setdefault(quota.namespace, []).append(quota)
        self._promised: dict[str, dict[str, int]] = {}

    def job_enqueueable(self, job: Job) -> Vote:
        least = job.group.min_resources
        if least is None:
            return Vote.PERMIT
        for quota in self._quotas.get(job.namespace, ()):
            if exceeded := self._exceeded(quota, least):
                self._round.note(job, _sentence(quota, least, exceeded))
                return Vote.REJECT
        if self._round.quirks.reserves_before_admission:
            self._promise(job, least)
        return Vote.PERMIT

    def job_enqueued(self, job: Job) -> None:
        """A group counts once all plugins have let it in; in the original as soon as it is asked about
        (`reserves_before_admission`)."""
        least = job.group.min_resources
        if not self._round.quirks.reserves_before_admission and least is not None:
            self._promise(job, least)

    def _exceeded(self, quota: NamespaceQuota, least: Mapping[str, int]) -> list[str]:
        promised = self._promised.get(quota.namespace, {})
        return [
            name
            for name, hard in quota.hard.items()
            if name in least and quota.used.get(name, 0) + promised.get(name, 0) + least[name] > hard
        ]

    def _promise(self, job: Job, least: Mapping[str, int]) -> None:
        promised = self._promised.setdefault(job.namespace, {})
        for name, amount in least.items():
            promised[name] = promised.get(name, 0) + amount


def _sentence(quota: NamespaceQuota, least: Mapping[str, int], exceeded: list[str]) -> str:
    parts = [
        f"{word}: {', '.join(f'{name} {format_quantity(amounts.get(name, 0), name)}' for name in exceeded)}"
        for word, amounts in (("requested", least), ("used", quota.used), ("limited", quota.hard))
    ]
    return f"resource quota insufficient, {', '.join(parts)}"
