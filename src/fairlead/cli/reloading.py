"""A Scheduler that follows its configuration files, and the dump that SIGUSR2 asks for.

A file that cannot be used changes nothing; the last good configuration stays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence, Set, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fairlead.config.watcher import ReloadOutcome
from fairlead.model import kinds
from fairlead.state.cluster import PodPlace

if TYPE_CHECKING:
    from fairlead.config.kube_records import KubeConfig
    from fairlead.engine.scheduler import Scheduler
    from fairlead.model.explanation import Explanation
    from fairlead.model.flow import Change, DocView, Reply, Watch, Write
    from fairlead.model.gang_explanation import GangExplanation
    from fairlead.model.queue_explanation import JobExplanation, QueueExplanation

log = logging.getLogger("fairlead.scheduler")

LOOK_EVERY = 1.0
"""Seconds between two looks at the files."""


class Watcher(Protocol):
    current: KubeConfig

    def look(self) -> ReloadOutcome: ...


class ReloadingScheduler:
    def __init__(
        self,
        scheduler: Scheduler,
        view: DocView,
        *,
        watcher: Watcher | None = None,
        reload: Callable[[KubeConfig], None] = lambda config: None,
        also_look: Sequence[Callable[[], None]] = (),
    ) -> None:
        """`also_look` are further looks at files, at the same times."""
        self.name = scheduler.name
        self._scheduler, self._view = scheduler, view
        self._watcher, self._reload, self._also_look = watcher, reload, also_look
        self._next_look = 0.0

    @property
    def interrupted_by(self) -> Sized:
        return self._scheduler.interrupted_by

    @interrupted_by.setter
    def interrupted_by(self, waiting: Sized) -> None:
        self._scheduler.interrupted_by = waiting

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        if now >= self._next_look:
            self._next_look = now + LOOK_EVERY
            self._look()
        return self._scheduler.step(now, changes, replies)

    def wake_at(self) -> float | None:
        wanted = self._scheduler.wake_at()
        return self._next_look if wanted is None else min(wanted, self._next_look)

    @property
    def watches(self) -> Sequence[Watch]:
        """The scheduler's, which may grow."""
        return self._scheduler.watches

    @property
    def scheduler(self) -> Scheduler:
        return self._scheduler

    def explain(self, namespace: str, name: str) -> Explanation | None:
        return self._scheduler.explain(namespace, name)

    def explain_group(self, namespace: str, name: str) -> GangExplanation | JobExplanation | None:
        return self._scheduler.explain_group(namespace, name)

    def explain_queue(self, name: str) -> QueueExplanation | None:
        return self._scheduler.explain_queue(name)

    def _look(self) -> None:
        try:
            if self._watcher is not None and self._watcher.look() is ReloadOutcome.CHANGED:
                self._reload(self._watcher.current)
            for look in self._also_look:
                look()
        except Exception:
            log.exception("the new configuration cannot be used; the last good one stays in force")


def dump(scheduler: Scheduler) -> None:
    """Nodes and queues as they are in memory."""
    table = scheduler.cluster.table
    for row, node in table.alive_rows():
        requested = {name: int(column[row]) for name, column in table.requested.items() if column[row]}
        pods = [f"{pod.key} {scheduler.cluster.pods[pod.uid].place.value}" for pod in table.pods[row]]
        log.info(
            "node %s", node.name, extra={"allocatable": dict(node.allocatable), "requested": requested, "pods": pods}
        )
    log.info("Dump of scheduling queue", extra={"summary": scheduler.backlog.summary()})
    for entry in scheduler.backlog.pending():
        waiting = scheduler.backlog.where(entry.pod.uid)
        if waiting is not None:
            log.info("waiting %s", entry.key, extra={"queue": waiting.queue, "plugins": list(waiting.plugins)})


@dataclass(frozen=True, slots=True)
class Told:
    """Which nodes the API has told of, and by uid which pods that are on nodes."""

    nodes: frozenset[str]
    placed: frozenset[str]

    @classmethod
    def by(cls, view: DocView) -> Told:
        """To be called on the thread that the view belongs to."""
        pods = ((doc["metadata"]["uid"], doc["spec"].get("nodeName")) for doc in view.list(kinds.POD))
        return cls(
            frozenset(doc["metadata"]["name"] for doc in view.list(kinds.NODE)),
            frozenset(uid for uid, node in pods if node),
        )


def compare(scheduler: Scheduler, told: Told) -> bool:
    """Whether memory agrees with what the API told: the same nodes, the same pods on them. What differs is logged; a
    moment's difference is natural, one that stays is a defect."""
    cluster, agree = scheduler.cluster, True
    nodes, placed = told.nodes, told.placed
    agree &= _told("nodes", missed=nodes - set(cluster.table.row_of), redundant=set(cluster.table.row_of) - nodes)
    held = {uid for uid, pod_state in cluster.pods.items() if pod_state.place in (PodPlace.BOUND, PodPlace.RELEASING)}
    agree &= _told("pods", missed=placed - held, redundant=held - placed)
    try:
        cluster.check()
        scheduler.backlog.check()
    except AssertionError as error:
        log.error("cache is inconsistent: %s", error)
        agree = False
    if agree:
        log.info("cache comparison: memory and API agree", extra={"nodes": len(nodes), "pods": len(placed)})
    return agree


def _told(what: str, *, missed: Set[str], redundant: Set[str]) -> bool:
    if missed or redundant:
        log.warning("cache mismatch", extra={"kind": what, "missed": sorted(missed), "redundant": sorted(redundant)})
    return not (missed or redundant)
