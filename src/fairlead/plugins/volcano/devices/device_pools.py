"""DevicePool: cards of one kind on all nodes, and which pods hold what of them during a round.

    free ─allocate▶ held ─undone▶ free          a pod that is placed, or promised a place
    held ─evicted▶ ending ─undone▶ held         a pod on its way out: its cards can be promised, not yet be used

What pods hold when a round opens is read from their annotations; pods that are terminating hold theirs until they are
gone. What a pod is given goes into annotations that are sent with its binding. Until they show, they are remembered
here: a round may open while a binding is under way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from fairlead.model.documents import EMPTY
from fairlead.model.tasks import TaskStatus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.round import Round, Task
    from fairlead.model.reasons import Reject
    from fairlead.state.nodes import Nodes

Held = TypeVar("Held")


class DevicePool(ABC, Generic[Held]):
    """`lock` is the annotation by which a node is locked while a pod gets its cards; empty for none."""

    lock = ""
    releases_lock = False
    """Whether the lock is given back as soon as the pod has been told."""
    uncounted = ""
    """The resource that is counted here alone, if there is one."""

    def __init__(self) -> None:
        self._told: dict[str, Mapping[str, str]] = {}
        """By pod, the annotations that go with a binding, until they show. Kept from round to round."""

    def open(self, round: Round) -> None:
        self.round = round
        self.held: dict[str, list[Held]] = {}
        self.ending: dict[str, list[Held]] = {}
        told, self._told = self._told, {}
        for row in self.build():
            for task in round.resources.tasks_on(row):
                said = told.get(task.uid, EMPTY)
                if not said.keys() <= task.pod.annotations.keys():
                    self._told[task.uid] = said
                held = self.recall(task, row)
                if held:
                    self.held[task.uid] = held
                    self.take(held)

    def said_to(self, task: Task, key: str) -> str:
        """An annotation of a pod, also if it is still on its way."""
        return task.pod.annotations.get(key) or self._told.get(task.uid, EMPTY).get(key, "")

    def tell(self, task: Task, held: Sequence[Held]) -> dict[str, str]:
        """What a pod is to be told with its binding."""
        said = self.annotations(task, held)
        self._told[task.uid] = said
        return said

    # ---- what each kind says ----

    @abstractmethod
    def build(self) -> Iterable[int]:
        """Look at the nodes; the rows that have cards."""

    @abstractmethod
    def concerns(self, task: Task) -> bool:
        """Whether a task asks for cards of this kind."""

    @abstractmethod
    def refusals(self, task: Task, nodes: Nodes) -> Iterator[Reject]: ...

    @abstractmethod
    def choose(self, task: Task, row: int) -> list[Held] | None:
        """What a task would get on a row; None if there is not enough."""

    @abstractmethod
    def has_cards(self, row: int) -> bool: ...

    @abstractmethod
    def recall(self, task: Task, row: int) -> list[Held]:
        """What a pod on a node was told that it has."""

    @abstractmethod
    def take(self, held: Sequence[Held], sign: int = 1) -> None: ...

    @abstractmethod
    def annotations(self, task: Task, held: Sequence[Held]) -> dict[str, str]: ...

    @abstractmethod
    def why_not(self, row: int) -> str: ...

    def locked(self, task: Task, why: str) -> str:
        """What is said of a task whose node is locked."""
        return f"node {self.round.cluster.table.name(task.row)} locked for {task.name} {self.lock} lockname {why}"

    def liking(self, task: Task) -> NDArray[np.float64]:
        """By row of the table, how good its cards are for a task."""
        return np.zeros(self.round.cluster.table.capacity, dtype=np.float64)

    # ---- what happens ----

    def allocate(self, task: Task) -> list[Held] | None:
        """Give a task its cards on its row; None if there are too few. Who comes back has the same ones again."""
        if task.uid in self.held:
            if self.ending.pop(task.uid, None) is not None:
                self.take(self.held[task.uid])
            return self.held[task.uid]
        chosen = self.choose(task, task.row) if task.status is TaskStatus.PIPELINED else self.choose_now(task)
        if chosen is not None:
            self.held[task.uid] = chosen
            self.take(chosen)
        return chosen

    def choose_now(self, task: Task) -> list[Held] | None:
        """Without what others are still using on their way out."""
        endings = [held for holdings in self.ending.values() for held in holdings]
        self.take(endings)
        try:
            return self.choose(task, task.row)
        finally:
            self.take(endings, -1)

    def release(self, task: Task) -> None:
        held = self.held.get(task.uid)
        if held is None or task.uid in self.ending:
            return
        self.take(held, -1)
        if task.status is TaskStatus.RELEASING:
            self.ending[task.uid] = held
        else:
            del self.held[task.uid]
            self._told.pop(task.uid, None)

    # ---- what-ifs ----

    def imagine_gone(self, task: Task) -> None:
        """As if a pod were on its way out."""
        held = self.held.get(task.uid)
        if held is not None and task.uid not in self.ending:
            self.take(held, -1)
            self.ending[task.uid] = held

    def imagine_back(self, task: Task) -> None:
        held = self.ending.pop(task.uid, None)
        if held is not None:
            self.take(held)
