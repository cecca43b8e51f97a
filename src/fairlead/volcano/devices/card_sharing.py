"""CardSharing: which cards the containers of a pod get, where several share a card or cards are partitioned.

Each container gets cards of its own, one container after the other. Rows are judged for all cards at once by arrays;
only where containers of one pod compete, or cards are partitioned, each row is tried by itself.

Invariant: `fits` says of a row what `choose` would find on it, and `scores` what `score` says of that choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairlead.volcano.devices.card_table import CardHolding
from fairlead.volcano.devices.mig import Part, pick

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.volcano.devices.card_requests import CardRequest
    from fairlead.volcano.devices.card_table import Card, CardTable

BINPACK, SPREAD = "binpack", "spread"
BEST = 100.0
"""The score of a card that the policy likes best."""
_ALL_CORES = 100
"""Cores are percent of a card: who requests all of them has the card alone."""


@dataclass(frozen=True, slots=True)
class SharingRules:
    """`policy` is binpack, spread or empty: which cards are taken first, and what makes a row good. `part_factor` is
    what a unit of requested memory is worth in the unit of parts. The last two are Volcano's: a partitioned card offers
    only sizes in use, and spread prefers no card."""

    policy: str = ""
    part_factor: int = 1
    only_used_sizes: bool = False
    spread_scores_nothing: bool = False


@dataclass(slots=True)
class _Trial:
    """What is used of the cards of one row while a pod is tried on it, by place."""

    number: dict[int, int]
    memory: dict[int, int]
    cores: dict[int, int]
    parts: dict[int, list[Part]]


class CardSharing:
    """Choices on a table as it is. In all of them `open_to` says which cards a pod may use, whatever is left of them:
    an array like those of the table, or a row of it."""

    def __init__(self, table: CardTable, rules: SharingRules) -> None:
        self._table = table
        self._rules = rules
        self._is_partitioned = np.zeros(len(table.has_cards), dtype=np.bool_)
        self._is_partitioned[[row for row, on in table.rows.items() if on.partitioned]] = True

    # ---- all rows at once ----

    def fits(self, requests: Sequence[CardRequest], open_to: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """By row, whether there are cards for all requests; True on rows that have no cards and need none."""
        fitting = np.ones(self._table.exists.shape[0], dtype=np.bool_)
        for request in requests:
            fitting &= (self._usable(request) & open_to).sum(axis=1) >= request.number
        for row in np.flatnonzero(fitting & self._tried_singly(requests)).tolist():
            fitting[row] = self.choose(requests, row, open_to[row]) is not None
        return fitting

    def scores(self, requests: Sequence[CardRequest], open_to: NDArray[np.bool_]) -> NDArray[np.float64]:
        """By row, how good its cards are; 0 where they do not fit, and everywhere without a policy."""
        table = self._table
        scores = np.zeros(len(table.has_cards), dtype=np.float64)
        if self._rules.policy not in (BINPACK, SPREAD):
            return scores
        fitting = self.fits(requests, open_to) & table.has_cards
        if len(requests) == 1:
            scores[fitting] = self._scores_at_once(requests[0], open_to)[fitting]
        for row in np.flatnonzero(fitting & self._tried_singly(requests)).tolist():
            scores[row] = self.score(self.choose(requests, row, open_to[row]) or ())
        return scores

    def _tried_singly(self, requests: Sequence[CardRequest]) -> NDArray[np.bool_]:
        """The rows on which containers compete, or whose cards are partitioned."""
        return self._table.has_cards if len(requests) > 1 else self._is_partitioned

    def _usable(self, request: CardRequest) -> NDArray[np.bool_]:
        """Which cards have what is wanted."""
        table = self._table
        usable: NDArray[np.bool_] = table.exists & (table.memory - table.used_memory >= self._needs(request))
        usable &= (table.used_number < table.slots) & (table.used_cores + request.cores <= _ALL_CORES)
        if request.cores == _ALL_CORES:
            usable &= table.used_number == 0
        elif request.cores == 0:
            usable &= table.used_cores != _ALL_CORES
        return usable

    def _needs(self, request: CardRequest) -> NDArray[np.int64] | int:
        """The memory that is wanted of each card."""
        return self._table.memory * request.share // 100 if request.share is not None else request.memory

    def _scores_at_once(self, request: CardRequest, open_to: NDArray[np.bool_]) -> NDArray[np.float64]:
        """What `score` says of the cards that `choose` would take, by row, for one container and cards that are not
        partitioned: the first cards in the order of the policy, of which each is taken once."""
        table, usable = self._table, self._usable(request) & open_to
        binpack = self._rules.policy == BINPACK
        key = -table.used_memory if binpack else table.used_number
        ranked = np.argsort(np.where(usable, key, np.iinfo(np.int64).max), axis=1, kind="stable")[:, : request.number]
        if binpack:
            full = BEST * (table.used_memory + self._needs(request))
            liked = np.divide(full, table.memory, out=np.zeros(full.shape), where=table.memory > 0)
        else:
            liked = np.where(self._rules.spread_scores_nothing, 0.0, BEST * (table.used_number == 0))
        chosen: NDArray[np.float64] = np.take_along_axis(liked, ranked, axis=1).sum(axis=1)
        return chosen

    # ---- one row ----

    def choose(
        self, requests: Sequence[CardRequest], row: int, open_to: NDArray[np.bool_]
    ) -> list[list[CardHolding]] | None:
        """By container, the cards that a pod would get on a row; None if there are too few."""
        cards = {card.place: card for card in self._table.rows[row].cards}
        trial = self._trial(row)
        chosen = []
        for request in requests:
            picked: list[CardHolding] = []
            for place in self._in_order(trial):
                if len(picked) == request.number:
                    break
                held = self._fit(cards[place], row, request, trial) if open_to[place] else None
                if held is not None:
                    picked.append(held)
            if len(picked) < request.number:
                return None
            chosen.append(picked)
        return chosen

    def score(self, chosen: Sequence[Sequence[CardHolding]]) -> float:
        """How good a choice is: with binpack fuller cards, with spread cards that nobody else uses."""
        table, rules = self._table, self._rules
        used: Counter[int] = Counter()
        memory: Counter[int] = Counter()
        score = 0.0
        for held in (held for container in chosen for held in container):
            row, place = held.row, held.place
            used[place] += 1
            memory[place] += held.memory
            if rules.policy == BINPACK:
                whole = int(table.memory[row, place])
                score += BEST * (int(table.used_memory[row, place]) + memory[place]) / whole if whole else 0.0
            elif not rules.spread_scores_nothing and int(table.used_number[row, place]) + used[place] == 1:
                score += BEST
        return score

    def _trial(self, row: int) -> _Trial:
        table = self._table
        places = [card.place for card in table.rows[row].cards]
        number, memory, cores = (
            {place: int(column[row, place]) for place in places}
            for column in (table.used_number, table.used_memory, table.used_cores)
        )
        parts = {place: list(table.parts.get((row, place), ())) for place in places}
        return _Trial(number, memory, cores, parts)

    def _in_order(self, trial: _Trial) -> list[int]:
        """The places of cards in the order of the policy; without one, the last card first."""
        if self._rules.policy == BINPACK:
            return sorted(trial.memory, key=lambda place: (-trial.memory[place], place))
        if self._rules.policy == SPREAD:
            return sorted(trial.number, key=lambda place: (trial.number[place], place))
        return sorted(trial.number, reverse=True)

    def _fit(self, card: Card, row: int, request: CardRequest, trial: _Trial) -> CardHolding | None:
        """Give a request a card, if it has what is wanted."""
        place, asked = card.place, request.memory_of(card.memory)
        used, cores = trial.number[place], trial.cores[place]
        if used >= card.slots or card.memory - trial.memory[place] < asked or cores + request.cores > _ALL_CORES:
            return None
        if (request.cores == _ALL_CORES and used) or (request.cores == 0 and cores == _ALL_CORES):
            return None
        part, memory = None, asked
        if self._is_partitioned[row]:
            found = self._part(card, asked, trial.parts[place])
            if found is None:
                return None
            part, memory = found
            trial.parts[place].append(part)
        trial.number[place] += 1
        trial.memory[place] += memory
        trial.cores[place] += request.cores
        return CardHolding(row, place, memory, request.cores, part, asked)

    def _part(self, card: Card, memory: int, used: list[Part]) -> tuple[Part, int] | None:
        factor = self._rules.part_factor
        found = pick(card.geometries, used, memory * factor, only_used_sizes=self._rules.only_used_sizes)
        return None if found is None else (found[0], found[1] // factor)
