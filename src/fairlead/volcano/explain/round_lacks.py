"""What a group of the Volcano profile is short of: its queue and the queues above it, the cluster that groups are let
into, and a HyperNode. Who holds it is read from the jobs of the round: what they have, and what is kept for them since
they were let in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.gang_explanation import Domain
from fairlead.core.model.lack import Lack, LackHolder
from fairlead.volcano.explain.queue import QueueAccounts, kept_for, said, total
from fairlead.volcano.kinds import VC_HYPER_NODE
from fairlead.volcano.records.amounts import PODS, UNLIMITED
from fairlead.volcano.records.tasks import TaskStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.volcano.records.amounts import Amounts
    from fairlead.volcano.rounds.round import Job, Round, Task

_NAMED = 10
_TOPOLOGY_PLUGIN = "network-topology-aware"
"""Without it a job may be anywhere, whatever its topology says."""


def needed_tasks(job: Job) -> list[Task]:
    """As many of the tasks without a place as the job still needs; all of them if it has enough."""
    pending = job.in_status(TaskStatus.PENDING)
    lacking = job.min_available - job.counts.ready
    return list(pending)[:lacking] if lacking > 0 else list(pending)


def queue_lacks(round: Round, job: Job) -> Iterator[Lack]:
    """The queues of which a job requests more than is left: with its minimum if it is not let in yet, with its tasks if
    it is."""
    accounts = QueueAccounts(round, job.queue)
    entry = job.is_pending and "enqueue" in round.settings.actions
    wanted = job.minimum() if entry else total(task.request for task in needed_tasks(job))
    left = accounts.left_for_entry if entry else accounts.left_for_pods
    for account in accounts.line:
        for name, amount in wanted.items():
            free = left(account, name)
            if name != PODS and amount and free < UNLIMITED / 2 and amount > free + 0.1:
                inside = _inside(round, account.name)
                yield _lack("Queue", account.name, name, amount, free, _holders(round, job, name, inside))
    if entry:
        yield from _cluster_lacks(round, job, wanted)


def _cluster_lacks(round: Round, job: Job, wanted: Amounts) -> Iterator[Lack]:
    """What the cluster has not left for another group to be let in, if a plugin limits that."""
    for plugin in round.tiers.plugins.values():
        room = getattr(plugin, "entry_room", None)
        if room is None or job.min_resources is None:
            continue
        left: Amounts = room()
        for name, amount in wanted.items():
            if name != PODS and amount and amount > left.get(name) + 0.1:
                holders = _holders(round, job, name, lambda _: True)
                yield _lack("Nodes", f"all nodes together, by {plugin.name}", name, amount, left.get(name), holders)


def _lack(of: str, name: str, resource: str, asks: float, free: float, holders: tuple[LackHolder, ...]) -> Lack:
    free = max(0.0, free)
    asked, left, missing = (said(resource, amount) or "" for amount in (asks, free, asks - free))
    return Lack(of, name, resource, asked, left, missing, holders)


def _inside(round: Round, queue: str) -> Callable[[str], bool]:
    """Whether a queue is another, or below it."""
    known: dict[str, bool] = {}

    def inside(other: str) -> bool:
        if other not in known:
            known[other] = any(one.name == queue for one in QueueAccounts(round, other).line)
        return known[other]

    return inside


def _holders(round: Round, job: Job, resource: str, inside: Callable[[str], bool]) -> tuple[LackHolder, ...]:
    """Other groups that have some of a resource, or for which some is kept, those with the most first."""
    found: list[tuple[float, LackHolder]] = []
    for other in round.jobs.values():
        if other is job or not inside(other.queue):
            continue
        for amount, why in (
            (other.allocated.get(resource), "it has it"),
            (kept_for(other).get(resource), "kept for it since it was let in"),
        ):
            if amount > 0:
                found.append((amount, LackHolder(other.uid, said(resource, amount) or "", why)))
    found.sort(key=lambda one: (-one[0], one[1].who))
    return tuple(holder for _, holder in found[:_NAMED])


def hyper_node_domains(round: Round, job: Job) -> tuple[Domain, ...]:
    """The HyperNodes that a job may be in as a whole, with how many of its tasks the free amounts of their nodes would
    hold at most, the best first. Empty if it may be anywhere, or has its HyperNode."""
    topology, tree = job.topology, round.topology
    tasks = needed_tasks(job)
    if _TOPOLOGY_PLUGIN not in round.tiers.plugins or topology is None or topology.highest_tier is None:
        return ()
    if not tree.ready or job.allocated_hyper_node or not tasks:
        return ()
    slots = _slots(round, tasks)
    row_of = round.cluster.table.row_of
    kind_index = round.cluster.object_index.of(VC_HYPER_NODE)
    found = []
    for tier in tree.tiers:
        for name in tree.in_tier(tier) if tier <= topology.highest_tier else ():
            rows = [row_of[node] for node in tree.nodes_of(name) if node in row_of]
            record = kind_index.get(name)
            level = record.tier_name if record is not None and record.tier_name else f"HyperNode of tier {tier}"
            found.append(Domain(name, min(len(tasks), int(slots[rows].sum())), level, exact=False))
    return tuple(sorted(found, key=lambda one: (-one.fits, one.name))[:_NAMED])


def _slots(round: Round, tasks: Sequence[Task]) -> np.ndarray:
    """By row, how many of the tasks fit at most: each as if it requested the least of all."""
    names = set.intersection(*({name for name, amount in task.request.items() if amount} for task in tasks))
    slots = np.full(round.cluster.table.capacity, len(tasks), dtype=np.int64)
    for name in names - {PODS}:
        least = min(task.request.get(name) for task in tasks)
        idle = round.resources.idle.get(name)
        if idle is None:
            return np.zeros_like(slots)
        fitting = np.floor(np.maximum(idle, 0) / least + 1e-9).astype(np.int64)
        slots = np.minimum(slots, fitting[: len(slots)])
    return slots
