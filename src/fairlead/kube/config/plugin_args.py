"""The arguments of the in-tree plugins: one frozen record each, defaults filled in, and back to a document.

Args of plugins that are not in this list (a user's own) stay the plain value that the file has.

Invariant: `to_document(name, args)` decodes again to equal args.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import TYPE_CHECKING, Any

from fairlead.core.model.durations import format_duration
from fairlead.kube.config.shapes import API_VERSION

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.kube.config.gates import Gates


@dataclass(frozen=True, slots=True)
class ResourceWeight:
    name: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class ShapePoint:
    """At `utilization` percent, `score` of 10."""

    utilization: int
    score: int


CPU_AND_MEMORY = (ResourceWeight("cpu"), ResourceWeight("memory"))


@dataclass(frozen=True, slots=True)
class DefaultPreemptionArgs:
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs:
    """Seconds; None where the feature behind it is off."""

    filter_timeout: float | None = 10.0
    binding_timeout: float | None = 600.0


@dataclass(frozen=True, slots=True)
class InterPodAffinityArgs:
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


@dataclass(frozen=True, slots=True)
class NodeAffinityArgs:
    """`added_affinity` is a v1 NodeAffinity that every pod of the profile has besides its own."""

    added_affinity: Doc | None = None


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocationArgs:
    """`by_gain` is no field of the format: kube-scheduler 1.36 scores the gain, 1.35 does not."""

    resources: tuple[ResourceWeight, ...] = CPU_AND_MEMORY
    by_gain: bool = True


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """`shape` is None unless requestedToCapacityRatio was written."""

    type: str = "LeastAllocated"
    resources: tuple[ResourceWeight, ...] = CPU_AND_MEMORY
    shape: tuple[ShapePoint, ...] | None = None


@dataclass(frozen=True, slots=True)
class NodeResourcesFitArgs:
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


@dataclass(frozen=True, slots=True)
class DefaultSpreadConstraint:
    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()
    has_selector: bool = False
    """Only to be refused: the selector is deduced for each pod."""


@dataclass(frozen=True, slots=True)
class PodTopologySpreadArgs:
    default_constraints: tuple[DefaultSpreadConstraint, ...] = ()
    defaulting_type: str = "System"


@dataclass(frozen=True, slots=True)
class VolumeBindingArgs:
    """`shape` is None unless StorageCapacityScoring is on."""

    bind_timeout_seconds: int = 600
    shape: tuple[ShapePoint, ...] | None = None


TypedArgs = (
    DefaultPreemptionArgs
    | DynamicResourcesArgs
    | InterPodAffinityArgs
    | NodeAffinityArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeResourcesFitArgs
    | PodTopologySpreadArgs
    | VolumeBindingArgs
)


@dataclass(frozen=True, slots=True)
class FamilyArgs:
    """What a family makes of the arguments of one of its plugins when it finishes a profile: the fields of the file,
    and in a class of its own whatever else the plugin needs."""

    written: Mapping[str, Any]


Args = TypedArgs | FamilyArgs | Mapping[str, Any]
Fields = Mapping[str, Any]


def typed_args(plugin: str, fields: Fields, gates: Gates) -> TypedArgs:
    """The args of an in-tree plugin from decoded fields, defaults filled in."""
    return _READERS[plugin](fields, gates)


def _resources(listed: Sequence[Fields] | None) -> tuple[ResourceWeight, ...]:
    """No resources are cpu and memory, and no weight is a weight of 1."""
    if not listed:
        return CPU_AND_MEMORY
    return tuple(ResourceWeight(item.get("name", ""), item.get("weight") or 1) for item in listed)


def _shape(listed: Sequence[Fields]) -> tuple[ShapePoint, ...]:
    return tuple(ShapePoint(point.get("utilization", 0), point.get("score", 0)) for point in listed)


def _preemption(fields: Fields, _: Gates) -> DefaultPreemptionArgs:
    return DefaultPreemptionArgs(
        fields.get("minCandidateNodesPercentage", 10), fields.get("minCandidateNodesAbsolute", 100)
    )


def _dynamic_resources(fields: Fields, gates: Gates) -> DynamicResourcesArgs:
    binding = {"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"} <= gates
    return DynamicResourcesArgs(
        fields.get("filterTimeout", 10.0 if "DRASchedulerFilterTimeout" in gates else None),
        fields.get("bindingTimeout", 600.0 if binding else None),
    )


def _inter_pod_affinity(fields: Fields, _: Gates) -> InterPodAffinityArgs:
    return InterPodAffinityArgs(
        fields.get("hardPodAffinityWeight", 1), fields.get("ignorePreferredTermsOfExistingPods", False)
    )


def _node_affinity(fields: Fields, _: Gates) -> NodeAffinityArgs:
    return NodeAffinityArgs(fields.get("addedAffinity"))


def _balanced(fields: Fields, _: Gates) -> NodeResourcesBalancedAllocationArgs:
    return NodeResourcesBalancedAllocationArgs(_resources(fields.get("resources")))


def _fit(fields: Fields, _: Gates) -> NodeResourcesFitArgs:
    written = fields.get("scoringStrategy")
    strategy = ScoringStrategy()
    if written is not None:
        ratio = written.get("requestedToCapacityRatio")
        strategy = ScoringStrategy(
            type=written.get("type", ""),
            resources=_resources(written.get("resources")),
            shape=None if ratio is None else _shape(ratio.get("shape", ())),
        )
    return NodeResourcesFitArgs(
        tuple(fields.get("ignoredResources", ())), tuple(fields.get("ignoredResourceGroups", ())), strategy
    )


def _spread(fields: Fields, _: Gates) -> PodTopologySpreadArgs:
    return PodTopologySpreadArgs(
        tuple(_constraint(item) for item in fields.get("defaultConstraints", ())),
        fields.get("defaultingType") or "System",
    )


def _constraint(fields: Fields) -> DefaultSpreadConstraint:
    return DefaultSpreadConstraint(
        max_skew=fields.get("maxSkew", 0),
        topology_key=fields.get("topologyKey", ""),
        when_unsatisfiable=fields.get("whenUnsatisfiable", ""),
        min_domains=fields.get("minDomains"),
        node_affinity_policy=fields.get("nodeAffinityPolicy"),
        node_taints_policy=fields.get("nodeTaintsPolicy"),
        match_label_keys=tuple(fields.get("matchLabelKeys", ())),
        has_selector=fields.get("labelSelector") is not None,
    )


def _volume_binding(fields: Fields, gates: Gates) -> VolumeBindingArgs:
    shape = _shape(fields["shape"]) if "shape" in fields else None
    if not shape and "StorageCapacityScoring" in gates:
        shape = (ShapePoint(0, 10), ShapePoint(100, 0))
    return VolumeBindingArgs(fields.get("bindTimeoutSeconds", 600), shape)


_READERS: Mapping[str, Callable[[Fields, Gates], TypedArgs]] = {
    "DefaultPreemption": _preemption,
    "DynamicResources": _dynamic_resources,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _balanced,
    "NodeResourcesFit": _fit,
    "PodTopologySpread": _spread,
    "VolumeBinding": _volume_binding,
}


def args_document(plugin: str, args: Args) -> Any:
    """Args as the original writes them. Those of a plugin that takes none may be anything, and stay what they are."""
    if not is_dataclass(args):
        return args
    if isinstance(args, FamilyArgs):
        return args.written
    body = {key: value for key, value in _written(args).items() if value is not None}
    return {"apiVersion": API_VERSION, "kind": f"{plugin}Args", **body}


def _written(args: TypedArgs) -> Doc:
    match args:
        case DefaultPreemptionArgs(percentage, absolute):
            return {"minCandidateNodesPercentage": percentage, "minCandidateNodesAbsolute": absolute}
        case DynamicResourcesArgs(filtering, binding):
            return {"filterTimeout": _seconds(filtering), "bindingTimeout": _seconds(binding)}
        case InterPodAffinityArgs(weight, ignore):
            return {"hardPodAffinityWeight": weight, "ignorePreferredTermsOfExistingPods": ignore}
        case NodeAffinityArgs(added):
            return {"addedAffinity": added}
        case NodeResourcesBalancedAllocationArgs(resources, _):
            return {"resources": _resources_written(resources)}
        case NodeResourcesFitArgs(resources, groups, strategy):
            return {
                "ignoredResources": list(resources) or None,
                "ignoredResourceGroups": list(groups) or None,
                "scoringStrategy": _strategy_written(strategy),
            }
        case PodTopologySpreadArgs(constraints, defaulting):
            return {
                "defaultConstraints": [_constraint_written(constraint) for constraint in constraints] or None,
                "defaultingType": defaulting,
            }
        case VolumeBindingArgs(timeout, shape):
            return {"bindTimeoutSeconds": timeout, "shape": shape and shape_written(shape)}


def _seconds(seconds: float | None) -> str | None:
    return None if seconds is None else format_duration(seconds)


def _resources_written(resources: Sequence[ResourceWeight]) -> list[Doc]:
    return [{"name": resource.name, "weight": resource.weight} for resource in resources]


def shape_written(shape: Sequence[ShapePoint]) -> list[Doc]:
    return [{"utilization": point.utilization, "score": point.score} for point in shape]


def _strategy_written(strategy: ScoringStrategy) -> Doc:
    document: Doc = {"type": strategy.type, "resources": _resources_written(strategy.resources)}
    if strategy.shape is not None:
        document["requestedToCapacityRatio"] = {"shape": shape_written(strategy.shape)}
    return document


def _constraint_written(constraint: DefaultSpreadConstraint) -> Doc:
    optional = {
        "minDomains": constraint.min_domains,
        "nodeAffinityPolicy": constraint.node_affinity_policy,
        "nodeTaintsPolicy": constraint.node_taints_policy,
        "matchLabelKeys": list(constraint.match_label_keys) or None,
    }
    return {
        "maxSkew": constraint.max_skew,
        "topologyKey": constraint.topology_key,
        "whenUnsatisfiable": constraint.when_unsatisfiable,
        **{key: value for key, value in optional.items() if value is not None},
    }
