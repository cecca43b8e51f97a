"""deviceshare: pods share accelerator cards, or have whole ones, and are told which in their annotations.

    gpu memory   `volcano.sh/gpu-memory` must fit one card; the first that has it
    gpu number   `volcano.sh/gpu-number` cards that nobody uses
    vGPU         `volcano.sh/vgpu-number` cards, each with `-memory` (or a percentage) and `-cores` free

A pod is looked at as a whole: what its containers ask for counts together, as if one of them had it all. What it gets
goes with its binding. Cards split in fixed parts (MIG), Ascend cards, rules of exclusion and node locks are not built.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairlead.framework.tiers import TierPlugin
from fairlead.model.reasons import Reason, Reject, unschedulable
from fairlead.model.tasks import TaskStatus
from fairlead.plugins.volcano.cards import GPU_MEMORY, GPU_NUMBER, CardTable, Holding

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.round import Round, Task
    from fairlead.model.reasons import Status
    from fairlead.plugins.volcano.arguments import Arguments
    from fairlead.state.nodes import Nodes

_VGPU = "volcano.sh/vgpu-"
_INDEX, _PREDICATE_TIME = "volcano.sh/gpu-index", "volcano.sh/predicate-time"
_IDS, _IDS_TO_ALLOCATE = "volcano.sh/vgpu-ids-new", "volcano.sh/devices-to-allocate"
_USE, _NO_USE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
_BINDER = "DefaultBinder"
_BEST = 100.0


@dataclass(frozen=True, slots=True)
class Request:
    """What a pod wants of cards. `share` is a percentage of each card's memory, where it asks for that."""

    number: int
    memory: int = 0
    share: int | None = None
    cores: int = 0
    whole: bool = False


class DeviceShare(TierPlugin):
    """`mode` is one of memory, number, vgpu, or nothing. `policy` is binpack, spread or empty, `weight` what that
    counts for among nodes."""

    name = "deviceshare"

    def __init__(self, *, mode: str = "", policy: str = "", weight: int = 0) -> None:
        self._mode = mode
        self._policy = policy
        self._weight = weight

    @classmethod
    def of(cls, arguments: Arguments) -> DeviceShare:
        switches = (("memory", "GPUSharingEnable"), ("number", "GPUNumberEnable"), ("vgpu", "VGPUEnable"))
        modes = [mode for mode, switch in switches if arguments.flag(f"deviceshare.{switch}", default=False)]
        return cls(
            mode=modes[0] if len(modes) == 1 else "",
            policy=arguments.text("deviceshare.SchedulePolicy"),
            weight=arguments.whole("deviceshare.ScheduleWeight", 0),
        )

    def open(self, round: Round) -> None:
        self._round = round
        self._cards = CardTable(round, registered=self._mode == "vgpu")
        self._held: dict[str, list[Holding]] = {}
        for row in self._cards.rows:
            for task in round.books.tasks_on(row):
                self._held[task.uid] = self._recall(task, row)
                if task.status is not TaskStatus.RELEASING:
                    self._cards.take(self._held[task.uid])

    # ---- what is asked for ----

    def _request(self, task: Task) -> Request | None:
        asked = {name: int(amount // 1000) for name, amount in task.request.scalars.items()}
        if self._mode == "memory" and asked.get(GPU_MEMORY):
            return Request(1, asked[GPU_MEMORY])
        if self._mode == "number" and asked.get(GPU_NUMBER):
            return Request(asked[GPU_NUMBER], whole=True)
        number, memory = asked.get(_VGPU + "number", 0), asked.get(_VGPU + "memory", 0)
        if self._mode != "vgpu" or not (number or memory):
            return None
        share = asked.get(_VGPU + "memory-percentage") or (None if memory else 100)
        return Request(number or 1, memory, share, asked.get(_VGPU + "cores", 0))

    def _needs(self, request: Request) -> NDArray[np.int64]:
        """The memory that a pod would take of each card."""
        if request.share is not None:
            return self._cards.memory * request.share // 100
        return np.full(self._cards.memory.shape, request.memory, dtype=np.int64)

    def _usable(self, task: Task, request: Request) -> NDArray[np.bool_]:
        """Which cards have what a pod wants."""
        cards = self._cards
        usable: NDArray[np.bool_] = cards.exists & (cards.memory - cards.used_memory >= self._needs(request))
        if request.whole:
            usable &= cards.used_number == 0
        if self._mode == "vgpu":
            usable &= (cards.used_number < cards.slots) & (cards.used_cores + request.cores <= 100)
            if request.cores == 100:
                usable &= cards.used_number == 0
            elif request.cores == 0:
                usable &= cards.used_cores < 100
            usable &= self._allowed_kinds(task.pod.annotations)[cards.kind] & self._apart(task)
        return usable

    def _allowed_kinds(self, annotations: Mapping[str, str]) -> NDArray[np.bool_]:
        """By kind of card; the last entry is for no card at all."""
        allowed = [_is_allowed(kind.upper(), annotations) for kind in self._cards.kinds]
        return np.array([*allowed, False], dtype=np.bool_)

    def _apart(self, task: Task) -> NDArray[np.bool_]:
        """Without the cards that others of its group use, for a pod that wants that; without nodes of another mode."""
        apart = np.ones(self._cards.exists.shape, dtype=np.bool_)
        annotations = task.pod.annotations
        if annotations.get(_VGPU + "podgroup-policy") == "spread" and task.job is not None:
            for uid in task.job.tasks:
                for held in self._held.get(uid, ()):
                    apart[held.row, held.place] = False
        if (mode := annotations.get(_VGPU + "mode")) is not None:
            apart[[row for row, on in self._cards.rows.items() if on.mode != mode]] = False
        return apart

    # ---- nodes ----

    def predicate(self, task: Task, nodes: Nodes) -> Iterator[Reject]:
        request = self._request(task)
        if request is not None:
            enough = self._usable(task, request).sum(axis=1) >= request.number
            yield Reject(Reason(self.name, self._why_not()), ~nodes.take(enough))

    def _why_not(self) -> str:
        if self._mode == "vgpu":
            return "hami-vgpuDeviceSharing error"
        return "GpuShare no enough gpu memory" if self._mode == "memory" else "GpuNumber no enough gpu number"

    def node_order(self, task: Task, nodes: Nodes) -> NDArray[np.float64]:
        request = self._request(task)
        score = np.zeros(self._cards.exists.shape[0], dtype=np.float64)
        if self._weight <= 0 or request is None or self._mode != "vgpu" or not self._policy:
            return nodes.take(score)
        usable, needs = self._usable(task, request), self._needs(request)
        for row in np.flatnonzero(usable.sum(axis=1) >= request.number).tolist():
            chosen = self._choose(row, usable[row], request.number)
            score[row] = np.round(sum(self._liking(row, place, int(needs[row, place])) for place in chosen))
        return nodes.take(score) * self._weight

    def _liking(self, row: int, place: int, memory: int) -> float:
        """Fuller cards, or with spread cards that nobody uses; the original counts the pod itself there already."""
        cards = self._cards
        if self._policy == "binpack":
            whole = int(cards.memory[row, place])
            return _BEST * (int(cards.used_memory[row, place]) + memory) / whole if whole else 0.0
        return _BEST if cards.used_number[row, place] == 0 and not self._round.compatible else 0.0

    def _choose(self, row: int, usable: NDArray[np.bool_], number: int) -> list[int]:
        """The cards to take, in the order of the policy."""
        places: list[int] = np.flatnonzero(usable).tolist()
        if self._mode == "vgpu":
            if self._policy == "binpack":
                places.sort(key=lambda place: -int(self._cards.used_memory[row, place]))
            elif self._policy == "spread":
                places.sort(key=lambda place: int(self._cards.used_number[row, place]))
            else:
                places.reverse()
        return places[:number]

    # ---- what happens ----

    def allocated(self, task: Task) -> Status | None:
        """Cards are given to who is placed, not to who is only promised a place; who comes back gets the same ones."""
        if task.status is TaskStatus.PIPELINED:
            return None
        if task.uid in self._held:
            self._cards.take(self._held[task.uid])
            return None
        request = self._request(task)
        if request is None:
            return None
        chosen = self._choose(task.row, self._usable(task, request)[task.row], request.number)
        if len(chosen) < request.number:
            return unschedulable(self._why_not())
        needs = self._needs(request)
        held = [Holding(task.row, place, int(needs[task.row, place]), request.cores) for place in chosen]
        self._held[task.uid] = held
        self._cards.take(held)
        self._tell(task, held)
        return None

    def deallocated(self, task: Task) -> None:
        held = self._held.get(task.uid)
        if held is not None:
            self._cards.take(held, -1)
            if task.status is TaskStatus.PENDING:
                del self._held[task.uid]

    # ---- annotations ----

    def _tell(self, task: Task, held: Sequence[Holding]) -> None:
        """Leave word for the binding."""
        cycle = self._round.cycles.get(task.uid)
        if cycle is not None:
            cycle.notes[_BINDER] = {**cycle.notes.get(_BINDER, {}), **self.annotations(task, held)}

    def annotations(self, task: Task, held: Sequence[Holding]) -> dict[str, str]:
        now = int(self._round.now)
        cards = [self._cards.card(one.row, one.place) for one in held]
        if self._mode != "vgpu":
            return {_INDEX: ",".join(card.name for card in cards), _PREDICATE_TIME: str(now * 10**9)}
        parts = zip(cards, held, strict=True)
        ids = "".join(f"{card.name},NVIDIA,{one.memory},{one.cores}:" for card, one in parts)
        return {
            _IDS: ids,
            _IDS_TO_ALLOCATE: ids,
            _VGPU + "node": self._round.cluster.table.name(task.row),
            _VGPU + "time": str(now),
            "volcano.sh/bind-phase": "allocating",
            "volcano.sh/bind-time": str(now),
        }

    def _recall(self, task: Task, row: int) -> list[Holding]:
        """What a pod on a node was told that it has."""
        annotations = task.pod.annotations
        if self._mode == "vgpu":
            return [
                held
                for text in annotations.get(_IDS, "").replace(";", ":").split(":")
                for held in self._parse(text, row)
            ]
        memory = int(task.request.scalars.get(GPU_MEMORY, 0.0) // 1000) if self._mode == "memory" else 0
        listed = annotations.get(_INDEX, "").split(",")
        places = [self._cards.place_of(row, name) for name in listed if name]
        return [Holding(row, place, memory, 0) for place in places if place is not None]

    def _parse(self, text: str, row: int) -> Iterator[Holding]:
        fields = text.split(",")
        place = self._cards.place_of(row, fields[0])
        if len(fields) == 4 and place is not None and fields[2].isdigit() and fields[3].isdigit():
            yield Holding(row, place, int(fields[2]), int(fields[3]))


def _is_allowed(kind: str, annotations: Mapping[str, str]) -> bool:
    if "NVIDIA" not in kind:
        return False
    if (wanted := annotations.get(_USE)) is not None:
        return any(part in kind for part in wanted.upper().split(","))
    unwanted = annotations.get(_NO_USE)
    return unwanted is None or not any(part in kind for part in unwanted.upper().split(","))
