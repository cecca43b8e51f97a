"""deviceshare: pods share accelerator cards, or have whole ones, and find which in their annotations.

    GPUSharingEnable, GPUNumberEnable   GPUs by memory, or whole (volcano/devices/numbered_gpus.py)
    VGPUEnable                          GPUs by memory and cores, or in fixed parts (vgpus.py)
    AscendHAMiVNPUEnable                Ascend cards by templates (ascend.py)

The kinds are asked one after the other, each about pods that request it, on nodes that have it. The cards of a pod are
written with its binding. The first two kinds exclude each other and the third. Ascend 310P as MindCluster shares them
is not built.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.core.model.lack import Lack
from fairlead.core.model.reasons import failed
from fairlead.errors import ConfigError
from fairlead.volcano.devices.ascend import AscendCards
from fairlead.volcano.devices.device_config import DeviceConfig
from fairlead.volcano.devices.node_locks import NodeLock, NodeLocks
from fairlead.volcano.devices.numbered_gpus import NumberedGpus
from fairlead.volcano.devices.vgpus import Rule, Vgpus
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.tiers import TierPlugin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.pod import Pod
    from fairlead.core.model.reasons import Reject, Status
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.nodes import Nodes
    from fairlead.volcano.devices.device_pools import DevicePool, NodeCard
    from fairlead.volcano.rounds.arguments import Arguments
    from fairlead.volcano.rounds.round import Round, Task

_BINDER = "DefaultBinder"
CONFIG_MAP, CONFIG_NAMESPACE = "volcano-vgpu-device-config", "kube-system"
"""Where the device plugins' configuration is, unless the arguments say otherwise."""


class DeviceShare(TierPlugin):
    """`pools` are the kinds of cards. `weight` is what their scores count for among nodes. `locks`: nodes are locked
    while pods get their cards."""

    name = "deviceshare"

    def __init__(self, pools: Sequence[DevicePool[Any]], *, weight: int = 0, locks: bool = False) -> None:
        self._pools = pools
        self._weight = weight
        self._uses_locks = locks
        self.uncounted = frozenset(pool.uncounted for pool in pools if pool.uncounted)

    @classmethod
    def of(cls, arguments: Arguments, config: DeviceConfig | None = None) -> DeviceShare:
        """Raises ConfigError for kinds that exclude each other."""
        return cls(
            list(_pools(arguments, config or DeviceConfig())),
            weight=arguments.whole("deviceshare.ScheduleWeight", 0),
            locks=arguments.flag("deviceshare.NodeLockEnable", default=False),
        )

    def open(self, round: Round) -> None:
        self._round = round
        self._locks = NodeLocks(round)
        for pool in self._pools:
            pool.open(round)

    # ---- nodes ----

    def predicate(self, task: Task, nodes: Nodes) -> Iterator[Reject]:
        for pool in self._pools:
            if pool.concerns(task):
                yield from pool.refusals(task, nodes)

    def node_order(self, task: Task, nodes: Nodes) -> NDArray[np.float64]:
        total = np.zeros(self._round.cluster.table.capacity, dtype=np.float64)
        if self._weight > 0:
            for pool in self._pools:
                if pool.concerns(task):
                    total += pool.liking(task)
        return nodes.take(np.floor(total + 0.5)) * self._weight

    # ---- explaining ----

    def lacks(self, pods: Sequence[Pod], cluster: Cluster) -> Iterable[Lack]:
        """Cards, if those of all nodes together do not serve all pods, one after the other."""
        uids = {pod.uid for pod in pods}
        tasks = [task for job in self._round.jobs.values() for task in job.tasks.values() if task.uid in uids]
        for pool in self._pools:
            wanting = [task for task in tasks if pool.concerns(task)]
            served = pool.served(wanting)
            if all(served):
                continue
            resource, _, free = pool.measured(wanting[0])
            asked = [pool.measured(task)[1] for task in wanting]
            missing = sum(amount for amount, has in zip(asked, served, strict=True) if not has)
            holders = [(task.key, pool.measured(task)[1], "it was given them") for task in self._holding(pool)]
            yield Lack.of_units("Device", "cards of all nodes", resource, sum(asked), free, missing, holders)

    def cards_of(self, row: int) -> Iterator[NodeCard]:
        """The cards of a node, of all kinds."""
        for pool in self._pools:
            yield from pool.cards_of(row)

    def _holding(self, pool: DevicePool[Any]) -> Iterator[Task]:
        """The tasks that have cards."""
        for job in self._round.jobs.values():
            yield from (task for task in job.tasks.values() if task.uid in pool.holdings.held)

    # ---- simulated evictions ----

    def simulate_remove_task(self, task: Task, victim: Task, row: int) -> None:
        for pool in self._pools:
            pool.holdings.simulate_ending(victim.uid)

    def simulate_add_task(self, task: Task, victim: Task, row: int) -> None:
        for pool in self._pools:
            pool.holdings.simulate_return(victim.uid)

    def simulate_predicate(self, task: Task, row: int) -> bool:
        return all(
            pool.choose(task, row) is not None for pool in self._pools if pool.concerns(task) and pool.has_cards(row)
        )

    # ---- what happens ----

    def allocated(self, task: Task) -> Status | None:
        """Give a task that is placed or pipelined its cards; a task whose eviction is undone has the same ones
        again."""
        for pool in self._pools:
            if task.uid in pool.holdings.held or (pool.concerns(task) and pool.has_cards(task.row)):
                refusal = self._allocate(pool, task)
                if refusal:
                    return failed(refusal)
        return None

    def _allocate(self, pool: DevicePool[Any], task: Task) -> str:
        """Why a task cannot have its cards; empty if it has them."""
        known = task.uid in pool.holdings.held
        locked = self._why_locked(pool, task) if not known else ""
        if locked:
            return locked
        held = pool.allocate(task)
        if held is None:
            return pool.why_not(task.row)
        if not known and task.status is not TaskStatus.PIPELINED:
            self._annotate(task, pool.annotations_for(task, held))
            self._lock(pool, task)
        return ""

    def deallocated(self, task: Task) -> None:
        for pool in self._pools:
            pool.release(task)
            if task.status is TaskStatus.PENDING:
                self._locks.give_back(task.row, pool.lock)

    # ---- what goes with the binding ----

    def _annotate(self, task: Task, annotations: Mapping[str, str]) -> None:
        cycle = self._round.cycles.get(task.uid)
        if cycle is not None:
            cycle.notes[_BINDER] = {**cycle.notes.get(_BINDER, {}), **annotations}

    def _why_locked(self, pool: DevicePool[Any], task: Task) -> str:
        if not self._uses_locks or not pool.lock or task.status is TaskStatus.PIPELINED:
            return ""
        why = self._locks.why_not(task.row, pool.lock)
        return pool.locked(task, why) if why else ""

    def _lock(self, pool: DevicePool[Any], task: Task) -> None:
        cycle = self._round.cycles.get(task.uid)
        if self._uses_locks and pool.lock and not pool.releases_lock and cycle is not None:
            self._locks.set(task.row, pool.lock)
            cycle.notes[NodeLock.name] = pool.lock


def _pools(arguments: Arguments, config: DeviceConfig) -> Iterator[DevicePool[Any]]:
    def is_on(kind: str) -> bool:
        return arguments.flag(f"deviceshare.{kind}", default=False)

    policy = arguments.text("deviceshare.SchedulePolicy")
    by_memory, whole, shared = is_on("GPUSharingEnable"), is_on("GPUNumberEnable"), is_on("VGPUEnable")
    if by_memory and whole:
        raise ConfigError("can not define true in both gpu sharing and gpu number")
    if (by_memory or whole) and shared:
        raise ConfigError("gpu-share and vgpu can't be used together")
    if is_on("AscendMindClusterVNPUEnable"):
        raise ConfigError("deviceshare.AscendMindClusterVNPUEnable is not built")
    if by_memory or whole:
        yield NumberedGpus(whole=whole)
    if shared:
        yield Vgpus(config.nvidia, policy=policy, rules=_rules(arguments.raw("deviceshare.GPUExclusiveRules")))
    if is_on("AscendHAMiVNPUEnable"):
        yield from (AscendCards(vnpu, policy=policy) for vnpu in config.vnpus)


def _rules(given: Any) -> list[Rule]:
    """Sets of labels. Values that are no text are left out, and so is a rule without labels."""
    listed = [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []
    rules = [
        {key: value for key, value in one.items() if isinstance(key, str) and isinstance(value, str)} for one in listed
    ]
    return [rule for rule in rules if rule]
