"""DevicePool: cards of one kind on all nodes, as the tasks of a round request them (card_table has the arithmetic).

What pods hold when a round opens is read from their annotations; pods that are terminating hold theirs until they are
gone. What a pod is given goes into annotations that are sent with its binding. They are kept here until the pod shows
them, because a round may open while a binding is under way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple

import numpy as np

from fairlead.core.model.documents import EMPTY
from fairlead.volcano.devices.holdings import Held, Holdings
from fairlead.volcano.records.tasks import TaskStatus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.reasons import Reject
    from fairlead.core.state.nodes import Nodes
    from fairlead.volcano.rounds.round import Round, Task


class NodeCard(NamedTuple):
    """A card with its model and the memory that is left of it. `holders` are uids of pods."""

    kind: str
    name: str
    memory: int
    holders: tuple[str, ...]


class DevicePool(ABC, Generic[Held]):
    """`lock` is the annotation by which a node is locked while a pod gets its cards; empty for none."""

    lock = ""
    releases_lock = False
    """Whether the lock is given back as soon as the pod is annotated."""
    uncounted = ""
    """The resource that is counted here alone, if there is one."""

    def __init__(self) -> None:
        self._annotated: dict[str, Mapping[str, str]] = {}
        """By pod, the annotations that go with a binding, until they show. Kept from round to round."""

    def open(self, round: Round) -> None:
        self.round = round
        self.holdings: Holdings[Held] = Holdings(self.take)
        before, self._annotated = self._annotated, {}
        for row in self.build():
            for task in round.resources.tasks_on(row):
                said = before.get(task.uid, EMPTY)
                if not said.keys() <= task.pod.annotations.keys():
                    self._annotated[task.uid] = said
                held = self.recall(task, row)
                if held:
                    self.holdings.put(task.uid, held)

    def said_to(self, task: Task, key: str) -> str:
        """An annotation of a pod, also if it is still on its way."""
        return task.pod.annotations.get(key) or self._annotated.get(task.uid, EMPTY).get(key, "")

    def annotations_for(self, task: Task, held: Sequence[Held]) -> dict[str, str]:
        """The annotations that a pod gets with its binding."""
        said = self.annotations(task, held)
        self._annotated[task.uid] = said
        return said

    # ---- what each kind says ----

    @abstractmethod
    def build(self) -> Iterable[int]:
        """Look at the nodes; the rows that have cards."""

    @abstractmethod
    def concerns(self, task: Task) -> bool:
        """Whether a task requests cards of this kind."""

    @abstractmethod
    def refusals(self, task: Task, nodes: Nodes) -> Iterator[Reject]: ...

    @abstractmethod
    def choose(self, task: Task, row: int) -> list[Held] | None:
        """What a task would get on a row; None if there is not enough."""

    @abstractmethod
    def has_cards(self, row: int) -> bool: ...

    @abstractmethod
    def recall(self, task: Task, row: int) -> list[Held]:
        """What the annotations of a pod on a node say that it has."""

    @abstractmethod
    def take(self, held: Sequence[Held], sign: int = 1) -> None: ...

    @abstractmethod
    def annotations(self, task: Task, held: Sequence[Held]) -> dict[str, str]: ...

    @abstractmethod
    def why_not(self, row: int) -> str: ...

    @abstractmethod
    def measured(self, task: Task) -> tuple[str, int, int]:
        """A resource by which cards of this kind are requested, how much a task requests, and how much of it all cards
        that it may use have left."""

    @abstractmethod
    def cards_of(self, row: int) -> Iterable[NodeCard]:
        """The cards of a node with what is left of them, for people."""

    def served(self, tasks: Sequence[Task]) -> list[bool]:
        """Of each task in turn whether some node has its cards left. Nothing is given to them."""
        rows = [row for row, _ in self.round.cluster.table.alive_rows() if self.has_cards(row)]
        taken: list[list[Held]] = []
        found = []
        try:
            for task in tasks:
                held = next((one for row in rows if (one := self.choose(task, row)) is not None), None)
                if held is not None:
                    self.take(held)
                    taken.append(held)
                found.append(held is not None)
        finally:
            for held in reversed(taken):
                self.take(held, -1)
        return found

    def locked(self, task: Task, why: str) -> str:
        """What is said of a task whose node is locked."""
        return f"node {self.round.cluster.table.name(task.row)} locked for {task.name} {self.lock} lockname {why}"

    def liking(self, task: Task) -> NDArray[np.float64]:
        """By row of the table, how good its cards are for a task."""
        return np.zeros(self.round.cluster.table.capacity, dtype=np.float64)

    # ---- what happens ----

    def allocate(self, task: Task) -> list[Held] | None:
        """Give a task its cards on its row; None if there are too few. A task that comes back has the same ones."""
        if task.status is TaskStatus.PIPELINED:
            return self.holdings.give(task.uid, lambda: self.choose(task, task.row))
        return self.holdings.give(task.uid, lambda: self.choose_now(task))

    def choose_now(self, task: Task) -> list[Held] | None:
        """Without what others are still using while they end."""
        return self.holdings.without_endings(lambda: self.choose(task, task.row))

    def release(self, task: Task) -> None:
        if self.holdings.release(task.uid, ending=task.status is TaskStatus.RELEASING):
            self._annotated.pop(task.uid, None)
