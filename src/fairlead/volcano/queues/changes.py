"""Amounts that stand beside the accounts of queues: what ending pods still hold, and what is only simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fairlead.volcano.records.amounts import Amounts


class EndingAmounts:
    """What pods still hold that are about to end, by queue. Their queue no longer counts them as allocated, but they
    are on their nodes, so a queue that is to stay within its limit waits until they are gone.

    `names_of` gives the queues that a queue's pods count for: itself, and in a tree those above it."""

    def __init__(self, names_of: Callable[[str], Iterable[str]]) -> None:
        self._names_of = names_of
        self._held: dict[str, Amounts] = {}

    def of(self, queue: str) -> Amounts:
        return self._held.get(queue) or Amounts()

    def add(self, queue: str, request: Amounts) -> None:
        self._count(queue, request, 1.0)

    def subtract(self, queue: str, request: Amounts) -> None:
        self._count(queue, request, -1.0)

    def _count(self, queue: str, request: Amounts, by: float) -> None:
        for name in self._names_of(queue):
            self._held.setdefault(name, Amounts()).add(request * by)


class SimulatedChanges:
    """Changes of queues that are only simulated, by the pod for which they are. The code that simulates one takes it
    back."""

    def __init__(self) -> None:
        self._changes: dict[str, dict[str, Amounts]] = {}

    def add(self, pod: str, queue: str, request: Amounts) -> None:
        self._of(pod, queue).add(request)

    def remove(self, pod: str, queue: str, request: Amounts) -> None:
        self._of(pod, queue).add(request * -1.0)

    def _of(self, pod: str, queue: str) -> Amounts:
        return self._changes.setdefault(pod, {}).setdefault(queue, Amounts())

    def of(self, pod: str, queue: str) -> Amounts | None:
        return self._changes.get(pod, {}).get(queue)

    def forget(self, pod: str) -> None:
        self._changes.pop(pod, None)
