"""DeviceShare: gives pods GPUs, RDMA cards and FPGAs, whole or in shares, and writes down which.

A node without a Device object passes and gives nothing: its allocatable amounts alone limit it. Nodes with one are
judged one by one, because which devices are free is no sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from fairlead.framework.plugin import Interest, Plugin
from fairlead.model import kinds
from fairlead.model.events import KOORD_DEVICE, POD, ActionType, ClusterEvent
from fairlead.model.reasons import SKIP, Code, Reason, Reject, Status
from fairlead.plugins.koordinator.devices.choice import DeviceChoice, DeviceScorer, Limits, with_memory
from fairlead.plugins.koordinator.devices.request import MEMORY, RATIO, DeviceWish, device_request
from fairlead.plugins.koordinator.devices.rows import ALLOCATED, DeviceHoldings, DeviceRows, allocation_text
from fairlead.plugins.koordinator.reservations.shown import chosen_on, is_taken_off, usable_on
from fairlead.plugins.koordinator.writing import write_annotation
from fairlead.plugins.normalise import to_hundred

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.cycle import Cycle
    from fairlead.plugins.koordinator.devices.rows import Given
    from fairlead.state.cluster import Cluster
    from fairlead.state.nodes import Nodes

ISOLATION = "koordinator.sh/gpu-isolation-provider"
_WEIGHTS = {RATIO: 1, MEMORY: 1, "koordinator.sh/rdma": 1, "koordinator.sh/fpga": 1}


@dataclass(frozen=True, slots=True)
class DeviceSettings:
    """`most` prefers devices that are used already. The last two are slips of the original (KoordinatorQuirks)."""

    weights: Mapping[str, int] = field(default_factory=lambda: _WEIGHTS)
    most: bool = False
    aligns_with_numa: bool = True
    swaps_free_and_total: bool = False
    ascending_partitions: bool = False


@dataclass(slots=True)
class DeviceNote:
    request: DeviceWish
    given: Given | None = None

    def copy(self) -> DeviceNote:
        return DeviceNote(self.request)


class DeviceSharePlugin(Plugin):
    name = "DeviceShare"
    kinds_read = (kinds.KOORD_DEVICE,)

    def __init__(self, settings: DeviceSettings) -> None:
        self._settings = settings
        self._scorer = DeviceScorer(settings.weights, settings.most)
        self._rows: tuple[Cluster, DeviceRows] | None = None
        self.types_reversed = False
        """Whether types of devices are looked at in the opposite order. In the original the order is random, and with
        it which type a node is refused for that lacks two; replays try both."""

    def events(self) -> Sequence[Interest]:
        return (
            Interest(ClusterEvent(POD, ActionType.DELETE)),
            Interest(ClusterEvent(KOORD_DEVICE, ActionType.ADD | ActionType.UPDATE | ActionType.DELETE)),
        )

    def rows(self, cycle: Cycle) -> DeviceRows:
        """The devices of the cycle's cluster, up to date."""
        if self._rows is None or self._rows[0] is not cycle.cluster:
            self._rows = (cycle.cluster, DeviceRows(cycle.cluster))
        self._rows[1].catch_up()
        return self._rows[1]

    def prepare(self, cycle: Cycle) -> Status | None:
        request = device_request(cycle.pod)
        if isinstance(request, Status):
            return request
        if self.types_reversed:
            request = replace(request, amounts=dict(reversed(list(request.amounts.items()))))
        cycle.notes[self.name] = DeviceNote(request)
        return None

    # ---- filter ----

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        note: DeviceNote = cycle.notes[self.name]
        numbers = nodes.row_numbers().tolist()
        place = {row: at for at, row in enumerate(numbers)}
        refused: dict[tuple[Code, tuple[str, ...]], list[int]] = {}
        for row in numbers if self._wants_isolation(cycle, note) else self.rows(cycle).rows_with_devices():
            if row in place and nodes.table.alive[row]:
                said = self._judge(cycle, note, row)
                if isinstance(said, Status):
                    refused.setdefault((said.code, said.reasons), []).append(place[row])
        for (code, reasons), places in refused.items():
            mask = nodes.none()
            mask[places] = True
            for reason in reasons:
                error, final = code is Code.ERROR, code is Code.UNRESOLVABLE
                yield Reject(Reason(self.name, reason, final=final, error=error), mask)

    def _wants_isolation(self, cycle: Cycle, note: DeviceNote) -> bool:
        gpu = note.request.gpu
        return gpu is not None and gpu.shared and bool(cycle.pod.labels.get(ISOLATION))

    def _judge(self, cycle: Cycle, note: DeviceNote, row: int) -> Status | Given | None:
        node = cycle.cluster.table.nodes[row]
        assert node is not None, "only nodes that are there are judged"
        if self._wants_isolation(cycle, note) and node.labels.get(ISOLATION) != cycle.pod.labels[ISOLATION]:
            return Status(Code.ERROR, ("GPUIsolationProviderHAMICore not found on the node",))
        choice = self._choice(cycle, note, row, scored=False)
        return None if choice is None else choice.choose(self._limits(cycle, row))

    def _choice(self, cycle: Cycle, note: DeviceNote, row: int, *, scored: bool) -> DeviceChoice | None:
        rows = self.rows(cycle)
        devices = rows.devices(row)
        if devices is None:
            return None
        node = cycle.cluster.table.nodes[row]
        assert node is not None, "only nodes that are there are asked about"
        return DeviceChoice(
            devices, rows.holdings(row), note.request, self._scorer if scored else None, model=node.labels,
            swaps_free_and_total=self._settings.swaps_free_and_total,
            ascending_partitions=self._settings.ascending_partitions,
        )  # fmt: skip

    def _limits(self, cycle: Cycle, row: int) -> Limits:
        """What the pod may take of reservations: their devices come first, and a Restricted one gives no others."""
        rows = self.rows(cycle)
        held = [left for state in usable_on(cycle, row) if (left := rows.left_of(cycle.cluster, state))]
        if not held:
            return Limits()
        merged = DeviceHoldings()
        for given in held:
            merged.add(given)
        minors = {kind: frozenset(amounts) for kind, amounts in merged.amounts.items()}
        return Limits(reusable={} if is_taken_off(cycle) else merged.amounts, preferred=minors)

    # ---- score ----

    def prepare_scores(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        return None if self.name in cycle.notes else SKIP

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64] | int:
        note: DeviceNote | None = cycle.notes.get(self.name)
        if note is None:  # the pod wants no device, and the profile does not have this plugin at PreScore
            return 0
        scores = np.zeros(len(nodes), dtype=np.int64)
        place = {row: at for at, row in enumerate(nodes.row_numbers().tolist())}
        for row in self.rows(cycle).rows_with_devices():
            if row in place:
                choice = self._choice(cycle, note, row, scored=True)
                assert choice is not None, "the row has devices"
                chosen = chosen_on(cycle, row)
                if chosen is None or self.rows(cycle).left_of(cycle.cluster, chosen):
                    scores[place[row]] = choice.node_score(self._limits(cycle, row))
        return scores

    def normalise(self, cycle: Cycle, nodes: Nodes, raw: NDArray[np.int64]) -> NDArray[np.int64]:
        return to_hundred(raw)

    # ---- after the choice ----

    def reserve(self, cycle: Cycle, row: int) -> Status | None:
        note: DeviceNote | None = cycle.notes.get(self.name)
        choice = self._choice(cycle, note, row, scored=True) if note is not None else None
        if note is None or choice is None:
            return None
        given = choice.choose(self._limits(cycle, row))
        if isinstance(given, Status):
            return given
        note.given = with_memory(given, choice.devices)
        self.rows(cycle).give(cycle.pod, row, note.given)
        return None

    def unreserve(self, cycle: Cycle, row: int) -> None:
        note: DeviceNote | None = cycle.notes.get(self.name)
        if note is not None and note.given is not None:
            note.given = None
            self.rows(cycle).take_back(cycle.pod, row)

    def prebind(self, cycle: Cycle, row: int) -> None:
        note: DeviceNote | None = cycle.notes.get(self.name)
        devices = self.rows(cycle).devices(row)
        if note is not None and note.given is not None and devices is not None:
            write_annotation(cycle, ALLOCATED, allocation_text(note.given, devices))
