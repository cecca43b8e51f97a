"""Validation of plugin args: one function per plugin, with the original's checks in the original's order.

Each function is given the path of the args and returns what is wrong below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.core.model.durations import format_duration
from fairlead.core.model.syntax import label_key_complaints, label_value_complaints, parse_int64
from fairlead.kube.config.field_errors import (
    ConfigFieldError,
    duplicate,
    forbidden,
    invalid,
    qualified_name_complaints,
    required,
    unsupported,
)
from fairlead.kube.config.plugin_args import (
    DefaultPreemptionArgs,
    DefaultSpreadConstraint,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ShapePoint,
    TypedArgs,
    VolumeBindingArgs,
)

if TYPE_CHECKING:
    from fairlead.config.problems import Path
    from fairlead.kube.config.gates import Gates

Found = Iterator[ConfigFieldError]
STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")


def args_errors(path: Path, args: TypedArgs, gates: Gates) -> list[ConfigFieldError]:
    match args:
        case DefaultPreemptionArgs():
            return list(_preemption(path, args))
        case DynamicResourcesArgs():
            return list(_dynamic_resources(path, args, gates))
        case InterPodAffinityArgs():
            return list(_inter_pod_affinity(path, args))
        case NodeAffinityArgs():
            return list(_node_affinity(path, args))
        case NodeResourcesBalancedAllocationArgs():
            return list(_balanced(path, args))
        case NodeResourcesFitArgs():
            return list(_fit(path, args))
        case PodTopologySpreadArgs():
            return list(_spread(path, args))
        case VolumeBindingArgs():
            return list(_volume_binding(path, args, gates))


def _preemption(path: Path, args: DefaultPreemptionArgs) -> Found:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    at_percentage, at_absolute = (*path, "minCandidateNodesPercentage"), (*path, "minCandidateNodesAbsolute")
    if not 0 <= percentage <= 100:
        yield invalid(at_percentage, percentage, "not in valid range [0, 100]")
    if absolute < 0:
        yield invalid(at_absolute, absolute, "not in valid range [0, inf)")
    if percentage == absolute == 0:
        yield invalid(at_percentage, 0, "cannot be zero at the same time as minCandidateNodesAbsolute")
        yield invalid(at_absolute, 0, "cannot be zero at the same time as minCandidateNodesPercentage")


def _dynamic_resources(path: Path, args: DynamicResourcesArgs, gates: Gates) -> Found:
    filtering, binding = args.filter_timeout, args.binding_timeout
    if filtering is not None:
        if "DRASchedulerFilterTimeout" not in gates:
            yield forbidden((*path, "filterTimeout"), "DRASchedulingFilterTimeout feature gate is disabled")
        elif filtering < 0:
            yield invalid((*path, "filterTimeout"), format_duration(filtering), "must be zero or positive")
    if binding is not None:
        at = (*path, "bindingTimeout")
        if not {"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"} <= gates:
            gate = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
            yield forbidden(at, gate)
        elif binding < 1:
            yield invalid(at, format_duration(binding), "must be at least 1 second")


def _inter_pod_affinity(path: Path, args: InterPodAffinityArgs) -> Found:
    if not 0 <= args.hard_pod_affinity_weight <= 100:
        at = (*path, "hardPodAffinityWeight")
        yield invalid(at, args.hard_pod_affinity_weight, "not in valid range [0, 100]")


def _balanced(path: Path, args: NodeResourcesBalancedAllocationArgs) -> Found:
    seen = set()
    for at, resource in enumerate(args.resources):
        if resource.name in seen:
            yield duplicate((*path, "resources", at, "name"), resource.name)
        seen.add(resource.name)
        if resource.weight != 1:
            yield invalid((*path, "resources", at, "weight"), resource.weight, "must be 1")


def _volume_binding(path: Path, args: VolumeBindingArgs, gates: Gates) -> Found:
    if args.bind_timeout_seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        yield invalid((*path, "bindTimeoutSeconds"), args.bind_timeout_seconds, detail)
    if "StorageCapacityScoring" in gates:
        yield from _shape((*path, "shape"), args.shape or ())
    elif args.shape is not None:
        shown = [{"Utilization": point.utilization, "Score": point.score} for point in args.shape]
        detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        yield invalid((*path, "shape"), shown, detail)


def _shape(path: Path, shape: Sequence[ShapePoint]) -> Found:
    if not shape:
        yield required(path, "at least one point must be specified")
    falling = (at for at in range(1, len(shape)) if shape[at - 1].utilization >= shape[at].utilization)
    for at in list(falling)[:1]:
        yield invalid((*path, at, "utilization"), shape[at].utilization, "values must be sorted in increasing order")
    for at, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            yield invalid((*path, at, "utilization"), point.utilization, "not in valid range [0, 100]")
        if not 0 <= point.score <= 10:
            yield invalid((*path, at, "score"), point.score, "not in valid range [0, 10]")


def _fit(path: Path, args: NodeResourcesFitArgs) -> Found:
    for at, name in enumerate(args.ignored_resources):
        yield from _qualified((*path, "ignoredResources", at), name)
    for at, group in enumerate(args.ignored_resource_groups):
        if "/" in group:
            yield invalid((*path, "ignoredResourceGroups", at), group, "resource group name can't contain '/'")
        yield from _qualified((*path, "ignoredResourceGroups", at), group)
    strategy, at_strategy = args.scoring_strategy, (*path, "scoringStrategy")
    if strategy.type not in STRATEGIES:
        yield unsupported((*at_strategy, "type"), strategy.type, STRATEGIES)
    for at, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            yield invalid((*at_strategy, "resources", at, "weight"), resource.weight, detail)
    yield from _ratio((*at_strategy, "requestedToCapacityRatio"), strategy.type, strategy.shape)


def _ratio(path: Path, strategy: str, shape: tuple[ShapePoint, ...] | None) -> Found:
    if strategy != "RequestedToCapacityRatio":
        if shape is not None:
            yield forbidden(path, "must be nil when type is not RequestedToCapacityRatio")
    elif shape is None:
        yield required(path, "must be specified when type is RequestedToCapacityRatio")
    else:
        yield from _shape((*path, "shape"), shape)


def _qualified(path: Path, name: str) -> Found:
    for complaint in qualified_name_complaints(name):
        yield invalid(path, name, complaint)


def _spread(path: Path, args: PodTopologySpreadArgs) -> Found:
    at_type = (*path, "defaultingType")
    if args.defaulting_type not in ("System", "List"):
        yield unsupported(at_type, args.defaulting_type, ("System", "List"))
    elif args.defaulting_type == "System" and args.default_constraints:
        hint = 'constraints of your own need "defaultingType: List"'
        yield invalid(at_type, "System", "when .defaultConstraints are not empty", hint)
    seen: set[tuple[str, str]] = set()
    for at, constraint in enumerate(args.default_constraints):
        here = (*path, "defaultConstraints", at)
        yield from _constraint(here, constraint)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in seen:
            yield duplicate(here, f"{{{pair[0]}, {pair[1]}}}")
        seen.add(pair)


def _constraint(path: Path, constraint: DefaultSpreadConstraint) -> Found:
    if constraint.max_skew <= 0:
        yield invalid((*path, "maxSkew"), constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        yield required((*path, "topologyKey"), "can not be empty")
    else:
        yield from _qualified((*path, "topologyKey"), constraint.topology_key)
    actions, action = ("DoNotSchedule", "ScheduleAnyway"), constraint.when_unsatisfiable
    if not action:
        yield required((*path, "whenUnsatisfiable"), "can not be empty")
    elif action not in actions:
        yield unsupported((*path, "whenUnsatisfiable"), action, actions)
    if constraint.has_selector:
        detail = "constraint must not define a selector, as they deduced for each pod"
        yield forbidden((*path, "labelSelector"), detail)


def _node_affinity(path: Path, args: NodeAffinityArgs) -> Found:
    affinity, here = args.added_affinity or {}, (*path, "addedAffinity")
    required_terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", ())
    at_required = (*here, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    for at, term in enumerate(required_terms):
        yield from _term((*at_required, at), term)
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution", ())
    for at, each in enumerate(preferred):
        if each.get("weight"):
            yield from _term((*here, "preferredDuringSchedulingIgnoredDuringExecution", at), each.get("preference", {}))


def _term(path: Path, term: Mapping[str, Any]) -> Found:
    for at, expression in enumerate(term.get("matchExpressions", ())):
        yield from _expression((*path, "matchExpressions", at), expression)
    for at, expression in enumerate(term.get("matchFields", ())):
        yield from _field((*path, "matchFields", at), expression)


def _field(path: Path, expression: Mapping[str, Any]) -> Found:
    operator, values = expression.get("operator", ""), expression.get("values")
    if operator not in ("In", "NotIn"):
        yield unsupported((*path, "operator"), operator, ("In", "NotIn"))
    elif len(values or ()) != 1:
        yield invalid((*path, "values"), values, "must have one element")


def _expression(path: Path, expression: Mapping[str, Any]) -> Found:
    operator = expression.get("operator", "")
    if operator not in _VALUE_RULES:
        yield unsupported((*path, "operator"), operator, _VALUE_RULES)
        return
    key, values = expression.get("key", ""), expression.get("values")
    complaints = label_key_complaints(key)
    if complaints:
        yield invalid((*path, "key"), key, "; ".join(complaints))
    yield from _VALUE_RULES[operator]((*path, "values"), values)
    for at, value in enumerate(values or ()):
        wrong = label_value_complaints(value)
        if wrong:
            yield invalid((*path, f"values[{at}][{key}]"), value, "; ".join(wrong))


def _some_values(path: Path, values: list[str] | None) -> Found:
    if not values:
        yield invalid(path, values, "for 'in', 'notin' operators, values set can't be empty")


def _no_values(path: Path, values: list[str] | None) -> Found:
    if values:
        yield invalid(path, values, "values set must be empty for exists and does not exist")


def _one_number(path: Path, values: list[str] | None) -> Found:
    if len(values or ()) != 1:
        yield invalid(path, values, "for 'Gt', 'Lt' operators, exactly one value is required")
    for at, value in enumerate(values or ()):
        if parse_int64(value) is None:
            yield invalid((*path, at), value, "for 'Gt', 'Lt' operators, the value must be an integer")


_VALUE_RULES: Mapping[str, Callable[[Path, list[str] | None], Found]] = {
    "In": _some_values, "NotIn": _some_values, "Exists": _no_values, "DoesNotExist": _no_values,
    "Gt": _one_number, "Lt": _one_number,
}  # fmt: skip
