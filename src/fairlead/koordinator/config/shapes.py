"""The plugins of Koordinator's scheduler: where each takes part, and which fields its arguments may have.

Names of fields are the format's; a file with others is refused like one with unknown fields of kube-scheduler's own.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.config.shapes import (
    ANYTHING,
    BOOL,
    DURATION,
    INT32,
    INT64,
    STRING,
    ConfigStruct,
    Listed,
    Shape,
    named_string,
)
from fairlead.kube.config.shapes import RESOURCE, plugin_args

_STRATEGY = ConfigStruct(
    "v1.ScoringStrategy", {"type": named_string("v1.ScoringStrategyType"), "resources": Listed(RESOURCE)}
)
_AGGREGATED = ConfigStruct(
    "v1.LoadAwareSchedulingAggregatedArgs",
    {
        "usageThresholds": ANYTHING, "usageAggregationType": STRING, "usageAggregatedDuration": DURATION,
        "scoreAggregationType": STRING, "scoreAggregatedDuration": DURATION,
    },
)  # fmt: skip
_TEMPLATES = ConfigStruct(
    "v1.GPUSharedResourceTemplatesConfig",
    {"configMapNamespace": STRING, "configMapName": STRING, "matchedResources": Listed(STRING)},
)
_MODEL = ConfigStruct("v1.GPUShareUnsupportedModel", {"vendor": STRING, "model": STRING})
_PRE_ALLOCATION = ConfigStruct(
    "v1.PreAllocationConfig",
    {
        "enableClusterMode": BOOL, "clusterLabelKey": STRING, "clusterPriorityAnnotationKey": STRING,
        "preferNoPreAllocatedPods": BOOL,
    },
)  # fmt: skip
_FIELDS: Mapping[str, Mapping[str, Shape]] = {
    "LoadAwareScheduling": {
        "filterExpiredNodeMetrics": BOOL, "enableScheduleWhenNodeMetricsExpired": BOOL,
        "nodeMetricExpirationSeconds": INT64, "dominantResourceWeight": INT64, "resourceWeights": ANYTHING,
        "usageThresholds": ANYTHING, "prodUsageThresholds": ANYTHING, "prodUsageIncludeSys": BOOL,
        "scoreAccordingProdUsage": BOOL, "estimator": STRING, "estimatedScalingFactors": ANYTHING,
        "estimatedSecondsAfterPodScheduled": INT64, "estimatedSecondsAfterInitialized": INT64,
        "allowCustomizeEstimation": BOOL, "aggregated": _AGGREGATED, "supportedResources": Listed(STRING),
    },
    "NodeNUMAResource": {
        "defaultCPUBindPolicy": STRING, "scoringStrategy": _STRATEGY, "numaScoringStrategy": _STRATEGY,
    },
    "Reservation": {
        "enablePreemption": BOOL, "minCandidateNodesPercentage": INT32, "minCandidateNodesAbsolute": INT32,
        "controllerWorkers": INT32, "gcDurationSeconds": INT64, "gcIntervalSeconds": INT64,
        "disableGarbageCollection": BOOL, "resyncIntervalSeconds": INT64, "preAllocationConfig": _PRE_ALLOCATION,
    },
    "ElasticQuota": {
        "delayEvictTime": DURATION, "revokePodInterval": DURATION, "defaultQuotaGroupMax": ANYTHING,
        "systemQuotaGroupMax": ANYTHING, "quotaGroupNamespace": STRING, "monitorAllQuotas": BOOL,
        "enableCheckParentQuota": BOOL, "enableRuntimeQuota": BOOL, "enableMinQuotaScale": BOOL,
        "disableDefaultQuotaPreemption": BOOL, "enableQueueHint": BOOL, "quotaSnapshotUpdateInterval": DURATION,
        "hookPlugins": ANYTHING,
    },
    "Coscheduling": {
        "defaultTimeout": DURATION, "controllerWorkers": INT64, "skipCheckScheduleCycle": BOOL,
        "enablePreemption": BOOL, "awareNetworkTopology": BOOL, "defaultMatchPolicy": STRING,
    },
    "DeviceShare": {
        "allocator": STRING, "scoringStrategy": _STRATEGY, "disableDeviceNUMATopologyAlignment": BOOL,
        "gpuSharedResourceTemplatesConfig": _TEMPLATES, "gpuShareUnsupportedModels": Listed(_MODEL),
    },
    "NodeResourcesFitPlus": {"resources": ANYTHING},
    "ScarceResourceAvoidance": {"resources": Listed(STRING)},
    "SchedulingHint": {"maxHintNodes": INT32},
}  # fmt: skip

KOORDINATOR_ARGS: Mapping[str, ConfigStruct] = {name: plugin_args(name, fields) for name, fields in _FIELDS.items()}
"""The arguments that a file may have, by plugin."""

KOORDINATOR_POINTS: Mapping[str, frozenset[str]] = {
    name: frozenset(points.split())
    for name, points in {
        "LoadAwareScheduling": "preFilter filter score reserve",
        "NodeNUMAResource": "preFilter filter preScore score reserve preBind",
        "DeviceShare": "preFilter filter preScore score reserve preBind",
        "Reservation": "preFilter filter postFilter preScore score reserve preBind bind",
        "Coscheduling": "preEnqueue preFilter postFilter preScore score reserve permit preBind postBind",
        "ElasticQuota": "preFilter postFilter reserve",
        "NodeResourcesFitPlus": "preScore score",
        "ScarceResourceAvoidance": "preScore score",
        "SchedulingHint": "preFilter",
        "DefaultPreBind": "preBind",
    }.items()
}
"""The extension points at which the original's plugins take part."""

KOORDINATOR_FACTORIES: Mapping[str, str] = {
    "LoadAwareScheduling": "load_aware_scheduling",
    "NodeResourcesFitPlus": "node_resources_fit_plus",
    "ScarceResourceAvoidance": "scarce_resource_avoidance",
    "SchedulingHint": "scheduling_hint",
    "NodeNUMAResource": "node_numa_resource",
    "DeviceShare": "device_share",
    "Reservation": "reservation",
    "Coscheduling": "coscheduling",
    "ElasticQuota": "elastic_quota",
    "DefaultPreBind": "default_pre_bind",
}
"""The functions of koordinator/config/factories.py that make the plugins."""
