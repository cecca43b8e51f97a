"""Estimates: how much of a node a pod will use, as long as nobody has measured it.

The estimate of a resource is a share of the larger of limit and request, and never more than the limit. A pod that asks
for nothing is taken to use a little.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.koordinator.records.bands import BATCH_CPU, BATCH_MEMORY, band_of, name_in_band

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.shape import PodShape
    from fairlead.koordinator.load.settings import LoadSettings

FACTORS_ANNOTATION = "scheduling.koordinator.sh/load-estimated-scaling-factors"
AFTER_SCHEDULED_ANNOTATION = "scheduling.koordinator.sh/load-estimated-seconds-after-pod-scheduled"
AFTER_INITIALIZED_ANNOTATION = "scheduling.koordinator.sh/load-estimated-seconds-after-initialized"
_IF_NOTHING = {"cpu": 250, BATCH_CPU: 250, "memory": 200 << 20, BATCH_MEMORY: 200 << 20}
_REMEMBERED = 4096

Estimate = tuple[int, ...]
"""Amounts in the order of the settings' names."""


class Estimator:
    """Estimates pods; equal ones are worked out once."""

    def __init__(self, settings: LoadSettings) -> None:
        self._settings = settings
        self._names = settings.names
        self._known: dict[tuple[PodShape, str, str], Estimate] = {}

    def estimate(self, pod: Pod) -> Estimate:
        """What a pod is expected to use, in the order of the settings' names."""
        custom = pod.annotations.get(FACTORS_ANNOTATION, "") if self._settings.customizes_estimation else ""
        key = (pod.shape, band_of(pod), custom)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[key] = self._work_out(*key)
        return found

    def _work_out(self, shape: PodShape, band: str, custom: str) -> Estimate:
        factors = {**self._settings.factors, **_factors(custom)}
        limits = limits_of(shape)
        return tuple(
            _estimate_resource(shape.fit_request, limits, name_in_band(band, name), factors[name])
            if name in factors
            else 0
            for name in self._names
        )

    def deadline(self, pod: Pod, assigned: float) -> float | None:
        """Until when a pod's estimate counts although it was measured; None if not longer than usual."""
        settings = self._settings
        scheduled, initialized = settings.after_scheduled, settings.after_initialized
        if settings.customizes_estimation:
            own_scheduled = _seconds(pod.annotations.get(AFTER_SCHEDULED_ANNOTATION))
            own_initialized = _seconds(pod.annotations.get(AFTER_INITIALIZED_ANNOTATION))
            scheduled = scheduled if own_scheduled < 0 else own_scheduled
            initialized = initialized if own_initialized < 0 else own_initialized
        if initialized > 0 and pod.initialized_since is not None:
            return pod.initialized_since + initialized
        return assigned + scheduled if scheduled > 0 else None


def _estimate_resource(requests: Mapping[str, int], limits: Mapping[str, int], name: str, factor: int) -> int:
    limit = limits.get(name, 0)
    base = max(limit, requests.get(name, 0))
    if not base:
        return _IF_NOTHING.get(name, 0)
    expected = int(base * factor / 100 + 0.5)
    return min(expected, limit) if limit > 0 else expected


def _factors(text: str) -> dict[str, int]:
    if not text:
        return {}
    try:
        written = json.loads(text)
        return {str(name): int(factor) for name, factor in written.items()}
    except (ValueError, AttributeError, TypeError):
        return {}


def _seconds(text: str | None) -> int:
    try:
        return int(text) if text else -1
    except ValueError:
        return -1


def limits_of(shape: PodShape) -> dict[str, int]:
    """The limits of a pod as a whole: of containers that run together, or of the largest init container."""
    running: dict[str, int] = {}
    for container in shape.containers:
        if not container.init or container.sidecar:
            for name, amount in container.limits:
                running[name] = running.get(name, 0) + amount
    sidecars: dict[str, int] = {}
    for container in shape.containers:
        if not container.init:
            continue
        for name, amount in container.limits:
            together = sidecars.get(name, 0) + amount
            if container.sidecar:
                sidecars[name] = together
            running[name] = max(running.get(name, 0), together)
    return running
