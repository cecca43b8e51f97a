"""vGPUs: cards that several pods share by memory and cores (hami-core), or that are cut in fixed parts (MIG).

Each container gets its own cards, one container after the other. Nodes are judged for all cards at once by arrays; only
where containers of one pod compete, or cards are cut, each node is tried by itself.

Rules of exclusion are sets of labels: pods that have all labels of one rule never share a card. They are for cards that
are shared, not for parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairlead.model.reasons import Reason, Reject
from fairlead.plugins.volcano.devices.card_requests import CardRequest, card_requests
from fairlead.plugins.volcano.devices.cards import HAMI_CORE, MIG, Card, CardHolding, CardTable, offered_cards
from fairlead.plugins.volcano.devices.device_pools import DevicePool
from fairlead.plugins.volcano.devices.mig import Part, memory_of, part_in, pick

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.round import Task
    from fairlead.plugins.volcano.devices.device_config import NvidiaConfig
    from fairlead.state.nodes import Nodes

_VGPU = "volcano.sh/vgpu-"
_IDS, _IDS_TO_ALLOCATE = _VGPU + "ids-new", "volcano.sh/devices-to-allocate"
_USE, _NO_USE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
_KIND = "NVIDIA"
_BINPACK, _SPREAD = "binpack", "spread"
_GROUPS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_BEST = 100.0
_REASON = Reason("deviceshare", "hami-vgpuDeviceSharing error")

Rule = Mapping[str, str]


@dataclass(slots=True)
class Trial:
    """The cards of one row while a pod is tried on it."""

    number: dict[int, int]
    memory: dict[int, int]
    cores: dict[int, int]
    parts: dict[int, list[Part]]


class Vgpus(DevicePool[CardHolding]):
    """`policy` is binpack, spread or empty: which cards are taken first, and what makes a node good."""

    lock = "hamivgpu"

    def __init__(self, config: NvidiaConfig, *, policy: str = "", rules: Sequence[Rule] = ()) -> None:
        super().__init__()
        self._config = config
        self._policy = policy
        self._rules = rules

    def build(self) -> Iterable[int]:
        table = self.round.cluster.table
        found = {
            row: offered_cards(node.allocatable, node.annotations, self._config) for row, node in table.alive_rows()
        }
        self._cards = CardTable({row: cards for row, cards in found.items() if cards.cards}, table.capacity)
        self._is_cut = np.zeros(table.capacity, dtype=np.bool_)
        self._is_cut[[row for row, on in self._cards.rows.items() if on.mode == MIG]] = True
        self._holders: dict[int | str, dict[str, list[CardHolding]]] = {}
        """By rule and by group, which pods of it hold what."""
        self._endings_count = False
        return self._cards.rows

    def has_cards(self, row: int) -> bool:
        return row in self._cards.rows

    def concerns(self, task: Task) -> bool:
        return bool(self._requests(task))

    def _requests(self, task: Task) -> list[CardRequest]:
        names = self._config
        return card_requests(
            task.pod, count=names.count, memory=names.memory, percentage=names.percentage, cores=names.cores
        )

    # ---- judging ----

    def refusals(self, task: Task, nodes: Nodes) -> Iterator[Reject]:
        yield Reject(_REASON, nodes.take(self._cards.has_cards & ~self._fitting(task)))

    def why_not(self, row: int) -> str:
        return _REASON.text

    def _fitting(self, task: Task) -> NDArray[np.bool_]:
        """By row, whether a task finds its cards there."""
        requests, open_to = self._requests(task), self._open_to(task)
        fitting = np.ones(self._cards.exists.shape[0], dtype=np.bool_)
        for request in requests:
            fitting &= (self._usable(request) & open_to).sum(axis=1) >= request.number
        singly = self._cards.has_cards if len(requests) > 1 else self._is_cut
        for row in np.flatnonzero(fitting & singly).tolist():
            fitting[row] = self._try(task, row, open_to[row]) is not None
        return fitting

    def _usable(self, request: CardRequest) -> NDArray[np.bool_]:
        """Which cards have what is wanted."""
        cards = self._cards
        usable: NDArray[np.bool_] = cards.exists & (cards.memory - cards.used_memory >= self._needs(request))
        usable &= (cards.used_number < cards.slots) & (cards.used_cores + request.cores <= 100)
        if request.cores == 100:
            usable &= cards.used_number == 0
        elif request.cores == 0:
            usable &= cards.used_cores != 100
        return usable

    def _needs(self, request: CardRequest) -> NDArray[np.int64] | int:
        """The memory that is wanted of each card."""
        return self._cards.memory * request.share // 100 if request.share is not None else request.memory

    def _open_to(self, task: Task) -> NDArray[np.bool_]:
        """The cards that a task may use, whatever is left of them."""
        cards, annotations = self._cards, task.pod.annotations
        allowed = [_is_allowed(kind, annotations) for kind in cards.kinds]
        open_to: NDArray[np.bool_] = np.array([*allowed, False], dtype=np.bool_)[cards.kind]
        if (mode := annotations.get(_VGPU + "mode")) is not None:
            open_to[[row for row, on in cards.rows.items() if on.mode != mode]] = False
        for row, place in self._kept_off(task):
            open_to[row, place] = False
        return open_to

    def _kept_off(self, task: Task) -> Iterator[tuple[int, int]]:
        """The cards of pods that a task must not share one with: of the same rule, where cards are shared as a whole,
        and of the same group, if it wants that."""
        for key in self._rules_of(task):
            for held in self._holdings_under(key):
                if self._cards.rows[held.row].mode == HAMI_CORE:
                    yield held.row, held.place
        if task.pod.annotations.get(_VGPU + "podgroup-policy") == _SPREAD:
            for held in self._holdings_under(_group(task)):
                if held.memory or held.cores:
                    yield held.row, held.place

    def _holdings_under(self, key: int | str) -> Iterator[CardHolding]:
        for uid, holdings in self._holders.get(key, {}).items():
            if self._endings_count or uid not in self.ending:
                yield from holdings

    def _rules_of(self, task: Task) -> list[int]:
        labels = task.pod.labels
        return [
            at for at, rule in enumerate(self._rules) if all(labels.get(key) == value for key, value in rule.items())
        ]

    # ---- choosing ----

    def choose(self, task: Task, row: int) -> list[CardHolding] | None:
        chosen = self._try(task, row, self._open_to(task)[row])
        return None if chosen is None else [held for container in chosen for held in container]

    def choose_now(self, task: Task) -> list[CardHolding] | None:
        self._endings_count = True
        try:
            return super().choose_now(task)
        finally:
            self._endings_count = False

    def liking(self, task: Task) -> NDArray[np.float64]:
        scores = super().liking(task)
        requests, open_to = self._requests(task), self._open_to(task)
        if self._policy not in (_BINPACK, _SPREAD):
            return scores
        fitting = self._fitting(task) & self._cards.has_cards
        if len(requests) == 1:
            scores[fitting] = self._scores_at_once(requests[0], open_to)[fitting]
        singly = self._cards.has_cards if len(requests) > 1 else self._is_cut
        for row in np.flatnonzero(fitting & singly).tolist():
            scores[row] = self._score(self._try(task, row, open_to[row]) or ())
        return scores

    def _scores_at_once(self, request: CardRequest, open_to: NDArray[np.bool_]) -> NDArray[np.float64]:
        """What `_score` says of the cards that `_try` would choose, by row, for one container and cards that are not
        cut: the first cards in the order of the policy, of which each is taken once."""
        cards, usable = self._cards, self._usable(request) & open_to
        key = -cards.used_memory if self._policy == _BINPACK else cards.used_number
        ranked = np.argsort(np.where(usable, key, np.iinfo(np.int64).max), axis=1, kind="stable")[:, : request.number]
        if self._policy == _BINPACK:
            full = _BEST * (cards.used_memory + self._needs(request))
            liked = np.divide(full, cards.memory, out=np.zeros(full.shape), where=cards.memory > 0)
        else:
            liked = np.where(self.round.quirks.spread_scores_wrong_cards, 0.0, _BEST * (cards.used_number == 0))
        chosen: NDArray[np.float64] = np.take_along_axis(liked, ranked, axis=1).sum(axis=1)
        return chosen

    def _score(self, chosen: Sequence[Sequence[CardHolding]]) -> float:
        """Fuller cards, or with spread cards that nobody uses; the original counts the pod itself there already."""
        used: Counter[int] = Counter()
        memory: Counter[int] = Counter()
        score = 0.0
        for held in (held for container in chosen for held in container):
            row, place = held.row, held.place
            used[place] += 1
            memory[place] += held.memory
            if self._policy == _BINPACK:
                whole = int(self._cards.memory[row, place])
                score += _BEST * (int(self._cards.used_memory[row, place]) + memory[place]) / whole if whole else 0.0
            elif self.round.quirks.spread_scores_wrong_cards:
                continue
            elif int(self._cards.used_number[row, place]) + used[place] == 1:
                score += _BEST
        return score

    def _try(self, task: Task, row: int, open_to: NDArray[np.bool_]) -> list[list[CardHolding]] | None:
        """By container, the cards that a task would get on a row."""
        cards = {card.place: card for card in self._cards.rows[row].cards}
        trial = self._trial(row)
        chosen = []
        for request in self._requests(task):
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

    def _trial(self, row: int) -> Trial:
        places = [card.place for card in self._cards.rows[row].cards]
        number, memory, cores = (
            {place: int(column[row, place]) for place in places}
            for column in (self._cards.used_number, self._cards.used_memory, self._cards.used_cores)
        )
        parts = {place: list(self._cards.parts.get((row, place), ())) for place in places}
        return Trial(number, memory, cores, parts)

    def _in_order(self, trial: Trial) -> list[int]:
        """The cards in the order of the policy."""
        if self._policy == _BINPACK:
            return sorted(trial.memory, key=lambda place: (-trial.memory[place], place))
        if self._policy == _SPREAD:
            return sorted(trial.number, key=lambda place: (trial.number[place], place))
        return sorted(trial.number, reverse=True)

    def _fit(self, card: Card, row: int, request: CardRequest, trial: Trial) -> CardHolding | None:
        """Give a request a card, if it has what is wanted."""
        place, asked = card.place, request.memory_of(card.memory)
        used, cores = trial.number[place], trial.cores[place]
        if used >= card.slots or card.memory - trial.memory[place] < asked or cores + request.cores > 100:
            return None
        if (request.cores == 100 and used) or (request.cores == 0 and cores == 100):
            return None
        part, memory = None, asked
        if self._cards.rows[row].mode == MIG:
            found = self._part(card, asked, trial.parts[place])
            if found is None:
                return None
            part, memory = found
            trial.parts[place].append(part)
        trial.number[place] += 1
        trial.memory[place] += memory
        trial.cores[place] += request.cores
        told = f"{card.name}{part or ''},{_KIND},{asked},{request.cores}:"
        return CardHolding(row, place, memory, request.cores, part, told)

    def _part(self, card: Card, memory: int, used: list[Part]) -> tuple[Part, int] | None:
        factor = max(1, self._config.memory_factor)
        only_used = self.round.quirks.mig_only_sizes_in_use
        found = pick(card.geometries, used, memory * factor, only_used_sizes=only_used)
        return None if found is None else (found[0], found[1] // factor)

    # ---- what happens ----

    def take(self, held: Sequence[CardHolding], sign: int = 1) -> None:
        self._cards.take(held, sign)

    def allocate(self, task: Task) -> list[CardHolding] | None:
        chosen = super().allocate(task)
        if chosen is not None:
            self._remember(task, chosen)
        return chosen

    def release(self, task: Task) -> None:
        super().release(task)
        if task.uid not in self.held:
            for key in self._keys(task):
                self._holders.get(key, {}).pop(task.uid, None)

    def _remember(self, task: Task, holdings: list[CardHolding]) -> None:
        for key in self._keys(task):
            self._holders.setdefault(key, {})[task.uid] = holdings

    def _keys(self, task: Task) -> list[int | str]:
        group = _group(task)
        return [*self._rules_of(task), *([group] if group else [])]

    # ---- annotations ----

    def annotations(self, task: Task, held: Sequence[CardHolding]) -> dict[str, str]:
        now = str(int(self.round.now))
        ids = ";".join("".join(one.told for one in container) for container in self._by_container(task, held))
        return {
            _IDS: ids,
            _IDS_TO_ALLOCATE: ids,
            _VGPU + "node": self.round.cluster.table.name(task.row),
            _VGPU + "time": now,
            "volcano.sh/bind-phase": "allocating",
            "volcano.sh/bind-time": now,
        }

    def _by_container(self, task: Task, held: Sequence[CardHolding]) -> Iterator[Sequence[CardHolding]]:
        start = 0
        for request in self._requests(task):
            yield held[start : start + request.number]
            start += request.number

    def recall(self, task: Task, row: int) -> list[CardHolding]:
        """The original takes a pod to be on a card once, however many of its containers are."""
        once = self.round.quirks.counts_pod_once_per_card
        found: list[CardHolding] = []
        for text in self.said_to(task, _IDS).replace(";", ":").split(":"):
            held = self._parse(text, row)
            if held is not None and not (once and any(held.place == one.place for one in found)):
                found.append(held)
        if found:
            self._remember(task, found)
        return found

    def _parse(self, text: str, row: int) -> CardHolding | None:
        fields = text.split(",")
        card = self._cards.named(row, fields[0])
        if len(fields) != 4 or card is None or not (fields[2].isdigit() and fields[3].isdigit()):
            return None
        part, memory = None, int(fields[2])
        if self._cards.rows[row].mode == MIG and (part := part_in(fields[0])) is not None:
            memory = memory_of(card.geometries, part) // max(1, self._config.memory_factor)
        return CardHolding(row, card.place, memory, int(fields[3]), part)


def _group(task: Task) -> str:
    """The group's key; empty for a pod without one."""
    annotations = task.pod.annotations
    name = next((annotations[key] for key in _GROUPS if annotations.get(key)), "")
    return f"{task.namespace}/{name}" if name else ""


def _is_allowed(kind: str, annotations: Mapping[str, str]) -> bool:
    if _KIND not in kind:
        return False
    model = kind.upper()
    if (wanted := annotations.get(_USE)) is not None:
        return any(part in model for part in wanted.upper().split(","))
    unwanted = annotations.get(_NO_USE)
    return unwanted is None or not any(part in model for part in unwanted.upper().split(","))
