"""DeviceShare: gives pods GPUs, RDMA cards and FPGAs, whole or in shares, and writes down which.

A node without a Device object passes and gives nothing: its allocatable amounts alone limit it. Nodes with one are
judged by class: those with the same devices of which the same is held share one judgement (classes, judgements).
Where a pod may use what reservations hold, its nodes are judged one by one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.plugin import Interest, Plugin
from fairlead.core.model.events import POD, ActionType, ClusterEvent
from fairlead.core.model.reasons import SKIP, SUCCESS, Code, Reason, Reject, Status, unresolvable
from fairlead.koordinator.devices.choice import DeviceChoice, DeviceScorer, Limits, with_memory
from fairlead.koordinator.devices.classes import NO_DEVICES
from fairlead.koordinator.devices.judgements import DemandJudgements, Judgements
from fairlead.koordinator.devices.lacks import device_lacks
from fairlead.koordinator.devices.numa_hints import device_hints
from fairlead.koordinator.devices.request import (
    MEMORY,
    RATIO,
    DeviceDemand,
    demand_key,
    device_request,
    wants_devices,
)
from fairlead.koordinator.devices.rows import ALLOCATED, DeviceHoldings, DeviceRows, allocation_text
from fairlead.koordinator.devices.templates import TemplateIndex, TemplateRules
from fairlead.koordinator.kinds import DEVICE_EVENTS, KOORD_DEVICE
from fairlead.koordinator.numa.providers import provide_hints, settled_rows
from fairlead.koordinator.pod_annotations import write_annotation
from fairlead.koordinator.records.cards import MODEL, VENDOR
from fairlead.koordinator.reservations.shown import (
    chosen_on,
    is_taken_off,
    rows_for_pod,
    taken_over_on,
    usable_on,
)
from fairlead.kube.scoring import to_hundred

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.numa_hints import NumaNodes
    from fairlead.core.model.lack import Lack
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.nodes import Nodes
    from fairlead.koordinator.devices.classes import NodeDeviceClass
    from fairlead.koordinator.devices.rows import Given
    from fairlead.koordinator.numa.merging import Hints

ISOLATION = "koordinator.sh/gpu-isolation-provider"
_NO_PROVIDER = "GPUIsolationProviderHAMICore not found on the node"
_WEIGHTS = {RATIO: 1, MEMORY: 1, "koordinator.sh/rdma": 1, "koordinator.sh/fpga": 1}


@dataclass(frozen=True, slots=True)
class DeviceSettings:
    """`most` prefers devices that are used already. Three are slips of the original (KoordinatorQuirks)."""

    weights: Mapping[str, int] = field(default_factory=lambda: _WEIGHTS)
    most: bool = False
    aligns_with_numa: bool = True
    swaps_free_and_total: bool = False
    ascending_partitions: bool = False
    unchecked_beside_numa: bool = False
    templates: TemplateRules = field(default_factory=TemplateRules)
    unshared_models: frozenset[tuple[str, str]] = frozenset()
    """Vendors and models of GPUs that cannot be shared."""


@dataclass(slots=True)
class DeviceNote:
    """`key` is equal for pods that demand the same."""

    request: DeviceDemand
    key: Hashable
    given: Given | None = None

    def copy(self) -> DeviceNote:
        return DeviceNote(self.request, self.key)


class DeviceSharePlugin(Plugin):
    name = "DeviceShare"
    kinds_read = (KOORD_DEVICE,)

    def __init__(self, settings: DeviceSettings) -> None:
        self._settings = settings
        self._scorer = DeviceScorer(settings.weights, settings.most)
        self._judgements: Judgements | None = None
        self._templates = TemplateIndex(settings.templates)
        self.objects_read = (settings.templates.watch,)
        self.types_reversed = False
        """Whether types of devices are looked at in the opposite order. In the original the order is random, and with
        it which type a node is refused for that lacks two; replays try both."""

    def events(self) -> Sequence[Interest]:
        return (
            Interest(ClusterEvent(POD, ActionType.DELETE)),
            Interest(ClusterEvent(DEVICE_EVENTS, ActionType.ADD | ActionType.UPDATE | ActionType.DELETE)),
        )

    def rows(self, cycle: Cycle) -> DeviceRows:
        """The devices of the cycle's cluster, up to date."""
        return self.rows_of(cycle.cluster)

    def rows_of(self, cluster: Cluster) -> DeviceRows:
        """The devices of a cluster."""
        return cluster.index(DeviceRows, DeviceRows)

    def _judgements_of(self, demand: Hashable, rows: DeviceRows) -> DemandJudgements:
        """What this plugin found out about the classes of a cluster's nodes. Scores depend on the plugin's settings,
        so that plugins share the classes alone."""
        classes = rows.classes()
        if self._judgements is None or self._judgements.classes is not classes:
            self._judgements = Judgements(classes)
        return self._judgements.of(demand)

    def looks_at_pods(self, cycle: Cycle) -> bool:
        return wants_devices(cycle.pod)

    def pre_filter(self, cycle: Cycle) -> Status | None:
        if not wants_devices(cycle.pod):
            return SKIP
        key = demand_key(cycle.pod)
        request = device_request(cycle.pod)
        if isinstance(request, Status):
            return request
        if request.gpu is not None and request.gpu.shared:
            templates = self._templates.candidates(cycle.cluster, request.gpu.each)
            if isinstance(templates, Status):
                return templates
            if templates is not None:
                request = replace(request, gpu=replace(request.gpu, templates=templates))
                key = (key, tuple(sorted(templates.items())))
        if self.types_reversed:
            request = replace(request, amounts=dict(reversed(list(request.amounts.items()))))
        cycle.notes[self.name] = DeviceNote(request, (key, self.types_reversed))
        if self._settings.aligns_with_numa:
            provide_hints(cycle, self)
        return None

    # ---- hints for NodeNUMAResource ----

    def numa_hints(self, cycle: Cycle, row: int) -> Hints | Status:
        choice = self._choice_on(cycle, row)
        return {} if choice is None else device_hints(choice, self._limits(cycle, row))

    def fits_numa(self, cycle: Cycle, row: int, nodes: NumaNodes | None) -> Status | None:
        choice = self._choice_on(cycle, row)
        said = None if choice is None else choice.choose(replace(self._limits(cycle, row), numa=nodes))
        return said if isinstance(said, Status) else None

    def _choice_on(self, cycle: Cycle, row: int) -> DeviceChoice | None:
        """The choice of devices on a row, without scores; None if it has no Device object."""
        classes = self.rows(cycle).classes()
        code = int(classes.codes[row])
        return None if code == NO_DEVICES else self._choice(classes.listed[code], cycle.notes[self.name], scored=False)

    def lacks(self, pods: Sequence[Pod], cluster: Cluster) -> Iterable[Lack]:
        """Devices, if those of all nodes together do not serve all pods, one after the other."""
        yield from device_lacks(pods, self.rows_of(cluster), self._settings)

    # ---- filter ----

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        note: DeviceNote = cycle.notes[self.name]
        rows = self.rows(cycle)
        classes = rows.classes()
        judgements = self._judgements_of(note.key, rows)
        codes = nodes.take(classes.codes)
        without = self._without_isolation(cycle, note, nodes)
        verdicts = judgements.verdicts(codes, lambda some: self._choice(some, note, scored=False).choose(Limits()))
        refused: dict[tuple[Code, tuple[str, ...]], NDArray[np.bool_]] = {}
        settled = settled_rows(cycle) if self._settings.aligns_with_numa or self._settings.unchecked_beside_numa else {}
        apart = self._rows_apart(cycle, nodes, codes)
        if settled:  # NodeNUMAResource has asked there, on the NUMA nodes that the pod is kept to
            verdicts[nodes.mask_of(settled)] = 0
            apart = {at: row for at, row in apart.items() if row not in settled}
        if without is not None:
            verdicts = np.where(without, 0, verdicts)
            refused[Code.ERROR, (_NO_PROVIDER,)] = without
        verdicts[list(apart)] = 0
        for number in np.unique(verdicts[verdicts > 0]).tolist():
            refusal = judgements.refusals[number - 1]
            refused[refusal.code, refusal.reasons] = verdicts == number
        for at, row in apart.items():
            if without is not None and without[at]:
                continue
            said = self._choice(classes.listed[codes[at]], note, scored=False).choose(self._limits(cycle, row))
            if isinstance(said, Status):
                refused.setdefault((said.code, said.reasons), nodes.none())[at] = True
        for said, mask in self._unshared(note, nodes):
            refused = {key: others if key[0] is Code.ERROR else others & ~mask for key, others in refused.items()}
            refused[said.code, said.reasons] = mask if without is None else mask & ~without
        for (code, reasons), mask in refused.items():
            for reason in reasons:
                error, final = code is Code.ERROR, code is Code.UNRESOLVABLE
                yield Reject(Reason(self.name, reason, final=final, error=error), mask)

    def _without_isolation(self, cycle: Cycle, note: DeviceNote, nodes: Nodes) -> NDArray[np.bool_] | None:
        """The nodes that do not isolate shared GPUs as the pod wants it; None if it does not care."""
        gpu, wanted = note.request.gpu, cycle.pod.labels.get(ISOLATION)
        if gpu is None or not gpu.shared or not wanted:
            return None
        without: NDArray[np.bool_] = nodes.label(ISOLATION) != nodes.table.label(ISOLATION).code(wanted)
        return without

    def _unshared(self, note: DeviceNote, nodes: Nodes) -> Iterable[tuple[Status, NDArray[np.bool_]]]:
        """The nodes whose GPUs cannot be shared, if the pod wants to share one."""
        if note.request.gpu is None or not note.request.gpu.shared:
            return
        for vendor, model in sorted(self._settings.unshared_models):
            mask = nodes.label(VENDOR) == nodes.table.label(VENDOR).code(vendor)
            mask &= nodes.label(MODEL) == nodes.table.label(MODEL).code(model)
            yield unresolvable(f'model "{model}" of vendor "{vendor}" does not support GPU Share'), mask

    def _rows_apart(self, cycle: Cycle, nodes: Nodes, codes: NDArray[np.int32]) -> dict[int, int]:
        """Rows by their place in a selection about which a class does not say enough: they have devices, and
        reservations that the pod may use, or the pod is kept to some NUMA nodes there."""
        wanted = rows_for_pod(cycle)
        if wanted is not None and (settled := settled_rows(cycle)):
            wanted = {*wanted, *(row for row, numa in settled.items() if numa is not None)}
        if wanted is None:
            places = (codes >= 0).nonzero()[0]
        elif wanted:
            places = (nodes.mask_of(wanted) & (codes >= 0)).nonzero()[0]
        else:
            return {}
        return dict(zip(places.tolist(), nodes.row_numbers()[places].tolist(), strict=True))

    def _choice(self, some: NodeDeviceClass, note: DeviceNote, *, scored: bool) -> DeviceChoice:
        return DeviceChoice(
            some.devices,
            some.holdings,
            note.request,
            self._scorer if scored else None,
            model=some.labels,
            swaps_free_and_total=self._settings.swaps_free_and_total,
            ascending_partitions=self._settings.ascending_partitions,
        )

    def _limits(self, cycle: Cycle, row: int) -> Limits:
        """The NUMA nodes that the pod is kept to, and what it may take of reservations: their devices come first, and a
        Restricted one gives no others."""
        rows = self.rows(cycle)
        numa = settled_rows(cycle).get(row) if self._settings.aligns_with_numa else None
        held = [left for state in usable_on(cycle, row) if (left := rows.left_of(state))]
        held += [given for pod in taken_over_on(cycle, row) if (given := rows.held_by(pod))]
        if not held:
            return Limits(numa)
        merged = DeviceHoldings()
        for given in held:
            merged.add(given)
        minors = {kind: frozenset(amounts) for kind, amounts in merged.amounts.items()}
        return Limits(numa, reusable={} if is_taken_off(cycle) else merged.amounts, preferred=minors)

    # ---- score ----

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        return None if self.name in cycle.notes else SKIP

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64] | int:
        note: DeviceNote | None = cycle.notes.get(self.name)
        if note is None:  # the pod wants no device, and the profile does not have this plugin at PreScore
            return 0
        rows = self.rows(cycle)
        classes = rows.classes()
        codes = nodes.take(classes.codes)
        scores = self._judgements_of(note.key, rows).scores(
            codes, lambda some: self._choice(some, note, scored=True).node_score(Limits())
        )
        for at, row in self._rows_apart(cycle, nodes, codes).items():
            chosen = chosen_on(cycle, row)
            choice = self._choice(classes.listed[codes[at]], note, scored=True)
            counts = chosen is None or rows.left_of(chosen)
            scores[at] = choice.node_score(self._limits(cycle, row)) if counts else 0
        return scores

    def normalize_score(self, cycle: Cycle, nodes: Nodes, raw: NDArray[np.int64]) -> NDArray[np.int64]:
        return to_hundred(raw)

    # ---- after the choice ----

    def reserve(self, cycle: Cycle, row: int) -> Status | None:
        note: DeviceNote | None = cycle.notes.get(self.name)
        if note is None:
            return None
        rows = self.rows(cycle)
        classes = rows.classes()
        code = int(classes.codes[row])
        if code == NO_DEVICES:
            return None
        given = self._choice(classes.listed[code], note, scored=True).choose(self._limits(cycle, row))
        if isinstance(given, Status):
            return given
        note.given = with_memory(given, classes.listed[code].devices)
        rows.give(cycle.pod, row, note.given)
        return None

    def unreserve(self, cycle: Cycle, row: int) -> None:
        note: DeviceNote | None = cycle.notes.get(self.name)
        if note is not None and note.given is not None:
            note.given = None
            self.rows(cycle).take_back(cycle.pod, row)

    def pre_bind_pre_flight(self, cycle: Cycle, row: int) -> Status:
        note: DeviceNote | None = cycle.notes.get(self.name)
        return SKIP if note is None or note.given is None else SUCCESS

    def pre_bind(self, cycle: Cycle, row: int) -> None:
        note: DeviceNote | None = cycle.notes.get(self.name)
        devices = self.rows(cycle).devices(row)
        if note is not None and note.given is not None and devices is not None:
            write_annotation(cycle, ALLOCATED, allocation_text(note.given, devices))
