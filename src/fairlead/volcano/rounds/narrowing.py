"""Narrowing: finds the group or queue over which rounds fail while no single job is being tried.

A plugin that fails while it sums up all jobs, compares two of them, or closes a round does not say over whom. The next
rounds are therefore run without half of the suspects each: a round that fails clears those it was run without, a round
that succeeds clears all others. The groups that take part are scheduled meanwhile, and the culprit is alone after as
many rounds as the suspects can be halved. It is quarantined like any other object that raised.

Groups stand before queues among the suspects, and the first half is left out: a queue heals a round as well as the one
group in it that is to blame, and then it is the group that is found.

Invariant: between two searches `_suspects` and `_aside` are empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.volcano.kinds import VC_POD_GROUP, VC_QUEUE

if TYPE_CHECKING:
    from collections.abc import Collection

    from fairlead.core.engine.quarantine import Quarantine
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.volcano.rounds.partition import Partition

SEARCH_AGAIN_AFTER = 60.0
"""Seconds until the next search, when rounds fail no matter what is left out."""
_QUEUE = "queue "
"""How the keys of queues begin; a group's key is its namespace and name."""
_WHOLE_ROUND = "a round with "
"""How the keys begin under which the quarantine holds whom rounds failed over."""


class Narrowing:
    def __init__(self, cluster: Cluster, quarantine: Quarantine) -> None:
        self._cluster, self._quarantine = cluster, quarantine
        self._suspects: list[str] = []
        self._aside: list[str] = []
        self._error: Exception = Exception()
        self._rests_until = float("-inf")

    def left_out(self, now: float) -> Collection[str]:
        """Groups and queues without which the next round is run."""
        held = [key[len(_WHOLE_ROUND) :] for key in self._quarantine.held if key.startswith(_WHOLE_ROUND)]
        kept = [key for key in held if self._quarantine.reason(_WHOLE_ROUND + key, now, self._looks(key))]
        return {*self._aside, *kept}

    def failed(self, partition: Partition, error: Exception, now: float) -> None:
        """A round failed. What took part remains under suspicion, and the next is left out."""
        if self._suspects:
            self._suspects = [key for key in self._suspects if key not in self._aside]
        elif now >= self._rests_until:
            self._error = error
            left_out = self.left_out(now)
            self._suspects = [key for key in self._everybody(partition) if key not in left_out]
        if not self._suspects:  # rounds fail without any of them: nobody is to blame
            self._rests_until = max(self._rests_until, now + SEARCH_AGAIN_AFTER)
        self._leave_out_half()

    def succeeded(self, now: float) -> tuple[str, str] | None:
        """A round came to its end. The answer is the culprit, if it is known by now, and the reason as users read
        it."""
        self._suspects = self._aside
        if len(self._suspects) != 1:
            self._leave_out_half()
            return None
        (culprit,), self._suspects, self._aside = self._suspects, [], []
        looks = self._looks(culprit)
        reason = self._quarantine.put(_WHOLE_ROUND + culprit, "a round", self._error, now=now, fingerprint=looks)
        return culprit, reason

    @property
    def searching(self) -> bool:
        return bool(self._suspects)

    def pods_of(self, key: str) -> list[Pod]:
        """The pods of a group; none of a queue."""
        return [
            pod_state.seen
            for pod_state in self._cluster.pods.values()
            if (group := pod_state.seen.group_ref) is not None
            and group.api == VC_POD_GROUP.group
            and f"{pod_state.seen.namespace}/{group.name}" == key
        ]

    def _leave_out_half(self) -> None:
        self._aside = self._suspects[: (len(self._suspects) + 1) // 2]

    def _everybody(self, partition: Partition) -> list[str]:
        objects = self._cluster.object_index
        groups = [key for key, group in objects.of(VC_POD_GROUP).items() if partition.has_group(group)]
        return groups + [_QUEUE + name for name in objects.of(VC_QUEUE)]

    def _looks(self, key: str) -> object:
        """What shows whether a culprit has changed. Of a queue that is nothing: its time has to pass."""
        return frozenset((pod.uid, id(pod.shape)) for pod in self.pods_of(key))


def queue_key(name: str) -> str:
    """What a queue is called in `left_out`."""
    return _QUEUE + name
