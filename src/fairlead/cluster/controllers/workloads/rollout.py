"""The arithmetic of a Deployment: how large each of its ReplicaSets shall be next. Documents in, numbers out.

A rolling update keeps the total at or below `replicas + maxSurge` and the available at or above
`replicas - maxUnavailable`, growing the new ReplicaSet first and shrinking the old ones, the broken replicas before
the working. A Deployment that is scaled in the middle of a rollout shares the difference among its ReplicaSets by size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.cluster.controllers.workloads.shares import share
from fairlead.core.model.rolling import may_go, may_grow

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
REVISION = "deployment.kubernetes.io/revision"

Sizes = dict[str, int]
"""Desired sizes by ReplicaSet name; only those that change."""


def desired(doc: Doc) -> int:
    """`spec.replicas` of a Deployment or ReplicaSet."""
    replicas = doc["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def reported(replica_set: Doc | None, field: str) -> int:
    """A number of a ReplicaSet's status."""
    return int(((replica_set or {}).get("status") or {}).get(field) or 0)


def total(replica_sets: Sequence[Doc]) -> int:
    return sum(desired(one) for one in replica_sets)


def is_rolling(deployment: Doc) -> bool:
    strategy = deployment["spec"].get("strategy") or {}
    return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")


def limits(deployment: Doc) -> tuple[int, int]:
    """maxSurge and maxUnavailable as numbers of pods."""
    if not is_rolling(deployment):
        return 0, 0
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    replicas = desired(deployment)
    surge = share(rolling.get("maxSurge", "25%"), replicas, round_up=True)
    unavailable = share(rolling.get("maxUnavailable", "25%"), replicas, round_up=False)
    if not surge and not unavailable:
        unavailable = 1  # both rounded to nothing: without this the rollout could never move
    return surge, min(unavailable, replicas)


def first_size(deployment: Doc, others: Sequence[Doc]) -> int:
    """How large a ReplicaSet of the new template may be from the start."""
    return _grown(deployment, 0, total(others))


def next_new_size(deployment: Doc, new: Doc, others: Sequence[Doc]) -> int:
    size, replicas = desired(new), desired(deployment)
    if size >= replicas:
        return replicas
    return _grown(deployment, size, total(others) + size)


def _grown(deployment: Doc, size: int, everything: int) -> int:
    replicas = desired(deployment)
    if not is_rolling(deployment):
        return replicas
    return size + may_grow(replicas, limits(deployment)[0], size, everything)


def next_old_sizes(deployment: Doc, new: Doc, old: Sequence[Doc]) -> Sizes:
    """Which old ReplicaSets shrink now, and to what."""
    replicas, unavailable = desired(deployment), limits(deployment)[1]
    minimum = replicas - unavailable
    going = may_go(replicas, unavailable, total([new, *old]), desired(new) - reported(new, "availableReplicas"))
    if not going or not total(old):
        return {}
    by_age = sorted(old, key=lambda one: (one["metadata"].get("creationTimestamp") or "", one["metadata"]["name"]))
    sizes = _without_broken(by_age, going)
    available = sum(reported(one, "availableReplicas") for one in (new, *old))
    return sizes | _without_surplus(by_age, sizes, available - minimum)


def _without_broken(old: Sequence[Doc], going: int) -> Sizes:
    sizes: Sizes = {}
    for one in old:
        goes = min(going, desired(one) - reported(one, "availableReplicas"))
        if goes > 0:
            sizes[one["metadata"]["name"]] = desired(one) - goes
            going -= goes
    return sizes


def _without_surplus(old: Sequence[Doc], known: Sizes, surplus: int) -> Sizes:
    sizes: Sizes = {}
    for one in old:
        name = one["metadata"]["name"]
        size = known.get(name, desired(one))
        goes = min(surplus, size)
        if goes > 0:
            sizes[name] = size - goes
            surplus -= goes
    return sizes


def is_rescaled(deployment: Doc, replica_sets: Sequence[Doc]) -> bool:
    """Whether the Deployment's replicas changed since its ReplicaSets were last sized."""
    replicas = desired(deployment)
    return any(desired(one) and _noted(one, DESIRED, replicas) != replicas for one in replica_sets)


def rescaled_sizes(deployment: Doc, new: Doc | None, old: Sequence[Doc]) -> Sizes:
    """Sizes after the Deployment was scaled (or while it is paused), without rolling on."""
    everything = [*old] if new is None else [new, *old]
    active = [one for one in everything if desired(one)]
    if len(active) <= 1:
        only = active[0] if active else new or (_newest(old) if old else None)
        return {} if only is None else _changed({only["metadata"]["name"]: desired(deployment)}, everything)
    if new is not None and _is_saturated(deployment, new):
        return _changed({one["metadata"]["name"]: 0 for one in old}, everything)
    return _changed(_proportional(deployment, active), everything) if is_rolling(deployment) else {}


def _proportional(deployment: Doc, active: Sequence[Doc]) -> Sizes:
    replicas = desired(deployment)
    most = replicas + limits(deployment)[0] if replicas else 0
    to_add = most - total(active)
    # On the way up the newest of equals comes first, on the way down the oldest.
    ordered = sorted(active, key=lambda one: one["metadata"].get("creationTimestamp") or "", reverse=to_add > 0)
    ordered.sort(key=desired, reverse=True)
    sizes, added = {}, 0
    for one in ordered:
        share = _share(deployment, one, most, to_add - added) if to_add else 0
        sizes[one["metadata"]["name"]] = desired(one) + share
        added += share
    largest = ordered[0]["metadata"]["name"]
    sizes[largest] = max(0, sizes[largest] + to_add - added)
    return sizes


def _share(deployment: Doc, one: Doc, most: int, left: int) -> int:
    if not desired(deployment):
        return -desired(one)
    before = _noted(one, MAXIMUM, 0) or reported(deployment, "replicas") or total([one])
    fraction = math.floor(desired(one) * most / before + 0.5) - desired(one)
    return min(fraction, left) if left > 0 else max(fraction, left)


def _is_saturated(deployment: Doc, new: Doc) -> bool:
    replicas = desired(deployment)
    return desired(new) == replicas == _noted(new, DESIRED, -1) == reported(new, "availableReplicas")


def _newest(replica_sets: Sequence[Doc]) -> Doc:
    return max(replica_sets, key=lambda one: (one["metadata"].get("creationTimestamp") or "", one["metadata"]["name"]))


def _changed(sizes: Sizes, replica_sets: Sequence[Doc]) -> Sizes:
    now = {one["metadata"]["name"]: desired(one) for one in replica_sets}
    return {name: size for name, size in sizes.items() if now[name] != size}


def _noted(doc: Doc, annotation: str, default: int) -> int:
    text = (doc["metadata"].get("annotations") or {}).get(annotation, "")
    return int(text) if text.isdecimal() else default


def revision_of(doc: Doc) -> int:
    return _noted(doc, REVISION, 0)
