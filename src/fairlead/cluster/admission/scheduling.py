"""Rules for what a pod says about its place: affinity, spreading, tolerations, gates, claims."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairlead.cluster.admission.names import dns_label, dns_subdomain, label_value, qualified_name
from fairlead.cluster.admission.selectors import check_label_selector, check_node_selector_term

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")
_WEIGHTS = "must be in the range 1-100"
_NEEDS_SELECTOR = "must not be specified when labelSelector is not set"

# -- affinity ---------------------------------------------------------------------------------------------------------


def check_affinity(problems: ValidationProblems, path: str, affinity: Doc) -> None:
    if "nodeAffinity" in affinity:
        _check_node_affinity(problems, f"{path}.nodeAffinity", affinity["nodeAffinity"])
    for part in ("podAffinity", "podAntiAffinity"):
        if part in affinity:
            _check_pod_affinity(problems, f"{path}.{part}", affinity[part])


def _check_node_affinity(problems: ValidationProblems, path: str, affinity: Doc) -> None:
    if _REQUIRED in affinity:
        check_node_selector(problems, f"{path}.{_REQUIRED}", affinity[_REQUIRED])
    for index, preferred in enumerate(affinity.get(_PREFERRED, ())):
        here = f"{path}.{_PREFERRED}[{index}]"
        _check_weight(problems, f"{here}.weight", preferred.get("weight", 0))
        check_node_selector_term(problems, f"{here}.preference", preferred.get("preference", {}))


def check_node_selector(problems: ValidationProblems, path: str, selector: Doc) -> None:
    terms = selector.get("nodeSelectorTerms", ())
    if not terms:
        problems.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        check_node_selector_term(problems, f"{path}.nodeSelectorTerms[{index}]", term)


def _check_weight(problems: ValidationProblems, path: str, weight: int) -> None:
    if not 1 <= weight <= 100:
        problems.invalid(path, weight, _WEIGHTS)


def _check_pod_affinity(problems: ValidationProblems, path: str, affinity: Doc) -> None:
    for index, term in enumerate(affinity.get(_REQUIRED, ())):
        _check_term(problems, f"{path}.{_REQUIRED}[{index}]", term)
    for index, preferred in enumerate(affinity.get(_PREFERRED, ())):
        here = f"{path}.{_PREFERRED}[{index}]"
        _check_weight(problems, f"{here}.weight", preferred.get("weight", 0))
        _check_term(problems, f"{here}.podAffinityTerm", preferred.get("podAffinityTerm", {}))


def _check_term(problems: ValidationProblems, path: str, term: Doc) -> None:
    for selector in ("labelSelector", "namespaceSelector"):
        if selector in term:
            check_label_selector(problems, f"{path}.{selector}", term[selector])
    for namespace in term.get("namespaces", ()):
        problems.each_invalid(f"{path}.namespace", namespace, dns_label(namespace))
    _check_label_keys(problems, path, term)
    key = term.get("topologyKey", "")
    if not key:
        problems.required(f"{path}.topologyKey", "can not be empty")
    problems.each_invalid(f"{path}.topologyKey", key, qualified_name(key))


def _check_label_keys(problems: ValidationProblems, path: str, term: Doc) -> None:
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        keys = term.get(field, ())
        if keys and "labelSelector" not in term:
            problems.forbidden(f"{path}.{field}", _NEEDS_SELECTOR)
        for index, key in enumerate(keys):
            problems.each_invalid(f"{path}.{field}[{index}]", key, qualified_name(key))
    for index, key in enumerate(term.get("matchLabelKeys", ())):
        if key in term.get("mismatchLabelKeys", ()):
            problems.invalid(
                f"{path}.matchLabelKeys[{index}]", key, "exists in both matchLabelKeys and mismatchLabelKeys"
            )


# -- spreading --------------------------------------------------------------------------------------------------------


def check_spreading(problems: ValidationProblems, path: str, constraints: list[Doc]) -> None:
    for index, constraint in enumerate(constraints):
        _check_constraint(problems, f"{path}[{index}]", constraint, constraints[index + 1 :])


def _check_constraint(problems: ValidationProblems, path: str, constraint: Doc, later: list[Doc]) -> None:
    skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
    action, domains = constraint.get("whenUnsatisfiable", ""), constraint.get("minDomains")
    if skew <= 0:
        problems.invalid(f"{path}.maxSkew", skew, "must be greater than zero")
    if not key:
        problems.required(f"{path}.topologyKey", "can not be empty")
    elif complaints := qualified_name(key):
        problems.each_invalid(f"{path}.topologyKey", key, complaints)
    problems.not_one_of(f"{path}.whenUnsatisfiable", action, _UNSATISFIABLE)
    if any((other.get("topologyKey"), other.get("whenUnsatisfiable")) == (key, action) for other in later):
        problems.duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
    if domains is not None:
        _check_min_domains(problems, f"{path}.minDomains", domains, action)
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if policy in constraint:
            problems.not_one_of(f"{path}.{policy}", constraint[policy], _POLICIES)
    _check_label_keys(problems, path, constraint)
    if "labelSelector" in constraint:
        check_label_selector(problems, f"{path}.labelSelector", constraint["labelSelector"])


def _check_min_domains(problems: ValidationProblems, path: str, domains: int, action: str) -> None:
    if domains <= 0:
        problems.invalid(path, domains, "must be greater than zero")
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        problems.invalid(path, domains, detail)


# -- tolerations, gates, claims ---------------------------------------------------------------------------------------


def check_tolerations(problems: ValidationProblems, path: str, tolerations: Iterable[Doc]) -> None:
    for index, toleration in enumerate(tolerations):
        _check_toleration(problems, f"{path}[{index}]", toleration)


def _check_toleration(problems: ValidationProblems, path: str, toleration: Doc) -> None:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    if key and (complaints := qualified_name(key)):
        problems.each_invalid(f"{path}.key", key, complaints)
    if not key and operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        problems.invalid(f"{path}.operator", operator, detail)
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        problems.invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    match operator:
        case "Equal" | "":
            problems.each_invalid(f"{path}.operator", value, label_value(value))
        case "Exists":
            if value:
                problems.invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
        case _:
            # Comparing tolerations are behind a feature gate that is off; only they are named with each other.
            known = ("Equal", "Exists", "Lt", "Gt") if operator in ("Lt", "Gt") else ("Equal", "Exists")
            problems.unsupported(f"{path}.operator", operator, known)
    if effect and effect not in _EFFECTS:
        problems.unsupported(f"{path}.effect", effect, _EFFECTS)


def check_gates(problems: ValidationProblems, path: str, gates: list[Doc]) -> None:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        problems.each_invalid(f"{path}[{index}]", name, qualified_name(name))
        if name in seen:
            problems.duplicate(f"{path}[{index}]", name)
        seen.add(name)


def check_claims(problems: ValidationProblems, path: str, claims: list[Doc]) -> None:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        here, name = f"{path}[{index}]", claim.get("name", "")
        if name in seen:
            problems.duplicate(f"{here}.name", name)
        seen.add(name)
        problems.each_invalid(f"{here}.name", name, dns_label(name))
        _check_claim_source(problems, here, claim)


def _check_claim_source(problems: ValidationProblems, path: str, claim: Doc) -> None:
    named, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
    whole = {
        "Name": claim.get("name", ""),
        "ResourceClaimName": named,
        "ResourceClaimTemplateName": template,
    }
    if named is not None and template is not None:
        detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        problems.invalid_as_is(path, whole, detail)
    elif named is None and template is None:
        problems.invalid_as_is(path, whole, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
    for field, value in (("resourceClaimName", named), ("resourceClaimTemplateName", template)):
        if value is not None:
            problems.each_invalid(f"{path}.{field}", value, dns_subdomain(value))
