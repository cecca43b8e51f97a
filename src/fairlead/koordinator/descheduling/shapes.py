"""The fields of koord-descheduler's configuration file and of its plugins' arguments, as the format names them."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.config.shapes import ANYTHING, BOOL, DURATION, INT32, INT64, STRING, ConfigStruct, Listed, Shape

API_VERSION = "descheduler/v1alpha2"
_META: Mapping[str, Shape] = {"apiVersion": STRING, "kind": STRING}
_NAMES = ConfigStruct("v1alpha2.Namespaces", {"include": Listed(STRING), "exclude": Listed(STRING)})
_SELECTORS = Listed(ConfigStruct("v1alpha2.PodSelector", {"name": STRING, "selector": ANYTHING}))
_PLUGINS = ConfigStruct(
    "v1alpha2.PluginSet",
    {word: Listed(ConfigStruct("v1alpha2.Plugin", {"name": STRING})) for word in ("enabled", "disabled")},
)
_PROFILE = ConfigStruct(
    "v1alpha2.DeschedulerProfile",
    {
        "name": STRING, "nodeSelector": ANYTHING,
        "plugins": ConfigStruct(
            "v1alpha2.Plugins", dict.fromkeys(("deschedule", "balance", "evict", "filter"), _PLUGINS)
        ),
        "pluginConfig": Listed(ConfigStruct("v1alpha2.PluginConfig", {"name": STRING, "args": ANYTHING})),
    },
)  # fmt: skip
_ELECTION = ConfigStruct(
    "v1alpha1.LeaderElectionConfiguration",
    {
        "leaderElect": BOOL, "leaseDuration": DURATION, "renewDeadline": DURATION, "retryPeriod": DURATION,
        "resourceLock": STRING, "resourceName": STRING, "resourceNamespace": STRING,
    },
)  # fmt: skip
CONFIGURATION = ConfigStruct(
    "v1alpha2.DeschedulerConfiguration",
    {
        **_META, "leaderElection": _ELECTION, "clientConnection": ANYTHING, "enableProfiling": BOOL,
        "enableContentionProfiling": BOOL, "healthzBindAddress": STRING, "metricsBindAddress": STRING,
        "deschedulingInterval": DURATION, "dryRun": BOOL, "profiles": Listed(_PROFILE), "nodeSelector": ANYTHING,
        "maxNoOfPodsToEvictPerNode": INT64, "maxNoOfPodsToEvictPerNamespace": INT64,
        "maxNoOfPodsToEvictTotal": INT64,
    },
)  # fmt: skip
_CONDITION = ConfigStruct(
    "v1alpha2.LoadAnomalyCondition",
    {"timeout": DURATION, "consecutiveAbnormalities": INT32, "consecutiveNormalities": INT32},
)
_POOL: Mapping[str, Shape] = {
    "nodeSelector": ANYTHING, "useDeviationThresholds": BOOL, "highThresholds": ANYTHING, "lowThresholds": ANYTHING,
    "prodHighThresholds": ANYTHING, "prodLowThresholds": ANYTHING, "resourceWeights": ANYTHING,
    "anomalyCondition": _CONDITION,
}  # fmt: skip
_PRIORITY = ConfigStruct(
    "v1alpha2.ResourcePriority",
    {"name": STRING, "nodeSelector": ANYTHING, "keepThreshold": ANYTHING, "rejectThreshold": ANYTHING},
)
ARGS: Mapping[str, ConfigStruct] = {
    "MigrationController": ConfigStruct("v1alpha2.MigrationControllerArgs", {
        **_META, "dryRun": BOOL, "maxConcurrentReconciles": INT32, "evictFailedBarePods": BOOL,
        "evictAllBarePods": BOOL, "evictLocalStoragePods": BOOL, "evictSystemCriticalPods": BOOL,
        "ignorePvcPods": BOOL,
        "priorityThreshold": ConfigStruct("v1alpha2.PriorityThreshold", {"value": INT32, "name": STRING}),
        "labelSelector": ANYTHING, "namespaces": _NAMES, "nodeFit": BOOL, "nodeSelector": STRING,
        "skipEvictionGates": Listed(STRING), "maxMigratingGlobally": INT32, "maxMigratingPerNode": INT32,
        "maxMigratingPerNamespace": INT32, "maxMigratingPerWorkload": ANYTHING,
        "maxUnavailablePerWorkload": ANYTHING, "skipCheckExpectedReplicas": BOOL, "objectLimiters": ANYTHING,
        "defaultJobMode": STRING, "defaultJobTTL": DURATION, "schedulerNames": Listed(STRING),
        "evictQPS": ANYTHING, "evictBurst": INT32, "evictionPolicy": STRING, "defaultDeleteOptions": ANYTHING,
        "arbitrationArgs": ConfigStruct("v1alpha2.ArbitrationArgs", {"enabled": BOOL, "interval": DURATION}),
    }),
    "LowNodeLoad": ConfigStruct("v1alpha2.LowNodeLoadArgs", {
        **_META, **_POOL, "paused": BOOL, "dryRun": BOOL, "numberOfNodes": INT32,
        "nodeMetricExpirationSeconds": INT64, "evictableNamespaces": _NAMES, "podSelectors": _SELECTORS,
        "nodeFit": BOOL, "detectorCacheTimeout": DURATION,
        "nodePools": Listed(ConfigStruct("v1alpha2.LowNodeLoadNodePool", {"name": STRING, **_POOL})),
    }),
    "CustomPriority": ConfigStruct("v1alpha2.CustomPriorityArgs", {
        **_META, "paused": BOOL, "dryRun": BOOL, "evictableNamespaces": _NAMES, "nodeSelector": ANYTHING,
        "podSelectors": _SELECTORS, "nodeFit": BOOL, "evictionOrder": Listed(_PRIORITY), "mode": STRING,
        "autoCordon": BOOL,
    }),
}  # fmt: skip
"""The arguments that a file may have, by plugin."""
