"""CachedPlugin: a Plugin that says more about its answers, so that fewer of them have to be asked for.

A plain `Plugin` with a scope of STATIC or ROW is cached already, for all pods that are equal in everything but their
names. A `CachedPlugin` can narrow what its answers depend on, answer for a single row, and say when the cached answers
are void. None of this may change an answer: the same plugin without these members decides the same, more slowly.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import Plugin, Scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.sums import Sums
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.reasons import Verdict
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.nodes import Nodes

DEFAULT_READS = frozenset({"spec", "labels", "annotations", "namespace"})
"""What an answer is taken to depend on if its plugin does not say."""


class CachedPlugin(Plugin):
    """A policy whose answers are cached on narrower terms than its scope alone allows."""

    reads: frozenset[str] = DEFAULT_READS
    """The parts of a pod that cached answers depend on: `spec` (its shape), `node` (the one it names), `labels`,
    `annotations`, `namespace`, `name`."""

    scores_in_range: bool = False
    """Whether `score` always answers within 0..100, so that its column can be one of bytes. It is held to that where a
    signature's rows are all judged for the first time; later answers about rows that changed are believed."""

    reads_placed_pods: bool = True
    """Whether the answers of a plugin of scope ROW depend on more of the pods on a node than what is counted when one
    comes or goes (its requests and ports, and what an index of the plugin's own adds up) and their labels: on their
    phase, start time or annotations. If not, a pod that starts does not make the plugin judge its node again."""

    asked_in_runs: bool = False
    """Whether a plugin of scope CLUSTER is asked to prepare, filter and score each of many equal pods that are placed
    one after the other, while the answers of others are taken to be as before. Its answer for one of them may depend on
    where the others went; it may not depend on random numbers."""

    def cache_key(self, pod: Pod) -> Hashable:
        """The fields of a pod that this plugin reads, if they are few. Pods with equal keys share its answers, however
        they differ otherwise. Not overridden: it reads the whole signature. Only asked if the scope is not CLUSTER."""
        raise NotImplementedError

    def also_reads(self, pod: Pod) -> Hashable:
        """What cached answers depend on beyond `reads`, as few words: part of the pod's signature. A plugin that looks
        at one label names the label's value here and not all `labels` there, by which most pods differ."""
        return None

    def scope_for(self, cycle: Cycle) -> Scope:
        """The plugin's scope for this pod as the cluster is now: `scope`, or CLUSTER if its answers about this pod are
        not to be kept. Asked for every pod, before `prepare`."""
        return self.scope

    def touch_stale(self, cycle: Cycle) -> None:
        """Touch the rows in the table's log of pods (`table.content`) about which the answers have changed for a reason
        that the logs do not show: another object, or the time. Asked for every pod, before cached answers are read."""

    def epoch(self, cluster: Cluster) -> int:
        """A number whose change makes all cached answers of this plugin void, on every row."""
        return 0

    def has_epochs(self, pod: Pod) -> bool:
        """Whether `epoch` says anything about the answers for pods of this signature. Asked once per signature; if it
        does not, `epoch` is not asked."""
        return True

    def same_after_placing(self, pod: Pod) -> bool:
        """True if placing one pod cannot change this plugin's answer for an identical next pod. Asked once per
        signature, of plugins of scope CLUSTER, and used only where the plugin stepped aside or gave all rows the same
        score. Identical pods differ in nothing but their names."""
        return False

    def stands_aside(self, cycle: Cycle) -> bool:
        """Whether a plugin of scope CLUSTER would step aside in `prepare` and `prepare_scores`, or give every row the
        score 0 where it does not take part in these. It is asked for every pod before these points, in their order: if
        all such plugins stand aside, none of them is asked at these points. It leaves the notes that `prepare`
        would."""
        return False

    def passing(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.bool_] | None:
        """The mask of rows that `filter` does not refuse, for those who do not ask for reasons, or not yet. None: ask
        `filter`. A property test compares it with `filter`."""
        return None

    def filter_row(self, cycle: Cycle, row: int) -> Verdict | None:
        """What `filter` says of a single row; None if it does not refuse it. It is asked for the one row that the last
        pod was placed on, where arrays cost more than they save; so it is worth writing for a plugin of scope ROW that
        every pod meets. A property test compares it with `filter`."""
        raise NotImplementedError

    def score_row(self, cycle: Cycle, row: int) -> int:
        """What `score` says of a single row; see `filter_row`."""
        raise NotImplementedError

    def sums(self, cycle: Cycle) -> Sums | None:
        """The sums of requests that `filter` compares, if that is all it asks of the pods on a node; trials then become
        arithmetic (core/framework/sums.py). None: it asks for more."""
        return None


_MEMBERS = (
    "reads", "scores_in_range", "reads_placed_pods", "asked_in_runs", "cache_key", "also_reads", "scope_for",
    "touch_stale", "epoch", "has_epochs", "same_after_placing", "stands_aside", "passing", "filter_row", "score_row",
    "sums",
)  # fmt: skip
_FORMER_NAMES = {"facet": "cache_key", "unmoved_by": "same_after_placing"}


def misplaced_members(plugin: Plugin) -> list[str]:
    """What a plugin defines that would not be heard, with the remedy: members of CachedPlugin on a plain Plugin, and
    members under a former name. Ignoring an `epoch` silently would keep answers that are void."""
    found = [
        f"{old} is called {new} and belongs to CachedPlugin"
        for old, new in _FORMER_NAMES.items()
        if hasattr(plugin, old)
    ]
    if isinstance(plugin, CachedPlugin):
        return found
    return [f"{name} belongs to CachedPlugin" for name in _MEMBERS if hasattr(plugin, name)] + found


def overrides(plugin: Plugin, member: str) -> bool:
    """Whether a plugin overrides a method of CachedPlugin."""
    return isinstance(plugin, CachedPlugin) and getattr(type(plugin), member) is not getattr(CachedPlugin, member)


def epoch_is_selective(plugin: Plugin) -> bool:
    """Whether `has_epochs` is about this plugin's own `epoch`: one that is inherited says nothing about an `epoch` that
    a subclass overrides."""
    epoch, selection = (
        next(one for one in type(plugin).__mro__ if member in vars(one)) for member in ("epoch", "has_epochs")
    )
    return issubclass(selection, epoch)


def reads_of(plugin: Plugin) -> frozenset[str]:
    return plugin.reads if isinstance(plugin, CachedPlugin) else DEFAULT_READS


def reads_placed_pods_of(plugin: Plugin) -> bool:
    return plugin.reads_placed_pods if isinstance(plugin, CachedPlugin) else True


def epoch_of(plugin: Plugin, cluster: Cluster) -> int:
    return plugin.epoch(cluster) if isinstance(plugin, CachedPlugin) else 0


def sums_of(plugin: Plugin, cycle: Cycle) -> Sums | None:
    return plugin.sums(cycle) if isinstance(plugin, CachedPlugin) else None
