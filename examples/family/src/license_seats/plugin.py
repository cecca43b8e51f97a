"""LicenseSeats: a pod with the label of a pool waits while all seats of the pool are taken."""

from collections import Counter
from collections.abc import Sequence

from fairlead import SKIP, Cycle, Interest, Plugin, Pod, Status, unresolvable
from fairlead.core.model.events import POD, ActionType, ClusterEvent
from fairlead.core.state.cluster import Cluster
from license_seats.kinds import LICENSE_POOL, POOL_EVENTS, POOL_LABEL


class SeatsTaken:
    """Counts the seats that the pods on nodes take. The Cluster keeps one and calls it when a pod takes or leaves a
    row, so that no attempt looks through all pods."""

    def __init__(self, cluster: Cluster) -> None:
        self.by_pool: Counter[str] = Counter()

    def occupied(self, pod: Pod, row: int) -> None:
        if pool := pod.labels.get(POOL_LABEL):
            self.by_pool[pool] += 1

    def vacated(self, pod: Pod, row: int) -> None:
        if pool := pod.labels.get(POOL_LABEL):
            self.by_pool[pool] -= 1

    def node_changed(self, row: int) -> None:
        pass


class LicenseSeats(Plugin):
    name = "LicenseSeats"
    kinds_read = (LICENSE_POOL,)

    def events(self) -> Sequence[Interest]:
        return [
            Interest(ClusterEvent(POOL_EVENTS, ActionType.ADD | ActionType.UPDATE)),
            Interest(ClusterEvent(POD, ActionType.DELETE)),
        ]

    def pre_filter(self, cycle: Cycle) -> Status | None:
        wanted = cycle.pod.labels.get(POOL_LABEL)
        if not wanted:
            return SKIP
        pool = cycle.cluster.object_index.of(LICENSE_POOL).get(wanted)
        if pool is None:
            return unresolvable(f"there is no license pool {wanted}")
        if cycle.cluster.index(SeatsTaken, SeatsTaken).by_pool[wanted] >= pool.seats:
            return unresolvable(f"all {pool.seats} seats of license pool {wanted} are taken")
        return None
