"""VolumeBinding: restricts a pod to nodes that its claims' volumes can be used on or made for, and binds the claims.

`pre_filter` sorts the claims into those that have a volume and those that wait for their first consumer; a claim that
is neither must be bound by its controller first. `filter` reads the layout (volume_matching.py). `reserve` assumes the
volumes of the chosen node as taken, so that the next pod does not get them; `pre_bind` writes to the API and waits
(volume_errand.py); `unreserve` drops the assumptions that the API has not accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.plugin import Interest, Plugin
from fairlead.core.model.reasons import SKIP, SUCCESS, Reason, Reject, Status, failed, unresolvable
from fairlead.core.model.storage import BOUND_BY_CONTROLLER, SELECTED_NODE, ClaimRef
from fairlead.kube.scoring import BrokenLine
from fairlead.kube.volumes.errand import BindVolumes, Reserved
from fairlead.kube.volumes.hints import binding_interests
from fairlead.kube.volumes.matching import Layout, is_meant_for, lay_out
from fairlead.kube.volumes.pod_claims import claim_not_found, claim_uses, mode_not_set, not_owned, uses_claims
from fairlead.kube.volumes.scores import capacity_scores
from fairlead.kube.volumes.storage import storage_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.storage import Claim, Volume
    from fairlead.core.state.nodes import Nodes
    from fairlead.kube.volumes.pod_claims import ClaimUse
    from fairlead.kube.volumes.storage import Storage


@dataclass(slots=True, eq=False)
class VolumePlan:
    """The claims of a pod in one attempt. The layout is computed when it is first needed; trials share it."""

    bound: tuple[Claim, ...]
    delayed: tuple[Claim, ...]
    layout: Layout | None = None
    reserved: Reserved | None = None


class VolumeBinding(Plugin):
    name = "VolumeBinding"
    idle_if_skipped = True
    _OUT_OF_REACH = Reason(name, "node(s) didn't match PersistentVolume's node affinity", final=True)
    _NOTHING_TO_BIND = Reason(name, "node(s) didn't find available persistent volumes to bind", final=True)
    _NO_SPACE = Reason(name, "node(s) did not have enough free storage", final=True)
    _MISSING = Reason(name, "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", final=True)

    def __init__(
        self,
        *,
        bind_timeout: float = 600.0,
        shape: Sequence[tuple[int, int]] | None = None,
        asks_drivers: bool = True,
    ) -> None:
        """`shape` makes the plugin score nodes by how much of their storage would be used. `asks_drivers` respects the
        capacities that drivers publish (CSIStorageCapacity)."""
        self._timeout = bind_timeout
        self._asks_drivers = asks_drivers
        self._line = BrokenLine(shape) if shape else None

    def events(self) -> Sequence[Interest]:
        return binding_interests()

    def concerns(self, pod: Pod) -> bool:
        return uses_claims(pod)

    # ---- prepare and filter ----

    def pre_filter(self, cycle: Cycle) -> Status | None:
        storage = storage_of(cycle.cluster)
        uses = tuple(claim_uses(cycle.pod))
        if not uses:
            return SKIP
        for use in uses:
            complaint = _complaint(cycle.pod, use, storage.claims.seen(use.key))
            if complaint:
                return unresolvable(complaint)
        return self._classify(cycle, storage, uses)

    def _classify(self, cycle: Cycle, storage: Storage, uses: Iterable[ClaimUse]) -> Status | None:
        bound: list[Claim] = []
        delayed: list[Claim] = []
        immediate = False
        for use in uses:
            claim = storage.claims.get(use.key)
            assert claim is not None
            if claim.fully_bound:
                bound.append(claim)
                continue
            storage_class = storage.classes.get(claim.storage_class) if claim.storage_class else None
            if storage_class is not None and not storage_class.binding_mode:
                return failed(mode_not_set(claim.storage_class))
            if storage_class is not None and storage_class.waits and not claim.volume_name:
                delayed.append(claim)
            else:
                immediate = True
        if immediate:
            return unresolvable("pod has unbound immediate PersistentVolumeClaims")
        cycle.notes[self.name] = VolumePlan(tuple(bound), tuple(delayed))
        return None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        layout = self._layout(cycle)
        for text, rows in layout.errors:
            yield Reject(Reason(self.name, text, error=True), nodes.take(rows))
        yield Reject(self._OUT_OF_REACH, nodes.take(layout.out_of_reach))
        yield Reject(self._NOTHING_TO_BIND, nodes.take(layout.nothing_to_bind))
        yield Reject(self._NO_SPACE, nodes.take(layout.no_space))
        yield Reject(self._MISSING, nodes.take(layout.volume_missing))

    def _layout(self, cycle: Cycle) -> Layout:
        plan: VolumePlan = cycle.notes[self.name]
        if plan.layout is None:
            storage = storage_of(cycle.cluster)
            asks = self._asks_drivers
            plan.layout = lay_out(cycle, storage, plan.bound, plan.delayed, asks_drivers=asks)
        return plan.layout

    # ---- score ----

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        return SKIP if self._line is None or self.name not in cycle.notes else None

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        if self._line is None or self.name not in cycle.notes:
            return np.zeros(len(nodes), dtype=np.int64)
        return capacity_scores(self._layout(cycle), nodes.row_numbers(), self._line)

    # ---- after the choice ----

    def reserve(self, cycle: Cycle, row: int) -> Status | None:
        plan: VolumePlan | None = cycle.notes.get(self.name)
        if plan is None or not plan.delayed:
            return None
        storage, layout = storage_of(cycle.cluster), self._layout(cycle)
        node = cycle.cluster.table.name(row)
        bindings = [(claim, _given(volume, claim)) for claim, volume in layout.bindings(row)]
        provisions = [_placed(claim, node) for claim in layout.to_provision(row)]
        for _, volume in bindings:
            storage.volumes.assume(volume.name, volume)
        for claim in provisions:
            storage.claims.assume(claim.key, claim)
        plan.reserved = Reserved(cycle.pod, node, bindings, provisions)
        return None

    def unreserve(self, cycle: Cycle, row: int) -> None:
        plan: VolumePlan | None = cycle.notes.get(self.name)
        if plan is None or plan.reserved is None:
            return
        storage, reserved = storage_of(cycle.cluster), plan.reserved
        for _, volume in reserved.bindings:
            if volume.name not in reserved.accepted:
                storage.volumes.restore(volume.name)
        for claim in reserved.provisions:
            if claim.key not in reserved.accepted:
                storage.claims.restore(claim.key)
        plan.reserved = None

    def pre_bind_pre_flight(self, cycle: Cycle, row: int) -> Status:
        plan: VolumePlan | None = cycle.notes.get(self.name)
        return SKIP if plan is None or plan.reserved is None else SUCCESS

    def pre_bind(self, cycle: Cycle, row: int) -> BindVolumes | None:
        plan: VolumePlan | None = cycle.notes.get(self.name)
        if plan is None or plan.reserved is None:
            return None
        return BindVolumes(plan.reserved, timeout=self._timeout)


def _complaint(pod: Pod, use: ClaimUse, claim: Claim | None) -> str:
    """Why a pod cannot have a claim, wherever it goes; empty if it can."""
    if claim is None:
        if use.ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
        return claim_not_found(use.name)
    if claim.phase == "Lost":
        return f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume "{claim.volume_name}"'
    if claim.terminating:
        return f'persistentvolumeclaim "{use.name}" is being deleted'
    return not_owned(pod, claim) if use.ephemeral else ""


def _given(volume: Volume, claim: Claim) -> Volume:
    """A volume as it is once it is bound to a claim, annotated as bound by a controller unless an administrator had
    reserved it for the claim."""
    annotations = dict(volume.annotations)
    if not is_meant_for(volume, claim):
        annotations.setdefault(BOUND_BY_CONTROLLER, "yes")
    return replace(volume, annotations=annotations, claim=ClaimRef(claim.namespace, claim.name, claim.uid))


def _placed(claim: Claim, node: str) -> Claim:
    """A claim as it is once its provisioner knows for which node."""
    return replace(claim, annotations={**claim.annotations, SELECTED_NODE: node}, selected_node=node)
