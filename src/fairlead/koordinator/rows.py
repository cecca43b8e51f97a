"""Koordinator's rows for people: gangs, ElasticQuotas, and the devices of nodes with who holds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fairlead.core.engine.explain.rows import DeviceRow, FamilyRows, QuotaRow, WorkloadRow
from fairlead.core.model.quantity import format_quantity
from fairlead.koordinator.devices.plugin import DeviceSharePlugin
from fairlead.koordinator.gangs.index import gang_index_of
from fairlead.koordinator.gangs.plugin import Coscheduling
from fairlead.koordinator.kinds import KOORD_ELASTIC_QUOTA

if TYPE_CHECKING:
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.framework.plugin import Plugin
    from fairlead.koordinator.records.quotas import ElasticQuota


_UNLIMITED = (2**63 - 1) // 5
"""What koord-manager writes as the limit of memory of a quota that has none; that of cpu is more."""


def workload_rows(scheduler: Scheduler) -> Iterator[WorkloadRow]:
    seen: set[str] = set()
    for plugin in _plugins(scheduler):
        if isinstance(plugin, Coscheduling):
            for key, gang in gang_index_of(scheduler.cluster).gangs.items():
                if key not in seen and gang.members:
                    seen.add(key)
                    namespace, _, name = key.partition("/")
                    placed = len(gang.members) - len(gang.pending)
                    least = 1 if gang.spec is None else gang.spec.least
                    yield WorkloadRow("PodGroup", namespace, name, len(gang.members), placed, least)


def quota_rows(scheduler: Scheduler) -> Iterator[QuotaRow]:
    quotas = scheduler.cluster.object_index.of(KOORD_ELASTIC_QUOTA)
    for quota in sorted(quotas.values(), key=lambda one: one.name):
        yield QuotaRow("ElasticQuota", quota.name, _amounts(quota), quota.namespace, quota.parent)


def _amounts(quota: ElasticQuota) -> Mapping[str, Mapping[str, str]]:
    shown = quota.shown
    lines = {
        "used": shown.get("used", {}),
        "wanted": shown.get("request", {}),
        "guaranteed": quota.min,
        "deserved": shown.get("runtime", {}),
        "limit": quota.max,
    }
    found: dict[str, dict[str, str]] = {}
    for line, amounts in lines.items():
        for resource, amount in sorted(amounts.items()):
            if amount < _UNLIMITED:
                found.setdefault(resource, {})[line] = format_quantity(amount, resource)
    return found


def device_rows(scheduler: Scheduler, row: int) -> Iterator[DeviceRow]:
    for plugin in _plugins(scheduler):
        if isinstance(plugin, DeviceSharePlugin):
            rows = plugin.rows_of(scheduler.cluster)
            found = rows.devices(row)
            if found is None:
                return
            held, holders = rows.holdings(row), list(rows.holders(row))
            for kind, devices in found.by_type.items():
                for device in devices:
                    taken = held.amounts.get(kind, {}).get(device.minor, {})
                    who = (one for one, given in holders if any(d.minor == device.minor for d in given.get(kind, ())))
                    free = {
                        name: format_quantity(amount - taken.get(name, 0), name)
                        for name, amount in device.amounts.items()
                    }
                    yield DeviceRow(kind, found.name, str(device.minor), tuple(who), free)
            return


def _plugins(scheduler: Scheduler) -> Iterator[Plugin]:
    for profile in scheduler.profiles.values():
        yield from profile.plugins()


ROWS = FamilyRows(workloads=workload_rows, quotas=quota_rows, devices=device_rows)
