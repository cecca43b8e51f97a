"""Label selectors and node selectors, compiled once from what documents, maps and users say.

Three sources of a LabelSelector: a metav1.LabelSelector document (validated; null matches nothing, `{}` everything), a
plain map (as nodeSelector and Services have; not validated) and text (as in `kubectl -l`). Equal selectors from any
source are equal. A NodeSelector is a disjunction of terms; a pod's own is parsed leniently, so that one broken term
does not spoil the others, a configured one strictly.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.core.model.requirements import (
    EVERYTHING,
    NOTHING,
    LabelSelector,
    Op,
    Requirement,
    SelectorError,
    canonical,
    conjunction,
    requirement,
)
from fairlead.core.model.selector_text import parse_label_selector
from fairlead.core.model.syntax import joined, quoted

__all__ = [
    "EVERYTHING", "NOTHING", "LabelSelector", "NodeSelector", "NodeSelectorTerm", "Op", "Requirement", "SelectorError",
    "conjunction", "parse_label_selector", "parse_node_selector", "parse_node_selector_term", "parse_preferred_terms",
    "requirement", "selector_from_document", "selector_from_map",
]  # fmt: skip

_LABEL_OPS = {op.value: op for op in (Op.IN, Op.NOT_IN, Op.EXISTS, Op.DOES_NOT_EXIST)}
_NODE_OPS = {op.value: op for op in Op}
_FIELD_OPS = {op.value: op for op in (Op.IN, Op.NOT_IN)}


def selector_from_map(labels: Mapping[str, str] | None) -> LabelSelector:
    """All these labels with these values, not validated; an empty map selects everything."""
    return conjunction(Requirement(key, Op.IN, (value,)) for key, value in (labels or {}).items())


def selector_from_document(document: Mapping[str, Any] | None) -> LabelSelector:
    """A metav1.LabelSelector; raises SelectorError if it is invalid."""
    if document is None:
        return NOTHING
    requirements = [
        requirement(key, Op.IN, [value]) for key, value in sorted((document.get("matchLabels") or {}).items())
    ]
    for expression in document.get("matchExpressions") or ():
        op = _LABEL_OPS.get(expression.get("operator") or "")
        if op is None:
            raise SelectorError(f"{quoted(expression.get('operator') or '')} is not a valid label selector operator")
        requirements.append(requirement(expression.get("key") or "", op, expression.get("values") or ()))
    return conjunction(requirements)


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """Conditions on labels and on fields, all of which must hold. A term with an `error` matches nothing."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    error: str = ""

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Without a name (as when a volume's affinity is checked) the fields do not count."""
        if self.error or not all(requirement.accepts(labels.get(requirement.key)) for requirement in self.expressions):
            return False
        return not name or all(
            requirement.accepts(name if requirement.key == "metadata.name" else "") for requirement in self.fields
        )


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Terms of which one must match; no term, no match."""

    terms: tuple[NodeSelectorTerm, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        return any(term.matches(labels, name) for term in self.terms)

    @property
    def error(self) -> str:
        """What is wrong with broken terms, if there are any."""
        broken = [term.error for term in self.terms if term.error]
        return joined(broken) if broken else ""


def parse_node_selector(document: Mapping[str, Any], *, strict: bool = False) -> NodeSelector:
    """A v1.NodeSelector. Empty terms are dropped. Broken terms are kept as terms that never match, or, if strict,
    raise SelectorError."""
    terms = enumerate(document.get("nodeSelectorTerms") or ())
    parsed = [parse_node_selector_term(term, f"nodeSelectorTerms[{i}]") for i, term in terms if not _is_empty(term)]
    selector = NodeSelector(tuple(parsed))
    if strict and selector.error:
        raise SelectorError(selector.error)
    return selector


def parse_preferred_terms(documents: Sequence[Mapping[str, Any]]) -> tuple[tuple[int, NodeSelectorTerm], ...]:
    """Weighted terms; those of weight 0 or with an empty preference are skipped, any other broken one raises."""
    parsed = []
    for i, document in enumerate(documents):
        weight, preference = document.get("weight") or 0, document.get("preference") or {}
        if weight and not _is_empty(preference):
            parsed.append((weight, parse_node_selector_term(preference, f"[{i}]")))
    if broken := [term.error for _, term in parsed if term.error]:
        raise SelectorError(joined(broken))
    return tuple(parsed)


def parse_node_selector_term(document: Mapping[str, Any], path: str = "") -> NodeSelectorTerm:
    errors: list[str] = []
    expressions = _expressions(document.get("matchExpressions") or (), f"{path}.matchExpressions", errors)
    fields = _fields(document.get("matchFields") or (), f"{path}.matchFields", errors)
    if errors:
        return NodeSelectorTerm(error=joined(errors))
    return NodeSelectorTerm(canonical(expressions), canonical(fields))


def _is_empty(term: Mapping[str, Any] | None) -> bool:
    return not term or not (term.get("matchExpressions") or term.get("matchFields"))


def _expressions(documents: Sequence[Mapping[str, Any]], path: str, errors: list[str]) -> list[Requirement]:
    found = []
    for i, document in enumerate(documents):
        op = _NODE_OPS.get(document.get("operator") or "")
        if op is None:
            errors.append(_unsupported(f"{path}[{i}].operator", document.get("operator") or "", _NODE_OPS))
            continue
        try:
            found.append(requirement(document.get("key") or "", op, document.get("values") or (), f"{path}[{i}]"))
        except SelectorError as error:
            errors.append(str(error))
    return found


def _fields(documents: Sequence[Mapping[str, Any]], path: str, errors: list[str]) -> list[Requirement]:
    found = []
    for i, document in enumerate(documents):
        op, values = _FIELD_OPS.get(document.get("operator") or ""), tuple(document.get("values") or ())
        if op is None:
            errors.append(_unsupported(f"{path}[{i}].operator", document.get("operator") or "", _FIELD_OPS))
        elif len(values) != 1:
            shown = json.dumps(list(values), separators=(",", ":")) if values else "null"
            errors.append(f"{path}[{i}].values: Invalid value: {shown}: must have one element")
        else:
            found.append(Requirement(document.get("key") or "", op, values))
    return found


def _unsupported(path: str, value: str, supported: Iterable[str]) -> str:
    names = ", ".join(quoted(name) for name in supported)
    return f"{path}: Unsupported value: {quoted(value)}: supported values: {names}"
