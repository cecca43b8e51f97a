"""TaskRequests: what pods request in a round, in Volcano's units, their volumes included.

Equal pods share one vector, and RoundResources caches by its identity where a request fits. Where a pod has claims, its
request can change without the pod: a task of an earlier round is used again only if its request still holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.volcano.records.amounts import Amounts, is_counted, per_unit
from fairlead.volcano.rounds.attachable import AttachableVolumes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.core.model.pod import Pod
    from fairlead.core.model.shape import PodShape
    from fairlead.core.state.cluster import Cluster
    from fairlead.volcano.rounds.job import Job, Task
    from fairlead.volcano.rounds.settings import Rounds


class TaskRequests:
    def __init__(self, cluster: Cluster, rounds: Rounds) -> None:
        unregistered = rounds.quirks.counts_unregistered_volumes
        self.attachable = AttachableVolumes(cluster, rounds.ignored_provisioners, counts_unregistered=unregistered)
        self._uncounted = frozenset().union(*(one.plugin.uncounted for tier in rounds.tiers for one in tier))
        self._by_shape: dict[PodShape, Amounts] = {}
        self._with_volumes: dict[tuple[PodShape, tuple[tuple[str, int], ...]], Amounts] = {}

    def stands(self, task: Task) -> bool:
        """Whether a task of an earlier round still requests the same."""
        if task.pod.shape.volumes:
            return task.request == self.of(task.pod)
        self._by_shape.setdefault(task.pod.shape, task.request)
        return True

    def of(self, pod: Pod) -> Amounts:
        plain = self._by_shape.get(pod.shape)
        if plain is None:
            plain = self._by_shape[pod.shape] = _request(pod, self._uncounted)
        volumes = self.attachable.asked_by(pod) if pod.shape.volumes else None
        if not volumes:
            return plain
        key = (pod.shape, tuple(sorted(volumes.items())))
        if key not in self._with_volumes:
            self._with_volumes[key] = plain + Amounts(scalars={name: float(n) for name, n in volumes.items()})
        return self._with_volumes[key]

    def leave_out_uncounted(self, jobs: Iterable[Job]) -> None:
        """Take resources that a plugin counts itself out of the minimums of groups."""
        for job in jobs if self._uncounted else ():
            for name in self._uncounted.intersection(job.min_resources.scalars if job.min_resources else ()):
                assert job.min_resources is not None
                del job.min_resources.scalars[name]


def _request(pod: Pod, uncounted: frozenset[str]) -> Amounts:
    """The resources that a pod requests and Volcano counts, and one of `pods`."""
    made = Amounts()
    units = pod.shape.request
    for resource in pod.shape.exact_request:
        if is_counted(resource) and resource in units and resource not in uncounted:
            made.set(resource, float(units[resource]) * per_unit(resource))
    made.set("pods", 1.0)
    return made
