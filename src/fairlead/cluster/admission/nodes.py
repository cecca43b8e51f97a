"""Nodes: allocatable from capacity, taints, amounts."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from fairlead.cluster.admission.names import label_value, qualified_name
from fairlead.cluster.admission.resources import check_amount

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def default_node(node: Doc) -> Doc:
    """Until a kubelet says otherwise, all of a node's capacity can be given to pods."""
    status = node.get("status", {})
    if status.get("capacity") and not status.get("allocatable"):
        return {**node, "status": {**status, "allocatable": status["capacity"]}}
    return node


def check_node(problems: ValidationProblems, node: Doc) -> None:
    spec, status = node.get("spec", {}), node.get("status", {})
    _check_taints(problems, spec.get("taints", ()))
    for section in ("capacity", "allocatable"):
        for name, value in status.get(section, {}).items():
            check_amount(problems, f"status.{section}.{name}", name, value)
    for index, block in enumerate(spec.get("podCIDRs", ())):
        if not _is_block(block):
            detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            problems.invalid(f"spec.podCIDRs[{index}]", block, detail)


def _check_taints(problems: ValidationProblems, taints: Any) -> None:
    """The original calls their place metadata.taints, where they once were."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        path = f"metadata.taints[{index}]"
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        problems.each_invalid(f"{path}.key", key, qualified_name(key))
        problems.each_invalid(f"{path}.value", value, label_value(value))
        if not effect:
            problems.required(f"{path}.effect")
        elif effect not in _EFFECTS:
            problems.unsupported(f"{path}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            whole = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            problems.duplicate_as_is(path, whole, "taints must be unique by key and effect pair")
        seen.add((key, effect))


def check_node_update(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    before, after = old.get("spec", {}).get("podCIDR"), new.get("spec", {}).get("podCIDR")
    if before and after != before:
        problems.forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    identity, wanted = old.get("spec", {}).get("providerID"), new.get("spec", {}).get("providerID")
    if identity and wanted != identity:
        problems.forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid')


def _is_block(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text
