"""GivenSinceReserve: what pods were given at Reserve, until their annotations say it.

A pod that is bound says in its annotations what it holds. Between Reserve and that moment the scheduler alone knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster

Given = TypeVar("Given")
_FORGET_ABOVE = 1024


class GivenSinceReserve(Generic[Given]):
    """`read` returns what a pod's annotations say; None if they say nothing."""

    def __init__(self, cluster: Cluster, read: Callable[[Pod], Given | None]) -> None:
        self._cluster = cluster
        self._read = read
        self._given: dict[str, Given] = {}

    def give(self, pod: Pod, given: Given) -> None:
        self._given[pod.uid] = given
        pods = self._cluster.pods
        if len(self._given) > _FORGET_ABOVE + 2 * len(pods):
            self._given = {uid: one for uid, one in self._given.items() if uid in pods}

    def take_back(self, pod: Pod) -> None:
        self._given.pop(pod.uid, None)

    def of(self, pod: Pod) -> Given | None:
        """What a pod holds, by its annotations or by what it was given. Annotations count only once the pod is bound: a
        scheduler that died between the two left them behind."""
        return (self._read(pod) if pod.node_name else None) or self._given.get(pod.uid)

    def of_uid(self, uid: str) -> Given | None:
        """The same of the pod with this uid, as the API shows it; None if there is no such pod."""
        pod_state = self._cluster.pods.get(uid)
        return None if pod_state is None else self.of(pod_state.seen)
