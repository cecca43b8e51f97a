"""QuotaStatusWriter writes what ElasticQuotas show: what is requested, used and granted, each second if it changed.

Amounts are annotations, with the use also in the status, as the original writes them. The runtime of every leaf is
worked out anew every ten seconds, whether or not pods come.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING

from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.quantity import format_quantity
from fairlead.koordinator.kinds import KOORD_ELASTIC_QUOTA
from fairlead.koordinator.records.quotas import BUILT_IN, PREFIX
from fairlead.koordinator.sent_statuses import SentStatuses

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.state.cluster import Cluster
    from fairlead.koordinator.quotas.accounts import QuotaAccountState
    from fairlead.koordinator.quotas.usage import QuotaUsage
    from fairlead.koordinator.records.quotas import ElasticQuota

_EVERY = 1.0
_REFRESH_EVERY = 10.0
_WRITTEN = {
    "request": "request", "child-request": "child_request", "runtime": "runtime",
    "non-preemptible-request": "fixed.request", "non-preemptible-used": "fixed.used",
}  # fmt: skip
_GUARANTEES = {"guaranteed": "guarantee.kept", "allocated": "guarantee.allocated"}


class QuotaStatusWriter:
    def __init__(
        self,
        cluster: Cluster,
        usage: Callable[[Cluster], QuotaUsage],
        refresh: Callable[[Cluster], None],
        *,
        guarantees: bool,
    ) -> None:
        self._cluster = cluster
        self._usage, self._refresh = usage, refresh
        self._fields = {**_WRITTEN, **(_GUARANTEES if guarantees else {})}
        self._kind_index = cluster.object_index.of(KOORD_ELASTIC_QUOTA)
        self._sent = SentStatuses()
        self._marks: tuple[int, ...] = ()
        self._last = self._refreshed = float("-inf")

    def _now_marks(self) -> tuple[int, ...]:
        cluster = self._cluster
        return cluster.pod_log.mark, cluster.table.static.mark, self._kind_index.version

    def step(self, now: float) -> Iterator[Write]:
        at = self.wake_at()
        if at is None or now < at:
            return
        self._last, self._marks = now, self._now_marks()
        if now >= self._refreshed + _REFRESH_EVERY:
            self._refreshed = now
            self._refresh(self._cluster)
        usage = self._usage(self._cluster)
        for quota in list(self._kind_index.values()):
            tree, name = usage.place_of(quota)
            account = usage.account(tree, name)
            if account is not None:
                yield from self._keep(quota, account, now)
        for key in self._sent.overdue(now):  # of quotas that are gone
            self._sent.forget(key)

    def wake_at(self) -> float | None:
        if not self._kind_index:
            return None
        if self._marks != self._now_marks():
            # What changed may change the runtime of leaves that no pod requests.
            return self._last + _EVERY
        times = [self._sent.again_at()]
        if self._refreshed < self._last:
            times.append(self._refreshed + _REFRESH_EVERY)
        return min((at for at in times if at is not None), default=None)

    def _keep(self, quota: ElasticQuota, account: QuotaAccountState, now: float) -> Iterator[Write]:
        wanted: dict[str, Mapping[str, int]] = {"used": account.used}
        for key, field in self._fields.items():
            if account.name not in BUILT_IN or key != "runtime":
                wanted[key] = attrgetter(field)(account)
        wanted = {key: dict(amounts) for key, amounts in wanted.items()}
        if self._sent.is_due(f"{quota.namespace}/{quota.name}", _plain(wanted), _plain(quota.shown), now):
            # A merge leaves what it does not name: what nobody uses any more, and nobody has used since the start, is
            # taken out by name.
            gone: Doc = dict.fromkeys(quota.shown.get("used") or ())
            body: Doc = {
                "metadata": {"annotations": {PREFIX + key: _text(wanted[key]) for key in wanted if key != "used"}},
                "status": {"used": {**gone, **_quantities(wanted["used"])}},
            }
            yield Write(Verb.PATCH, KOORD_ELASTIC_QUOTA, quota.namespace, quota.name, body)


def _plain(written: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Amounts without zeros, which may be written or not."""
    found = {key: {name: amount for name, amount in amounts.items() if amount} for key, amounts in written.items()}
    return {key: amounts for key, amounts in found.items() if amounts}


def _quantities(amounts: Mapping[str, int]) -> Doc:
    return {name: format_quantity(amount, name) for name, amount in sorted(amounts.items())}


def _text(amounts: Mapping[str, int]) -> str:
    return json.dumps(_quantities(amounts), separators=(",", ":"))
