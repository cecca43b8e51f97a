"""Rules for resources: names, amounts, and requests against limits."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from fairlead.cluster.admission.names import qualified_name
from fairlead.cluster.store.quantities import NANO, canonical, nanos

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc

_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage", "storage"})
_CONTAINER = frozenset({"cpu", "memory", "ephemeral-storage"})
_INTEGERS = frozenset({
    "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers",
})  # fmt: skip
_NO_STANDARD = "must be a standard resource type or fully qualified"


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


@lru_cache(maxsize=4096)
def _name_complaints(name: str) -> tuple[str, ...]:
    found = qualified_name(name)
    if found:
        return found
    if "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
        return (_NO_STANDARD, "must be a standard resource for containers")
    return ()


def _must_be_whole(name: str) -> bool:
    """Extended resources and counts of objects come in whole numbers."""
    return name in _INTEGERS or not is_native(name)


def check_amount(problems: ValidationProblems, path: str, name: str, value: str) -> None:
    number = nanos(value)
    if number < 0:
        problems.invalid(path, canonical(value), "must be greater than or equal to 0")
    if number % NANO and _must_be_whole(name):
        problems.invalid(path, canonical(value), "must be an integer")


def check_requirements(problems: ValidationProblems, path: str, resources: Doc, claims: tuple[str, ...] = ()) -> None:
    """Requests and limits of a container, or of a pod as a whole."""
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    huge = False
    for section, values in (("limits", limits), ("requests", requests)):
        for name, value in values.items():
            if complaints := _name_complaints(name):
                problems.each_invalid(f"{path}.{section}[{name}]", name, complaints)
            number = nanos(value)
            if number < 0 or (number % NANO and _must_be_whole(name)):
                check_amount(problems, f"{path}.{section}[{name}]", name, value)
            huge = huge or name.startswith("hugepages-")
    _check_against_limits(problems, path, requests, limits)
    if huge and not {"cpu", "memory"} & {*limits, *requests}:
        problems.forbidden(path, "HugePages require cpu or memory")
    if "claims" in resources:
        _check_claims(problems, path, resources["claims"], claims)


def _check_against_limits(problems: ValidationProblems, path: str, requests: Doc, limits: Doc) -> None:
    for name, value in requests.items():
        limit = limits.get(name)
        if value == limit:
            continue
        exact = not is_native(name) or name.startswith("hugepages-")
        if limit is None:
            if exact:
                problems.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif exact and nanos(value) != nanos(limit):
            problems.invalid(f"{path}.requests", value, f"must be equal to {name} limit of {limit}")
        elif not exact and nanos(value) > nanos(limit):
            problems.invalid(f"{path}.requests", value, f"must be less than or equal to {name} limit of {limit}")


def _check_claims(problems: ValidationProblems, path: str, wanted: list[Doc], claims: tuple[str, ...]) -> None:
    for index, claim in enumerate(wanted):
        name = claim.get("name", "")
        if not name:
            problems.required(f"{path}.claims[{index}]")
        elif name not in claims:
            there = "which is empty" if not claims else "which are: " + ", ".join(claims)
            detail = f"must be one of the names in pod.spec.resourceClaims {there}"
            problems.not_found(f"{path}.claims[{index}]", name, detail)
