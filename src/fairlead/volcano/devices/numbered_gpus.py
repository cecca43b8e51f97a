"""GPUs of equal size, called by their numbers: shared by memory, or had as whole cards.

    memory   `volcano.sh/gpu-memory` must fit one card; the first that has it
    number   `volcano.sh/gpu-number` cards that nobody uses

Limits count: the sum over containers, or the largest of an init container.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.reasons import Reason, Reject
from fairlead.volcano.devices.card_table import CardHolding, CardTable
from fairlead.volcano.devices.device_pools import DevicePool, NodeCard
from fairlead.volcano.devices.registers import GPU_MEMORY, GPU_NUMBER, numbered_cards

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.state.nodes import Nodes
    from fairlead.volcano.rounds.round import Task

_INDEX, _PREDICATE_TIME = "volcano.sh/gpu-index", "volcano.sh/predicate-time"


class NumberedGpus(DevicePool[CardHolding]):
    """`whole`: cards are not shared."""

    def __init__(self, *, whole: bool) -> None:
        super().__init__()
        self._whole = whole
        self._resource = GPU_NUMBER if whole else GPU_MEMORY
        self.lock = "" if whole else "gpu"

    def build(self) -> Iterable[int]:
        table = self.round.cluster.table
        found = {row: numbered_cards(node.allocatable, node.annotations) for row, node in table.alive_rows()}
        self._cards = CardTable({row: cards for row, cards in found.items() if cards.cards}, table.capacity)
        return self._cards.rows

    def cards_of(self, row: int) -> Iterator[NodeCard]:
        for card, memory in self._cards.left(row):
            places = ((uid, {one.place for one in held if one.row == row}) for uid, held in self.holdings.held.items())
            holders = tuple(uid for uid, on in places if card.place in on)
            yield NodeCard("gpu", card.name or str(card.place), memory, holders)

    def has_cards(self, row: int) -> bool:
        return row in self._cards.rows

    def concerns(self, task: Task) -> bool:
        return self._asked(task) > 0

    def _asked(self, task: Task) -> int:
        running = initial = 0
        for container in task.pod.shape.containers:
            limit = container.limit(self._resource) or 0
            if container.init:
                initial = max(initial, limit)
            else:
                running += limit
        return max(running, initial)

    def _usable(self, asked: int) -> NDArray[np.bool_]:
        cards = self._cards
        free = cards.used_number == 0 if self._whole else cards.memory - cards.used_memory >= asked
        usable: NDArray[np.bool_] = cards.exists & free
        return usable

    def refusals(self, task: Task, nodes: Nodes) -> Iterator[Reject]:
        asked = self._asked(task)
        enough = self._usable(asked).sum(axis=1) >= (asked if self._whole else 1)
        rows = nodes.row_numbers()
        for at in np.flatnonzero(self._cards.has_cards[rows] & ~enough[rows]).tolist():
            mask = nodes.none()
            mask[at] = True
            yield Reject(Reason("deviceshare", self.why_not(int(rows[at]))), mask)

    def why_not(self, row: int) -> str:
        what = "GpuNumber no enough gpu number" if self._whole else "GpuShare no enough gpu memory"
        return f"{what} on node {self.round.cluster.table.name(row)}"

    def measured(self, task: Task) -> tuple[str, int, int]:
        cards = self._cards
        if self._whole:
            left = int((cards.exists & (cards.used_number == 0)).sum())
        else:
            left = int((cards.memory - cards.used_memory)[cards.exists].sum())
        return self._resource, self._asked(task), left

    def locked(self, task: Task, why: str) -> str:
        return f"node {self.round.cluster.table.name(task.row)} locked for lockname gpushare {why}"

    def choose(self, task: Task, row: int) -> list[CardHolding] | None:
        asked = self._asked(task)
        places = np.flatnonzero(self._usable(asked)[row]).tolist()
        number, memory = (asked, 0) if self._whole else (1, asked)
        return [CardHolding(row, place, memory, 0) for place in places[:number]] if len(places) >= number else None

    def recall(self, task: Task, row: int) -> list[CardHolding]:
        asked, text = self._asked(task), self.said_to(task, _INDEX)
        places = {int(index) for index in text.split(",") if index.isdigit()} if asked else set()
        memory = 0 if self._whole else asked
        on_row = {card.place for card in self._cards.rows[row].cards}
        return [CardHolding(row, place, memory, 0) for place in sorted(places & on_row)]

    def take(self, held: Sequence[CardHolding], sign: int = 1) -> None:
        self._cards.take(held, sign)

    def annotations(self, task: Task, held: Sequence[CardHolding]) -> dict[str, str]:
        indices = ",".join(str(one.place) for one in held)
        return {_INDEX: indices, _PREDICATE_TIME: str(int(self.round.now) * 10**9)}
