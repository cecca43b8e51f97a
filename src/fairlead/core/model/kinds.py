"""The kinds of the Kubernetes API that we speak, as a table. Each family adds its own (`kinds.py` in its package).

A Kind says how an object is addressed: group, version, plural, scope, and which subresources and verbs it has. There
is one Kind instance per (group, version, plural), so kinds compare and hash by identity, which is what the hot paths
want. Two kinds may share one storage (`core/v1` and `events.k8s.io/v1` Events are the same objects seen twice): then
`stored_as` names the one that is kept, and cluster/store/conversion.py turns the one into the other.

Kinds defined at run time (CustomResourceDefinitions) are more rows of a Registry, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from fairlead.core.family import brought


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
    """Set for kinds that are defined at run time, and for those of installed families."""
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


def define(
    api_version: str,
    kind: str,
    plural: str,
    *,
    cluster: bool = False,
    short: str = "",
    sub: str = "status",
    categories: str = "",
    stored_as: Kind | None = None,
    definition: Definition | None = None,
) -> Kind:
    """The kind of an apiVersion, cluster-wide or namespaced; names and subresources are separated by blanks. A kind
    that is not in the generated table of schemas needs a definition."""
    group, _, version = api_version.rpartition("/")
    return Kind(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        namespaced=not cluster,
        singular=kind.lower(),
        short_names=tuple(short.split()),
        categories=tuple(categories.split()),
        subresources=frozenset(sub.split()),
        stored_as=stored_as,
        definition=definition,
    )


# core
POD = define(
    "v1", "Pod", "pods", short="po", sub="status binding eviction ephemeralcontainers resize log", categories="all"
)
NODE = define("v1", "Node", "nodes", cluster=True, short="no")
NAMESPACE = define("v1", "Namespace", "namespaces", cluster=True, short="ns", sub="status finalize")
SERVICE = define("v1", "Service", "services", short="svc", categories="all")
ENDPOINTS = define("v1", "Endpoints", "endpoints", short="ep", sub="")
EVENT = define("v1", "Event", "events", short="ev", sub="")
CONFIG_MAP = define("v1", "ConfigMap", "configmaps", short="cm", sub="")
SECRET = define("v1", "Secret", "secrets", sub="")
SERVICE_ACCOUNT = define("v1", "ServiceAccount", "serviceaccounts", short="sa", sub="token")
PERSISTENT_VOLUME = define("v1", "PersistentVolume", "persistentvolumes", cluster=True, short="pv")
PERSISTENT_VOLUME_CLAIM = define("v1", "PersistentVolumeClaim", "persistentvolumeclaims", short="pvc")
RESOURCE_QUOTA = define("v1", "ResourceQuota", "resourcequotas", short="quota")
LIMIT_RANGE = define("v1", "LimitRange", "limitranges", short="limits", sub="")
REPLICATION_CONTROLLER = define(
    "v1", "ReplicationController", "replicationcontrollers", short="rc", sub="status scale", categories="all"
)
POD_TEMPLATE = define("v1", "PodTemplate", "podtemplates", sub="")
# apps, batch, autoscaling
DEPLOYMENT = define("apps/v1", "Deployment", "deployments", short="deploy", sub="status scale", categories="all")
REPLICA_SET = define("apps/v1", "ReplicaSet", "replicasets", short="rs", sub="status scale", categories="all")
STATEFUL_SET = define("apps/v1", "StatefulSet", "statefulsets", short="sts", sub="status scale", categories="all")
DAEMON_SET = define("apps/v1", "DaemonSet", "daemonsets", short="ds", categories="all")
CONTROLLER_REVISION = define("apps/v1", "ControllerRevision", "controllerrevisions", sub="")
JOB = define("batch/v1", "Job", "jobs", categories="all")
CRON_JOB = define("batch/v1", "CronJob", "cronjobs", short="cj", categories="all")
HORIZONTAL_POD_AUTOSCALER = define(
    "autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", short="hpa", categories="all"
)
HORIZONTAL_POD_AUTOSCALER_V1 = define(
    "autoscaling/v1",
    "HorizontalPodAutoscaler",
    "horizontalpodautoscalers",
    short="hpa",
    categories="all",
    stored_as=HORIZONTAL_POD_AUTOSCALER,
)
# policy, scheduling, node, coordination, events
POD_DISRUPTION_BUDGET = define("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", short="pdb")
PRIORITY_CLASS = define("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", cluster=True, short="pc", sub="")
POD_GROUP_BETA = define("scheduling.k8s.io/v1beta1", "PodGroup", "podgroups")
WORKLOAD_BETA = define("scheduling.k8s.io/v1beta1", "Workload", "workloads", sub="")
POD_GROUP = define("scheduling.k8s.io/v1alpha2", "PodGroup", "podgroups", stored_as=POD_GROUP_BETA)
WORKLOAD = define("scheduling.k8s.io/v1alpha2", "Workload", "workloads", sub="", stored_as=WORKLOAD_BETA)
RUNTIME_CLASS = define("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", cluster=True, sub="")
LEASE = define("coordination.k8s.io/v1", "Lease", "leases", sub="")
EVENT_V1 = define("events.k8s.io/v1", "Event", "events", short="ev", sub="", stored_as=EVENT)
# storage
STORAGE_CLASS = define("storage.k8s.io/v1", "StorageClass", "storageclasses", cluster=True, short="sc", sub="")
CSI_NODE = define("storage.k8s.io/v1", "CSINode", "csinodes", cluster=True, sub="")
CSI_DRIVER = define("storage.k8s.io/v1", "CSIDriver", "csidrivers", cluster=True, sub="")
CSI_STORAGE_CAPACITY = define("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities", sub="")
VOLUME_ATTACHMENT = define("storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", cluster=True)
VOLUME_ATTRIBUTES_CLASS = define(
    "storage.k8s.io/v1", "VolumeAttributesClass", "volumeattributesclasses", cluster=True, short="vac", sub=""
)
# dynamic resource allocation
RESOURCE_CLAIM = define("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", sub="status binding")
RESOURCE_CLAIM_TEMPLATE = define("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates", sub="")
RESOURCE_SLICE = define("resource.k8s.io/v1", "ResourceSlice", "resourceslices", cluster=True, sub="")
DEVICE_CLASS = define("resource.k8s.io/v1", "DeviceClass", "deviceclasses", cluster=True, sub="")
# RBAC and discovery: stored, not enforced
ROLE = define("rbac.authorization.k8s.io/v1", "Role", "roles", sub="")
ROLE_BINDING = define("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", sub="")
CLUSTER_ROLE = define("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", cluster=True, sub="")
CLUSTER_ROLE_BINDING = define(
    "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", cluster=True, sub=""
)
ENDPOINT_SLICE = define("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", sub="")
# Networking: stored, nobody routes anything
NETWORK_POLICY = define("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", short="netpol", sub="")
INGRESS = define("networking.k8s.io/v1", "Ingress", "ingresses", short="ing")
INGRESS_CLASS = define("networking.k8s.io/v1", "IngressClass", "ingressclasses", cluster=True, sub="")
# Kinds that users define
CUSTOM_RESOURCE_DEFINITION = define(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    cluster=True,
    short="crd crds",
    categories="api-extensions",
)
KUBERNETES: tuple[Kind, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Kind))
"""The kinds of Kubernetes."""
# scheduler-plugins' coscheduling
X_POD_GROUP = define("scheduling.x-k8s.io/v1alpha1", "PodGroup", "podgroups", short="pg")


@cache
def served_kinds() -> tuple[Kind, ...]:
    """All kinds that are served from the start: those of Kubernetes, of the families in their order, and coscheduling's
    PodGroup, which comes last, because a short name means the first kind that has it."""
    return (*KUBERNETES, *(kind for served in brought("served") for kind in served), X_POD_GROUP)


class Registry:
    """Which kinds are served: the built-in ones, and whatever is added while running."""

    def __init__(self, kinds: Iterable[Kind] | None = None) -> None:
        self._by_resource: dict[tuple[str, str, str], Kind] = {}
        self._by_kind: dict[tuple[str, str], Kind] = {}
        self.generation = 0
        """Counts changes, so that what is derived from the kinds can be kept until the next one."""
        for kind in served_kinds() if kinds is None else kinds:
            self.add(kind)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._by_resource.values())

    def add(self, kind: Kind) -> None:
        self.generation += 1
        self._by_resource[kind.group, kind.version, kind.plural] = kind
        self._by_kind[kind.api_version, kind.kind] = kind

    def remove(self, kind: Kind) -> None:
        self.generation += 1
        if self.by_resource(kind.group, kind.version, kind.plural) is kind:
            del self._by_resource[kind.group, kind.version, kind.plural]
        if self.by_kind(kind.api_version, kind.kind) is kind:  # two definitions of one group may want the same name
            del self._by_kind[kind.api_version, kind.kind]

    def by_resource(self, group: str, version: str, plural: str) -> Kind | None:
        return self._by_resource.get((group, version, plural))

    def served(self, kind: Kind) -> Kind:
        """The kind under which objects of this group, version and plural are served just now: for kinds that users
        define, another one after every change of the definition."""
        return self.by_resource(kind.group, kind.version, kind.plural) or kind

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        """The kind of a document, by its own `apiVersion` and `kind`."""
        return self._by_kind.get((api_version, kind))

    def named(self, name: str) -> Kind | None:
        """The kind that kubectl would take a name for: its kind, plural, singular or short name, in any case, and with
        `.group` after it where several groups have one (`jobs.batch`). Of several the first of the table."""
        wanted, _, group = name.lower().partition(".")
        found = [
            kind
            for kind in self
            if wanted in (kind.kind.lower(), kind.plural, kind.singular, *kind.short_names)
            and (not group or kind.group == group)
        ]
        return min(found, key=lambda kind: kind.stored_as is not None, default=None)
