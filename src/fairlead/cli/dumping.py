"""The dump that SIGUSR2 requests: what a scheduler has in memory, and whether that agrees with what the API sent."""

from __future__ import annotations

import logging
from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.core.model import kinds
from fairlead.core.model.quota import has_ended
from fairlead.core.state.cluster import PodPlace

if TYPE_CHECKING:
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.model.flow import DocView

log = logging.getLogger("fairlead.scheduler")


def dump(scheduler: Scheduler) -> None:
    """Nodes and queues as they are in memory."""
    table = scheduler.cluster.table
    for row, node in table.alive_rows():
        requested = {name: int(column[row]) for name, column in table.requested.items() if column[row]}
        pods = [f"{pod.key} {scheduler.cluster.pods[pod.uid].place.value}" for pod in table.pods[row]]
        log.info(
            "node %s", node.name, extra={"allocatable": dict(node.allocatable), "requested": requested, "pods": pods}
        )
    log.info("Dump of scheduling queue", extra={"summary": scheduler.backlog.queues.summary()})
    for entry in scheduler.backlog.queues:
        waiting = scheduler.backlog.where(entry.pod.uid)
        if waiting is not None:
            log.info("waiting %s", entry.key, extra={"queue": waiting.queue, "plugins": list(waiting.plugins)})


@dataclass(frozen=True, slots=True)
class ApiState:
    """Which nodes the API has sent, and by uid which pods that are on nodes and have not ended."""

    nodes: frozenset[str]
    placed: frozenset[str]

    @classmethod
    def by(cls, view: DocView) -> ApiState:
        """To be called on the thread that the view belongs to."""
        pods = (doc for doc in view.list(kinds.POD) if doc["spec"].get("nodeName") and not has_ended(doc))
        return cls(
            frozenset(doc["metadata"]["name"] for doc in view.list(kinds.NODE)),
            frozenset(doc["metadata"]["uid"] for doc in pods),
        )


def compare(scheduler: Scheduler, api_state: ApiState) -> bool:
    """Whether memory agrees with what the API sent: the same nodes, the same pods on them. What differs is logged; a
    moment's difference is natural, one that stays is a defect."""
    cluster, agree = scheduler.cluster, True
    nodes, placed = api_state.nodes, api_state.placed
    agree &= _agrees("nodes", missed=nodes - set(cluster.table.row_of), redundant=set(cluster.table.row_of) - nodes)
    held = {uid for uid, pod_state in cluster.pods.items() if pod_state.place in (PodPlace.BOUND, PodPlace.RELEASING)}
    agree &= _agrees("pods", missed=placed - held, redundant=held - placed)
    try:
        cluster.check()
        scheduler.backlog.check()
    except AssertionError as error:
        log.error("cache is inconsistent: %s", error)
        agree = False
    if agree:
        log.info("cache comparison: memory and API agree", extra={"nodes": len(nodes), "pods": len(placed)})
    return agree


def _agrees(what: str, *, missed: Set[str], redundant: Set[str]) -> bool:
    if missed or redundant:
        log.warning("cache mismatch", extra={"kind": what, "missed": sorted(missed), "redundant": sorted(redundant)})
    return not (missed or redundant)
