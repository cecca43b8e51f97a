"""CardTable: the accelerator cards of all nodes, as arrays over rows and cards, and who uses what of them.

Two kinds of nodes are known: those that offer `volcano.sh/gpu-number` and `volcano.sh/gpu-memory` (cards of equal size,
named by their numbers), and those whose annotation `volcano.sh/node-vgpu-register` lists each card.

Invariant: `used_*` of a card are the sums over the holdings of the pods on it, and `parts` the parts they have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fairlead.plugins.volcano.devices.device_config import Geometry, NvidiaConfig
    from fairlead.plugins.volcano.devices.mig import Part

GPU_NUMBER, GPU_MEMORY = "volcano.sh/gpu-number", "volcano.sh/gpu-memory"
MIG, HAMI_CORE = "mig", "hami-core"
REGISTER = "volcano.sh/node-vgpu-register"
_UNHEALTHY = "volcano.sh/gpu-unhealthy-ids"
_NEEDED = ("volcano.sh/vgpu-number", "volcano.sh/vgpu-cores", "volcano.sh/vgpu-memory")


@dataclass(frozen=True, slots=True)
class Card:
    """`slots` is how many pods may share it; `kind` its model; `geometries` the ways in which it may be cut."""

    place: int
    name: str
    slots: int
    memory: int
    kind: str = ""
    geometries: tuple[Geometry, ...] = ()


@dataclass(frozen=True, slots=True)
class CardHolding:
    """What a pod has of a card: the whole of it shared, or one part. `told` is how its annotations call it."""

    row: int
    place: int
    memory: int
    cores: int
    part: Part | None = None
    told: str = ""


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


def offered_cards(allocatable: Mapping[str, int], annotations: Mapping[str, str], config: NvidiaConfig) -> Cards:
    """The cards that are registered, if their device plugin offers them too."""
    if not all(allocatable.get(name) for name in _NEEDED):
        return Cards(())
    return registered_cards(annotations.get(REGISTER, ""), config)


@lru_cache(maxsize=16384)
def registered_cards(text: str, config: NvidiaConfig) -> Cards:
    """`uuid,count,memory,type,health,mode:...`; a node with an entry that is too short has no cards. The last card's
    mode is that of the node; a model that nobody knows how to cut is shared as a whole."""
    cards, mode = [], HAMI_CORE
    for place, entry in enumerate(text.split(":") if ":" in text else ()):
        if "," not in entry:
            continue
        fields = entry.split(",")
        if len(fields) < 6:
            return Cards(())
        geometries = config.geometries_of(fields[3]) if fields[5] == MIG else None
        mode = MIG if geometries is not None else HAMI_CORE
        cards.append(
            Card(place, fields[0], _number(fields[1]), _number(fields[2]), fields[3], geometries or ())
        )  # fmt: skip
    return Cards(tuple(cards), mode)


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


class CardTable:
    """`rows` are the nodes that have cards."""

    def __init__(self, rows: Mapping[int, Cards], capacity: int) -> None:
        self.rows = rows
        shape = (capacity, max((card.place + 1 for on in rows.values() for card in on.cards), default=0))
        self.has_cards = np.zeros(capacity, dtype=np.bool_)
        self.has_cards[list(rows)] = True
        self.exists = np.zeros(shape, dtype=np.bool_)
        self.memory = np.zeros(shape, dtype=np.int64)
        self.slots = np.zeros(shape, dtype=np.int64)
        self.used_number, self.used_memory, self.used_cores = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        self.parts: dict[tuple[int, int], list[Part]] = {}
        self.kinds: dict[str, int] = {}
        self.kind = np.full(shape, -1, dtype=np.int32)
        for row, on in self.rows.items():
            for card in on.cards:
                self.exists[row, card.place] = True
                self.memory[row, card.place], self.slots[row, card.place] = card.memory, card.slots
                self.kind[row, card.place] = self.kinds.setdefault(card.kind, len(self.kinds))

    def card(self, row: int, place: int) -> Card:
        return next(card for card in self.rows[row].cards if card.place == place)

    def named(self, row: int, name: str) -> Card | None:
        """The card of that name; a part is called by its card's and more."""
        cards = self.rows[row].cards if row in self.rows else ()
        return next((card for card in cards if card.name and card.name in name), None)

    def take(self, holdings: Iterable[CardHolding], sign: int = 1) -> None:
        for held in holdings:
            self.used_number[held.row, held.place] += sign
            self.used_memory[held.row, held.place] += sign * held.memory
            self.used_cores[held.row, held.place] += sign * held.cores
            if held.part is not None:
                parts = self.parts.setdefault((held.row, held.place), [])
                if sign > 0:
                    parts.append(held.part)
                else:
                    parts.remove(held.part)
