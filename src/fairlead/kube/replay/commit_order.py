"""CommitOrder: puts recorded decisions into the order in which the scheduler made them.

The API shows bindings in the order in which they were written, and a scheduler that decides faster than it binds knew
of other pods than the API did: of those that it had placed and not bound yet. Our own explanations number placements
(`sequence`). A decision is held back until the placements before it have been seen, and gets the cluster that its
number implies: without pods that were placed later though bound earlier, and with those placed earlier and bound later.

Decisions without a number, those of other schedulers, are passed on as they come.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_SETTLED = 1.0
"""Seconds for which a decision is held back at least: a binding that was sent before may still arrive."""
_PATIENCE = 5.0
"""Seconds after which a placement that is missing is taken for one whose binding failed."""
_REMEMBERED = 100_000


@dataclass(slots=True)
class _Held:
    scenario: Doc
    number: int
    """Placements with a number below this one came before it."""
    counted_at: float
    late: list[Doc] = field(default_factory=list)
    """Pods that were placed before it and bound after it."""


class CommitOrder:
    def __init__(self) -> None:
        self._held: list[_Held] = []
        self._number_of: dict[str, int] = {}
        self._numbers: list[int] = []

    def __len__(self) -> int:
        """How many decisions are held back."""
        return len(self._held)

    def add(self, scenario: Doc, sequence: int | None, now: float) -> None:
        """A decision was seen; `sequence` is what its explanation says, None if there is none."""
        (decision,) = scenario["decisions"]
        placed = decision["node"] is not None
        number = -1 if sequence is None else sequence if placed else sequence + 1
        if placed and sequence is not None:
            self._place(decision, sequence)
        self._held.append(_Held(scenario, number, now))

    def _place(self, decision: Doc, number: int) -> None:
        pod = decision["pod"]
        bound = {**pod, "spec": {**pod["spec"], "nodeName": decision["node"]}}
        for held in self._held:
            if held.number > number:
                held.late.append(bound)
        self._number_of[pod["metadata"]["uid"]] = number
        insort(self._numbers, number)
        if len(self._number_of) > _REMEMBERED:
            del self._number_of[next(iter(self._number_of))]
            del self._numbers[0]

    def ready(self, now: float, *, everything: bool = False) -> list[Doc]:
        """Decisions whose cluster is known by now, in their order; `everything`: no more will come."""
        ready = [held for held in self._held if everything or self._is_ready(held, now)]
        self._held = [held for held in self._held if not any(held is one for one in ready)]
        return [self._as_decided(held) for held in sorted(ready, key=lambda held: held.number)]

    def _is_ready(self, held: _Held, now: float) -> bool:
        age = now - held.counted_at
        return held.number < 0 or age >= _PATIENCE or (age >= _SETTLED and not self._lacks(held.number))

    def _lacks(self, number: int) -> bool:
        """Whether a placement before this number has not been seen."""
        return bool(self._numbers) and bisect_left(self._numbers, number) < number - self._numbers[0]

    def _as_decided(self, held: _Held) -> Doc:
        if held.number < 0:
            return held.scenario
        before = [doc for doc in held.scenario["existing"] if self._number(doc) < held.number]
        return {**held.scenario, "existing": [*before, *held.late]}

    def _number(self, pod: Doc) -> int:
        return self._number_of.get(pod["metadata"]["uid"], -1)
