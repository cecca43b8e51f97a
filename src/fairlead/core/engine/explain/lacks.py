"""What pods that wait are short of, by name and with amounts: quotas, devices and reservations as plugins know them,
and the nodes' own room with the pods that it is promised to or kept for.

The pods are those that must start together: one pod, or as many members of a gang as it still needs. Amounts are those
of now, worked out on request; attempts pay nothing for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.engine.explain.shortages import named_in
from fairlead.core.framework.explainers import LackExplainer, RoomExplainer
from fairlead.core.model.lack import MEMBERS, Lack
from fairlead.core.state.cluster import PodPlace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.model.gang_explanation import Domain
    from fairlead.core.model.pod import Pod

_ALL = "all nodes together"


def lacks_of(scheduler: Scheduler, pods: Sequence[Pod], texts: Iterable[str]) -> tuple[Lack, ...]:
    """Everything that is short for pods of one profile. `texts` are the refusals, which name resources."""
    if not pods:
        return ()
    name = pods[0].scheduler_name
    plugins = dict.fromkeys(plugin for mode in scheduler.modes for plugin in mode.lack_explainers(name))
    explainers = [plugin for plugin in plugins if isinstance(plugin, LackExplainer)]
    found = [one for plugin in explainers for one in plugin.lacks(pods, scheduler.cluster)]
    return (*found, *node_lacks(scheduler, pods, texts))


def domain_lack(domains: Sequence[Domain], needed: int) -> tuple[Lack, ...]:
    """The best domain of a topology, if it has room for fewer members than are needed."""
    if not domains or domains[0].fits >= needed:
        return ()
    best = domains[0]
    return (Lack.of_counts("Topology", f"{best.level} {best.name}", MEMBERS, needed, best.fits),)


# ---- the room of nodes ----


def node_lacks(scheduler: Scheduler, pods: Sequence[Pod], texts: Iterable[str]) -> Iterator[Lack]:
    """The resources that refusals name and of which all nodes together cannot hold what the pods request, even if
    nothing else mattered."""
    named = [name for name in dict.fromkeys(named_in(texts)) if any(pod.request.get(name) for pod in pods)]
    if not named:
        return
    table = scheduler.cluster.table
    rows = np.flatnonzero(table.alive[: table.high])
    promises = list(_promises(scheduler, pods))
    explainers = (index for index in scheduler.cluster.indexes.values() if isinstance(index, RoomExplainer))
    held = [room for index in explainers for room in index.held_rooms(pods)]
    kept = [*_kept_by_gangs(scheduler, pods), *((one.holder, one.left, one.why) for one in held if one.why)]
    for name in named:
        room = table.allocatable_column(name)[: table.high] - table.requested_column(name)[: table.high]
        for row, _, request, _ in promises:
            room[row] -= request.get(name, 0)
        for one in held:
            if not one.why:
                room[one.row] += one.left.get(name, 0)
        free = np.maximum(room[rows], 0).tolist()
        requests = [amount for pod in pods if (amount := pod.request.get(name, 0))]
        missing = _unplaced(requests, free)
        if missing:
            holders = [
                (who, amount, why)
                for who, request, why in (*((who, request, why) for _, who, request, why in promises), *kept)
                if (amount := request.get(name, 0))
            ]
            yield Lack.of_units("Nodes", _ALL, name, sum(requests), sum(free), missing, holders)


def _unplaced(requests: Sequence[int], free: list[int]) -> int:
    """What of some amounts finds no place, if the largest come first and each goes where the most is free."""
    if not free:
        return sum(requests)
    heap = [-amount for amount in free]
    heapify(heap)
    missing = 0
    for request in sorted(requests, reverse=True):
        if -heap[0] >= request:
            heapreplace(heap, heap[0] + request)
        else:
            missing += request
    return missing


def _promises(scheduler: Scheduler, pods: Sequence[Pod]) -> Iterator[tuple[int, str, Mapping[str, int], str]]:
    """Room of rows that is promised to others and that these pods have to leave them."""
    counted = {pod.uid for pod in pods}
    for mode in scheduler.modes:
        for row, pod in mode.promised(pods[0].priority):
            if pod.uid not in counted:
                counted.add(pod.uid)
                yield row, pod.key, pod.request, f"{scheduler.cluster.table.name(row)} is promised to it"


def _kept_by_gangs(scheduler: Scheduler, pods: Sequence[Pod]) -> Iterator[tuple[str, Mapping[str, int], str]]:
    """Members of other gangs that have a place and wait for the rest."""
    own, cluster = {pod.uid for pod in pods}, scheduler.cluster
    for uid, binding in scheduler.bindings.items():
        pod_state = cluster.pods.get(uid)
        if pod_state is None or uid in own or binding.past_permit or pod_state.place is not PodPlace.ASSUMED:
            continue
        pod = pod_state.seen
        yield pod.key, pod.request, f"it has a place on {cluster.table.name(pod_state.row)} and waits for its gang"
