"""Preemptions: whom room is being made for in a cluster, where, and by whose eviction.

A preemptor goes by its key: a pod's uid, or a gang's key. Two things are kept of each:

- while its victims are being evicted, the preemption is under way, and the preemptor is gated;
- the promise: the node, and the victims whose room it was promised there. While anybody's victim is still on the node,
  pods that are nominated to it wait. A promise outlives the evictions, because victims take their time to go.

`Evictions` (core/engine/cycle/evictions.py) enters them; plugins that preempt read them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster


class Preemptions:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._last: dict[str, str] = {}
        """Of those under way: the uid of the last victim once its turn has come, empty before."""
        self._promises: dict[str, tuple[str, frozenset[str]]] = {}

    def __len__(self) -> int:
        """How many promises there are."""
        return len(self._promises)

    # ---- evictions ----

    @property
    def any_under_way(self) -> bool:
        return bool(self._last)

    def is_under_way(self, key: str) -> bool:
        return key in self._last

    def gates(self, key: str) -> bool:
        """Whether a preemptor is to wait: its victims are being evicted, and the last of them is not terminating or
        gone."""
        last = self._last.get(key)
        if last is None:
            return False
        if not last:
            return True
        pod_state = self._cluster.pods.get(last)
        return pod_state is not None and not pod_state.seen.terminating

    def begin(self, key: str) -> None:
        """The first victims are evicted."""
        self._last[key] = ""

    def go_on(self, key: str, last: Pod) -> None:
        """The last victim is evicted."""
        self._last[key] = last.uid

    def end(self, key: str) -> None:
        self._last.pop(key, None)

    # ---- promises ----

    def promise(self, key: str, node: str, victims: Iterable[Pod]) -> None:
        """A preemptor gets the room that these victims leave on a node; an earlier promise to it is void."""
        self._promises[key] = (node, frozenset(victim.uid for victim in victims))

    def withdraw(self, key: str) -> None:
        self._promises.pop(key, None)

    def node_of(self, key: str) -> str:
        """Where a preemptor was promised room; empty if nowhere."""
        promise = self._promises.get(key)
        return promise[0] if promise is not None else ""

    def have_left(self, key: str) -> bool:
        """Whether all victims of a preemptor are gone."""
        promise = self._promises.get(key)
        return promise is None or not self._any_is_there(promise[1])

    def victims_on(self, node: str) -> set[str]:
        """The uids of all whose room on a node was promised to somebody."""
        return {uid for where, victims in self._promises.values() if where == node for uid in victims}

    def sweep(self) -> None:
        """Forget the promises whose victims are gone."""
        self._promises = {key: one for key, one in self._promises.items() if self._any_is_there(one[1])}

    def _any_is_there(self, uids: Iterable[str]) -> bool:
        return any(uid in self._cluster.pods for uid in uids)


def preemptions_of(cluster: Cluster) -> Preemptions:
    return cluster.index(Preemptions, Preemptions)
