"""DynamicResources: a pod goes where the devices of its claims are, or where they can be had; and gets them.

`pre_filter` looks the claims up. `filter` asks where allocated claims can be used and searches devices for the others;
rows that are alike share one search (solutions.py). `reserve` holds the devices of the chosen node, so that the next
pod sees them taken; `pre_bind` writes allocations and reservations down (errand.py). When nothing fits, `post_filter`
gives up a claim that is allocated where the pod cannot go and that nobody else uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.plugin import Interest, PostFilterResult
from fairlead.core.framework.results.cached_plugin import AfterPlacing, CachedPlugin
from fairlead.core.model.device_claims import EXTENDED_NAME
from fairlead.core.model.reasons import (
    SKIP,
    SUCCESS,
    Reason,
    Reject,
    Status,
    Verdict,
    failed,
    unresolvable,
    unschedulable,
)
from fairlead.core.state.gangs import gang_key
from fairlead.core.state.matching import rows_matching
from fairlead.core.state.nodes import Nodes
from fairlead.kube.claims.conditions import is_unusable
from fairlead.kube.claims.devices import devices_of
from fairlead.kube.claims.errand import AllocateClaims, deallocation, deletion, give_up_reservations
from fairlead.kube.claims.explaining import details
from fairlead.kube.claims.extended import asked_for, served_by_classes
from fairlead.kube.claims.hints import claim_interests
from fairlead.kube.claims.lacks import device_class_lacks
from fairlead.kube.claims.plan import ClaimPlan, Reservation, priorities_given, priorities_of
from fairlead.kube.claims.pod_claims import ClaimMissing, claims_of
from fairlead.kube.claims.results import allocations
from fairlead.kube.claims.search import AllocationFailed, Nothing, Solution, Wanted
from fairlead.kube.claims.selecting import Selecting
from fairlead.kube.claims.solutions import Solutions
from fairlead.kube.claims.trials import GangTrial, being_released, freed_by, in_trial
from fairlead.kube.scoring import to_hundred

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.gang import GangCase
    from fairlead.core.framework.refusals import Refusals
    from fairlead.core.model.device_claims import Allocation, ResourceClaim
    from fairlead.core.model.devices import CompileSelector
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.lack import Lack
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.kube.claims.devices import DeviceIndex


class DynamicResources(CachedPlugin):
    name = "DynamicResources"
    idle_if_skipped = True
    frees_room = False
    _NOTHING = {nothing: Reason("DynamicResources", nothing.value, final=True) for nothing in Nothing}
    _UNAVAILABLE = Reason(name, "resourceclaim not available on the node", final=True)
    _STALE = Reason(name, "cannot schedule extended resource claim", final=True)
    _NO_RESOURCE = Reason(name, "cannot fit resource", final=True)

    def __init__(
        self, compile_selector: CompileSelector, *, filter_timeout: float | None = 10.0, binding_timeout: float = 600.0
    ) -> None:
        self.selecting = Selecting(compile_selector)
        self.solutions = Solutions(self.selecting, filter_timeout=filter_timeout or 0.0)
        self._binding_timeout = binding_timeout
        self._devices: DeviceIndex | None = None

    def events(self) -> Sequence[Interest]:
        return claim_interests(lambda: self._devices)

    def _index(self, cluster: Cluster) -> DeviceIndex:
        """The devices, up to date."""
        devices = self._claims_in(cluster)
        devices.catch_up()
        return devices

    def _claims_in(self, cluster: Cluster) -> DeviceIndex:
        """The same, for those who read nothing but claims, which are always up to date."""
        devices = self._devices
        if devices is None or devices.cluster is not cluster:
            devices = self._devices = devices_of(cluster)
        return devices

    # ---- the queue ----

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:
        if not pod.resource_claims:
            return None
        try:
            claims_of(pod, self._claims_in(cluster))
        except ClaimMissing as missing:
            return unresolvable(str(missing))
        return None

    # ---- prepare ----

    def after_placing(self, pod: Pod) -> AfterPlacing:
        """OWN: each pod has claims of its own, and finds the devices taken that the one before it got."""
        return AfterPlacing.OWN

    def stands_aside(self, cycle: Cycle) -> bool:
        if may_need_devices(cycle.pod):
            return False
        cycle.notes[self.name] = ClaimPlan()
        return True

    def looks_at_pods(self, cycle: Cycle) -> bool:
        return may_need_devices(cycle.pod)

    def pre_filter(self, cycle: Cycle) -> Status | None:
        plan = cycle.notes[self.name] = ClaimPlan()
        pod = cycle.pod
        if not may_need_devices(pod):
            return SKIP
        self.selecting.begin()
        devices = self._index(cycle.cluster)
        try:
            claims = claims_of(pod, devices)
        except ClaimMissing as missing:
            return unresolvable(str(missing))
        if not cycle.profile.compatible and len(claims) > 1:
            claims = list({claim.key: claim for claim in claims}.values())
        if pod.group_ref is not None:
            claims = [_as_promised(claim, pod, devices) for claim in claims]
        extended = bool(pod.shape.scalars) and served_by_classes(pod, devices.extended)
        if not claims and not extended:
            return SKIP
        for claim in claims:
            refusal = self._examined(claim, devices)
            if refusal is not None:
                return refusal
        plan.claims, plan.extended = tuple(claims), extended
        plan.unallocated = tuple([claim for claim in claims if claim.allocation is None])
        if extended:
            plan.stale = next((claim for claim in devices.claims_owned_by(pod.uid) if claim.extended), None)
        return None

    def _examined(self, claim: ResourceClaim, devices: DeviceIndex) -> Status | None:
        """What speaks against a claim before any node is looked at."""
        if claim.allocation is not None:
            return failed(claim.allocation.selector_error) if claim.allocation.selector_error else None
        if devices.in_flight(claim.key):
            return unresolvable(f"resource claim {claim.key} is in the process of being allocated")
        for request in claim.spec.requests:
            if not request.device_class:
                return failed(f"request {request.full_name}: unsupported request type")
            if request.device_class not in devices.classes:
                return unresolvable(f"request {request.full_name}: device class {request.device_class} does not exist")
        return None

    # ---- filter ----

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        plan: ClaimPlan = cycle.notes[self.name]
        devices = self._index(cycle.cluster)
        if not (plan.gone or plan.nominated):
            return self._filtered(cycle, nodes, plan, devices)
        row = int(nodes.positions()[0])
        freed = list(freed_by(devices, plan.gone))
        own = {claim.key for claim in plan.claims}
        with in_trial(devices, freed, plan.nominated.values(), lambda pod: self._would_get(cycle, pod, row), own):
            return list(self._filtered(cycle, nodes, plan, devices))

    def remove_pod(self, cycle: Cycle, pod: Pod, row: int) -> None:
        plan: ClaimPlan | None = cycle.notes.get(self.name)
        if plan is not None and not cycle.profile.compatible:
            if pod.uid in plan.nominated:
                del plan.nominated[pod.uid]
            elif pod.shape.claims or pod.claim_statuses:
                plan.gone[pod.uid] = pod

    def add_pod(self, cycle: Cycle, pod: Pod, row: int) -> None:
        plan: ClaimPlan | None = cycle.notes.get(self.name)
        if plan is not None and not cycle.profile.compatible:
            if pod.uid in plan.gone:
                del plan.gone[pod.uid]
            elif pod.shape.claims:
                plan.nominated[pod.uid] = pod

    def gang_trial(self, case: GangCase) -> GangTrial | None:
        """How devices follow the trial that makes room for a gang; None if no member has claims, or if nobody is
        evicted for devices."""
        if case.profile.compatible or not any(may_need_devices(pod) for pod in case.pods):
            return None
        self.selecting.begin()
        cycle = Cycle(
            pod=case.pods[0],
            cluster=case.cluster,
            profile=case.profile,
            now=case.now,
            rng=case.rng,
            effects=case.effects,
        )
        members = {pod.uid for pod in case.pods}
        return GangTrial(case.cluster, members, lambda pod, row: self._would_get(cycle, pod, row))

    def _would_get(self, cycle: Cycle, pod: Pod, row: int) -> Mapping[str, Allocation]:
        """The devices for the unallocated claims of another pod on a row, by the claims' keys; none if they are not to
        be had."""
        devices = self._index(cycle.cluster)
        try:
            wanted = [
                Wanted(claim.key, claim.spec)
                for claim in claims_of(pod, devices)
                if claim.allocation is None and not devices.in_flight(claim.key)
            ]
            answer = self.solutions.of_row(wanted, row, devices, compatible=cycle.profile.compatible)
        except (ClaimMissing, AllocationFailed):
            return {}
        if not isinstance(answer, Solution):
            return {}
        given = allocations(answer, wanted, devices.view(row), devices.classes, lambda: _share(cycle))
        return {one.key: allocation for one, allocation in zip(wanted, given, strict=True)}

    def _filtered(self, cycle: Cycle, nodes: Nodes, plan: ClaimPlan, devices: DeviceIndex) -> Iterator[Reject]:
        if nodes.rows is None and cycle.results is not None:
            asked = cycle.results.ok[: len(nodes)]  # what others refuse already need not be searched
        else:
            asked = nodes.all()
        if plan.stale is not None:
            yield Reject(self._STALE, asked)
            return
        if plan.extended:
            lacking = _lacks_resource(cycle, nodes, devices)
            yield Reject(self._NO_RESOURCE, lacking)
            asked = asked & ~lacking
        if plan.allocates:
            for variant, here in plan.variants(cycle.pod, nodes, asked, devices):
                wanted = plan.wanted(cycle.pod, variant, devices, compatible=cycle.profile.compatible)
                for reject in self._search(cycle, nodes, wanted, here, devices) if wanted else ():
                    if plan.has_allocated:
                        asked = asked & ~reject.rows
                    yield reject
        if plan.has_allocated:
            unavailable = nodes.none()
            for claim in plan.claims:
                if claim.allocation is not None:
                    unavailable |= self._cannot_use(cycle, claim, nodes)
            yield Reject(self._UNAVAILABLE, unavailable & asked)

    def _search(
        self, cycle: Cycle, nodes: Nodes, wanted: Sequence[Wanted], here: NDArray[np.bool_], devices: DeviceIndex
    ) -> list[Reject]:
        """Rows without a solution, and rows whose search failed."""
        refused, failures = self.solutions.refusals(wanted, nodes, here, devices, compatible=cycle.profile.compatible)
        found = [Reject(self._NOTHING[nothing], rows, self._final(cycle, nodes, devices)) for nothing, rows in refused]
        found += [Reject(Reason(self.name, text, error=error), rows) for (text, error), rows in failures.items()]
        return found

    def _final(self, cycle: Cycle, nodes: Nodes, devices: DeviceIndex) -> NDArray[np.bool_] | None:
        """Rows on which no eviction frees devices; None if that is so on all, or if evicted pods are about to give back
        what this one needs."""
        plan: ClaimPlan = cycle.notes[self.name]
        if cycle.profile.compatible or devices.claimants.lowest_priority >= cycle.pod.priority:
            return None
        helpful = nodes.take(devices.claimants.rows_below(cycle.pod.priority, nodes.table.high))
        if not helpful.any() or (not plan.gone and self._will_be_served(cycle, devices)):
            return None
        return ~helpful

    def _will_be_served(self, cycle: Cycle, devices: DeviceIndex) -> bool:
        """Whether the node that the pod is nominated to has devices for it once those are free that are being
        released."""
        row = cycle.cluster.table.row_of.get(cycle.pod.nominated_node) if cycle.pod.nominated_node else None
        plan: ClaimPlan = cycle.notes[self.name]
        if row is None:
            return False
        with in_trial(devices, list(being_released(devices, cycle.cluster)), (), lambda _: {}, ()):
            wanted = self._wanted_on(cycle, plan, row)
            try:
                return isinstance(self.solutions.of_row(wanted, row, devices, compatible=False), Solution)
            except AllocationFailed:
                return False

    def _wanted_on(self, cycle: Cycle, plan: ClaimPlan, row: int) -> Sequence[Wanted]:
        devices = self._index(cycle.cluster)
        variant = plan.variant_of(cycle.pod, row, cycle.cluster.table, devices)
        return plan.wanted(cycle.pod, variant, devices, compatible=cycle.profile.compatible)

    def _cannot_use(self, cycle: Cycle, claim: ResourceClaim, nodes: Nodes) -> NDArray[np.bool_]:
        allocation = claim.allocation
        if allocation is None:
            return nodes.none()
        if is_unusable(claim, cycle.now, self._binding_timeout):
            return nodes.all()
        return nodes.none() if allocation.selector is None else ~rows_matching(nodes, allocation.selector)

    # ---- when nothing fits ----

    def post_filter(self, cycle: Cycle, refusals: Refusals) -> PostFilterResult:
        """Without a note another plugin ended the search before this one was asked; the original then stumbles over
        its missing state, and nobody after it is asked either."""
        plan: ClaimPlan | None = cycle.notes.get(self.name)
        if plan is None:
            return PostFilterResult(failed("not found"))
        if plan.empty:
            return PostFilterResult(unschedulable("no new claims to deallocate"))
        given_up = self._may_be_given_up(cycle, refusals)
        if given_up:
            claim = given_up[cycle.rng.randrange(len(given_up)) if len(given_up) > 1 else 0]
            cycle.effects.writes.append(deallocation(claim))
            return PostFilterResult(unschedulable("deallocation of ResourceClaim completed"))
        if plan.stale is not None:
            cycle.effects.writes += deletion(plan.stale)
            return PostFilterResult(unschedulable("deletion of ResourceClaim completed"))
        return PostFilterResult(unschedulable("still not schedulable"))

    def _may_be_given_up(self, cycle: Cycle, refusals: Refusals) -> list[ResourceClaim]:
        """Allocated claims that keep the pod from some node and that nobody else uses."""
        plan: ClaimPlan = cycle.notes[self.name]
        verdict = Verdict(self.name, (self._UNAVAILABLE.text,), final=True)
        codes = refusals.evaluator.codes
        rows = np.flatnonzero(refusals.codes == codes.code(verdict))
        if not len(rows):
            return []
        nodes = Nodes(cycle.cluster.table, rows)
        return [
            claim
            for claim in plan.claims
            if all(user.uid == cycle.pod.uid for user in claim.reserved_for)
            and self._cannot_use(cycle, claim, nodes).any()
        ]

    # ---- score ----

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64] | int:
        plan: ClaimPlan | None = cycle.notes.get(self.name)
        if plan is None or not plan.prioritised or not plan.allocates:
            return 0
        devices, compatible = self._index(cycle.cluster), cycle.profile.compatible
        scores = np.full(len(nodes), sum(map(priorities_given, plan.claims)), dtype=np.int64)
        for variant, rows in plan.variants(cycle.pod, nodes, nodes.all(), devices):
            wanted = plan.wanted(cycle.pod, variant, devices, compatible=compatible)
            if any(slot.prioritised for claim in wanted for slot in claim.spec.slots):
                answers = self.solutions.of_rows(wanted, nodes.positions()[rows], devices, compatible=compatible)
                scores[rows] += self._priorities(nodes, rows, wanted, answers, devices)
        return scores if scores.any() else 0

    def _priorities(
        self,
        nodes: Nodes,
        rows: NDArray[np.bool_],
        wanted: Sequence[Wanted],
        answers: Mapping[int, Solution | Nothing | AllocationFailed],
        devices: DeviceIndex,
    ) -> NDArray[np.int64]:
        signatures = devices.signatures()[nodes.positions()[rows]]
        found = np.zeros(len(signatures), dtype=np.int64)
        for signature, answer in answers.items():
            if isinstance(answer, Solution):
                found[signatures == signature] = priorities_of(answer, wanted)
        return found

    def normalize_score(self, cycle: Cycle, nodes: Nodes, raw: NDArray[np.int64]) -> NDArray[np.int64]:
        return to_hundred(raw)

    # ---- explaining ----

    def lacks(self, pods: Sequence[Pod], cluster: Cluster) -> Iterable[Lack]:
        """The device classes of which the pods together request more devices than are free."""
        wanting = [pod for pod in pods if may_need_devices(pod)]
        return device_class_lacks(wanting, self._index(cluster), lambda pod: self.details(pod, cluster))

    def details(self, pod: Pod, cluster: Cluster) -> Sequence[Doc]:
        """What an explanation says of each request of a pod that has no node: see docs/explanation.md."""
        if not may_need_devices(pod):
            return ()
        table = cluster.table
        names = [table.name(row) for row in range(table.high)]
        return details(pod, self._index(cluster), self.selecting, names)

    # ---- after the choice ----

    def reserve(self, cycle: Cycle, row: int) -> Status | None:
        plan: ClaimPlan | None = cycle.notes.get(self.name)
        if plan is None or plan.empty:
            return None
        devices, pod, compatible = self._index(cycle.cluster), cycle.pod, cycle.profile.compatible
        variant = plan.variant_of(pod, row, cycle.cluster.table, devices)
        wanted = plan.wanted(pod, variant, devices, compatible=compatible)
        unallocated = plan.unallocated
        given = []
        if wanted:
            answer = self.solutions.of_row(wanted, row, devices, compatible=compatible)
            if not isinstance(answer, Solution):
                return unschedulable(answer.value)  # somebody else took the devices since the filter
            given = allocations(answer, wanted, devices.view(row), devices.classes, lambda: _share(cycle))
        spec = plan.spec_of(pod, variant, devices) if len(given) > len(unallocated) else None
        held = []
        for claim, allocation in zip(unallocated, given, strict=False):
            devices.hold(claim.key, allocation, gang_key(pod) if pod.group_ref is not None else "")
            held.append(claim.key)
        if spec is not None:
            key = f"{pod.namespace}/{EXTENDED_NAME}/{pod.uid}"
            devices.hold(key, given[-1])
            held.append(key)
        plan.reserved = Reservation(
            claims=plan.claims,
            allocations=tuple(zip(unallocated, given, strict=False)),
            extended=spec,
            extended_allocation=given[-1] if spec is not None else None,
            node=cycle.cluster.table.name(row),
            held=tuple(held),
        )
        return None

    def unreserve(self, cycle: Cycle, row: int) -> None:
        plan: ClaimPlan | None = cycle.notes.get(self.name)
        if plan is None or plan.reserved is None:
            return
        devices = self._index(cycle.cluster)
        for key in plan.reserved.held:
            devices.let_go(key)
        give_up_reservations(cycle, plan.reserved, devices)
        plan.reserved = None

    def pre_bind_pre_flight(self, cycle: Cycle, row: int) -> Status:
        plan: ClaimPlan | None = cycle.notes.get(self.name)
        return SKIP if plan is None or plan.reserved is None else SUCCESS

    def pre_bind(self, cycle: Cycle, row: int) -> AllocateClaims | None:
        plan: ClaimPlan | None = cycle.notes.get(self.name)
        if plan is None or plan.reserved is None:
            return None
        return AllocateClaims(
            cycle.pod,
            plan.reserved,
            self._claims_in(cycle.cluster),
            binding_timeout=self._binding_timeout,
            compatible=cycle.profile.compatible,
        )


def _as_promised(claim: ResourceClaim, pod: Pod, devices: DeviceIndex) -> ResourceClaim:
    """A claim that another member of the pod's gang is getting allocated counts as allocated."""
    if claim.allocation is not None:
        return claim
    promised = devices.promised(claim.key, gang_key(pod))
    return claim if promised is None else replace(claim, allocation=promised)


def _lacks_resource(cycle: Cycle, nodes: Nodes, devices: DeviceIndex) -> NDArray[np.bool_]:
    """Rows that neither have an extended resource of the pod nor a class that serves it."""
    lacking = nodes.none()
    for resource in asked_for(cycle.pod):
        if not devices.extended.class_of(resource):
            offered = [
                resource in (node.allocatable if (node := nodes.table.nodes[row]) is not None else ())
                for row in nodes.row_numbers().tolist()
            ]
            lacking |= ~np.array(offered, dtype=np.bool_)
    return lacking


def may_need_devices(pod: Pod) -> bool:
    """Whether a pod has claims, or requests something that a device class may serve."""
    return pod.shape.claims or (bool(pod.shape.scalars) and bool(asked_for(pod)))


def _share(cycle: Cycle) -> str:
    """An identifier in the form of a random UUID, from the cycle's own generator."""
    text = f"{cycle.rng.getrandbits(128):032x}"
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"
