"""ResultCache: which pods share results. One belongs to each Evaluator.

The *signature* of a pod is all that the cached plugins can read of it, and which plugins are cached for it at all, if
that changes, and the key of what `begin` shows it (core/framework/row_view.py); pods of one signature share
SignatureResults.
The *shared key* is what the plugins with a `cache_key` read; signatures with the same key share SharedResults.

Invariant: every SharedResults in the cache is used by at least one signature in it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import Scope
from fairlead.core.framework.results.cached_plugin import CachedPlugin, overrides, reads_of
from fairlead.core.framework.results.plan import PluginPlan
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
        self._reads = frozenset[str]().union(*(reads_of(plugin) for plugin in cached))
        self._reads_shape_alone = self._reads <= {"spec", "node"}
        narrower = [plugin for plugin in cached if isinstance(plugin, CachedPlugin)]
        self._also_read = [plugin for plugin in narrower if overrides(plugin, "also_reads")]
        self._changing = [plugin for plugin in narrower if overrides(plugin, "scope_for")]
        """Those whose scope depends on the pod."""
        self._by_signature: OrderedDict[Hashable, SignatureResults] = OrderedDict()
        self._by_key: dict[Hashable, SharedResults] = {}

    def signature(self, pod: Pod) -> Hashable:
        """What the cached plugins can read of a pod."""
        if self._also_read:
            return self._read_of(pod), *[plugin.also_reads(pod) for plugin in self._also_read]
        return self._read_of(pod)

    def _read_of(self, pod: Pod) -> Hashable:
        if self._reads_shape_alone:
            return (pod.shape, pod.node_name) if pod.node_name else pod.shape
        reads = self._reads
        return (
            pod.shape,
            pod.node_name,
            pod.namespace if "namespace" in reads else None,
            frozenset(pod.labels.items()) if "labels" in reads else None,
            frozenset(pod.annotations.items()) if "annotations" in reads else None,
            pod.uid if "name" in reads else None,
        )

    def results_for(self, cycle: Cycle) -> SignatureResults:
        """The results of the pod's signature, new ones if there are none, written into the cycle. Their PreFilter and
        PreScore answers are valid; their columns are after `catch_up`."""
        signature, plan = self.signature(cycle.pod), self._plan
        if self._changing:
            plan = self._plan_for(cycle)
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

    def _plan_for(self, cycle: Cycle) -> PluginPlan:
        """The plan for a pod, with the plugins apart that are not cached for it."""
        names = [plugin.name for plugin in self._changing if plugin.scope_for(cycle) is Scope.CLUSTER]
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
        shared.users += 1
        results.same_after_placing = "name" not in self._reads and _same_after_placing(cycle.pod, plan, results)
        return results

    def _drop_oldest(self, capacity: int) -> None:
        limit = _MEMORY_BYTES // capacity
        signatures, keys = self._by_signature, self._by_key
        while (
            len(signatures) > _KEPT_ALWAYS
            and len(signatures) * _BYTES_PER_ROW + len(keys) * _BYTES_PER_ROW_SHARED > limit
        ):
            _, dropped = signatures.popitem(last=False)
            dropped.shared.users -= 1
            if not dropped.shared.users:
                del keys[dropped.shared.key]

    def clear(self) -> None:
        self._by_signature.clear()
        self._by_key.clear()


def _same_after_placing(pod: Pod, plan: PluginPlan, results: SignatureResults) -> bool:
    """Whether no plugin that is not cached answers differently once such a pod is placed. Those that are prepared
    already are left out, because the pod does not concern them."""
    for plugin in plan.uncached:
        if plugin.name in results.prepared:
            continue
        if not isinstance(plugin, CachedPlugin) or not (plugin.asked_in_runs or plugin.same_after_placing(pod)):
            return False
    return True
