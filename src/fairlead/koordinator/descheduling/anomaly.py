"""Detector: whether a node has been overloaded for long enough to act on, like a circuit breaker.

A node is fine until more passes in a row than `abnormal` found it overloaded. It then counts as overloaded until
`timeout` seconds have gone or more marks in a row than `normal` said that it was relieved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.koordinator.descheduling.settings import AnomalyCondition


@dataclass(slots=True)
class Detector:
    condition: AnomalyCondition
    overloaded: bool = False
    _abnormal: int = 0
    _normal: int = 0
    _until: float = 0.0

    def mark(self, now: float, *, normal: bool) -> bool:
        """One more pass; whether the node counts as overloaded after it."""
        self._expire(now)
        self._normal, self._abnormal = (self._normal + 1, 0) if normal else (0, self._abnormal + 1)
        if self.overloaded and self._normal > self.condition.normal:
            self.reset()
        elif not self.overloaded and self._abnormal > self.condition.abnormal:
            self.overloaded, self._until = True, now + self.condition.timeout
            self._abnormal = self._normal = 0
        return self.overloaded

    def reset(self) -> None:
        if self.overloaded:
            self.overloaded = False
            self._abnormal = self._normal = 0

    def _expire(self, now: float) -> None:
        if self.overloaded and self._until < now:
            self.reset()


@dataclass(slots=True)
class Detectors:
    """One detector for each node; one that was not read for `timeout` seconds is forgotten."""

    timeout: float
    _kept: dict[str, tuple[Detector, float]] = field(default_factory=dict)

    def overloaded(self, nodes: Iterable[str], condition: AnomalyCondition | None, now: float) -> set[str]:
        """Those of the overloaded nodes of this pass that have been so for long enough."""
        if condition is None or condition.abnormal == 1:
            return set(nodes)
        found = set()
        for node in nodes:
            detector = self._find(node, now) or Detector(condition)
            self._kept[node] = (detector, now + self.timeout)
            if detector.mark(now, normal=False):
                found.add(node)
        return found

    def relieved(self, nodes: Iterable[str], now: float) -> None:
        """A pass moved what it could from these nodes."""
        for node in nodes:
            detector = self._find(node, now)
            if detector is not None:
                detector.mark(now, normal=True)

    def reset(self, nodes: Iterable[str], now: float) -> None:
        for node in nodes:
            detector = self._find(node, now)
            if detector is not None:
                detector.reset()

    def _find(self, node: str, now: float) -> Detector | None:
        detector, until = self._kept.get(node, (None, 0.0))
        return detector if until > now else None
