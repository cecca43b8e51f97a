"""What Services, ReplicationControllers, ReplicaSets and StatefulSets select, for spreading their pods.

All four kinds become one record, because spreading asks of each only whether it selects a pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.core.model.documents import compiler
from fairlead.core.model.selectors import NOTHING, SelectorError, selector_from_document, selector_from_map

if TYPE_CHECKING:
    from fairlead.core.model.selectors import LabelSelector


@dataclass(frozen=True, slots=True)
class WorkloadSelector:
    """What a Service, ReplicationController, ReplicaSet or StatefulSet selects. `labels` is the plain map of the first
    two (None if there is none, and then nothing is selected)."""

    namespace: str
    api_version: str
    kind: str
    name: str
    selector: LabelSelector
    labels: tuple[tuple[str, str], ...] | None = None


@compiler("workload")
def compile_workload_selector(document: Mapping[str, Any]) -> WorkloadSelector:
    """A set whose selector cannot be parsed says nothing about its pods, as for the original."""
    metadata, kind = document["metadata"], document.get("kind") or ""
    chosen = (document.get("spec") or {}).get("selector")
    labels = None
    if kind in ("Service", "ReplicationController"):
        labels = None if chosen is None else tuple(sorted(chosen.items()))
        selector = NOTHING if chosen is None else selector_from_map(chosen)
    else:
        try:
            selector = selector_from_document(chosen)
        except SelectorError:
            selector = NOTHING
    return WorkloadSelector(
        namespace=metadata.get("namespace") or "",
        api_version=document.get("apiVersion") or "",
        kind=kind,
        name=metadata["name"],
        selector=selector,
        labels=labels,
    )
