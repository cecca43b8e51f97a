"""CardTable: the accelerator cards of all nodes, as arrays over rows and cards, and who uses what of them.

Two kinds of nodes are known: those that offer `volcano.sh/gpu-number` and `volcano.sh/gpu-memory` (cards of equal size,
named by their numbers), and those whose annotation `volcano.sh/node-vgpu-register` lists each card.

Invariant: `used_*` of a card are the sums over the holdings of the pods on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fairlead.framework.round import Round

GPU_NUMBER, GPU_MEMORY = "volcano.sh/gpu-number", "volcano.sh/gpu-memory"
_UNHEALTHY = "volcano.sh/gpu-unhealthy-ids"
_REGISTER = "volcano.sh/node-vgpu-register"


@dataclass(frozen=True, slots=True)
class Card:
    """`slots` is how many pods may share it; `kind` its model."""

    place: int
    name: str
    slots: int
    memory: int
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Holding:
    """What a pod has of a card."""

    row: int
    place: int
    memory: int
    cores: int


@dataclass(frozen=True, slots=True)
class Cards:
    """One node's cards. `mode` is how they are shared."""

    cards: tuple[Card, ...]
    mode: str = ""


def numbered_cards(allocatable: Mapping[str, int], annotations: Mapping[str, str]) -> Cards:
    number, memory = allocatable.get(GPU_NUMBER, 0), allocatable.get(GPU_MEMORY, 0)
    unhealthy = annotations.get(_UNHEALTHY, "").split(",")
    return Cards(
        tuple(
            Card(place, str(place), number, memory // number)
            for place in range(number)
            if GPU_MEMORY in allocatable and str(place) not in unhealthy
        )
    )


@lru_cache(maxsize=16384)
def registered_cards(text: str) -> Cards:
    """`uuid,count,memory,type,health,mode:...`; a node with an entry that is too short has no cards."""
    cards, mode = [], "hami-core"
    for place, entry in enumerate(text.split(":")):
        if "," not in entry:
            continue
        fields = entry.split(",")
        if len(fields) < 6:
            return Cards(())
        cards.append(Card(place, fields[0], _number(fields[1]), _number(fields[2]), fields[3]))
        mode = "mig" if fields[5] == "mig" else "hami-core"
    return Cards(tuple(cards), mode)


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


class CardTable:
    def __init__(self, round: Round, *, registered: bool) -> None:
        self.rows: dict[int, Cards] = {}
        for row, node in round.cluster.table.alive_rows():
            register = node.annotations.get(_REGISTER, "")
            found = registered_cards(register) if registered else numbered_cards(node.allocatable, node.annotations)
            if found.cards:
                self.rows[row] = found
        shape = (
            round.cluster.table.capacity,
            max((c.place + 1 for on in self.rows.values() for c in on.cards), default=0),
        )
        self.exists = np.zeros(shape, dtype=np.bool_)
        self.memory = np.zeros(shape, dtype=np.int64)
        self.slots = np.zeros(shape, dtype=np.int64)
        self.used_number, self.used_memory, self.used_cores = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        self.kinds: dict[str, int] = {}
        self.kind = np.full(shape, -1, dtype=np.int32)
        for row, on in self.rows.items():
            for card in on.cards:
                self.exists[row, card.place] = True
                self.memory[row, card.place], self.slots[row, card.place] = card.memory, card.slots
                self.kind[row, card.place] = self.kinds.setdefault(card.kind, len(self.kinds))

    def card(self, row: int, place: int) -> Card:
        return next(card for card in self.rows[row].cards if card.place == place)

    def place_of(self, row: int, name: str) -> int | None:
        cards = self.rows[row].cards if row in self.rows else ()
        return next((card.place for card in cards if card.name == name), None)

    def take(self, holdings: Iterable[Holding], sign: int = 1) -> None:
        for held in holdings:
            self.used_number[held.row, held.place] += sign
            self.used_memory[held.row, held.place] += sign * held.memory
            self.used_cores[held.row, held.place] += sign * held.cores
