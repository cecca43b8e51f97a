"""Lack: one thing of which a pod or a group requests more than is left, by name and with amounts.

A queue, a quota, a rack, devices, a reservation or the nodes themselves may be what is short. Explanations list all
that are, because the first refusal of an attempt names only one. Amounts are quantities as text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.core.model.quantity import format_quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.core.model.flow import Doc

MEMBERS = "members"
"""The resource of a lack that is counted in members of a group."""
_HOLDERS = 10


@dataclass(frozen=True, slots=True)
class LackHolder:
    """Who has, or is promised, some of what is short, how much of it, and why."""

    who: str
    amount: str
    why: str

    def to_document(self) -> Doc:
        return {"who": self.who, "amount": self.amount, "why": self.why}


@dataclass(frozen=True, slots=True)
class Lack:
    """`of` is the kind of what is short (Queue, ElasticQuota, ResourceQuota, Topology, DeviceClass, Device,
    Reservation, Nodes), `name` which one; `missing` is what it would need beyond what is free, which is more than the
    difference if what is free is scattered."""

    of: str
    name: str
    resource: str
    asks: str
    free: str
    missing: str
    holders: tuple[LackHolder, ...] = ()

    @classmethod
    def of_units(
        cls,
        of: str,
        name: str,
        resource: str,
        asks: int,
        free: int,
        missing: int,
        holders: Sequence[tuple[str, int, str]] = (),
    ) -> Lack:
        """From amounts in base units; of the holders those with the most are named."""
        most = sorted(holders, key=lambda one: (-one[1], one[0]))[:_HOLDERS]
        named = tuple(LackHolder(who, format_quantity(amount, resource), why) for who, amount, why in most)
        asked, left, lacking = (format_quantity(amount, resource) for amount in (asks, max(0, free), missing))
        return cls(of, name, resource, asked, left, lacking, named)

    @classmethod
    def of_counts(
        cls, of: str, name: str, resource: str, asks: int, free: int, holders: Sequence[LackHolder] = ()
    ) -> Lack:
        """Of things that are counted."""
        return cls(of, name, resource, str(asks), str(free), str(asks - free), tuple(holders[:_HOLDERS]))

    def to_document(self) -> Doc:
        doc: Doc = {
            "of": self.of,
            "name": self.name,
            "resource": self.resource,
            "asks": self.asks,
            "free": self.free,
            "missing": self.missing,
        }
        return doc | ({"heldBy": [one.to_document() for one in self.holders]} if self.holders else {})
