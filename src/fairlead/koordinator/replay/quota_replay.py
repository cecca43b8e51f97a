"""Quotas in a replay: what was worked out with each decision, and what stood in the quotas at the end.

A recording shows, of the quotas on a pod's path, those whose runtime was worked out anew, with request, use and scaled
minimum at that moment. Amounts compare by value, and a zero may be missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from fairlead.core.model.documents import read_units
from fairlead.koordinator.quotas.plugin import ElasticQuotaPlugin
from fairlead.koordinator.records.quotas import BUILT_IN

if TYPE_CHECKING:
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.flow import Doc
    from fairlead.core.state.cluster import Cluster
    from fairlead.koordinator.quotas.accounts import QuotaAccountState

_WORKED_OUT = {"runtime": "runtime", "request": "request", "used": "used", "scaledMin": "guarantee.scaled"}
_STANDING = {
    "used": "used", "runtime": "runtime", "request": "request", "child-request": "child_request",
    "non-preemptible-request": "fixed.request", "non-preemptible-used": "fixed.used", "guaranteed": "guarantee.kept",
    "allocated": "guarantee.allocated",
}  # fmt: skip


class QuotaReplay:
    def __init__(self, profile: Profile, cluster: Cluster, doc: Doc) -> None:
        self._cluster = cluster
        self._doc = doc
        plugins = (plugin for plugin in profile.plugins() if isinstance(plugin, ElasticQuotaPlugin))
        self._plugin: ElasticQuotaPlugin | None = next(plugins, None)
        self._worked_out: dict[str, dict[str, dict[str, int]]] = {}
        if self._plugin is not None:
            self._plugin.usage(cluster)

    def note(self) -> None:
        """Remember what stands in the quotas, before anything changes. Which of them were worked out just now depends
        on the order in which the original looked at the leaves when it started, which is random."""
        plugin = self._plugin
        if plugin is not None:
            trees = plugin.usage(self._cluster).trees.values()
            self._worked_out = {n: _amounts(s, _WORKED_OUT) for tree in trees for n, s in tree.quotas.items()}

    def differences(self, decision: Doc) -> Iterator[tuple[str, Any, Any]]:
        recorded = {name: _read(amounts) for name, amounts in (decision.get("quota") or {}).items()}
        ours = {name: self._worked_out.get(name) for name in recorded}
        if recorded != ours:
            yield "quota", recorded, self._worked_out

    def final_differences(self) -> Iterator[tuple[str, Any, Any]]:
        """What stands in the quotas at the end, after one more refresh of all leaves."""
        recorded = self._doc.get("quotas")
        if recorded is None or self._plugin is None:
            return
        if self._doc.get("family") == "quota":
            self._plugin.refresh_leaves(self._cluster)
        usage = self._plugin.usage(self._cluster)
        states = {name: state for tree in usage.trees.values() for name, state in tree.quotas.items()}
        states |= usage.trees[""].quotas  # every tree has a root of its own; the object shows the default tree's
        for name, written in sorted(recorded.items()):
            state = states.get(name)
            expected = _read(written)
            got = _amounts(state, _STANDING) if state is not None else {}
            for field, amounts in sorted(expected.items()):
                if name in BUILT_IN and field in ("runtime", "child-request"):
                    continue
                if amounts != got.get(field, {}):
                    yield f"quotas.{name}.{field}", amounts, got.get(field, {})


def _amounts(state: QuotaAccountState, fields: Mapping[str, str]) -> dict[str, dict[str, int]]:
    found = {field: _without_zeros(attrgetter(attribute)(state)) for field, attribute in fields.items()}
    return {field: amounts for field, amounts in found.items() if amounts}


def _read(written: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    found = {field: _without_zeros(read_units(amounts, field)) for field, amounts in written.items()}
    return {field: amounts for field, amounts in found.items() if amounts}


def _without_zeros(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if amount}
