"""Groups that nobody declared: pods of one owner that are to be scheduled as a gang.

The annotation `scheduling.fairlead.io/gang` in a pod template requests it: with a number, which is how many must start
together, or with `auto`, which means as many as the owner's own document says (core/model/owner_sizes.py). The same
word as a label of a namespace requests it on behalf of all pods in it that have such an owner. Which pods belong
together is read from the labels that JobSet, LeaderWorkerSet, Ray and Kubeflow put on them, or else from the
controlling owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.model.documents import EMPTY
from fairlead.core.model.group import GroupPolicy, PodGroup, topology_preferences
from fairlead.core.model.owner_sizes import owner_of
from fairlead.core.model.pod import GANG_ANNOTATION, OWNER_GROUP_API, gang_size, group_ref, owned_group_name

if TYPE_CHECKING:
    from fairlead.core.model.owner_sizes import OwnerRef
    from fairlead.core.model.pod import Pod

GANG_LABEL = GANG_ANNOTATION
"""On a namespace."""
ABSENT = "waiting for {kind} {key}, which says how many pods start together: it does not exist, or may not be read"
UNREADABLE = "{kind} {key} does not say how many pods start together: {problem}"
UNCOUNTABLE = (
    "it is not known how many pods of {owner} start together: write the number into the annotation {annotation}"
)


def opts_in(labels: Mapping[str, str]) -> bool:
    """Whether a namespace requests gangs of all owners that we can read."""
    return labels.get(GANG_LABEL) == "auto"


def as_namespace_says(pod: Pod, *, opted_in: bool) -> Pod:
    """The pod with the group that it has if its namespace requests gangs, or does not. A pod that says anything about
    groups speaks for itself."""
    if GANG_ANNOTATION in pod.annotations or (pod.group_ref is not None and pod.group_ref.api != OWNER_GROUP_API):
        return pod
    countable = opted_in and (gang_size(pod.annotations, auto=True) or owner_of(pod) is not None)
    name = owned_group_name(pod.labels, pod.owner) if countable else ""
    ref = group_ref(OWNER_GROUP_API, pod.namespace, name) if countable else None
    return pod if ref == pod.group_ref else replace(pod, group_ref=ref)


def owned_group(pod: Pod, size: int, *, unknown: str = "") -> PodGroup:
    """The group of a pod that belongs to one by its owner. A group without an object has its preferences on its
    members."""
    assert pod.group_ref is not None
    assert pod.group_ref.api == OWNER_GROUP_API
    name = pod.group_ref.name
    return PodGroup(
        namespace=pod.namespace,
        name=name,
        key=f"{pod.namespace}/{name}",
        uid=pod.owner.uid if pod.owner is not None else "",
        api=OWNER_GROUP_API,
        policy=GroupPolicy.GANG,
        min_member=size,
        labels=EMPTY,
        annotations=EMPTY,
        created=pod.created,
        resource_version="",
        unknown=unknown,
        **topology_preferences(pod.annotations, OWNER_GROUP_API),
    )


def absent(ref: OwnerRef) -> str:
    return ABSENT.format(kind=ref.kind.kind, key=ref.key)


def unreadable(ref: OwnerRef, problem: str) -> str:
    return UNREADABLE.format(kind=ref.kind.kind, key=ref.key, problem=problem)


def uncountable(pod: Pod) -> str:
    owner = f"{pod.owner.kind} {pod.namespace}/{pod.owner.name}" if pod.owner is not None else "nobody"
    return UNCOUNTABLE.format(owner=owner, annotation=GANG_ANNOTATION)
