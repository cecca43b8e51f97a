"""The arguments of LoadAwareScheduling, with the original's defaults filled in, and thresholds that a node sets itself.

`names` are the resources that are looked at, in ascending order; thresholds, weights and factors are read by name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead.core.model.durations import parse_duration

THRESHOLDS_ANNOTATION = "scheduling.koordinator.sh/usage-thresholds"


@dataclass(frozen=True, slots=True)
class AggregatedUsage:
    """Usage as a percentile (`kind`) over a window in seconds; the window 0 is the longest that is reported."""

    thresholds: Mapping[str, int]
    kind: str
    window: float


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Percentages of a node above which it is refused: of its usage, of its prod pods' usage, of a percentile."""

    plain: Mapping[str, int]
    prod: Mapping[str, int]
    aggregated: AggregatedUsage | None = None


@dataclass(frozen=True, slots=True)
class LoadSettings:
    thresholds: Thresholds = Thresholds({"cpu": 65, "memory": 95}, {})
    weights: Mapping[str, int] = field(default_factory=lambda: {"cpu": 1, "memory": 1})
    dominant_weight: int = 0
    factors: Mapping[str, int] = field(default_factory=lambda: {"cpu": 85, "memory": 70})
    expiration: int = 180
    filters_expired: bool = True
    schedules_when_expired: bool = False
    prod_scores: bool = False
    prod_includes_system: bool = False
    after_scheduled: int = -1
    after_initialized: int = -1
    customizes_estimation: bool = False
    score_kind: str = ""
    score_window: float = 0.0
    supported: tuple[str, ...] = ()
    keeps_ended_reservations: bool = False
    """A slip of the original (KoordinatorQuirks.load_keeps_ended_reservations)."""

    @property
    def names(self) -> tuple[str, ...]:
        """The resources that are looked at. Those of nodes' own thresholds beyond them are not."""
        aggregated = self.thresholds.aggregated
        return tuple(
            sorted(
                {
                    "cpu",
                    "memory",
                    *self.thresholds.plain,
                    *self.thresholds.prod,
                    *self.weights,
                    *self.factors,
                    *self.supported,
                    *(aggregated.thresholds if aggregated is not None else ()),
                }
            )
        )


def thresholds_of_node(text: str | None, default: Thresholds) -> Thresholds:
    """The thresholds of a node whose annotation says `text`; what it leaves out is as configured."""
    if not text:
        return default
    try:
        written = json.loads(text)
        plain, prod = _percentages(written.get("usageThresholds")), _percentages(written.get("prodUsageThresholds"))
        aggregated = _aggregated(written.get("aggregatedUsage"))
    except (ValueError, AttributeError, TypeError):
        return default
    return Thresholds(plain or default.plain, prod or default.prod, aggregated or default.aggregated)


def _percentages(written: Mapping[str, int] | None) -> Mapping[str, int]:
    return {name: int(percentage) for name, percentage in (written or {}).items()}


def _aggregated(written: Mapping[str, object] | None) -> AggregatedUsage | None:
    if not written or not written.get("usageThresholds") or not written.get("usageAggregationType"):
        return None
    thresholds = written["usageThresholds"]
    assert isinstance(thresholds, Mapping)
    window = written.get("usageAggregatedDuration")
    seconds = parse_duration(str(window)) if window else 0.0
    return AggregatedUsage(_percentages(thresholds), str(written["usageAggregationType"]), seconds)
