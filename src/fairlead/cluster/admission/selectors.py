"""Rules for selectors: labels of objects, and labels and fields of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.cluster.admission.metadata import check_labels
from fairlead.cluster.admission.names import dns_subdomain, label_value, qualified_name

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc

_NEEDS_VALUES = "must be specified when `operator` is 'In' or 'NotIn'"
_WANTS_NO_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_NO_OPERATOR = "not a valid selector operator"


def check_label_selector(problems: ValidationProblems, path: str, selector: Doc) -> None:
    check_labels(problems, f"{path}.matchLabels", selector.get("matchLabels", {}))
    for index, requirement in enumerate(selector.get("matchExpressions", ())):
        _check_requirement(problems, f"{path}.matchExpressions[{index}]", requirement)


def _check_requirement(problems: ValidationProblems, path: str, requirement: Doc) -> None:
    _check_operator(problems, path, requirement)
    problems.each_invalid(f"{path}.key", requirement.get("key", ""), qualified_name(requirement.get("key", "")))
    for index, value in enumerate(requirement.get("values", ())):
        problems.each_invalid(f"{path}.values[{index}]", value, label_value(value))


def _check_operator(problems: ValidationProblems, path: str, requirement: Doc, *, numeric: bool = False) -> None:
    values = requirement.get("values")
    match requirement.get("operator", ""):
        case "In" | "NotIn":
            if not values:
                problems.required(f"{path}.values", _NEEDS_VALUES)
        case "Exists" | "DoesNotExist":
            if values:
                problems.forbidden(f"{path}.values", _WANTS_NO_VALUES)
        case "Gt" | "Lt" if numeric:
            if len(values or ()) != 1:
                problems.required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        case operator:
            problems.invalid(f"{path}.operator", operator, _NO_OPERATOR)


def check_node_selector_term(problems: ValidationProblems, path: str, term: Doc) -> None:
    for index, requirement in enumerate(term.get("matchExpressions", ())):
        here = f"{path}.matchExpressions[{index}]"
        _check_operator(problems, here, requirement, numeric=True)
        problems.each_invalid(f"{here}.key", requirement.get("key", ""), qualified_name(requirement.get("key", "")))
    for index, requirement in enumerate(term.get("matchFields", ())):
        _check_field_requirement(problems, f"{path}.matchFields[{index}]", requirement)


def _check_field_requirement(problems: ValidationProblems, path: str, requirement: Doc) -> None:
    operator, values = requirement.get("operator", ""), requirement.get("values", ())
    if operator not in ("In", "NotIn"):
        problems.invalid(f"{path}.operator", operator, _NO_OPERATOR)
    elif len(values) != 1:
        problems.required(
            f"{path}.values", "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        )
    if requirement.get("key") != "metadata.name":
        problems.invalid(f"{path}.key", requirement.get("key", ""), "not a valid field selector key")
        return
    for index, value in enumerate(values):
        problems.each_invalid(f"{path}.values[{index}]", value, dns_subdomain(value))


def selector_matches(selector: Doc | None, labels: dict[str, str]) -> bool:
    """Whether a LabelSelector takes these labels. None takes nothing, an empty one everything."""
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()) and all(
        _requirement_holds(requirement, labels) for requirement in selector.get("matchExpressions", ())
    )


def _requirement_holds(requirement: Doc, labels: dict[str, Any]) -> bool:
    key, values = requirement.get("key"), requirement.get("values", ())
    match requirement.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
