"""The ResourceQuota admission: an object that would exceed a quota of its namespace is refused; others are charged.

What was used is what the quota's status says; a quota that says nothing yet is counted on the spot (the original
refuses until its controller has counted). The answer to a good request is what the statuses of the quotas become,
which the Store commits together with the object, so that two requests never use the same remainder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.cluster.admission.problems import forbidden
from fairlead.core.model import kinds as k
from fairlead.core.model.quantity import read_quantity
from fairlead.core.model.quota import Usage, counts, hard_limits, spelled, usage_of

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView
    from fairlead.core.model.kinds import Kind
    from fairlead.core.model.quantity import Quantity

_MUST_BE_NAMED = ("requests.cpu", "requests.memory", "limits.cpu", "limits.memory", "cpu", "memory")
_UPDATES_COUNT = frozenset({k.SERVICE, k.PERSISTENT_VOLUME_CLAIM})


def charged(view: DocView, kind: Kind, doc: Doc, old: Doc | None = None) -> list[Doc]:
    """The quotas of a new (or changed) object's namespace with what it uses added; raises Forbidden."""
    namespace = doc["metadata"].get("namespace")
    if not namespace or kind in (k.EVENT, k.LEASE) or (old is not None and kind not in _UPDATES_COUNT):
        return []
    quotas = [one for one in view.list(k.RESOURCE_QUOTA, namespace) if counts(one, kind, doc)]
    if not quotas:
        return []
    more = usage_of(kind, doc)
    for name, nanos in (usage_of(kind, old) if old is not None else {}).items():
        more[name] = more.get(name, 0) - nanos
    result = [_charge(view, quota, kind, doc, more) for quota in quotas]
    return [quota for quota in result if quota is not None]


def _charge(view: DocView, quota: Doc, kind: Kind, doc: Doc, more: Usage) -> Doc | None:
    limits, name = hard_limits(quota), doc["metadata"]["name"]
    if kind is k.POD:
        _check_named(quota, doc, limits)
    asked = {resource: more[resource] for resource in limits if more.get(resource, 0) > 0}
    if not asked:
        return None
    used = _used(view, quota, limits)
    over = [resource for resource in sorted(asked) if used[resource] + asked[resource] > limits[resource].nanos]
    if over:
        raise forbidden(kind, name, exceeded(quota["metadata"]["name"], over, asked, used, limits))
    total = {
        resource: spelled(resource, used[resource] + asked.get(resource, 0), limit)
        for resource, limit in limits.items()
    }
    status = {**(quota.get("status") or {}), "hard": quota["spec"]["hard"], "used": total}
    return {**quota, "status": status}


def _used(view: DocView, quota: Doc, limits: dict[str, Quantity]) -> Usage:
    status_used = (quota.get("status") or {}).get("used")
    if status_used is not None and all(resource in status_used for resource in limits):
        return {resource: read_quantity(status_used[resource]).nanos for resource in limits}
    namespace = quota["metadata"]["namespace"]
    total = dict.fromkeys(limits, 0)
    for kind in _kinds_behind(limits):
        for doc in view.list(kind, namespace):
            if counts(quota, kind, doc):
                for resource, nanos in usage_of(kind, doc).items():
                    if resource in total:
                        total[resource] += nanos
    return total


def _kinds_behind(limits: Iterable[str]) -> list[Kind]:
    """The kinds whose objects can use any of these resources."""
    names = list(limits)
    always = [k.POD, k.SERVICE, k.PERSISTENT_VOLUME_CLAIM]
    plain = [kind for kind in k.served_kinds() if kind.stored_as is None and kind not in always]
    return always + [kind for kind in plain if kind.plural in names or f"count/{kind.resource}" in names]


def exceeded(
    quota: str, over: Sequence[str], asked: Mapping[str, int], used: Mapping[str, int], limits: Mapping[str, Quantity]
) -> str:
    """Why a quota refuses, in Kubernetes' words: the resources that are `over`, what is asked, used and allowed of
    them. What is not in `used` is not named as used."""
    parts = (
        ("requested", _listed(over, asked, limits)),
        ("used", _listed(over, used, limits)),
        ("limited", ",".join(f"{resource}={limits[resource]}" for resource in over)),
    )
    return f"exceeded quota: {quota}, " + ", ".join(f"{label}: {listed}" for label, listed in parts)


def _listed(over: Sequence[str], amounts: Mapping[str, int], limits: Mapping[str, Quantity]) -> str:
    return ",".join(f"{name}={spelled(name, amounts[name], limits[name])}" for name in over if name in amounts)


def _check_named(quota: Doc, pod: Doc, limits: dict[str, Quantity]) -> None:
    """Where cpu or memory is limited, every container has to name it."""
    wanted = [resource for resource in sorted(limits) if resource in _MUST_BE_NAMED]
    spec, missing = pod["spec"], []
    for resource in wanted:
        section, _, plain = resource.rpartition(".")
        section = section or "requests"
        if plain in ((spec.get("resources") or {}).get(section) or {}):
            continue
        containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        silent = sorted(
            one["name"] for one in containers if plain not in ((one.get("resources") or {}).get(section) or {})
        )
        if silent:
            missing.append(f"{resource} for: {','.join(silent)}")
    if missing:
        name = quota["metadata"]["name"]
        raise forbidden(k.POD, pod["metadata"]["name"], f"failed quota: {name}: must specify {'; '.join(missing)}")
