"""Holdings: which pods hold what of some devices, and which are about to give it back.

    free ─give▶ held ─release▶ free             a pod that is placed, or promised a place
    held ─release, ending▶ ending ─give▶ held   a pod on its way out: what it has can be promised, not yet be used

`take(held, sign)` adds (1) or subtracts (-1) holdings in whatever table counts them.

Invariant: the table counts exactly what is in `held` and not in `ending`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Held = TypeVar("Held")


class Holdings(Generic[Held]):
    def __init__(self, take: Callable[[Sequence[Held], int], None]) -> None:
        self._take = take
        self.held: dict[str, list[Held]] = {}
        self.ending: dict[str, list[Held]] = {}

    def put(self, pod: str, held: list[Held]) -> None:
        """A pod has this already."""
        self.held[pod] = held
        self._take(held, 1)

    def give(self, pod: str, choose: Callable[[], list[Held] | None]) -> list[Held] | None:
        """What a pod gets: what it has already, or had until it was released as ending, else what `choose` finds. None
        if that finds too little."""
        if pod in self.held:
            if self.ending.pop(pod, None) is not None:
                self._take(self.held[pod], 1)
            return self.held[pod]
        chosen = choose()
        if chosen is not None:
            self.put(pod, chosen)
        return chosen

    def without_endings(self, choose: Callable[[], list[Held] | None]) -> list[Held] | None:
        """Choose as if what ending pods still use were taken."""
        endings = [held for holdings in self.ending.values() for held in holdings]
        self._take(endings, 1)
        try:
            return choose()
        finally:
            self._take(endings, -1)

    def release(self, pod: str, *, ending: bool) -> bool:
        """Take back what a pod has; `ending` if it goes on using it until it is gone. Whether it holds nothing now."""
        held = self.held.get(pod)
        if held is None or pod in self.ending:
            return False
        self._take(held, -1)
        if ending:
            self.ending[pod] = held
        else:
            del self.held[pod]
        return not ending

    def simulate_ending(self, pod: str) -> None:
        """As if a pod were about to end, until `simulate_return`."""
        held = self.held.get(pod)
        if held is not None and pod not in self.ending:
            self._take(held, -1)
            self.ending[pod] = held

    def simulate_return(self, pod: str) -> None:
        held = self.ending.pop(pod, None)
        if held is not None:
            self._take(held, 1)
