"""Volcano's part of the record of a PodGroup: what its own documents say, and annotations on groups of other APIs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fairlead.core.model.documents import moment
from fairlead.core.model.group import (
    GroupCondition,
    GroupPolicy,
    NetworkTopology,
    PodGroup,
    SubGroupPolicy,
    optional_units,
)
from fairlead.core.model.selectors import selector_from_document

if TYPE_CHECKING:
    from fairlead.core.family import GroupReader

_API = "scheduling.volcano.sh"
MODE_ANNOTATION = "volcano.sh/network-topology-mode"
TIER_ANNOTATION = "volcano.sh/network-topology-highest-tier"
_MADE = "podgroup-"
"""How the names begin of groups that are made for pods without one."""


def read_group(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a PodGroup of Volcano's API."""
    spec, status = document.get("spec") or {}, document.get("status") or {}
    return {
        "policy": GroupPolicy.GANG,
        "min_member": spec.get("minMember") or 0,
        "queue": spec.get("queue") or "",
        "min_resources": optional_units(spec, "minResources"),
        "task_minimums": spec.get("minTaskMember") or {},
        "network_topology": _network_topology(spec.get("networkTopology")),
        "sub_groups": tuple(_sub_groups(spec.get("subGroupPolicy") or ())),
        "conditions": tuple(_condition(document) for document in status.get("conditions") or ()),
        "counted": (status.get("running") or 0, status.get("succeeded") or 0, status.get("failed") or 0),
    }


READERS: Mapping[str, GroupReader] = {_API: read_group}


def _condition(document: Mapping[str, Any]) -> GroupCondition:
    return GroupCondition(
        type=document.get("type") or "",
        status=document.get("status") or "",
        transition_id=document.get("transitionID") or "",
        transition_time=moment(document, "lastTransitionTime") or 0.0,
        reason=document.get("reason") or "",
        message=document.get("message") or "",
    )


def _network_topology(document: Mapping[str, Any] | None) -> NetworkTopology | None:
    if document is None:
        return None
    return NetworkTopology(
        hard=(document.get("mode") or "hard") == "hard",
        highest_tier=document.get("highestTierAllowed"),
        highest_tier_name=document.get("highestTierName") or "",
    )


def _sub_groups(documents: Iterable[Mapping[str, Any]]) -> Iterable[SubGroupPolicy]:
    for document in documents:
        size = document.get("subGroupSize")
        yield SubGroupPolicy(
            name=document.get("name") or "",
            size=1 if size is None else size,
            minimum=document.get("minSubGroups") or 0,
            selector=selector_from_document(document.get("labelSelector")),
            match_label_keys=tuple(document.get("matchLabelKeys") or ()),
            network_topology=_network_topology(document.get("networkTopology")),
        )


def network_preference(annotations: Mapping[str, str]) -> dict[str, Any]:
    """How close the members of a group of another API must be in the network, for which its API has no field. A mode
    that is none counts as hard, and without a limit that requests nothing; a limit is a number or a name."""
    tier, mode = annotations.get(TIER_ANNOTATION, ""), annotations.get(MODE_ANNOTATION, "")
    if not tier and not mode:
        return {}
    number = int(tier) if tier.isascii() and tier.isdigit() else None
    return {"network_topology": NetworkTopology(mode != "soft", number, tier if number is None else "")}


def made_for(group: PodGroup) -> str:
    """The name of the owner of pods that came without a group, if it was made for them: its own name is a uid."""
    return group.first_owner if group.name.startswith(_MADE) and group.api == _API else ""
