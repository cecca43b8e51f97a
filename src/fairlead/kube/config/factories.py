"""From a plugin's args, as a configuration has them, to the plugin. Only those that take args have an entry here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from fairlead.cel.selectors import compile_selector
from fairlead.config.problems import suggestion
from fairlead.core.family import brought
from fairlead.core.model.requirements import NOTHING
from fairlead.core.model.selectors import NodeSelector, parse_node_selector, parse_preferred_terms
from fairlead.core.model.terms import SpreadConstraint
from fairlead.errors import ConfigError
from fairlead.kube.affinity.plugin import InterPodAffinity
from fairlead.kube.claims.plugin import DynamicResources
from fairlead.kube.config import plugin_args
from fairlead.kube.gangs.placements import TopologyPlacementGenerator
from fairlead.kube.gangs.plugin import TIMEOUT, GangScheduling
from fairlead.kube.nodes.node_affinity import NodeAffinityPlugin
from fairlead.kube.preemption.plugin import DefaultPreemption
from fairlead.kube.resources.plugin import NodeResourcesBalancedAllocation, NodeResourcesFit
from fairlead.kube.spread.plugin import PodTopologySpread
from fairlead.kube.volumes.binding import VolumeBinding

if TYPE_CHECKING:
    from fairlead.kube.config.plugin_args import Args

AnyArgs = TypeVar("AnyArgs")


def _typed(args: Args, cls: type[AnyArgs]) -> AnyArgs:
    """The args, which kube/config/kube.py has decoded already; a plugin made without any gets the defaults."""
    return args if isinstance(args, cls) else cls()


def node_affinity(args: Args) -> NodeAffinityPlugin:
    added = _typed(args, plugin_args.NodeAffinityArgs).added_affinity or {}
    required = added.get("requiredDuringSchedulingIgnoredDuringExecution")
    selector: NodeSelector | None = parse_node_selector(required, strict=True) if required is not None else None
    preferred = parse_preferred_terms(added.get("preferredDuringSchedulingIgnoredDuringExecution") or ())
    return NodeAffinityPlugin(added_required=selector, added_preferred=preferred)


def node_resources_fit(args: Args) -> NodeResourcesFit:
    fit = _typed(args, plugin_args.NodeResourcesFitArgs)
    strategy = fit.scoring_strategy
    return NodeResourcesFit(
        strategy=strategy.type,
        resources=[(resource.name, resource.weight) for resource in strategy.resources],
        shape=[(point.utilization, point.score) for point in strategy.shape or ()],
        ignored_resources=fit.ignored_resources,
        ignored_groups=fit.ignored_resource_groups,
        compile_selector=compile_selector,
    )


def balanced_allocation(args: Args) -> NodeResourcesBalancedAllocation:
    balanced = _typed(args, plugin_args.NodeResourcesBalancedAllocationArgs)
    return NodeResourcesBalancedAllocation(
        resources=[(r.name, r.weight) for r in balanced.resources], by_gain=balanced.by_gain
    )


def default_preemption(args: Args) -> DefaultPreemption:
    preemption = _typed(args, plugin_args.DefaultPreemptionArgs)
    return DefaultPreemption(
        min_candidates_percentage=preemption.min_candidate_nodes_percentage,
        min_candidates_absolute=preemption.min_candidate_nodes_absolute,
    )


def gang_scheduling(args: Args) -> GangScheduling:
    """`timeoutSeconds`, `afterTimeout` (Report or Evict) and `preemption` (PodGroup or Pod); the original has none."""
    given = dict(args) if isinstance(args, Mapping) else {}
    given.pop("apiVersion", None)
    given.pop("kind", None)
    timeout = given.pop("timeoutSeconds", TIMEOUT)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout <= 0:
        raise ConfigError(f"timeoutSeconds: not a positive number: {timeout!r}")
    evicts = _one_of(given, "afterTimeout", ("Report", "Evict")) == "Evict"
    rescues_whole = _one_of(given, "preemption", ("PodGroup", "Pod")) == "PodGroup"
    if given:
        known = ("timeoutSeconds", "afterTimeout", "preemption")
        unknown = next(iter(given))
        raise ConfigError(f'unknown field "{unknown}"', hint=suggestion(unknown, known))
    return GangScheduling(timeout=float(timeout), evicts=evicts, rescues_whole=rescues_whole)


def _one_of(given: dict[str, object], field: str, choices: tuple[str, ...]) -> str:
    said = given.pop(field, choices[0])
    if said not in choices:
        raise ConfigError(f"{field}: {said!r} must be one of {', '.join(choices)}")
    return str(said)


def topology_placement_generator() -> TopologyPlacementGenerator:
    return TopologyPlacementGenerator(networks=[make() for make in brought("network_domains")])


def pod_topology_spread(args: Args) -> PodTopologySpread:
    spread = _typed(args, plugin_args.PodTopologySpreadArgs)
    constraints = [
        SpreadConstraint(
            max_skew=constraint.max_skew,
            topology_key=constraint.topology_key,
            hard=constraint.when_unsatisfiable == "DoNotSchedule",
            selector=NOTHING,
            min_domains=constraint.min_domains or 1,
            honor_affinity=constraint.node_affinity_policy != "Ignore",
            honor_taints=constraint.node_taints_policy == "Honor",
            match_label_keys=constraint.match_label_keys,
        )
        for constraint in spread.default_constraints
    ]
    return PodTopologySpread(default_constraints=constraints, defaulting=spread.defaulting_type)


def inter_pod_affinity(args: Args) -> InterPodAffinity:
    affinity = _typed(args, plugin_args.InterPodAffinityArgs)
    return InterPodAffinity(
        hard_pod_affinity_weight=affinity.hard_pod_affinity_weight,
        ignore_preferred_terms_of_existing_pods=affinity.ignore_preferred_terms_of_existing_pods,
    )


def dynamic_resources(args: Args) -> DynamicResources:
    given = _typed(args, plugin_args.DynamicResourcesArgs)
    return DynamicResources(
        compile_selector, filter_timeout=given.filter_timeout, binding_timeout=given.binding_timeout or 600.0
    )


def volume_binding(args: Args) -> VolumeBinding:
    binding = _typed(args, plugin_args.VolumeBindingArgs)
    shape = [(point.utilization, point.score) for point in binding.shape or ()]
    return VolumeBinding(bind_timeout=binding.bind_timeout_seconds, shape=shape or None)
