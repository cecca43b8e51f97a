"""From arguments of Koordinator's plugins, as a configuration has them, to the plugins; defaults are the original's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairlead.config.yaml_text import read_yaml
from fairlead.core.model.durations import parse_duration
from fairlead.errors import ConfigError
from fairlead.koordinator.config.finish import KoordinatorArgs
from fairlead.koordinator.devices.plugin import DeviceSettings, DeviceSharePlugin
from fairlead.koordinator.devices.templates import TemplateRules
from fairlead.koordinator.gangs.plugin import Coscheduling, GangSettings
from fairlead.koordinator.load.plugin import LoadAwareScheduling
from fairlead.koordinator.load.settings import AggregatedUsage, LoadSettings, Thresholds
from fairlead.koordinator.numa.accumulator import FULL_CORES, SPREAD
from fairlead.koordinator.numa.plugin import NodeNUMAResource, NumaSettings
from fairlead.koordinator.pod_annotations import DefaultPreBind
from fairlead.koordinator.quotas.accounts import TreeRules
from fairlead.koordinator.quotas.plugin import ElasticQuotaPlugin, QuotaSettings
from fairlead.koordinator.quotas.revoking import RevokeRules
from fairlead.koordinator.quotas.usage import UsageRules
from fairlead.koordinator.records.gangs import ONCE_SATISFIED, ONLY_WAITING, WAITING_AND_RUNNING
from fairlead.koordinator.records.quirks import KOORDINATOR_FIXED, KoordinatorQuirks
from fairlead.koordinator.request_scores import (
    FitPreference,
    NodeResourcesFitPlus,
    ScarceResourceAvoidance,
    SchedulingHintPlugin,
)
from fairlead.koordinator.reservations.plugin import ReservationPlugin
from fairlead.koordinator.reservations.preallocation import PreAllocationRules
from fairlead.koordinator.reservations.preemption import ReservationPreemption

if TYPE_CHECKING:
    from fairlead.kube.config.plugin_args import Args

_CPU_AND_MEMORY = {"cpu": 1, "memory": 1}


def _given(args: Args) -> KoordinatorArgs:
    """The arguments of a plugin; one that is made without any gets the defaults."""
    if isinstance(args, KoordinatorArgs):
        return args
    return KoordinatorArgs(args if isinstance(args, Mapping) else {}, frozenset(), KOORDINATOR_FIXED)


def _fields(args: Args) -> Mapping[str, Any]:
    """The written fields; what is null counts as not written."""
    written = _given(args).written
    return {name: value for name, value in written.items() if value is not None and name not in ("apiVersion", "kind")}


def _strategy(fields: Mapping[str, Any], name: str, default: Mapping[str, int]) -> tuple[bool, Mapping[str, int]]:
    """Whether a scoring strategy prefers what is used much, and the weights of its resources."""
    strategy = fields.get(name)
    if strategy is None:
        return False, default
    kind = strategy.get("type")
    if kind not in ("LeastAllocated", "MostAllocated"):
        raise ConfigError(f"{name}.type: {kind!r} is neither LeastAllocated nor MostAllocated")
    return kind == "MostAllocated", {one["name"]: one.get("weight") or 0 for one in strategy.get("resources") or ()}


def node_numa_resource(args: Args) -> NodeNUMAResource:
    fields, quirks = _fields(args), _given(args).quirks
    most, weights = _strategy(fields, "scoringStrategy", _CPU_AND_MEMORY)
    numa_most, _ = _strategy(fields, "numaScoringStrategy", _CPU_AND_MEMORY)
    policy = fields.get("defaultCPUBindPolicy") or FULL_CORES
    if policy not in (FULL_CORES, SPREAD, "ConstrainedBurst", "Default"):
        raise ConfigError(f"defaultCPUBindPolicy: {policy!r} must be one of FullPCPUs, SpreadByPCPUs, ConstrainedBurst")
    return NodeNUMAResource(
        NumaSettings(policy, most, numa_most, weights, sorts_by_position=quirks.numa_split_sorts_by_position)
    )


def _numbers(fields: Mapping[str, Any], name: str) -> dict[str, int]:
    """A mapping of resources to whole numbers."""
    written = fields.get(name) or {}
    if not isinstance(written, Mapping):
        raise ConfigError(f"{name}: not a mapping of resources to numbers: {written!r}")
    for resource, number in written.items():
        if isinstance(number, bool) or not isinstance(number, int):
            raise ConfigError(f"{name}[{resource}]: not a whole number: {number!r}")
    return dict(written)


def _duration(fields: Mapping[str, Any], name: str, default: float = 0.0) -> float:
    written = fields.get(name)
    return default if written is None else parse_duration(str(written))


def load_aware_scheduling(args: Args) -> LoadAwareScheduling:
    fields = _fields(args)
    aggregated = fields.get("aggregated") or {}
    limits, kind = _numbers(aggregated, "usageThresholds"), aggregated.get("usageAggregationType") or ""
    weights, dominant = _numbers(fields, "resourceWeights"), fields.get("dominantResourceWeight", 0)
    window = _duration(aggregated, "usageAggregatedDuration")
    settings = LoadSettings(
        thresholds=Thresholds(
            plain=_numbers(fields, "usageThresholds") or {"cpu": 65, "memory": 95},
            prod=_numbers(fields, "prodUsageThresholds"),
            aggregated=AggregatedUsage(limits, kind, window) if limits and kind else None,
        ),
        weights=weights or ({} if dominant else _CPU_AND_MEMORY),
        dominant_weight=dominant,
        factors={"cpu": 85, "memory": 70, **_numbers(fields, "estimatedScalingFactors")},
        expiration=fields.get("nodeMetricExpirationSeconds", 180),
        filters_expired=fields.get("filterExpiredNodeMetrics", True),
        schedules_when_expired=fields.get("enableScheduleWhenNodeMetricsExpired", False),
        prod_scores=fields.get("scoreAccordingProdUsage", False),
        prod_includes_system=fields.get("prodUsageIncludeSys", False),
        after_scheduled=fields.get("estimatedSecondsAfterPodScheduled", -1),
        after_initialized=fields.get("estimatedSecondsAfterInitialized", -1),
        customizes_estimation=fields.get("allowCustomizeEstimation", False),
        score_kind=aggregated.get("scoreAggregationType") or "",
        score_window=_duration(aggregated, "scoreAggregatedDuration"),
        supported=tuple(fields.get("supportedResources", ())),
        keeps_ended_reservations=_given(args).quirks.load_keeps_ended_reservations,
    )
    return LoadAwareScheduling(settings)


def device_share(args: Args) -> DeviceSharePlugin:
    fields, quirks = _fields(args), _given(args).quirks
    default = DeviceSettings()
    most, weights = _strategy(fields, "scoringStrategy", default.weights)
    return DeviceSharePlugin(
        DeviceSettings(
            weights,
            most,
            aligns_with_numa=not fields.get("disableDeviceNUMATopologyAlignment", False),
            swaps_free_and_total=quirks.gpu_score_swaps_free_and_total,
            ascending_partitions=quirks.gpu_partitions_ascend,
            unchecked_beside_numa=quirks.devices_unchecked_beside_numa,
            templates=_templates(fields.get("gpuSharedResourceTemplatesConfig") or {}),
            unshared_models=frozenset(
                (one.get("vendor") or "", one.get("model") or "") for one in fields.get("gpuShareUnsupportedModels", ())
            ),
        )
    )


def _templates(fields: Mapping[str, Any]) -> TemplateRules:
    default = TemplateRules()
    return TemplateRules(
        fields.get("configMapNamespace") or default.namespace,
        fields.get("configMapName") or default.name,
        tuple(fields.get("matchedResources") or default.matched),
        read_yaml,
    )


def elastic_quota(args: Args) -> ElasticQuotaPlugin:
    fields, given = _fields(args), _given(args)
    gates, quirks = given.gates, given.quirks
    rules = UsageRules(
        TreeRules(
            scales=fields.get("enableMinQuotaScale", True),
            guarantees="ElasticQuotaGuaranteeUsage" in gates,
            rounds_up=quirks.quota_shares_round_up,
            defaults_share=quirks.default_quotas_share,
        ),
        several_trees="MultiQuotaTree" in gates,
        no_default="DisableDefaultQuota" in gates,
        ignores_terminating="ElasticQuotaImmediateIgnoreTerminatingPod" in gates,
        counts_pods_late=quirks.quota_learns_of_pods_late,
    )
    revoke = RevokeRules(_duration(fields, "delayEvictTime", 120.0), _duration(fields, "revokePodInterval", 1.0))
    return ElasticQuotaPlugin(
        QuotaSettings(
            rules,
            by_runtime=fields.get("enableRuntimeQuota", True),
            checks_parents=fields.get("enableCheckParentQuota", False),
            namespace=fields.get("quotaGroupNamespace") or "koordinator-system",
            protects_default=fields.get("disableDefaultQuotaPreemption", True),
            others_preempt=quirks.preemption_ignores_quotas,
            names_nodes=quirks.quota_victims_by_node,
            revoke=revoke if fields.get("monitorAllQuotas") else None,
        )
    )


def reservation(args: Args) -> ReservationPlugin:
    fields, quirks = _fields(args), _given(args).quirks
    preemption = None
    if fields.get("enablePreemption"):
        preemption = ReservationPreemption(
            percentage=fields.get("minCandidateNodesPercentage", 10),
            absolute=fields.get("minCandidateNodesAbsolute", 100),
            ignores_quotas=quirks.preemption_ignores_quotas,
        )
    return ReservationPlugin(
        counts_excess=not quirks.reservation_excess_uncounted,
        kept_for=None if fields.get("disableGarbageCollection") else float(fields.get("gcDurationSeconds") or 86400),
        preemption=preemption,
        pre_allocation=_pre_allocation(fields.get("preAllocationConfig") or {}, quirks),
    )


def _pre_allocation(fields: Mapping[str, Any], quirks: KoordinatorQuirks) -> PreAllocationRules:
    default = PreAllocationRules()
    return PreAllocationRules(
        cluster_mode=fields.get("enableClusterMode", False),
        label=fields.get("clusterLabelKey") or default.label,
        priority_annotation=fields.get("clusterPriorityAnnotationKey") or default.priority_annotation,
        prefers_none=fields.get("preferNoPreAllocatedPods", False),
        unscored=quirks.preallocation_of_several_unscored,
    )


def coscheduling(args: Args) -> Coscheduling:
    fields = _fields(args)
    policy = fields.get("defaultMatchPolicy") or ONCE_SATISFIED
    if policy not in (ONLY_WAITING, WAITING_AND_RUNNING, ONCE_SATISFIED):
        raise ConfigError(
            f"defaultMatchPolicy: {policy!r} must be one of only-waiting, waiting-and-running, once-satisfied"
        )
    return Coscheduling(
        GangSettings(
            timeout=_duration(fields, "defaultTimeout", 600.0),
            policy=policy,
            follows_network=fields.get("awareNetworkTopology", False),
            preempts=fields.get("enablePreemption", False),
            preempts_for_each_alone=_given(args).quirks.gang_preempts_for_each_alone,
            keeps_nominations=_given(args).quirks.gang_keeps_nominations,
            rest_stays_gated=_given(args).quirks.gang_rest_stays_gated,
        )
    )


def default_pre_bind(args: Args) -> DefaultPreBind:
    return DefaultPreBind()


def node_resources_fit_plus(args: Args) -> NodeResourcesFitPlus:
    preferences = {}
    for resource, preference in (_fields(args).get("resources") or {}).items():
        kind = (preference or {}).get("type")
        if kind not in ("MostAllocated", "LeastAllocated"):
            raise ConfigError(f"resources[{resource}].type: {kind!r} is neither MostAllocated nor LeastAllocated")
        preferences[resource] = FitPreference(kind == "MostAllocated", preference.get("weight") or 0)
    return NodeResourcesFitPlus(preferences)


def scarce_resource_avoidance(args: Args) -> ScarceResourceAvoidance:
    return ScarceResourceAvoidance(_fields(args).get("resources", ()))


def scheduling_hint(args: Args) -> SchedulingHintPlugin:
    return SchedulingHintPlugin(max_nodes=_fields(args).get("maxHintNodes", 100))
