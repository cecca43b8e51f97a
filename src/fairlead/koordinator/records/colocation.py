"""How much of each node may be handed out a second time: Koordinator's ConfigMap slo-controller-config.

Its key colocation-config holds a strategy for all nodes, and others for nodes with certain labels, of which the first
that fits counts. An annotation of a node says more of that node, and labels of it say how much may be reclaimed:

    {"enable": true, "cpuReclaimThresholdPercent": 65,
     "nodeConfigs": [{"nodeSelector": {"matchLabels": {"pool": "batch"}}, "memoryCalculatePolicy": "request"}]}

What is not said is as in Koordinator's default strategy, which is not enabled. Without the ConfigMap it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fairlead.core.model.selectors import LabelSelector, SelectorError, selector_from_document
from fairlead.koordinator.records.overcommit import USAGE, ColocationStrategy

CONFIG_NAMESPACE, CONFIG_NAME, CONFIG_KEY = "koordinator-system", "slo-controller-config", "colocation-config"
NODE_STRATEGY = "node.koordinator.sh/colocation-strategy"
NORMALISATION = "node.koordinator.sh/cpu-normalization-ratio"
STATIC = "static"

Fields = Mapping[str, Any]
_DEFAULTS: Fields = {
    "enable": False,
    "cpuReclaimThresholdPercent": 60, "memoryReclaimThresholdPercent": 65,
    "cpuCalculatePolicy": USAGE, "memoryCalculatePolicy": USAGE,
    "updateTimeThresholdSeconds": 300, "resourceDiffThreshold": 0.1,
    "batchCPUThresholdPercent": None, "batchMemoryThresholdPercent": None,
    "midReclaimMode": "", "midUnallocatedPercent": 0,
    "midCPUThresholdPercent": 100, "midMemoryThresholdPercent": 100,
    "midStaticCPUReservedPercent": 0, "midStaticMemoryReservedPercent": 0,
}  # fmt: skip
_TEXTS = frozenset({"cpuCalculatePolicy", "memoryCalculatePolicy", "midReclaimMode"})
_ABOVE_ZERO = frozenset({"updateTimeThresholdSeconds", "resourceDiffThreshold"})
_AT_MOST_100 = frozenset({"midUnallocatedPercent", "midCPUThresholdPercent", "midMemoryThresholdPercent"})
_BY_LABEL = {
    "node.koordinator.sh/cpu-reclaim-ratio": "cpuReclaimThresholdPercent",
    "node.koordinator.sh/memory-reclaim-ratio": "memoryReclaimThresholdPercent",
    "node.koordinator.sh/mid-static-cpu-reserved-ratio": "midStaticCPUReservedPercent",
    "node.koordinator.sh/mid-static-memory-reserved-ratio": "midStaticMemoryReservedPercent",
}


@dataclass(frozen=True, slots=True)
class ColocationConfig:
    """What counts on all nodes, and instead of it on nodes that a selector selects."""

    cluster: Fields
    nodes: tuple[tuple[LabelSelector, Fields], ...] = ()


def read_colocation(text: str) -> ColocationConfig | None:
    """The configuration; None if it cannot be used. Strategies of nodes that cannot be used are as that of all."""
    try:
        written = json.loads(text) if text else {}
        cluster = _merged(_DEFAULTS, written)
        if cluster is None:
            return None
        nodes = [
            (_selector(one.get("nodeSelector")), _merged(cluster, one) or cluster)
            for one in written.get("nodeConfigs") or ()
        ]
    except (ValueError, AttributeError, TypeError):
        return None
    return ColocationConfig(cluster, tuple(nodes))


def _selector(document: Mapping[str, Any] | None) -> LabelSelector:
    """No selector, and one that is invalid, select nothing."""
    try:
        return selector_from_document(document)
    except SelectorError:
        return selector_from_document(None)


def _merged(base: Fields, written: Fields) -> Fields | None:
    """What is written over the base; None if something in it cannot be."""
    said = {key: written[key] for key in _DEFAULTS if written.get(key) is not None}
    return {**base, **said} if all(_is_good(key, value) for key, value in said.items()) else None


def _is_good(key: str, value: Any) -> bool:
    if key in _TEXTS:
        return isinstance(value, str)
    if key == "enable":
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    if key in _ABOVE_ZERO:
        return value > 0
    return isinstance(value, int) and value >= 0 and (key not in _AT_MOST_100 or value <= 100)


@lru_cache(maxsize=64)
def _read_once(text: str) -> ColocationConfig | None:
    return read_colocation(text)


def strategy_of(
    config: str | None, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> ColocationStrategy | None:
    """The strategy of a node by the text of the configuration, if there is one; None if the text cannot be used."""
    if config is None:
        cluster: ColocationConfig | None = ColocationConfig({**_DEFAULTS, "enable": True})
    else:
        cluster = _read_once(config)
    if cluster is None:
        return None
    fields = next(
        (fields for selector, fields in cluster.nodes if selector.matches(labels)),
        cluster.cluster,
    )
    fields = _merged(fields, _written(annotations.get(NODE_STRATEGY))) or fields
    percents = {key: _percent(labels[label]) for label, key in _BY_LABEL.items() if label in labels}
    fields = {**fields, **{key: percent for key, percent in percents.items() if percent is not None}}
    return _strategy(fields, enabled=cluster.cluster["enable"] and fields["enable"])


def _written(text: str | None) -> Fields:
    """The strategy in an annotation; nothing if it cannot be read."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _percent(text: str) -> int | None:
    """A ratio in percent; None if it is none."""
    try:
        ratio = float(text)
    except ValueError:
        return None
    return int(ratio * 100) if 0 <= ratio < float("inf") else None


def _strategy(fields: Fields, *, enabled: bool) -> ColocationStrategy:
    static = {"cpu": fields["midStaticCPUReservedPercent"], "memory": fields["midStaticMemoryReservedPercent"]}
    return ColocationStrategy(
        reclaim_percent={
            "cpu": fields["cpuReclaimThresholdPercent"],
            "memory": fields["memoryReclaimThresholdPercent"],
        },
        policy={"cpu": fields["cpuCalculatePolicy"], "memory": fields["memoryCalculatePolicy"]},
        batch_threshold={"cpu": fields["batchCPUThresholdPercent"], "memory": fields["batchMemoryThresholdPercent"]},
        mid_threshold={"cpu": fields["midCPUThresholdPercent"], "memory": fields["midMemoryThresholdPercent"]},
        mid_unallocated_percent=fields["midUnallocatedPercent"],
        mid_static_percent=static if fields["midReclaimMode"] == STATIC else None,
        update_after=float(fields["updateTimeThresholdSeconds"]),
        update_difference=float(fields["resourceDiffThreshold"]),
        enabled=enabled,
    )


def normalised(amount: int, annotations: Mapping[str, str]) -> int:
    """An amount of batch-cpu on a node whose CPUs are faster than others, by the ratio that an annotation gives."""
    try:
        ratio = float(annotations.get(NORMALISATION) or "1")
    except ValueError:
        return amount
    return -(-int(amount * 1000 * ratio) // 1000) if 1.0 < ratio < float("inf") else amount
