"""The shapes of KubeSchedulerConfiguration v1 and of the plugin args it may carry, as tables.

Field names are the format's. The Go type names are there because the original's decoding errors name them.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.config.shapes import (
    ANYTHING,
    BOOL,
    BYTES,
    DURATION,
    FLOAT32,
    INT32,
    INT64,
    STRING,
    ConfigStruct,
    Listed,
    Scalar,
    Shape,
    named_string,
)

GROUP = "kubescheduler.config.k8s.io"
API_VERSION = f"{GROUP}/v1"
KIND = "KubeSchedulerConfiguration"

POINTS = (
    "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit",
    "preBind", "bind", "postBind", "placementGenerate", "placementScore",
)  # fmt: skip
"""The extension points, in the order of a pod's way."""

_TYPE_META: Mapping[str, Shape] = {"apiVersion": STRING, "kind": STRING}

_PLUGIN = ConfigStruct("v1.Plugin", {"name": STRING, "weight": INT32})
_PLUGIN_SET = ConfigStruct("v1.PluginSet", {"enabled": Listed(_PLUGIN), "disabled": Listed(_PLUGIN)})
_PLUGINS = ConfigStruct("v1.Plugins", dict.fromkeys((*POINTS, "multiPoint"), _PLUGIN_SET))
_PROFILE = ConfigStruct(
    "v1.KubeSchedulerProfile",
    {
        "schedulerName": STRING,
        "percentageOfNodesToScore": INT32,
        "plugins": _PLUGINS,
        "pluginConfig": Listed(ConfigStruct("v1.PluginConfig", {"name": STRING, "args": ANYTHING})),
    },
)

TLS_FIELDS: Mapping[str, Scalar] = {
    "insecure": BOOL, "serverName": STRING, "certFile": STRING, "keyFile": STRING, "caFile": STRING,
    "certData": BYTES, "keyData": BYTES, "caData": BYTES,
}  # fmt: skip
MANAGED_RESOURCE = ConfigStruct("v1.ExtenderManagedResource", {"name": STRING, "ignoredByScheduler": BOOL})
_EXTENDER = ConfigStruct(
    "v1.Extender",
    {
        "urlPrefix": STRING, "filterVerb": STRING, "preemptVerb": STRING, "prioritizeVerb": STRING, "weight": INT64,
        "bindVerb": STRING, "enableHTTPS": BOOL, "tlsConfig": ConfigStruct("v1.ExtenderTLSConfig", TLS_FIELDS),
        "httpTimeout": DURATION, "nodeCacheCapable": BOOL, "managedResources": Listed(MANAGED_RESOURCE),
        "ignorable": BOOL,
    },
)  # fmt: skip

CONFIGURATION = ConfigStruct(
    f"v1.{KIND}",
    {
        **_TYPE_META,
        "parallelism": INT32,
        "leaderElection": ConfigStruct(
            "v1alpha1.LeaderElectionConfiguration",
            {
                "leaderElect": BOOL,
                "leaseDuration": DURATION,
                "renewDeadline": DURATION,
                "retryPeriod": DURATION,
                "resourceLock": STRING,
                "resourceName": STRING,
                "resourceNamespace": STRING,
            },
        ),
        "clientConnection": ConfigStruct(
            "v1alpha1.ClientConnectionConfiguration",
            {"kubeconfig": STRING, "acceptContentTypes": STRING, "contentType": STRING, "qps": FLOAT32, "burst": INT32},
        ),
        "enableProfiling": BOOL,
        "enableContentionProfiling": BOOL,
        "percentageOfNodesToScore": INT32,
        "podInitialBackoffSeconds": INT64,
        "podMaxBackoffSeconds": INT64,
        "profiles": Listed(_PROFILE),
        "extenders": Listed(_EXTENDER),
        "delayCacheUntilActive": BOOL,
    },
    embedded={"enableProfiling": "DebuggingConfiguration", "enableContentionProfiling": "DebuggingConfiguration"},
)

RESOURCE = ConfigStruct("v1.ResourceSpec", {"name": STRING, "weight": INT64})
SHAPE_POINT = ConfigStruct("v1.UtilizationShapePoint", {"utilization": INT32, "score": INT32})
_REQUIREMENT = ConfigStruct(
    "v1.NodeSelectorRequirement",
    {"key": STRING, "operator": named_string("v1.NodeSelectorOperator"), "values": Listed(STRING)},
)
_NODE_TERM = ConfigStruct(
    "v1.NodeSelectorTerm", {"matchExpressions": Listed(_REQUIREMENT), "matchFields": Listed(_REQUIREMENT)}
)
_NODE_AFFINITY = ConfigStruct(
    "v1.NodeAffinity",
    {
        "requiredDuringSchedulingIgnoredDuringExecution": ConfigStruct(
            "v1.NodeSelector", {"nodeSelectorTerms": Listed(_NODE_TERM)}
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": Listed(
            ConfigStruct("v1.PreferredSchedulingTerm", {"weight": INT32, "preference": _NODE_TERM})
        ),
    },
)
_CONSTRAINT = ConfigStruct(
    "v1.TopologySpreadConstraint",
    {
        "maxSkew": INT32, "topologyKey": STRING, "whenUnsatisfiable": named_string("v1.UnsatisfiableConstraintAction"),
        "labelSelector": Scalar("v1.LabelSelector", lambda value: value), "minDomains": INT32,
        "nodeAffinityPolicy": named_string("v1.NodeInclusionPolicy"),
        "nodeTaintsPolicy": named_string("v1.NodeInclusionPolicy"), "matchLabelKeys": Listed(STRING),
    },
)  # fmt: skip
_STRATEGY = ConfigStruct(
    "v1.ScoringStrategy",
    {
        "type": named_string("v1.ScoringStrategyType"),
        "resources": Listed(RESOURCE),
        "requestedToCapacityRatio": ConfigStruct("v1.RequestedToCapacityRatioParam", {"shape": Listed(SHAPE_POINT)}),
    },
)


def plugin_args(name: str, fields: Mapping[str, Shape]) -> ConfigStruct:
    """The shape of a plugin's arguments."""
    return ConfigStruct(f"v1.{name}Args", {**_TYPE_META, **fields})


PLUGIN_ARGS: Mapping[str, ConfigStruct] = {
    "DefaultPreemption": plugin_args(
        "DefaultPreemption", {"minCandidateNodesPercentage": INT32, "minCandidateNodesAbsolute": INT32}
    ),
    "DynamicResources": plugin_args("DynamicResources", {"filterTimeout": DURATION, "bindingTimeout": DURATION}),
    "InterPodAffinity": plugin_args(
        "InterPodAffinity", {"hardPodAffinityWeight": INT32, "ignorePreferredTermsOfExistingPods": BOOL}
    ),
    "NodeAffinity": plugin_args("NodeAffinity", {"addedAffinity": _NODE_AFFINITY}),
    "NodeResourcesBalancedAllocation": plugin_args("NodeResourcesBalancedAllocation", {"resources": Listed(RESOURCE)}),
    "NodeResourcesFit": plugin_args(
        "NodeResourcesFit",
        {
            "ignoredResources": Listed(STRING),
            "ignoredResourceGroups": Listed(STRING),
            "scoringStrategy": _STRATEGY,
        },
    ),
    "PodTopologySpread": plugin_args(
        "PodTopologySpread",
        {
            "defaultConstraints": Listed(_CONSTRAINT),
            "defaultingType": named_string("v1.PodTopologySpreadConstraintsDefaulting"),
        },
    ),
    "VolumeBinding": plugin_args("VolumeBinding", {"bindTimeoutSeconds": INT64, "shape": Listed(SHAPE_POINT)}),
}
"""By plugin name; a plugin that is not here takes its args as they are."""
