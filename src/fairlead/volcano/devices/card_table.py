"""CardTable: the accelerator cards of all nodes, as arrays over rows and cards, and who uses what of them.

How nodes announce their cards is decided where the table is made. A card is addressed by the row of its node
and its place there.

Invariant: `used_*` of a card are the sums over the holdings of the pods on it, and `parts` the parts they have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fairlead.volcano.devices.mig import Geometry, Part


@dataclass(frozen=True, slots=True)
class Card:
    """`slots` is how many containers may share it; `kind` its model; `geometries` the ways to partition it."""

    place: int
    name: str
    slots: int
    memory: int
    kind: str = ""
    geometries: tuple[Geometry, ...] = ()


@dataclass(frozen=True, slots=True)
class CardHolding:
    """What a container has of a card: a share of the whole, or one part. `memory` is what it takes, `asked` what it
    requested, which is less where the part is larger."""

    row: int
    place: int
    memory: int
    cores: int
    part: Part | None = None
    asked: int = 0


@dataclass(frozen=True, slots=True)
class Cards:
    """One node's cards. `partitioned`: they are given out in fixed parts (MIG) and not shared as wholes. `mode` is what
    their device plugin calls that."""

    cards: tuple[Card, ...]
    mode: str = ""
    partitioned: bool = False


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

    def left(self, row: int) -> Iterator[tuple[Card, int]]:
        """The cards of a row, each with the memory that is left of it."""
        for card in self.rows[row].cards if row in self.rows else ():
            yield card, card.memory - int(self.used_memory[row, card.place])

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
