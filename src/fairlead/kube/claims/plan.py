"""ClaimPlan: what one attempt knows of a pod's claims. Made in `pre_filter`, used by all points after.

For each row there is a *variant*: which extended resources the node cannot serve itself. Rows of one variant request
the same devices. A pod without extended resources has one variant, the empty one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.device_claims import EXTENDED_NAME
from fairlead.core.model.records import record
from fairlead.core.state.nodes import Nodes
from fairlead.kube.claims.extended import asked_for, extended_spec
from fairlead.kube.claims.search import Wanted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.device_claims import Allocation, ResourceClaim
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.table import NodeTable
    from fairlead.kube.claims.devices import DeviceIndex
    from fairlead.kube.claims.extended import ExtendedSpec
    from fairlead.kube.claims.search import Solution


@record(frozen=True, slots=True, eq=False)
class Reservation:
    """What a pod is about to get on a node: claims to allocate with their allocations, and all its claims.
    `extended` is the claim of its extended resources, if one must be made."""

    claims: tuple[ResourceClaim, ...]
    allocations: tuple[tuple[ResourceClaim, Allocation], ...]
    extended: ExtendedSpec | None
    extended_allocation: Allocation | None
    node: str
    held: tuple[str, ...]
    """Keys under which the index holds the allocations."""


@dataclass(slots=True, eq=False)
class ClaimPlan:
    """`unallocated` are those of its claims that have no devices yet. `extended` says whether some of the pod's
    extended resources are served by a class; `stale` is a claim for them that an earlier attempt left behind. In a
    trial, `gone` are the pods that are evicted, and `nominated` those that the row must have devices for as well, by
    uid."""

    claims: tuple[ResourceClaim, ...] = ()
    unallocated: tuple[ResourceClaim, ...] = ()
    extended: bool = False
    stale: ResourceClaim | None = None
    reserved: Reservation | None = None
    gone: dict[str, Pod] = field(default_factory=dict)
    nominated: dict[str, Pod] = field(default_factory=dict)
    _specs: dict[tuple[str, ...], ExtendedSpec] = field(default_factory=dict)
    _own: tuple[Wanted, ...] | None = None
    """Its unallocated claims, as a search wants them."""

    @property
    def empty(self) -> bool:
        return not self.claims and not self.extended

    @property
    def allocates(self) -> bool:
        """Whether anything has to be allocated, on some node at least."""
        return self.extended or bool(self.unallocated)

    @property
    def has_allocated(self) -> bool:
        """Whether some of its claims have devices already."""
        return len(self.unallocated) < len(self.claims)

    @property
    def prioritised(self) -> bool:
        """Whether some request of its claims has alternatives. Extended resources have none."""
        return any(claim.spec.prioritised for claim in self.claims)

    def copy(self) -> ClaimPlan:
        """For a trial: what it finds out stays there."""
        return replace(self, reserved=None, gone=dict(self.gone), nominated=dict(self.nominated))

    def variants(
        self, pod: Pod, nodes: Nodes, within: NDArray[np.bool_], devices: DeviceIndex
    ) -> list[tuple[tuple[str, ...], NDArray[np.bool_]]]:
        """The resources that devices must serve, with the rows `within` a mask of which that is true; and rows that
        have neither."""
        found: list[tuple[tuple[str, ...], NDArray[np.bool_]]] = [((), within)]
        for resource in asked_for(pod) if self.extended else ():
            if not devices.extended.class_of(resource):
                continue
            lacking = nodes.allocatable(resource) <= 0
            found = [
                (variant, rows)
                for names, before in found
                for variant, rows in (((*names, resource), before & lacking), (names, before & ~lacking))
                if rows.any()
            ]
        return found

    def variant_of(self, pod: Pod, row: int, table: NodeTable, devices: DeviceIndex) -> tuple[str, ...]:
        """The variant of one row."""
        if not self.extended:
            return ()
        alone = Nodes(table, np.array([row], dtype=np.intp))
        return next(variant for variant, _ in self.variants(pod, alone, alone.all(), devices))

    def spec_of(self, pod: Pod, variant: tuple[str, ...], devices: DeviceIndex) -> ExtendedSpec:
        spec = self._specs.get(variant)
        if spec is None:
            spec = self._specs[variant] = extended_spec(pod, variant, devices.extended)
        return spec

    def wanted(self, pod: Pod, variant: tuple[str, ...], devices: DeviceIndex, *, compatible: bool) -> Sequence[Wanted]:
        """The claims that must be allocated on rows of a variant. On a node whose device plugin serves everything, the
        original makes a claim without requests for a pod that has claims of its own, and fails with it later."""
        if self._own is None:
            self._own = tuple([Wanted(claim.key, claim.spec) for claim in self.unallocated])
        if self.extended and (variant or (compatible and self.claims)):
            spec = self.spec_of(pod, variant, devices)
            return (*self._own, Wanted(f"{pod.namespace}/{EXTENDED_NAME}", spec.spec))
        return self._own


def priorities_of(solution: Solution, wanted: Sequence[Wanted]) -> int:
    """How good the alternatives are that a solution chose: 8 for each first one, 7 for a second ..."""
    return sum(
        8 - choice
        for claim, choices in zip(wanted, solution.choices, strict=True)
        for slot, choice in zip(claim.spec.slots, choices, strict=True)
        if slot.prioritised
    )


def priorities_given(claim: ResourceClaim) -> int:
    """The same of a claim that is allocated already."""
    if claim.allocation is None:
        return 0
    names = {result.request for result in claim.allocation.results}
    return sum(
        next((8 - at for at, request in enumerate(slot.choices) if request.full_name in names), 0)
        for slot in claim.spec.slots
        if slot.prioritised
    )
