"""Rows: the workloads, the queues and quotas, and the devices of a cluster for people, in one form for all families.

What a workload, a quota or a device is differs from family to family, and so does where its numbers are kept. A family
makes its rows from its own state, and its record names how (`Family.rows`); what lists rows, such as `fairlead capacity
show`, knows no family. Amounts are quantities as text. Rows are made when somebody asks, in a copy of the scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from fairlead.core.family import brought
from fairlead.core.model.explanation import SCHEMA
from fairlead.core.model.times import micro_timestamp

if TYPE_CHECKING:
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.model.flow import Doc

AMOUNTS = ("used", "wanted", "guaranteed", "deserved", "limit")
"""The lines of a quota's amounts, as far as a family knows them."""


@dataclass(frozen=True, slots=True)
class WorkloadRow:
    """Pods that are placed together, or a pod alone. `of` is the kind of what they are named after. `pods` is how many
    are known, `placed` how many of these have a place, `needed` how many must start together."""

    of: str
    namespace: str
    name: str
    pods: int
    placed: int
    needed: int = 1
    queue: str = ""
    phase: str = ""

    def to_document(self) -> Doc:
        doc: Doc = {"of": self.of, "namespace": self.namespace, "name": self.name, "pods": self.pods}
        doc |= {"placed": self.placed, "needed": self.needed}
        return doc | {name: text for name, text in (("queue", self.queue), ("phase", self.phase)) if text}


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """A queue or a quota. `amounts` maps a resource to AMOUNTS; what is left out is not limited, or not known."""

    of: str
    name: str
    amounts: Mapping[str, Mapping[str, str]]
    namespace: str = ""
    parent: str = ""
    state: str = ""

    def to_document(self) -> Doc:
        doc: Doc = {"of": self.of, "name": self.name}
        about = (("namespace", self.namespace), ("parent", self.parent), ("state", self.state))
        doc |= {name: text for name, text in about if text}
        return doc | {"amounts": {resource: dict(lines) for resource, lines in self.amounts.items()}}


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A device of a node. `of` is what kind of device it is, `holders` are the pods, claims or reservations that have
    it or a part of it. `free` is empty if a device is given whole."""

    of: str
    node: str
    name: str
    holders: tuple[str, ...] = ()
    free: Mapping[str, str] = field(default_factory=dict)

    def to_document(self) -> Doc:
        doc: Doc = {"of": self.of, "node": self.node, "name": self.name, "heldBy": list(self.holders)}
        return doc | ({"free": dict(self.free)} if self.free else {})


class Row(Protocol):
    def to_document(self) -> Doc: ...


def _none(_: object) -> tuple[()]:
    return ()


def _no_devices(_: object, row: int) -> tuple[()]:
    return ()


@dataclass(frozen=True, slots=True)
class FamilyRows:
    """The rows of one family; `devices` are those of one row of the node table."""

    workloads: Callable[[Scheduler], Iterable[WorkloadRow]] = _none
    quotas: Callable[[Scheduler], Iterable[QuotaRow]] = _none
    devices: Callable[[Scheduler, int], Iterable[DeviceRow]] = _no_devices


KINDS = ("workloads", "quotas", "devices")


def rows_of(scheduler: Scheduler, kind: str, nodes: Sequence[str] = ()) -> list[Row]:
    """The rows of one of KINDS, of all families in their order. `nodes` are those whose devices are meant; all if none
    is named."""
    families: list[FamilyRows] = brought("rows")
    if kind == "workloads":
        return [row for family in families for row in family.workloads(scheduler)]
    if kind == "quotas":
        return [row for family in families for row in family.quotas(scheduler)]
    row_of = scheduler.cluster.table.row_of
    rows = [row_of[name] for name in sorted(nodes or row_of) if name in row_of]
    return [device for row in rows for family in families for device in family.devices(scheduler, row)]


def rows_document(scheduler: Scheduler, kind: str, nodes: Sequence[str], now: float) -> Doc:
    """The rows as the answer to a question."""
    items = [row.to_document() for row in rows_of(scheduler, kind, nodes)]
    unknown = [name for name in nodes if name not in scheduler.cluster.table.row_of]
    at = micro_timestamp(max(now, scheduler.now))
    doc: Doc = {"apiVersion": SCHEMA, "kind": "CapacityRows", "at": at, "of": kind, "items": items}
    return doc | ({"unknown": unknown} if unknown else {})
