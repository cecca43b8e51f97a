"""BindingsUnderWay: all bindings that have not ended, by the pod's uid, and who of them has to be looked at when.

Most bindings wait for an answer of the API and for nothing else. Thousands of them may be in flight, so only the others
are looked through: those that wait for permission, prepare, are kept for a gang, or send a bind once more.

Invariant: every binding with a `wake_at`, and every one that is not in the stage BINDING, is `attended`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.engine.cycle.binding import Binding, BindingStage

if TYPE_CHECKING:
    import numpy as np


class BindingsUnderWay(dict[str, Binding]):
    def __init__(self, most_unanswered: int) -> None:
        super().__init__()
        self._most_unanswered = most_unanswered
        self._attended: dict[str, Binding] = {}

    @property
    def is_full(self) -> bool:
        """Whether so many have no answer yet that more placements would only wait in line."""
        return len(self) >= self._most_unanswered and self.unanswered >= self._most_unanswered

    @property
    def unanswered(self) -> int:
        """How many wait for an answer of the API alone."""
        return len(self) - len(self._attended)

    def attend(self, binding: Binding) -> None:
        """Its stage may have changed."""
        uid = binding.entry.pod.uid
        if binding.stage is BindingStage.BINDING and binding.wake_at() is None:
            if self._attended and self._attended.get(uid) is binding:
                del self._attended[uid]
        elif self.get(uid) is binding:
            self._attended[uid] = binding

    def end(self, binding: Binding) -> None:
        uid = binding.entry.pod.uid
        if self.get(uid) is binding:
            del self[uid]
        if self._attended and self._attended.get(uid) is binding:
            del self._attended[uid]

    def wake_at(self) -> float | None:
        times = [at for binding in self._attended.values() if (at := binding.wake_at()) is not None]
        return min(times, default=None)

    def ended(self) -> list[Binding]:
        return [binding for binding in self._attended.values() if binding.stage is BindingStage.ENDED]

    def preparing(self) -> list[Binding]:
        """Those in PreBind that a change of the cluster may take further."""
        return [
            binding
            for binding in self._attended.values()
            if binding.stage is BindingStage.PREPARING and not binding.waits_for_replies
        ]

    def due(self, now: float, alive: np.ndarray) -> list[Binding]:
        """Those whose node is gone first: if they find no other, the rest of their gang has to know."""
        due = [b for b in self._attended.values() if (at := b.wake_at()) is not None and at <= now]
        return sorted(due, key=lambda binding: bool(alive[binding.row])) if len(due) > 1 else due
