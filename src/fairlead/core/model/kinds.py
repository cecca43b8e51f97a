"""The kinds of the Kubernetes API that we speak, as a table.

A Kind says how an object is addressed: group, version, plural, scope, and which subresources and verbs it has. There
is one Kind instance per (group, version, plural), so kinds compare and hash by identity, which is what the hot paths
want. Two kinds may share one storage (`core/v1` and `events.k8s.io/v1` Events are the same objects seen twice): then
`stored_as` names the one that is kept, and cluster/store/conversion.py turns the one into the other.

Kinds defined at run time (CustomResourceDefinitions) are more rows of a Registry, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """What a CustomResourceDefinition says of one version of its kind. `schema` is the structural schema."""

    name: str
    schema: Mapping[str, Any]
    columns: tuple[Mapping[str, Any], ...] = ()
    scale: Mapping[str, str] | None = None
    selectable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    stored_as: Kind | None = None
    definition: Definition | None = None
    """Set for kinds that are defined at run time."""
    storage: Kind = field(init=False, repr=False)
    """The kind under which objects of this kind are kept."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "storage", self.stored_as or self)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        return self.kind + "List"

    @property
    def resource(self) -> str:
        """The name in messages: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of a collection, an object or a subresource."""
        parts = [f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"]
        if namespace and self.namespaced:
            parts.append(f"namespaces/{namespace}")
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)

    def __repr__(self) -> str:
        return f"<Kind {self.resource}/{self.version}>"


def _kind(
    api_version: str, kind: str, plural: str, *, cluster: bool = False, short: str = "", sub: str = "status",
    categories: str = "", stored_as: Kind | None = None,
) -> Kind:  # fmt: skip
    group, _, version = api_version.rpartition("/")
    return Kind(
        group=group, version=version, kind=kind, plural=plural, namespaced=not cluster, singular=kind.lower(),
        short_names=tuple(short.split()), categories=tuple(categories.split()), subresources=frozenset(sub.split()),
        stored_as=stored_as,
    )  # fmt: skip


# core
POD = _kind(
    "v1", "Pod", "pods", short="po", sub="status binding eviction ephemeralcontainers resize log", categories="all"
)
NODE = _kind("v1", "Node", "nodes", cluster=True, short="no")
NAMESPACE = _kind("v1", "Namespace", "namespaces", cluster=True, short="ns", sub="status finalize")
SERVICE = _kind("v1", "Service", "services", short="svc", categories="all")
ENDPOINTS = _kind("v1", "Endpoints", "endpoints", short="ep", sub="")
EVENT = _kind("v1", "Event", "events", short="ev", sub="")
CONFIG_MAP = _kind("v1", "ConfigMap", "configmaps", short="cm", sub="")
SECRET = _kind("v1", "Secret", "secrets", sub="")
SERVICE_ACCOUNT = _kind("v1", "ServiceAccount", "serviceaccounts", short="sa", sub="token")
PERSISTENT_VOLUME = _kind("v1", "PersistentVolume", "persistentvolumes", cluster=True, short="pv")
PERSISTENT_VOLUME_CLAIM = _kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims", short="pvc")
RESOURCE_QUOTA = _kind("v1", "ResourceQuota", "resourcequotas", short="quota")
LIMIT_RANGE = _kind("v1", "LimitRange", "limitranges", short="limits", sub="")
REPLICATION_CONTROLLER = _kind(
    "v1", "ReplicationController", "replicationcontrollers", short="rc", sub="status scale", categories="all"
)
POD_TEMPLATE = _kind("v1", "PodTemplate", "podtemplates", sub="")
# apps, batch, autoscaling
DEPLOYMENT = _kind("apps/v1", "Deployment", "deployments", short="deploy", sub="status scale", categories="all")
REPLICA_SET = _kind("apps/v1", "ReplicaSet", "replicasets", short="rs", sub="status scale", categories="all")
STATEFUL_SET = _kind("apps/v1", "StatefulSet", "statefulsets", short="sts", sub="status scale", categories="all")
DAEMON_SET = _kind("apps/v1", "DaemonSet", "daemonsets", short="ds", categories="all")
CONTROLLER_REVISION = _kind("apps/v1", "ControllerRevision", "controllerrevisions", sub="")
JOB = _kind("batch/v1", "Job", "jobs", categories="all")
CRON_JOB = _kind("batch/v1", "CronJob", "cronjobs", short="cj", categories="all")
HORIZONTAL_POD_AUTOSCALER = _kind(
    "autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", short="hpa", categories="all"
)
HORIZONTAL_POD_AUTOSCALER_V1 = _kind(
    "autoscaling/v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", short="hpa", categories="all",
    stored_as=HORIZONTAL_POD_AUTOSCALER,
)  # fmt: skip
# policy, scheduling, node, coordination, events
POD_DISRUPTION_BUDGET = _kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", short="pdb")
PRIORITY_CLASS = _kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", cluster=True, short="pc", sub="")
POD_GROUP_BETA = _kind("scheduling.k8s.io/v1beta1", "PodGroup", "podgroups")
WORKLOAD_BETA = _kind("scheduling.k8s.io/v1beta1", "Workload", "workloads", sub="")
POD_GROUP = _kind("scheduling.k8s.io/v1alpha2", "PodGroup", "podgroups", stored_as=POD_GROUP_BETA)
WORKLOAD = _kind("scheduling.k8s.io/v1alpha2", "Workload", "workloads", sub="", stored_as=WORKLOAD_BETA)
RUNTIME_CLASS = _kind("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", cluster=True, sub="")
LEASE = _kind("coordination.k8s.io/v1", "Lease", "leases", sub="")
EVENT_V1 = _kind("events.k8s.io/v1", "Event", "events", short="ev", sub="", stored_as=EVENT)
# storage
STORAGE_CLASS = _kind("storage.k8s.io/v1", "StorageClass", "storageclasses", cluster=True, short="sc", sub="")
CSI_NODE = _kind("storage.k8s.io/v1", "CSINode", "csinodes", cluster=True, sub="")
CSI_DRIVER = _kind("storage.k8s.io/v1", "CSIDriver", "csidrivers", cluster=True, sub="")
CSI_STORAGE_CAPACITY = _kind("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities", sub="")
VOLUME_ATTACHMENT = _kind("storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", cluster=True)
VOLUME_ATTRIBUTES_CLASS = _kind(
    "storage.k8s.io/v1", "VolumeAttributesClass", "volumeattributesclasses", cluster=True, short="vac", sub=""
)
# dynamic resource allocation
RESOURCE_CLAIM = _kind("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", sub="status binding")
RESOURCE_CLAIM_TEMPLATE = _kind("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates", sub="")
RESOURCE_SLICE = _kind("resource.k8s.io/v1", "ResourceSlice", "resourceslices", cluster=True, sub="")
DEVICE_CLASS = _kind("resource.k8s.io/v1", "DeviceClass", "deviceclasses", cluster=True, sub="")
# RBAC and discovery: stored, not enforced
ROLE = _kind("rbac.authorization.k8s.io/v1", "Role", "roles", sub="")
ROLE_BINDING = _kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", sub="")
CLUSTER_ROLE = _kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", cluster=True, sub="")
CLUSTER_ROLE_BINDING = _kind(
    "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", cluster=True, sub=""
)
ENDPOINT_SLICE = _kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", sub="")
# Networking: stored, nobody routes anything
NETWORK_POLICY = _kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", short="netpol", sub="")
INGRESS = _kind("networking.k8s.io/v1", "Ingress", "ingresses", short="ing")
INGRESS_CLASS = _kind("networking.k8s.io/v1", "IngressClass", "ingressclasses", cluster=True, sub="")
# Kinds that users define
CUSTOM_RESOURCE_DEFINITION = _kind(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", cluster=True,
    short="crd crds", categories="api-extensions",
)  # fmt: skip
# Volcano
VC_JOB = _kind("batch.volcano.sh/v1alpha1", "Job", "jobs", short="vcjob vj")
VC_CRON_JOB = _kind("batch.volcano.sh/v1alpha1", "CronJob", "cronjobs", short="vccronjob vccj")
VC_COMMAND = _kind("bus.volcano.sh/v1alpha1", "Command", "commands", sub="")
# Volcano writes the status of these two with the object itself: their CRDs have no status subresource.
VC_POD_GROUP = _kind("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups", short="pg podgroup-v1beta1", sub="")
VC_QUEUE = _kind("scheduling.volcano.sh/v1beta1", "Queue", "queues", cluster=True, short="q queue-v1beta1")
VC_JOB_FLOW = _kind("flow.volcano.sh/v1alpha1", "JobFlow", "jobflows", short="jf")
VC_JOB_TEMPLATE = _kind("flow.volcano.sh/v1alpha1", "JobTemplate", "jobtemplates", short="jt")
VC_NUMATOPOLOGY = _kind(
    "nodeinfo.volcano.sh/v1alpha1", "Numatopology", "numatopologies", cluster=True, short="numatopo", sub=""
)
VC_HYPER_NODE = _kind("topology.volcano.sh/v1alpha1", "HyperNode", "hypernodes", cluster=True, short="hn")
VC_NODE_SHARD = _kind("shard.volcano.sh/v1alpha1", "NodeShard", "nodeshards", cluster=True)
# scheduler-plugins' coscheduling
X_POD_GROUP = _kind("scheduling.x-k8s.io/v1alpha1", "PodGroup", "podgroups", short="pg")
# Koordinator
KOORD_POD_GROUP = _kind("scheduling.sigs.k8s.io/v1alpha1", "PodGroup", "podgroups", sub="")
KOORD_ELASTIC_QUOTA = _kind("scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota", "elasticquotas", sub="")
KOORD_QUOTA_PROFILE = _kind(
    "quota.koordinator.sh/v1alpha1", "ElasticQuotaProfile", "elasticquotaprofiles", short="eqp", sub=""
)
KOORD_RESERVATION = _kind("scheduling.koordinator.sh/v1alpha1", "Reservation", "reservations", cluster=True)
KOORD_DEVICE = _kind("scheduling.koordinator.sh/v1alpha1", "Device", "devices", cluster=True, sub="")
KOORD_NETWORK_TOPOLOGY = _kind(
    "scheduling.koordinator.sh/v1alpha1", "ClusterNetworkTopology", "clusternetworktopologies", cluster=True
)
KOORD_MIGRATION_JOB = _kind(
    "scheduling.koordinator.sh/v1alpha1", "PodMigrationJob", "podmigrationjobs", cluster=True, short="pmj"
)
KOORD_NODE_METRIC = _kind("slo.koordinator.sh/v1alpha1", "NodeMetric", "nodemetrics", cluster=True)
KOORD_NODE_TOPOLOGY = _kind(
    "topology.node.k8s.io/v1alpha1", "NodeResourceTopology", "noderesourcetopologies", cluster=True,
    short="node-res-topo", sub="",
)  # fmt: skip
KOORD_NODE_SLO = _kind("slo.koordinator.sh/v1alpha1", "NodeSLO", "nodeslos", cluster=True)
KOORD_SCHEDULE_EXPLANATION = _kind(
    "scheduling.koordinator.sh/v1alpha1", "ScheduleExplanation", "scheduleexplanations", short="sched-exp"
)
KOORD_RECOMMENDATION = _kind("analysis.koordinator.sh/v1alpha1", "Recommendation", "recommendations", short="recom")
KOORD_COLOCATION_PROFILE = _kind(
    "config.koordinator.sh/v1alpha1", "ClusterColocationProfile", "clustercolocationprofiles", cluster=True
)

BUILT_IN: tuple[Kind, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Kind))
KOORDINATOR: tuple[Kind, ...] = tuple(value for name, value in list(globals().items()) if name.startswith("KOORD_"))
"""Koordinator's kinds. A scheduler watches them only if a profile of it has a plugin of Koordinator's."""


class Registry:
    """Which kinds are served: the built-in ones, and whatever is added while running."""

    def __init__(self, kinds: Iterable[Kind] = BUILT_IN) -> None:
        self._by_resource: dict[tuple[str, str, str], Kind] = {}
        self._by_kind: dict[tuple[str, str], Kind] = {}
        self.generation = 0
        """Counts changes, so that what is derived from the kinds can be kept until the next one."""
        for kind in kinds:
            self.add(kind)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._by_resource.values())

    def add(self, kind: Kind) -> None:
        self.generation += 1
        self._by_resource[kind.group, kind.version, kind.plural] = kind
        self._by_kind[kind.api_version, kind.kind] = kind

    def remove(self, kind: Kind) -> None:
        self.generation += 1
        self._by_resource.pop((kind.group, kind.version, kind.plural), None)
        self._by_kind.pop((kind.api_version, kind.kind), None)

    def by_resource(self, group: str, version: str, plural: str) -> Kind | None:
        return self._by_resource.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        """The kind of a document, by its own `apiVersion` and `kind`."""
        return self._by_kind.get((api_version, kind))

    def named(self, name: str) -> Kind | None:
        """The kind that kubectl would take a name for: its kind, plural, singular or short name, in any case, and with
        `.group` after it where several groups have one (`jobs.batch.volcano.sh`). Of several the first of the table."""
        wanted, _, group = name.lower().partition(".")
        found = [
            kind
            for kind in self
            if wanted in (kind.kind.lower(), kind.plural, kind.singular, *kind.short_names)
            and (not group or kind.group == group)
        ]
        return min(found, key=lambda kind: kind.stored_as is not None, default=None)
