"""What pods that wait are short of, by name and with amounts: quotas, devices and reservations as plugins know them,
and the nodes' own room with whoever it is promised to or kept for.

The pods are those that must start together: one pod, or as many members of a gang as it still needs. Amounts are those
of now, worked out when somebody asks; attempts pay nothing for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.engine.explain.shortages import named_in
from fairlead.core.framework.explainers import LackExplainer
from fairlead.core.model.lack import MEMBERS, Lack
from fairlead.core.state.cluster import PodPlace
from fairlead.volcano.records.tasks import TaskStatus

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
    explainers = dict.fromkeys(_explainers(scheduler, pods[0].scheduler_name))
    found = [one for plugin in explainers for one in plugin.lacks(pods, scheduler.cluster)]
    return (*found, *node_lacks(scheduler, pods, texts))


def _explainers(scheduler: Scheduler, name: str) -> Iterator[LackExplainer]:
    profile = scheduler.profiles.get(name)
    plugins: list[object] = [] if profile is None else list(profile.plugins())
    for driver in scheduler.drivers:
        if driver.profile.name == name and driver.latest is not None:
            plugins += driver.latest.tiers.plugins.values()
    yield from (plugin for plugin in plugins if isinstance(plugin, LackExplainer))


def domain_lack(domains: Sequence[Domain], needed: int) -> tuple[Lack, ...]:
    """The best domain of a topology, if it has room for fewer members than are needed."""
    if not domains or domains[0].fits >= needed:
        return ()
    best = domains[0]
    return (Lack.of_counts("Topology", f"{best.level} {best.name}", MEMBERS, needed, best.fits),)


# ---- the room of nodes ----


def node_lacks(scheduler: Scheduler, pods: Sequence[Pod], texts: Iterable[str]) -> Iterator[Lack]:
    """The resources that refusals name and of which all nodes together cannot hold what the pods ask for, even if
    nothing else mattered."""
    named = [name for name in dict.fromkeys(named_in(texts)) if any(pod.request.get(name) for pod in pods)]
    if not named:
        return
    table = scheduler.cluster.table
    rows = np.flatnonzero(table.alive[: table.high])
    promises = list(_promises(scheduler, pods))
    kept = [*_kept_by_gangs(scheduler, pods), *_kept_by_reservations(scheduler, pods)]
    usable = [
        (pod_state.row, state.available())
        for state, pod_state in scheduler.cluster.reservations.matchable()
        if any(state.record.matches(pod) for pod in pods)
    ]
    for name in named:
        room = table.allocatable_column(name)[: table.high] - table.requested_column(name)[: table.high]
        for row, _, request, _ in promises:
            room[row] -= request.get(name, 0)
        for row, left in usable:
            room[row] += left.get(name, 0)
        free = np.maximum(room[rows], 0).tolist()
        wishes = [amount for pod in pods if (amount := pod.request.get(name, 0))]
        missing = _unplaced(wishes, free)
        if missing:
            holders = [
                (who, amount, why)
                for who, request, why in (*((who, request, why) for _, who, request, why in promises), *kept)
                if (amount := request.get(name, 0))
            ]
            yield Lack.of_units("Nodes", _ALL, name, sum(wishes), sum(free), missing, holders)


def _unplaced(wishes: Sequence[int], free: list[int]) -> int:
    """What of some amounts finds no place, if the largest come first and each goes where the most is free."""
    if not free:
        return sum(wishes)
    heap = [-amount for amount in free]
    heapify(heap)
    missing = 0
    for wish in sorted(wishes, reverse=True):
        if -heap[0] >= wish:
            heapreplace(heap, heap[0] + wish)
        else:
            missing += wish
    return missing


def _promises(scheduler: Scheduler, pods: Sequence[Pod]) -> Iterator[tuple[int, str, Mapping[str, int], str]]:
    """Room of rows that is promised to others: to pods that wait for their victims, if they are not less important, and
    to tasks that a round has given a place which is not free yet."""
    own, priority = {pod.uid for pod in pods}, pods[0].priority
    row_of, told = scheduler.cluster.table.row_of, set(own)
    nominator = scheduler.backlog.nominator
    for name in sorted(nominator.nodes):
        for pod in nominator.on_node(name):
            if pod.uid not in told and pod.priority >= priority and name in row_of:
                told.add(pod.uid)
                yield row_of[name], pod.key, pod.request, f"{name} is promised to it"
    for driver in scheduler.drivers:
        jobs = driver.latest.jobs.values() if driver.latest is not None else ()
        for task in (task for job in jobs for task in job.in_status(TaskStatus.PIPELINED)):
            if task.uid not in told and task.row >= 0:
                told.add(task.uid)
                where = scheduler.cluster.table.name(task.row)
                yield task.row, task.key, task.pod.request, f"{where} is promised to it"


def _kept_by_gangs(scheduler: Scheduler, pods: Sequence[Pod]) -> Iterator[tuple[str, Mapping[str, int], str]]:
    """Members of other gangs that have a place and wait for the rest."""
    own, cluster = {pod.uid for pod in pods}, scheduler.cluster
    for uid, binding in scheduler.bindings.items():
        pod_state = cluster.pods.get(uid)
        if pod_state is None or uid in own or binding.past_permit or pod_state.place is not PodPlace.ASSUMED:
            continue
        pod = pod_state.seen
        yield pod.key, pod.request, f"it has a place on {cluster.table.name(pod_state.row)} and waits for its gang"


def _kept_by_reservations(scheduler: Scheduler, pods: Sequence[Pod]) -> Iterator[tuple[str, Mapping[str, int], str]]:
    """Reservations that none of the pods may use."""
    cluster = scheduler.cluster
    for state, pod_state in cluster.reservations.matchable():
        if not any(state.record.matches(pod) for pod in pods):
            where = cluster.table.name(pod_state.row)
            yield f"Reservation {state.record.name}", state.available(), f"it keeps room on {where} for its owners"
