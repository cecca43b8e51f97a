"""GangEntries: which waiting pods share an entry of the queue, and which of them stands for the others.

A gang is one entry: it is gated, tried, backed off and woken as a whole. The entry has no list of members, because the
cluster's Gang has it and keeps it up to date. Here is the key under which a pod is queued, and the member that the
queues look at where a rule needs a pod (its priority, its gates, its requests).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.core.state.gangs import gang_key

if TYPE_CHECKING:
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.gangs import Gang


class GangEntries:
    def __init__(self, profiles: Mapping[str, Profile], cluster: Cluster) -> None:
        self._cluster = cluster
        self._uids: dict[str, str] = {}
        self.reconfigure(profiles)

    def reconfigure(self, profiles: Mapping[str, Profile]) -> None:
        self._serving = frozenset(name for name, profile in profiles.items() if profile.gangs is not None)

    def key(self, pod: Pod) -> str:
        """The key of the entry that a pod waits in."""
        if pod.group_ref is None or pod.scheduler_name not in self._serving:
            return pod.key
        return gang_key(pod)

    def joined(self, pod: Pod) -> Gang | None:
        """The gang that a pod waits with; None if it waits alone."""
        if pod.group_ref is None or pod.scheduler_name not in self._serving:
            return None
        gang = self._cluster.gangs.of(pod)
        if gang is not None:
            self._uids[pod.key] = pod.uid
        return gang

    def left(self, pod: Pod) -> None:
        if self._uids.get(pod.key) == pod.uid:
            del self._uids[pod.key]

    def waiting(self, key: str) -> str | None:
        """The uid of a member that waits, by namespace and name."""
        return self._uids.get(key)

    def face(self, gang: Gang) -> Pod | None:
        """The member that stands for those that wait; None if none waits."""
        waiting = gang.pending()
        return min(waiting, key=_rank) if waiting else None

    def first(self, one: Pod, other: Pod) -> Pod:
        return other if _rank(other) < _rank(one) or one.uid == other.uid else one


def _rank(pod: Pod) -> tuple[bool, int]:
    """Pods without scheduling gates come first, then those of higher priority."""
    return bool(pod.gates), -pod.priority
