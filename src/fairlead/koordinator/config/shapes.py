"""ARGUMENTS: which fields the arguments of Koordinator's plugins may have.

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

ARGUMENTS: Mapping[str, ConfigStruct] = {name: plugin_args(name, fields) for name, fields in _FIELDS.items()}
"""The arguments that a file may have, by plugin."""
