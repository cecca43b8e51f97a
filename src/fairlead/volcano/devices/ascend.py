"""Ascend cards as HAMi shares them: a pod gets a whole card, or a part of one of the sizes that its templates name.

Nodes list their cards as JSON in `hami.io/node-register-<kind>`. Memory is rounded up to the next template; several
cards at once are only to be had whole. Of the 910 family, where all cards say which network they are in, those in the
network with most free cards go together.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fairlead.core.model.reasons import Reason, Reject
from fairlead.volcano.devices.card_requests import CardRequest, card_requests
from fairlead.volcano.devices.card_sharing import BEST, BINPACK, SPREAD
from fairlead.volcano.devices.device_pools import DevicePool, NodeCard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.core.state.nodes import Nodes
    from fairlead.volcano.devices.device_config import VnpuConfig
    from fairlead.volcano.rounds.round import Task

_PREFIX = "hami.io/"
_NETWORKED, _NETWORK_WEIGHT = "Ascend910", 10
_REASON = Reason("deviceshare", "no ascend device available", final=True)


@dataclass(frozen=True, slots=True)
class AscendCard:
    """`slots` is how many may share it; `network` is None where it says nothing of that."""

    name: str
    slots: int
    memory: int
    cores: int
    network: int | None = None


@dataclass(frozen=True, slots=True)
class AscendUsage:
    number: int = 0
    memory: int = 0
    cores: int = 0

    def plus(self, held: AscendHolding, sign: int) -> AscendUsage:
        return AscendUsage(self.number + sign, self.memory + sign * held.memory, self.cores + sign * held.cores)


@dataclass(frozen=True, slots=True)
class AscendHolding:
    row: int
    card: str
    memory: int
    cores: int
    container: int = 0


@lru_cache(maxsize=16384)
def registered_cards(text: str) -> tuple[AscendCard, ...]:
    """The cards of a node; none if the text cannot be read."""
    try:
        return tuple(_card(one) for one in json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError):
        return ()


def _card(one: Mapping[str, Any]) -> AscendCard:
    network = (one.get("custominfo") or {}).get("NetworkID")
    return AscendCard(
        one["id"],
        int(one.get("count") or 0),
        int(one.get("devmem") or 0),
        int(one.get("devcore") or 0),
        None if network is None else int(network),
    )


class AscendCards(DevicePool[AscendHolding]):
    """One kind of card. `policy` is binpack, spread or empty."""

    releases_lock = True

    def __init__(self, config: VnpuConfig, *, policy: str = "") -> None:
        super().__init__()
        self._config = config
        self._policy = policy
        self.lock = config.word
        self.uncounted = config.memory_resource

    def build(self) -> Iterable[int]:
        register = f"{_PREFIX}node-register-{self._config.word}"
        self._cards: dict[int, dict[str, AscendCard]] = {}
        for row, node in self.round.cluster.table.alive_rows():
            cards = registered_cards(node.annotations.get(register, "")) if self._is_offered(node.allocatable) else ()
            if cards:
                self._cards[row] = {card.name: card for card in cards}
        self._used = {row: dict.fromkeys(cards, AscendUsage()) for row, cards in self._cards.items()}
        self._known: dict[int, dict[tuple[CardRequest, ...], list[AscendHolding] | None]] = {}
        """By row, what requests would get there; forgotten when anything of the row is taken or given back."""
        return self._cards

    def _is_offered(self, allocatable: Mapping[str, int]) -> bool:
        return bool(allocatable.get(self._config.resource))

    def cards_of(self, row: int) -> Iterator[NodeCard]:
        for name, card in self._cards.get(row, {}).items():
            holders = [
                uid
                for uid, held in self.holdings.held.items()
                if any(one.row == row and one.card == name for one in held)
            ]
            yield NodeCard(self._config.word, name, card.memory - self._used[row][name].memory, tuple(holders))

    def has_cards(self, row: int) -> bool:
        return row in self._cards

    # ---- what is requested ----

    def concerns(self, task: Task) -> bool:
        return bool(self._requests(task))

    def _requests(self, task: Task) -> list[CardRequest]:
        return card_requests(task.pod, count=self._config.resource, memory=self._config.memory_resource)

    def _trimmed(self, request: CardRequest, card: AscendCard) -> CardRequest:
        """As much memory as a template has, or a whole card."""
        memory = request.memory_of(card.memory) if request.memory == 0 else request.memory
        return replace(request, memory=self._config.trimmed(memory)[0] if memory > 0 else 0)

    def measured(self, task: Task) -> tuple[str, int, int]:
        """By memory, or by cards that nobody uses where whole ones are requested."""
        requests, config = self._requests(task), self._config
        uses = [(card, self._used[row][card.name]) for row, cards in self._cards.items() for card in cards.values()]
        if all(request.memory for request in requests):
            asked = sum(request.number * config.trimmed(request.memory)[0] for request in requests)
            return config.memory_resource, asked, sum(card.memory - used.memory for card, used in uses)
        return config.resource, sum(request.number for request in requests), sum(not used.number for _, used in uses)

    # ---- judging ----

    def refusals(self, task: Task, nodes: Nodes) -> Iterator[Reject]:
        mask = nodes.none()
        for at, row in enumerate(nodes.row_numbers().tolist()):
            mask[at] = row in self._cards and self.choose(task, row) is None
        yield Reject(_REASON, mask)

    def why_not(self, row: int) -> str:
        return _REASON.text

    def locked(self, task: Task, why: str) -> str:
        return f"node {self.round.cluster.table.name(task.row)} locked for {task.name} hami vnpu. lockname {why}"

    def choose(self, task: Task, row: int) -> list[AscendHolding] | None:
        requests = tuple(self._requests(task))
        known = self._known.setdefault(row, {})
        if requests not in known:
            known[requests] = self._choice(requests, row)
        return known[requests]

    def _choice(self, requests: Sequence[CardRequest], row: int) -> list[AscendHolding] | None:
        """What the containers get: each has cards of its own, the best by policy first."""
        cards, used = self._cards[row], self._used[row]
        ranked = sorted(cards.values(), key=lambda card: -self._score(used[card.name], card))
        together = self._has_networks(ranked)
        chosen: list[AscendHolding] = []
        for at, asked in enumerate(requests):
            request = self._trimmed(asked, ranked[0])
            if request.memory == 0 and not self.round.quirks.oversized_ascend_request_is_zero:
                return None
            if request.number > 1 and self._config.trimmed(request.memory)[0] != self._config.allocatable:
                return None
            taken = {held.card for held in chosen}
            fitting = [card for card in ranked if card.name not in taken and _fits(request, card, used[card.name])]
            if len(fitting) < request.number:
                return None
            picked = _in_one_network(fitting) if together else fitting
            chosen += [
                AscendHolding(row, card.name, request.memory, request.cores, at) for card in picked[: request.number]
            ]
        return chosen

    def _has_networks(self, cards: Sequence[AscendCard]) -> bool:
        return self._config.word.startswith(_NETWORKED) and all(card.network is not None for card in cards)

    def _score(self, used: AscendUsage, card: AscendCard) -> float:
        if self._policy == BINPACK:
            return BEST * used.memory / card.memory if card.memory else 0.0
        liked = 1 if self.round.quirks.spread_scores_wrong_cards else 0
        return BEST if self._policy == SPREAD and used.number == liked else 0.0

    def liking(self, task: Task) -> NDArray[np.float64]:
        scores = super().liking(task)
        for row, cards in self._cards.items():
            chosen = self.choose(task, row)
            first = {held.container: held.card for held in reversed(chosen or ())}
            used = [cards[name] for _, name in sorted(first.items())]
            scores[row] = sum(self._score(self._used[row][card.name], card) for card in used)
            if used and self._has_networks(used):
                networks = Counter(card.network for card in used)
                scores[row] += max(networks.values()) / len(used) * _NETWORK_WEIGHT
        return scores

    # ---- what happens ----

    def take(self, held: Sequence[AscendHolding], sign: int = 1) -> None:
        for one in held:
            self._known.pop(one.row, None)
            self._used[one.row][one.card] = self._used[one.row][one.card].plus(one, sign)

    def recall(self, task: Task, row: int) -> list[AscendHolding]:
        text = self.said_to(task, f"{_PREFIX}{self._config.word}-devices-allocated")
        found: dict[str, AscendHolding] = {}
        for entry in text.replace(";", ":").split(":"):
            fields = entry.split(",")
            if len(fields) >= 4 and fields[0] in self._cards[row] and fields[2].isdigit() and fields[3].isdigit():
                found.setdefault(fields[0], AscendHolding(row, fields[0], int(fields[2]), int(fields[3])))
        return list(found.values())

    def annotations(self, task: Task, held: Sequence[AscendHolding]) -> dict[str, str]:
        word, now = self._config.word, str(int(self.round.now))
        containers = range(max((one.container for one in held), default=-1) + 1)
        devices = "".join(
            "".join(f"{one.card},{word},{one.memory},{one.cores}:" for one in held if one.container == at) + ";"
            for at in containers
        )
        runtime = [_runtime(one, self._config.trimmed(one.memory)[1]) for one in held]
        return {
            f"{_PREFIX}{word}-devices-to-allocate": devices,
            f"{_PREFIX}{word}-devices-allocated": devices,
            "predicate-time": now,
            f"huawei.com/{word}": json.dumps(runtime, separators=(",", ":")),
            f"{_PREFIX}vgpu-node": self.round.cluster.table.name(task.row),
            f"{_PREFIX}vgpu-time": now,
            f"{_PREFIX}bind-phase": "allocating",
            f"{_PREFIX}bind-time": now,
        }


def _runtime(held: AscendHolding, template: str) -> dict[str, str]:
    return {"UUID": held.card, **({"temp": template} if template else {})}


def _fits(request: CardRequest, card: AscendCard, used: AscendUsage) -> bool:
    if used.number >= card.slots or card.memory - used.memory < request.memory:
        return False
    if card.cores - used.cores < request.cores or (card.cores == 100 == request.cores and used.number > 0):
        return False
    return not (card.cores and used.cores == card.cores and request.cores == 0)


def _in_one_network(cards: Sequence[AscendCard]) -> list[AscendCard]:
    """The cards, those of the network that has most of them first."""
    sizes = Counter(card.network for card in cards)
    return sorted(cards, key=lambda card: (-sizes[card.network], card.network or 0))
