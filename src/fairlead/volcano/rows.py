"""Volcano's rows for people: groups and queues as the last round counted them, and the cards of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fairlead.core.engine.explain.rows import DeviceRow, FamilyRows, QuotaRow, WorkloadRow
from fairlead.volcano.devices.deviceshare import DeviceShare
from fairlead.volcano.explain.queue import explain_queue
from fairlead.volcano.mode import RoundMode

if TYPE_CHECKING:
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.volcano.records.queue_explanation import QueueExplanation
    from fairlead.volcano.rounds.driver import RoundDriver
    from fairlead.volcano.rounds.round import Round

_LINES = {
    "used": "allocated",
    "wanted": "request",
    "guaranteed": "guarantee",
    "deserved": "deserved",
    "limit": "limit",
}


def workload_rows(scheduler: Scheduler) -> Iterator[WorkloadRow]:
    for _, round in _rounds(scheduler):
        for job in round.jobs.values():
            placed = sum(task.row >= 0 for task in job.tasks.values())
            yield WorkloadRow(
                "PodGroup",
                job.namespace,
                job.name,
                len(job.tasks),
                placed,
                max(1, job.min_available),
                queue=job.queue,
                phase=job.phase,
            )


def quota_rows(scheduler: Scheduler) -> Iterator[QuotaRow]:
    for driver, round in _rounds(scheduler):
        for name in sorted(round.queues):
            explained = explain_queue(driver, name)
            if explained is not None:
                amounts = dict(_amounts(explained))
                yield QuotaRow("Queue", name, amounts, parent=explained.parent, state=explained.state)


def _amounts(explained: QueueExplanation) -> Iterator[tuple[str, Mapping[str, str]]]:
    for resource, sums in explained.sums.items():
        lines = {line: sums.get(of) for line, of in _LINES.items()}
        yield resource, {line: amount for line, amount in lines.items() if amount is not None}


def device_rows(scheduler: Scheduler, row: int) -> Iterator[DeviceRow]:
    for _, round in _rounds(scheduler):
        plugin = round.tiers.plugins.get(DeviceShare.name)
        if isinstance(plugin, DeviceShare):
            table = scheduler.cluster.table
            keys = {pod.uid: pod.key for pod in table.pods[row]}
            for card in plugin.cards_of(row):
                who = tuple(keys.get(uid, uid) for uid in card.holders)
                yield DeviceRow(card.kind, table.name(row), card.name, who, {"memory": str(card.memory)})
            return


def _rounds(scheduler: Scheduler) -> Iterator[tuple[RoundDriver, Round]]:
    """Those that are under way or were closed last."""
    for mode in scheduler.modes:
        for driver in mode.drivers if isinstance(mode, RoundMode) else ():
            if driver.latest is not None:
                yield driver, driver.latest


ROWS = FamilyRows(workloads=workload_rows, quotas=quota_rows, devices=device_rows)
