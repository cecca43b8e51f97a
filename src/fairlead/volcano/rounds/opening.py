"""Opening a round: from the cluster as it is to the jobs, queues, tasks and resources that a Volcano round works on.

A job is in the round if its PodGroup and its queue exist; a pod belongs to the group that its annotation names. Pods on
nodes that belong to no job only use resources; pending pods that belong to no job are not in the round.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.effects import Effects
from fairlead.core.model import kinds
from fairlead.core.model.hashes import safe_hash
from fairlead.core.state.cluster import PodPlace
from fairlead.volcano.kinds import VC_POD_GROUP, VC_QUEUE
from fairlead.volcano.records.amounts import Amounts
from fairlead.volcano.records.round_figures import OPENED, Span
from fairlead.volcano.records.tasks import ALLOCATED_CLASS, TaskStatus, status_of
from fairlead.volcano.rounds.job import Job, SubJob, Task
from fairlead.volcano.rounds.narrowing import queue_key
from fairlead.volcano.rounds.network import network_of
from fairlead.volcano.rounds.partition import Sharding
from fairlead.volcano.rounds.requests import TaskRequests
from fairlead.volcano.rounds.round import Choices, QueueState, Round, SearchState, Shard, Witness
from fairlead.volcano.rounds.round_resources import RoundResources
from fairlead.volcano.rounds.tiers import Tiers
from fairlead.volcano.rounds.trial_overlay import TrialOverlay

if TYPE_CHECKING:
    from random import Random

    from numpy.typing import NDArray

    from fairlead.core.framework.meter import Meter
    from fairlead.core.model.group import NetworkTopology, SubGroupPolicy
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster, PodState
    from fairlead.volcano.rounds.round import HyperNodes
    from fairlead.volcano.rounds.settings import Rounds

_LONGEST_SUB_JOB_VALUE = 128
"""Label values that are longer together are hashed in the name of their sub-job."""
_FEW_TASKS = 1024
_OVERSUBSCRIPTION = (("cpu", "volcano.sh/oversubscription-cpu"), ("memory", "volcano.sh/oversubscription-memory"))


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """What a round takes over from the ones before it.

    `promised` are the hypernodes in which room was made for sub-jobs, by the sub-jobs' uids; None if that is not known
    and has to be read from the pods. `known` are tasks of earlier rounds, to be used again; the round adds its own.
    `own_nodes` are the nodes of the scheduler's NodeShard, if it has one. `first_row` is where the next search begins.
    `left_out` are the groups and queues without which the round is opened, because rounds fail with them.
    """

    first_row: int = 0
    promised: Mapping[str, str] | None = None
    known: dict[str, Task] = field(default_factory=dict)
    own_nodes: Collection[str] = ()
    left_out: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class RoundContext:
    """What a round works with besides the cluster. Without `effects`, what its plugins ask for is dropped; `choices`
    makes what Volcano leaves to chance, `witness` follows what happens, and `meter` takes times."""

    effects: Effects | None = None
    choices: Choices | None = None
    witness: Witness | None = None
    meter: Meter | None = None


def open_round(
    cluster: Cluster,
    rounds: Rounds,
    *,
    uid: str,
    now: float,
    rng: Random,
    carried: CarriedOver | None = None,
    context: RoundContext | None = None,
) -> Round:
    """A round over the cluster as it is."""
    carried, context = carried or CarriedOver(), context or RoundContext()
    witness, meter = context.witness, context.meter
    cluster.begin_cycle()
    table = cluster.table
    rows = _rows(cluster, rounds)
    resources: RoundResources[Task] = RoundResources(table)
    _add_oversubscription(cluster, resources)
    requests = TaskRequests(cluster, rounds)
    for resource, column in requests.attachable.offered().items():
        resources.offer(resource, column)
    network = network_of(cluster)
    round = Round(
        uid=uid,
        now=now,
        rng=rng,
        effects=context.effects or Effects(),
        settings=rounds,
        cluster=cluster,
        resources=resources,
        overlay=TrialOverlay(cluster),
        jobs={},
        queues=_queues(cluster, carried.left_out),
        rows=rows,
        total=_total(resources, rows),
        tiers=Tiers(rounds.tiers, disagreement_restarts=rounds.quirks.disagreement_restarts_tier),
        topology=network,
        choices=context.choices or Choices(rng),
        witness=witness or Witness(),
        search=SearchState(carried.first_row, _shard(cluster, rounds, carried.own_nodes)),
        meter=meter,
    )
    round.tiers.witness = witness
    _gather_jobs(round, rounds, carried.left_out)
    requests.leave_out_uncounted(round.jobs.values())
    _gather_tasks(round, rounds, requests, carried.known)
    for job in round.jobs.values():
        _normalise_topology(job, network)
        _recall_hyper_nodes(round, job)
        for sub_job in job.sub_jobs.values():
            if carried.promised is not None:
                sub_job.nominated_hyper_node = carried.promised.get(sub_job.uid, "")
            elif not rounds.quirks.forgets_promised_hyper_nodes:
                sub_job.nominated_hyper_node = _promise_read_again(round, sub_job)
    for plugin in round.tiers.plugins.values():
        began = meter.clock() if meter is not None else 0.0
        plugin.open(round)
        if meter is not None:
            meter.lapsed(Span.PLUGIN, plugin.name, OPENED, since=began)
    return round


# ---- nodes ----


def _rows(cluster: Cluster, rounds: Rounds) -> NDArray[np.int32]:
    table, partition = cluster.table, rounds.partition
    if partition.whole:
        return np.fromiter(table.row_of.values(), dtype=np.int32, count=len(table))
    nodes = dict(table.alive_rows())
    return np.array([row for row in table.row_of.values() if partition.has_node(nodes[row])], dtype=np.int32)


def _shard(cluster: Cluster, rounds: Rounds, own_nodes: Collection[str]) -> Shard | None:
    sharding = rounds.partition.sharding
    if sharding is Sharding.NONE:
        return None
    own = np.zeros(cluster.table.capacity, dtype=np.bool_)
    own[[row for name, row in cluster.table.row_of.items() if name in own_nodes]] = True
    return Shard(own, hard=sharding is Sharding.HARD)


def _add_oversubscription(cluster: Cluster, resources: RoundResources[Task]) -> None:
    for row, node in cluster.table.alive_rows():
        for resource, annotation in _OVERSUBSCRIPTION:
            text = node.annotations.get(annotation, "")
            if text.isdigit():
                resources.allocatable[resource][row] += float(text)
                resources.idle[resource][row] += float(text)


def _total(resources: RoundResources[Task], rows: NDArray[np.int32]) -> Amounts:
    total = Amounts()
    for resource, column in resources.allocatable.items():
        total.set(resource, float(column[rows].sum()))
    return total


# ---- jobs ----


def _queues(cluster: Cluster, left_out: Collection[str]) -> dict[str, QueueState]:
    queues = cluster.object_index.of(VC_QUEUE).values()
    return {queue.name: QueueState(queue) for queue in queues if queue_key(queue.name) not in left_out}


def _gather_jobs(round: Round, rounds: Rounds, left_out: Collection[str]) -> None:
    object_index = round.cluster.object_index
    classes = object_index.of(kinds.PRIORITY_CLASS)
    default = next((known.value for known in classes.values() if known.global_default), 0)
    for group in object_index.of(VC_POD_GROUP).values():
        queue = group.queue or rounds.default_queue
        if queue in round.queues and rounds.partition.has_group(group) and group.key not in left_out:
            known = classes.get(group.priority_class)
            job = Job(group, queue=queue, priority=default if known is None else known.value)
            round.jobs[job.uid] = job


def _gather_tasks(round: Round, rounds: Rounds, requests: TaskRequests, known: dict[str, Task]) -> None:
    placed: list[tuple[Task, int]] = []
    for pod, status, row in _pods(round.cluster, rounds):
        task = known.get(pod.uid)
        if task is not None and task.pod is pod and requests.stands(task):
            task.begin(status, row)
        else:
            task = known[pod.uid] = Task(pod, requests.of(pod), status, row)
        if row >= 0:
            placed.append((task, row))
        job = _job_of(round, pod)
        if job is not None:
            job.add(task, sub_job_for(job, pod))
    round.resources.put_all(placed)
    for job in round.jobs.values():
        if not job.sub_jobs:
            _default_sub_job(job)
    _forget_gone(round.cluster, known)


def _forget_gone(cluster: Cluster, known: dict[str, Task]) -> None:
    if len(known) > 2 * (len(cluster.pods) + len(cluster.finished)) + _FEW_TASKS:
        for uid in [uid for uid in known if uid not in cluster.pods and uid not in cluster.finished]:
            del known[uid]


def _pods(cluster: Cluster, rounds: Rounds) -> Iterator[tuple[Pod, TaskStatus, int]]:
    """Pods of the round with where they stand: those on nodes, placed by any scheduler, and the waiting ones that are
    ours; ended ones count for their groups."""
    partition, alone = rounds.partition, rounds.partition.ring is None
    for pod_state in cluster.pods.values():
        if pod_state.place is not PodPlace.PENDING:
            if alone or partition.sees(pod_state.pod):
                yield pod_state.pod, _seated_status(pod_state), pod_state.row
        elif pod_state.pod.scheduler_name in rounds.scheduler_names and (alone or partition.schedules(pod_state.pod)):
            yield pod_state.pod, status_of(pod_state.pod), -1
    for pod in cluster.finished.values():
        if alone or partition.sees(pod):
            yield pod, status_of(pod), -1


def _seated_status(pod_state: PodState) -> TaskStatus:
    if pod_state.place is PodPlace.ASSUMED:
        return TaskStatus.BINDING
    return status_of(pod_state.pod)


def _job_of(round: Round, pod: Pod) -> Job | None:
    group = pod.group_ref
    if group is None or group.api != VC_POD_GROUP.group:
        return None
    return round.jobs.get(f"{pod.namespace}/{group.name}")


# ---- sub-jobs ----


def sub_job_for(job: Job, pod: Pod) -> SubJob:
    """The sub-job that a pod belongs to: of the first policy that selects it and all of whose keys it has. A policy
    without keys takes nobody."""
    for policy in job.group.sub_groups:
        values = [pod.labels.get(key, "") for key in policy.match_label_keys]
        if values and all(values) and policy.selector.matches(pod.labels):
            return _sub_job_of(job, policy, values)
    return job.sub_jobs.get(job.uid) or _default_sub_job(job)


def _sub_job_of(job: Job, policy: SubGroupPolicy, values: list[str]) -> SubJob:
    joined = "-".join(values)
    if len(joined) > _LONGEST_SUB_JOB_VALUE:
        joined = safe_hash(joined)
    uid = f"{job.uid}/{policy.name}-{joined}"
    known = job.sub_jobs.get(uid)
    if known is None:
        known = job.sub_jobs[uid] = SubJob(
            job,
            uid,
            policy=policy.name,
            min_available=policy.size,
            topology=policy.network_topology,
            match_index=_whole_number(values[0]),
        )
    return known


def _default_sub_job(job: Job) -> SubJob:
    least = 1 if job.group.sub_groups else job.min_available
    made = job.sub_jobs[job.uid] = SubJob(job, job.uid, policy="", min_available=least, topology=job.topology)
    return made


def _whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0


# ---- the network ----


def _normalise_topology(job: Job, network: HyperNodes) -> None:
    """Replace names of tiers by numbers, and a topology that is only preferred by a limit that every hypernode
    meets."""
    widest = network.tier(network.root)
    job.topology = _normalised(job.topology, network, widest)
    limit = widest
    if job.topology is not None and job.topology.highest_tier is not None:
        limit = job.topology.highest_tier
    for sub_job in job.sub_jobs.values():
        if not sub_job.policy:
            sub_job.topology = job.topology
        else:
            sub_job.topology = _normalised(sub_job.topology, network, limit)


def _normalised(topology: NetworkTopology | None, network: HyperNodes, limit: int) -> NetworkTopology | None:
    if topology is None:
        return None
    if topology.highest_tier is None and topology.highest_tier_name:
        tier = network.tier_named(topology.highest_tier_name)
        if tier is not None:
            topology = replace(topology, highest_tier=tier, highest_tier_name="")
    return topology if topology.hard else replace(topology, hard=True, highest_tier=limit)


def _recall_hyper_nodes(round: Round, job: Job) -> None:
    """Set in which hypernode a job and its sub-jobs already run, from the nodes of their tasks. The original asks only
    sub-jobs that have a topology of their own (`recalls_only_own_topologies`)."""
    if not job.contains_topology or not round.topology.ready:
        return
    where = ""
    for sub_job in job.sub_jobs.values():
        if round.quirks.recalls_only_own_topologies and sub_job.topology is None:
            continue
        names = _nodes_of(round, sub_job.in_status(*ALLOCATED_CLASS))
        sub_job.allocated_hyper_node = round.topology.lowest_containing(names) if names else ""
        where = round.topology.lowest_common(where, sub_job.allocated_hyper_node)
    job.allocated_hyper_node = where


def _promise_read_again(round: Round, sub_job: SubJob) -> str:
    """The hypernode in which room was made for a sub-job before this scheduler started: all its pending pods are
    nominated to nodes in it. Empty if there is none."""
    if not sub_job.job.contains_topology or not round.topology.ready:
        return ""
    names = {task.pod.nominated_node for task in sub_job.in_status(TaskStatus.PENDING)}
    return round.topology.lowest_containing(names) if names and "" not in names else ""


def _nodes_of(round: Round, tasks: Iterable[Task]) -> set[str]:
    return {round.cluster.table.name(task.row) for task in tasks if task.row >= 0}
