"""CachedPlugin: a Plugin that says more about its answers, so that fewer of them have to be computed.

A plain `Plugin` with a scope other than CLUSTER is cached already, for all pods that are equal in everything but their
names. A `CachedPlugin` can narrow what its answers depend on, answer for a single row, and say when the cached answers
are void. None of this may change an answer: the same plugin without these members decides the same, more slowly.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import Plugin
from fairlead.core.framework.results.pod_parts import DEFAULT_READS

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.sums import Sums
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.reasons import Verdict


class AfterPlacing(Enum):
    """What a plugin of scope CLUSTER says about a pod that is identical to the one just placed, if it stepped aside for
    that one or gave all rows the same score. Identical pods differ in nothing but their names."""

    SAME = "same"
    """The same as before."""
    OWN = "own"
    """Something else, perhaps, so it is called for each of the pods: its answer may depend on where the others went,
    and not on random numbers. What other plugins answered stays valid."""
    UNKNOWN = "unknown"
    """Nothing is known, so all plugins are called again."""


class CachedPlugin(Plugin):
    """A policy whose answers are cached on narrower terms than its scope alone allows."""

    reads: frozenset[str] = DEFAULT_READS
    """The parts of a pod that cached answers depend on: `spec` (its shape), `node` (the one it names), `labels` or
    `labels.KEY`, `annotations` or `annotations.KEY`, `namespace`, `owner` (the kind of its controller), `name`. A
    plugin that looks at one label names that one: by all their labels most pods differ."""

    def cache_key(self, pod: Pod) -> Hashable:
        """The fields of a pod that this plugin reads, if they are few. Pods with equal keys share its answers, however
        they differ otherwise. Not overridden: it reads the whole signature. Only called if the scope is not CLUSTER."""
        raise NotImplementedError

    def epoch(self, cycle: Cycle) -> int | None:
        """A number whose change makes all cached answers of this plugin void, on every row. None: answers about pods
        of this signature do not become void so, and the method is not called for them again."""
        return None

    def refresh(self, cycle: Cycle) -> bool:
        """Whether the cached answers may serve this pod as the cluster is now; if not, the plugin counts as one of
        scope CLUSTER. It is called for every pod, before `pre_filter`. Rows about which the answers have changed for a
        reason that the table's logs do not show (another object, the time) are touched here (`table.content.touch`)."""
        return True

    def filter_row(self, cycle: Cycle, row: int) -> Verdict | None:
        """What `filter` says of a single row; None if it does not refuse it. It is called for the one row that the last
        pod was placed on, where arrays cost more than they save; so it is worth writing for a plugin that every pod
        meets and whose scope is COUNTED or ROW. A property test compares it with `filter`."""
        raise NotImplementedError

    def score_row(self, cycle: Cycle, row: int) -> int:
        """What `score` says of a single row; see `filter_row`."""
        raise NotImplementedError

    def sums(self, cycle: Cycle) -> Sums | None:
        """The sums of requests that `filter` compares, if that is all it reads of the pods on a node; trials then
        become arithmetic (core/framework/sums.py). None: it reads more."""
        return None

    def stands_aside(self, cycle: Cycle) -> bool:
        """Whether a plugin of scope CLUSTER would step aside in `pre_filter` and `pre_score`, or give every row the
        score 0 where it does not take part in these. It is called for every pod before these points, in their order: if
        all such plugins stand aside, none of them is called at these points. It leaves the notes that `pre_filter`
        would."""
        return False

    def after_placing(self, pod: Pod) -> AfterPlacing:
        """What a plugin of scope CLUSTER says about the next pod if it is identical to this one. Called once per
        signature."""
        return AfterPlacing.UNKNOWN


_MEMBERS = (
    "reads", "cache_key", "epoch", "refresh", "filter_row", "score_row", "sums", "stands_aside", "after_placing",
)  # fmt: skip


def misplaced_members(plugin: Plugin) -> list[str]:
    """Members of CachedPlugin that a plain Plugin defines, with the remedy. Ignoring an `epoch` silently would keep
    answers that are void."""
    if isinstance(plugin, CachedPlugin):
        return []
    return [f"{name} belongs to CachedPlugin" for name in _MEMBERS if hasattr(plugin, name)]


def overrides(plugin: Plugin, member: str) -> bool:
    """Whether a plugin overrides a method of CachedPlugin."""
    return isinstance(plugin, CachedPlugin) and getattr(type(plugin), member) is not getattr(CachedPlugin, member)


def reads_of(plugin: Plugin) -> frozenset[str]:
    return plugin.reads if isinstance(plugin, CachedPlugin) else DEFAULT_READS


def epoch_of(plugin: Plugin, cycle: Cycle) -> int | None:
    return plugin.epoch(cycle) if isinstance(plugin, CachedPlugin) else None


def sums_of(plugin: Plugin, cycle: Cycle) -> Sums | None:
    return plugin.sums(cycle) if isinstance(plugin, CachedPlugin) else None
