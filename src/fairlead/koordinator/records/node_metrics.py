"""NodeMetric: what the agent on a node last measured there. The usage of the node, of the system, and of each pod.

Amounts are base units. Percentiles of the node's usage are kept by kind (`avg`, `p50` ...) and window in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.core.model.documents import compiler, moment, read_units
from fairlead.core.model.durations import parse_duration

Usage = dict[str, int]
_REPORT_INTERVAL = 60.0


@dataclass(frozen=True, slots=True, eq=False)
class PodMetric:
    """`band` is the priority band under which the agent reports the pod."""

    usage: Usage
    band: str
    service_class: str


@dataclass(frozen=True, slots=True, eq=False)
class NodeMetric:
    """`updated` is None for a node that has never reported; `usage` is None while nothing was measured."""

    name: str
    updated: float | None
    report_interval: float
    usage: Usage | None
    system: Usage
    aggregated: Mapping[tuple[str, float], Usage]
    pods: Mapping[str, PodMetric]
    prod_reclaimable: Usage


@compiler("NodeMetric")
def compile_node_metric(document: Mapping[str, Any]) -> NodeMetric:
    spec, status = document.get("spec") or {}, document.get("status") or {}
    interval = (spec.get("metricCollectPolicy") or {}).get("reportIntervalSeconds")
    measured = status.get("nodeMetric")
    return NodeMetric(
        name=document["metadata"]["name"],
        updated=moment(status, "updateTime"),
        report_interval=_REPORT_INTERVAL if interval is None else float(interval),
        usage=None if measured is None else _usage(measured.get("nodeUsage"), "nodeUsage"),
        system=_usage((measured or {}).get("systemUsage"), "systemUsage"),
        aggregated=_aggregated((measured or {}).get("aggregatedNodeUsages") or ()),
        pods=_pods(status.get("podsMetric") or ()),
        prod_reclaimable=_usage((status.get("prodReclaimableMetric") or {}).get("resource"), "prodReclaimable"),
    )


def _usage(part: Mapping[str, Any] | None, path: str) -> Usage:
    return read_units((part or {}).get("resources"), f"status.{path}.resources")


def _aggregated(listed: Any) -> Mapping[tuple[str, float], Usage]:
    """By kind and window; the window 0 stands for the longest one that has the kind."""
    found: dict[tuple[str, float], Usage] = {}
    longest: dict[str, float] = {}
    for entry in listed:
        window = parse_duration(entry.get("duration") or "0s")
        for kind, part in (entry.get("usage") or {}).items():
            usage = _usage(part, "aggregatedNodeUsages")
            if usage:
                found[kind, window] = usage
                longest[kind] = max(longest.get(kind, 0.0), window)
    return found | {(kind, 0.0): found[kind, window] for kind, window in longest.items() if window}


def _pods(listed: Any) -> Mapping[str, PodMetric]:
    metrics = {}
    for entry in listed:
        usage = _usage(entry.get("podUsage"), "podsMetric")
        if usage:
            key = f"{entry.get('namespace') or ''}/{entry.get('name') or ''}"
            metrics[key] = PodMetric(usage, entry.get("priority") or "", entry.get("qos") or "")
    return metrics
