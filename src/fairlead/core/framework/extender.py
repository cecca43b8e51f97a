"""Extender: the contract of kube-scheduler's HTTP extenders, which filter, score, preempt or bind from outside.

Only the contract is here; kube/extenders speaks HTTP. Extenders are called after all filters, one after the
other, each about the nodes that are left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.plugin import Errand
    from fairlead.core.model.flow import Doc, OutsideWork
    from fairlead.core.model.pod import Pod

PSEUDO_PLUGIN = "Extender"
"""The name under which a refusal by an extender is recorded."""


@dataclass(frozen=True, slots=True)
class Extended:
    """The rows that an extender passes, and (message, final) of those it refused."""

    rows: NDArray[np.int32]
    refused: Mapping[int, tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class Victims:
    """The victims on one node, and how many of them violate a disruption budget."""

    pods: tuple[Pod, ...]
    violations: int


@dataclass(slots=True)
class ExtenderAnswers:
    """What one extender said about one pod, by names, so that the decision can be made again without it. A verb that it
    was not called, or whose failure was ignored, is None."""

    name: str
    kept: tuple[str, ...] | None = None
    refused: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    """By node, the message and whether it is final."""
    scores: Mapping[str, int] | None = None
    """By node, weighted and scaled."""
    victims: Mapping[str, tuple[tuple[str, ...], int]] | None = None
    """By node, the uids of victims and how many violate a budget."""

    def to_document(self) -> Doc:
        doc: Doc = {"name": self.name}
        if self.kept is not None:
            refused = {node: {"message": message, "final": final} for node, (message, final) in self.refused.items()}
            doc["filter"] = {"kept": list(self.kept), "refused": refused}
        if self.scores is not None:
            doc["scores"] = dict(self.scores)
        if self.victims is not None:
            doc["victims"] = {node: {"pods": list(uids), "violations": n} for node, (uids, n) in self.victims.items()}
        return doc


def answers_of(cycle: Cycle) -> tuple[ExtenderAnswers, ...]:
    """What extenders have said in a cycle so far, in the order in which they were first called."""
    return tuple(cycle.notes.get(PSEUDO_PLUGIN, {}).values())


def note_answers(cycle: Cycle, extender: Extender) -> ExtenderAnswers:
    """Where the answers of an extender in a cycle are kept."""
    notes: dict[int, ExtenderAnswers] = cycle.notes.setdefault(PSEUDO_PLUGIN, {})
    return notes.setdefault(id(extender), ExtenderAnswers(extender.name))


class Extender(Protocol):
    """Each verb raises ExtenderError when it fails; `ignorable` says whether scheduling goes on without it."""

    name: str
    ignorable: bool
    filters: bool
    prioritizes: bool
    preempts: bool
    binds: bool

    @property
    def outside(self) -> OutsideWork | None:
        """What its binds do in threads of their own."""
        ...

    def interested(self, pod: Pod) -> bool: ...

    def filter(self, cycle: Cycle, rows: NDArray[np.int32]) -> Extended: ...

    def prioritize(self, cycle: Cycle, rows: NDArray[np.int32]) -> NDArray[np.int64]:
        """The scores to add to the totals, already weighted and scaled."""
        ...

    def preempt(self, cycle: Cycle, victims: Mapping[str, Victims]) -> Mapping[str, Victims]: ...

    def bind(self, cycle: Cycle, row: int) -> Errand: ...
