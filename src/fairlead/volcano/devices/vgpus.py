"""vGPUs: cards that several pods share by memory and cores (hami-core), or that are partitioned (MIG).

Which cards a pod gets is found by volcano/devices/card_sharing.py. This module reads what tasks request, which cards
they may use, and the annotations that say who has what.

Rules of exclusion are sets of labels: pods that have all labels of one rule never share a card. They are for cards that
are shared, not for parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.reasons import Reason, Reject
from fairlead.volcano.devices.card_requests import CardRequest, card_requests
from fairlead.volcano.devices.card_sharing import SPREAD, CardSharing, SharingRules
from fairlead.volcano.devices.card_table import CardHolding, CardTable
from fairlead.volcano.devices.device_pools import DevicePool, NodeCard
from fairlead.volcano.devices.mig import memory_of, part_in
from fairlead.volcano.devices.registers import HAMI_CORE, offered_cards

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.state.nodes import Nodes
    from fairlead.volcano.devices.device_config import NvidiaConfig
    from fairlead.volcano.rounds.round import Task

_VGPU = "volcano.sh/vgpu-"
_IDS, _IDS_TO_ALLOCATE = _VGPU + "ids-new", "volcano.sh/devices-to-allocate"
_USE, _NO_USE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
_KIND = "NVIDIA"
_GROUPS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_REASON = Reason("deviceshare", "hami-vgpuDeviceSharing error")

Rule = Mapping[str, str]


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
        quirks = self.round.quirks
        rules = SharingRules(
            self._policy,
            part_factor=max(1, self._config.memory_factor),
            only_used_sizes=quirks.mig_only_sizes_in_use,
            spread_scores_nothing=quirks.spread_scores_wrong_cards,
        )
        self._sharing = CardSharing(self._cards, rules)
        self._holders: dict[int | str, dict[str, list[CardHolding]]] = {}
        """By rule and by group, which pods of it hold what."""
        self._endings_count = False
        return self._cards.rows

    def cards_of(self, row: int) -> Iterator[NodeCard]:
        for card, memory in self._cards.left(row):
            places = ((uid, {one.place for one in held if one.row == row}) for uid, held in self.holdings.held.items())
            holders = tuple(uid for uid, on in places if card.place in on)
            yield NodeCard(card.kind or "gpu", card.name or str(card.place), memory, holders)

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

    def measured(self, task: Task) -> tuple[str, int, int]:
        """By memory, or by cards that nobody uses where a share of a card is requested."""
        requests, cards = self._requests(task), self._cards
        usable = cards.exists & self._open_to(task)
        if all(request.memory for request in requests):
            left = np.maximum(cards.memory - cards.used_memory, 0)
            asked = sum(request.number * request.memory for request in requests)
            return self._config.memory, asked, int(left[usable].sum())
        asked = sum(request.number for request in requests)
        return self._config.count, asked, int((usable & (cards.used_number == 0)).sum())

    def _fitting(self, task: Task) -> NDArray[np.bool_]:
        """By row, whether a task finds its cards there."""
        return self._sharing.fits(self._requests(task), self._open_to(task))

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
        """The cards of pods with which a task must not share one: pods of the same rule, where cards are shared as a
        whole, and pods of the same group, if the task's annotation says so."""
        for key in self._rules_of(task):
            for held in self._holdings_under(key):
                if self._cards.rows[held.row].mode == HAMI_CORE:
                    yield held.row, held.place
        if task.pod.annotations.get(_VGPU + "podgroup-policy") == SPREAD:
            for held in self._holdings_under(_group(task)):
                if held.memory or held.cores:
                    yield held.row, held.place

    def _holdings_under(self, key: int | str) -> Iterator[CardHolding]:
        for uid, holdings in self._holders.get(key, {}).items():
            if self._endings_count or uid not in self.holdings.ending:
                yield from holdings

    def _rules_of(self, task: Task) -> list[int]:
        labels = task.pod.labels
        return [
            at for at, rule in enumerate(self._rules) if all(labels.get(key) == value for key, value in rule.items())
        ]

    # ---- choosing ----

    def choose(self, task: Task, row: int) -> list[CardHolding] | None:
        chosen = self._sharing.choose(self._requests(task), row, self._open_to(task)[row])
        return None if chosen is None else [held for container in chosen for held in container]

    def choose_now(self, task: Task) -> list[CardHolding] | None:
        self._endings_count = True
        try:
            return super().choose_now(task)
        finally:
            self._endings_count = False

    def liking(self, task: Task) -> NDArray[np.float64]:
        return self._sharing.scores(self._requests(task), self._open_to(task))

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
        if task.uid not in self.holdings.held:
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
        ids = ";".join("".join(map(self._id, container)) for container in self._by_container(task, held))
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

    def _id(self, held: CardHolding) -> str:
        name = self._cards.card(held.row, held.place).name
        return f"{name}{held.part or ''},{_KIND},{held.asked},{held.cores}:"

    def recall(self, task: Task, row: int) -> list[CardHolding]:
        """The cards in a pod's annotation. In the original a pod counts once per card, however many of its containers
        use it (`counts_pod_once_per_card`)."""
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
        if self._cards.rows[row].partitioned and (part := part_in(fields[0])) is not None:
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
