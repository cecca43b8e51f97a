"""Groups that nobody declared: pods of one owner whose template asks to be scheduled as a gang.

The annotation `scheduling.fairlead.io/gang` says how many must start together. Which pods belong together is read from
the labels that JobSet, LeaderWorkerSet, Ray and Kubeflow put on them, or else from the controlling owner, which is a
Job for most. Nothing but the pod is read: a group is known as soon as its first member is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.model.documents import EMPTY
from fairlead.model.group import TOPOLOGY_KEY_ANNOTATION, TOPOLOGY_MODE_ANNOTATION, GroupPolicy, PodGroup
from fairlead.model.pod import OWNER_GROUP_API, gang_size

if TYPE_CHECKING:
    from fairlead.model.pod import Pod


def owned_group(pod: Pod) -> PodGroup:
    """The group of a pod that belongs to one by its owner."""
    assert pod.group_ref is not None
    assert pod.group_ref.api == OWNER_GROUP_API
    name, annotations = pod.group_ref.name, _about_topology(pod.annotations)
    return PodGroup(
        namespace=pod.namespace,
        name=name,
        key=f"{pod.namespace}/{name}",
        uid=pod.owner.uid if pod.owner is not None else "",
        api=OWNER_GROUP_API,
        policy=GroupPolicy.GANG,
        min_member=gang_size(pod.annotations) or 1,
        labels=EMPTY,
        annotations=annotations,
        created=pod.created,
        resource_version="",
        topology_key=annotations.get(TOPOLOGY_KEY_ANNOTATION, ""),
        topology_preferred=annotations.get(TOPOLOGY_MODE_ANNOTATION) == "Preferred",
    )


def _about_topology(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """A group without an object has its wishes on its members."""
    wishes = (TOPOLOGY_KEY_ANNOTATION, TOPOLOGY_MODE_ANNOTATION)
    return {key: annotations[key] for key in wishes if key in annotations}
