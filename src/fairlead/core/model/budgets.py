"""The record of a PodDisruptionBudget, as preemption reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.core.model.documents import compiler
from fairlead.core.model.selectors import NOTHING, SelectorError, selector_from_document

if TYPE_CHECKING:
    from fairlead.core.model.selectors import LabelSelector


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """How many more pods may be disrupted, and which ones are known to be going already."""

    namespace: str
    name: str
    selector: LabelSelector
    disruptions_allowed: int
    disrupted_pods: frozenset[str]

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod counts against the budget when it is chosen as a victim. Pods without labels never do, and an
        empty selector covers nothing here."""
        if namespace != self.namespace or not labels or self.selector.empty:
            return False
        return self.selector.matches(labels)


@compiler("PodDisruptionBudget")
def compile_disruption_budget(document: Mapping[str, Any]) -> DisruptionBudget:
    """A selector that cannot be parsed covers nothing, as for the original."""
    metadata, spec, status = document["metadata"], document.get("spec") or {}, document.get("status") or {}
    try:
        selector = selector_from_document(spec.get("selector"))
    except SelectorError:
        selector = NOTHING
    return DisruptionBudget(
        namespace=metadata.get("namespace") or "",
        name=metadata["name"],
        selector=selector,
        disruptions_allowed=status.get("disruptionsAllowed") or 0,
        disrupted_pods=frozenset(status.get("disruptedPods") or ()),
    )
