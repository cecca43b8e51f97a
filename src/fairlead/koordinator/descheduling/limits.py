"""How many pods may be on the way at once, and how often one workload may lose one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod
    from fairlead.koordinator.descheduling.facts import ClusterFacts
    from fairlead.koordinator.descheduling.settings import MigrationSettings, ObjectLimiter

_PERCENT = re.compile(r"([0-9]+)%")


def scaled(given: int | str, replicas: int) -> int:
    """A number, or a percentage of so many, rounded down. Raises ValueError for another text."""
    if isinstance(given, int):
        return given
    found = _PERCENT.fullmatch(given)
    if found is None:
        raise ValueError(f"invalid value for IntOrString: {given!r} is neither a number nor a percentage")
    return replicas * int(found[1]) // 100


def most_of(replicas: int, given: int | str | None) -> int:
    """How many pods of a workload may be on the way, or unavailable: what is given, at least one; else a tenth of more
    than ten, two of four to ten, one of fewer. Never more than there are."""
    if given is not None:
        most = scaled(given, replicas) or 1
    else:
        most = replicas // 10 if replicas > 10 else 2 if replicas >= 4 else 1
    return min(most, replicas)


@dataclass(slots=True)
class TokenBucket:
    """So many tokens a second, and so many at most. It begins full, and may be overdrawn."""

    rate: float
    burst: int
    _tokens: float = -1.0
    _at: float = 0.0

    def available(self, now: float) -> float:
        if self._tokens < 0 and not self._at:
            return float(self.burst)
        return min(float(self.burst), self._tokens + (now - self._at) * self.rate)

    def take(self, now: float) -> bool:
        """Take a token, if there is one."""
        left = self.available(now)
        taken = left >= 1
        self._tokens, self._at = left - 1 if taken else left, now
        return taken


class ObjectLimiters:
    """How often a workload, or a namespace, may lose a pod (`objectLimiters`)."""

    def __init__(self, settings: MigrationSettings, facts: ClusterFacts) -> None:
        self._settings, self._facts = settings, facts
        self._buckets: dict[tuple[str, str], TokenBucket] = {}

    def exceeded(self, pod: Pod, now: float) -> bool:
        """Whether the pod's workload or namespace lost one so lately that this one has to wait."""
        for kind in self._active():
            bucket = self._buckets.get((kind, _limited(pod, kind)))
            if bucket is not None and bucket.available(now) < 1:
                return True
        return False

    def evicted(self, pod: Pod, now: float) -> None:
        """The pod was evicted."""
        for kind, limiter in self._active().items():
            name, most = _limited(pod, kind), self._most(pod, kind, limiter)
            if not name or not most:
                continue
            bucket = self._buckets.setdefault((kind, name), TokenBucket(0.0, limiter.burst or 1))
            bucket.rate = most / limiter.window
            bucket.take(now)

    def _active(self) -> Mapping[str, ObjectLimiter]:
        return {kind: one for kind, one in self._settings.limiters.items() if one.window > 0}

    def _most(self, pod: Pod, kind: str, limiter: ObjectLimiter) -> int:
        if kind == "namespace":
            return limiter.most if isinstance(limiter.most, int) else 0
        _, replicas = self._facts.workload(pod)
        given = self._settings.most_per_workload if limiter.most is None else limiter.most
        return most_of(replicas, given)


def _limited(pod: Pod, kind: str) -> str:
    if kind == "namespace":
        return pod.namespace
    return "" if pod.owner is None else pod.owner.uid
