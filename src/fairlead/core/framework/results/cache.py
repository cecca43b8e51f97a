"""ResultCache: which pods share results. One belongs to each Evaluator.

The *signature* of a pod is all that the cached plugins can read of it, and which plugins are cached for it at all, if
that changes, and the key of what `before_pre_filter` shows it (core/framework/row_view.py); pods of one signature share
SignatureResults.
The *shared key* is what the plugins with a `cache_key` read; signatures with the same key share SharedResults.

Invariant: every SharedResults in the cache is used by at least one signature in it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from fairlead.core.framework.calls import is_valid_for
from fairlead.core.framework.plugin import Scope
from fairlead.core.framework.results.cached_plugin import AfterPlacing, CachedPlugin, overrides, reads_of
from fairlead.core.framework.results.plan import PluginPlan
from fairlead.core.framework.results.pod_parts import PodParts
from fairlead.core.framework.results.shared import SharedResults
from fairlead.core.framework.results.signature import SignatureResults

if TYPE_CHECKING:
    from collections.abc import Hashable

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.profile import Profile
    from fairlead.core.framework.verdicts import VerdictCodes
    from fairlead.core.model.pod import Pod

_MEMORY_BYTES = 256 << 20
"""Columns beyond this are dropped, those of the least recently used signature first."""
_BYTES_PER_ROW = 8
_BYTES_PER_ROW_SHARED = 32
"""What a signature and a shared key take per row of the table, roughly."""
_KEPT_ALWAYS = 16
"""So many signatures are kept whatever they take."""


class ResultCache:
    def __init__(self, profile: Profile, codes: VerdictCodes) -> None:
        self._codes = codes
        self._profile = profile
        self._plan = PluginPlan(profile)
        self._plans = {self._plan.apart: self._plan}
        cached = [plugin for plugin in profile.plugins() if plugin.scope is not Scope.CLUSTER]
        self._read = PodParts(map(reads_of, cached))
        narrower = [plugin for plugin in cached if isinstance(plugin, CachedPlugin)]
        self._to_refresh = [plugin for plugin in narrower if overrides(plugin, "refresh")]
        """Those that know more than the logs of which answers are still valid."""
        self._by_signature: OrderedDict[Hashable, SignatureResults] = OrderedDict()
        self._by_key: dict[Hashable, SharedResults] = {}

    def results_for(self, cycle: Cycle) -> SignatureResults:
        """The results of the pod's signature, new ones if there are none, written into the cycle. Their PreFilter and
        PreScore answers are valid; their columns are after `catch_up`."""
        signature, plan = self._read.of(cycle.pod), self._plan
        if self._to_refresh:
            plan = self.refreshed_plan(cycle)
            signature = (signature, plan.apart)
        view = None if cycle.view is None else cycle.view.key
        if view is not None:
            signature = (signature, view)
        results = self._by_signature.get(signature)
        if results is None:
            begun, cycle.notes = cycle.notes, {}  # notes of this attempt alone are not to be cached
            results = self._by_signature[signature] = self._new(cycle, signature, plan, view)
            cycle.notes.update(begun)
            self._drop_oldest(results.capacity)
        else:
            self._by_signature.move_to_end(signature)
            cycle.notes = {**results.notes, **cycle.notes}
        cycle.no_filter = set(results.no_filter)
        cycle.no_score = set(results.no_score)
        cycle.results = results
        return results

    def refreshed_plan(self, cycle: Cycle) -> PluginPlan:
        """The plan for a pod, with the plugins apart that are not cached for it. Rows about which answers are out of
        date are touched."""
        names = [plugin.name for plugin in self._to_refresh if not is_valid_for(plugin, cycle)]
        if not names:
            return self._plan
        apart = frozenset(names)
        plan = self._plans.get(apart)
        if plan is None:
            plan = self._plans[apart] = PluginPlan(self._profile, apart)
        return plan

    def _new(self, cycle: Cycle, signature: Hashable, plan: PluginPlan, view: Hashable) -> SignatureResults:
        key = (plan.shared_key(cycle.pod, signature), plan.apart, view)
        shared = self._by_key.get(key)
        if shared is None:
            shared = SharedResults(cycle, key, plan, self._codes)
        results = SignatureResults(cycle, plan, shared, self._codes)
        self._by_key[key] = shared
        shared.add_user()
        if not self._read.names:
            results.call_in_runs(_called_in_runs(cycle.pod, plan, results))
        return results

    def _drop_oldest(self, capacity: int) -> None:
        limit = _MEMORY_BYTES // capacity
        signatures, keys = self._by_signature, self._by_key
        while (
            len(signatures) > _KEPT_ALWAYS
            and len(signatures) * _BYTES_PER_ROW + len(keys) * _BYTES_PER_ROW_SHARED > limit
        ):
            _, dropped = signatures.popitem(last=False)
            shared = dropped.shared
            if shared.remove_user():
                del keys[shared.key]

    def clear(self) -> None:
        self._by_signature.clear()
        self._by_key.clear()


def _called_in_runs(pod: Pod, plan: PluginPlan, results: SignatureResults) -> list[CachedPlugin] | None:
    """Of the plugins that are not cached, those that answer for each of several such pods while what the others
    answered stays valid; None if it does not. A plugin that the pod does not concern counts for nothing."""
    called: list[CachedPlugin] = []
    for plugin in plan.uncached.at_all:
        if plugin.name in results.prepared:
            continue
        if not isinstance(plugin, CachedPlugin):
            return None
        said = plugin.after_placing(pod)
        if said is AfterPlacing.UNKNOWN or (said is AfterPlacing.OWN and plugin not in plan.uncached.filters):
            return None
        if said is AfterPlacing.OWN:
            called.append(plugin)
    return called
