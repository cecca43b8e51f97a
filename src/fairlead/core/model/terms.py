"""Where a pod wants to be relative to nodes and to other pods: affinity terms and spread constraints.

A list with one broken selector is dropped as a whole and its error kept, because the original refuses the pod itself
with that error but lets other pods see the lists that are whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fairlead.core.model.selectors import (
    NOTHING,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Op,
    Requirement,
    SelectorError,
    parse_node_selector,
    parse_preferred_terms,
    selector_from_document,
)
from fairlead.core.model.syntax import joined

Parsed = TypeVar("Parsed")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Pods of these namespaces, or of namespaces so labelled, that the selector picks, in the same topology domain."""

    namespaces: frozenset[str]
    namespace_selector: LabelSelector
    selector: LabelSelector
    topology_key: str

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Whether the term speaks of a pod with these labels in this namespace."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """How evenly pods that the selector picks shall lie over the domains of a topology key."""

    max_skew: int
    topology_key: str
    hard: bool
    selector: LabelSelector
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False
    match_label_keys: tuple[str, ...] = ()
    selector_error: str = ""

    def selector_for(self, labels: Mapping[str, str]) -> LabelSelector:
        """The selector, narrowed by what a pod with these labels has under the match keys."""
        keys = [key for key in self.match_label_keys if key in labels]
        return self.selector.plus(Requirement(key, Op.IN, (labels[key],)) for key in keys) if keys else self.selector


@dataclass(frozen=True, slots=True)
class NodeAffinity:
    """What the spec says of nodes. None where the spec is silent, which differs from saying nothing much."""

    required: NodeSelector | None = None
    preferred: tuple[tuple[int, NodeSelectorTerm], ...] | None = None
    preferred_error: str = ""
    names: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class PodAffinity:
    """What the spec says of other pods; `present` even if it has an object that says nothing."""

    present: bool = False
    required: tuple[AffinityTerm, ...] = ()
    required_anti: tuple[AffinityTerm, ...] = ()
    preferred: tuple[tuple[int, AffinityTerm], ...] = ()
    preferred_anti: tuple[tuple[int, AffinityTerm], ...] = ()
    error: str = ""


_SILENT_ON_NODES = NodeAffinity()
_SILENT_ON_PODS = PodAffinity()


def parse_node_affinity(affinity: Mapping[str, Any] | None) -> NodeAffinity:
    document = (affinity or {}).get("nodeAffinity")
    if not document:
        return _SILENT_ON_NODES
    required, preferred = document.get(_REQUIRED), document.get(_PREFERRED)
    terms: tuple[tuple[int, NodeSelectorTerm], ...] | None = None
    error = ""
    if preferred is not None:
        try:
            terms = parse_preferred_terms(preferred)
        except SelectorError as broken:
            terms, error = (), str(broken)
    return NodeAffinity(
        required=None if required is None else parse_node_selector(required),
        preferred=terms,
        preferred_error=error,
        names=None if required is None else _only_names(required.get("nodeSelectorTerms") or ()),
    )


def _only_names(terms: Iterable[Mapping[str, Any]]) -> frozenset[str] | None:
    """The nodes that the terms name, None if one of them names none; empty if they contradict themselves."""
    names: frozenset[str] | None = None
    for term in terms:
        named = [
            frozenset(field.get("values") or ())
            for field in term.get("matchFields") or ()
            if field.get("key") == "metadata.name" and field.get("operator") == "In"
        ]
        if not named:
            return None
        names = (names or frozenset()) | frozenset.intersection(*named)
    return names


def parse_pod_affinity(affinity: Mapping[str, Any] | None, namespace: str) -> PodAffinity:
    toward, away = (affinity or {}).get("podAffinity"), (affinity or {}).get("podAntiAffinity")
    if toward is None and away is None:
        return _SILENT_ON_PODS
    errors: list[str] = []

    def term(document: Mapping[str, Any]) -> AffinityTerm:
        return _parse_term(document, namespace)

    def weighted(document: Mapping[str, Any]) -> tuple[int, AffinityTerm]:
        return document.get("weight") or 0, term(document.get("podAffinityTerm") or {})

    def collect(
        name: str, documents: Sequence[Mapping[str, Any]], parse: Callable[[Any], Parsed]
    ) -> tuple[Parsed, ...]:
        try:
            return tuple(parse(document) for document in documents)
        except SelectorError as broken:
            errors.append(f"{name}: {broken}")
            return ()

    toward, away = toward or {}, away or {}
    required = collect("requiredAffinityTerms", toward.get(_REQUIRED) or (), term)
    required_anti = collect("requiredAntiAffinityTerms", away.get(_REQUIRED) or (), term)
    preferred = collect("preferredAffinityTerms", toward.get(_PREFERRED) or (), weighted)
    preferred_anti = collect("preferredAntiAffinityTerms", away.get(_PREFERRED) or (), weighted)
    error = joined(errors) if errors else ""
    return PodAffinity(True, required, required_anti, preferred, preferred_anti, error)


def _parse_term(document: Mapping[str, Any], namespace: str) -> AffinityTerm:
    selector = selector_from_document(document.get("labelSelector"))
    listed, others = document.get("namespaces") or (), document.get("namespaceSelector")
    return AffinityTerm(
        namespaces=frozenset((namespace,)) if not listed and others is None else frozenset(listed),
        namespace_selector=selector_from_document(others),
        selector=selector,
        topology_key=document.get("topologyKey") or "",
    )


def parse_spread(documents: Iterable[Mapping[str, Any]] | None) -> tuple[SpreadConstraint, ...]:
    return tuple(_parse_constraint(document) for document in documents or ())


def _parse_constraint(document: Mapping[str, Any]) -> SpreadConstraint:
    try:
        selector, error = selector_from_document(document.get("labelSelector")), ""
    except SelectorError as broken:
        selector, error = NOTHING, str(broken)
    min_domains = document.get("minDomains")
    return SpreadConstraint(
        max_skew=document.get("maxSkew") or 0,
        topology_key=document.get("topologyKey") or "",
        hard=document.get("whenUnsatisfiable") == "DoNotSchedule",
        selector=selector,
        min_domains=1 if min_domains is None else min_domains,
        honor_affinity=(document.get("nodeAffinityPolicy") or "Honor") == "Honor",
        honor_taints=(document.get("nodeTaintsPolicy") or "Ignore") == "Honor",
        match_label_keys=tuple(document.get("matchLabelKeys") or ()),
        selector_error=error,
    )
