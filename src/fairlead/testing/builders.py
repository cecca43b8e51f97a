"""Builders of documents for tests: `pod("a").asks(cpu="2").tolerates("gpu").labelled(app="web").doc()`.

Every method returns a new builder, so an unfinished one can be kept and finished in several ways. `doc()` returns a new
document as a user would have written it; the API fills in the defaults. Labels and resources whose names
are no Python identifiers go in a mapping: `labelled({"app.kubernetes.io/name": "web"})`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, Self

from fairlead.cluster.kubelets.pod_script import EXIT_CODE, RUN_TIME, START_DELAY, TERMINATE_DELAY
from fairlead.cluster.kubelets.simulated_nodes import FAIL, simulated_node
from fairlead.core.model import kinds
from fairlead.volcano.kinds import VC_POD_GROUP, VC_QUEUE

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

IMAGE = "pause"
HOSTNAME = "kubernetes.io/hostname"


class Builder:
    """Methods that all objects have."""

    kind: ClassVar[Kind]

    def __init__(self, name: str, namespace: str = "default") -> None:
        metadata = {"name": name, "namespace": namespace} if self.kind.namespaced else {"name": name}
        self._doc: Doc = {"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": metadata}

    def doc(self) -> Doc:
        """The document, as a new copy."""
        return deepcopy(self._doc)

    def labelled(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """With these labels as well; a mapping takes keys that are no Python names."""
        return self._merged("metadata", "labels", {**(labels or {}), **more})

    def annotated(self, annotations: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """With these annotations as well."""
        return self._merged("metadata", "annotations", {**(annotations or {}), **more})

    def in_namespace(self, namespace: str) -> Self:
        """In another namespace."""
        return self._set("metadata", "namespace", namespace)

    def with_finalizer(self, name: str) -> Self:
        """With one more finalizer."""
        return self._appended("metadata", "finalizers", name)

    def owned_by(self, owner: Doc, *, controller: bool = True) -> Self:
        """With an owner: an object as the API stored it, with its uid."""
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": controller}
        reference |= {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "blockOwnerDeletion": True}
        return self._appended("metadata", "ownerReferences", reference)

    def having(self, **spec: Any) -> Self:
        """Any field of the spec, by its own name."""
        said = self
        for field, value in spec.items():
            said = said._set("spec", field, value)
        return said

    def showing(self, **status: Any) -> Self:
        """Any field of the status, for tests without an API that would fill it in."""
        return self._merged("status", status)

    # How words are added: on a copy, with the path made on the way

    def _at(self, path: Sequence[str]) -> tuple[Self, Any]:
        said = type(self).__new__(type(self))
        said._doc = deepcopy(self._doc)
        place = said._doc
        for field in path:
            place = place.setdefault(field, {})
        return said, place

    def _set(self, *path: Any) -> Self:
        *place, field, value = path
        said, found = self._at(place)
        found[field] = deepcopy(value)
        return said

    def _merged(self, *path: Any) -> Self:
        *place, values = path
        said, found = self._at(place)
        found.update(values)
        return said

    def _appended(self, *path: Any) -> Self:
        *place, field, value = path
        said, found = self._at(place)
        found.setdefault(field, []).append(deepcopy(value))
        return said


class PodBuilder(Builder):
    """A pod of one container."""

    kind = kinds.POD

    def __init__(self, name: str, namespace: str = "default") -> None:
        super().__init__(name, namespace)
        self._doc["spec"] = {"containers": [{"name": "main", "image": IMAGE}]}

    def asks(self, resources: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Requests; extended resources, which may not be overcommitted, become limits as well."""
        wanted = {**(resources or {}), **more}
        said, container = self._container()
        container.setdefault("resources", {}).setdefault("requests", {}).update(wanted)
        extended = {name: amount for name, amount in wanted.items() if "/" in name}
        return said.limited_to(extended) if extended else said

    def limited_to(self, resources: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """With limits."""
        said, container = self._container()
        container.setdefault("resources", {}).setdefault("limits", {}).update({**(resources or {}), **more})
        return said

    def opens(self, port: int, *, protocol: str = "TCP", host_ip: str = "") -> Self:
        """A port of the host."""
        said, container = self._container()
        opened = {"containerPort": port, "hostPort": port, "protocol": protocol}
        container.setdefault("ports", []).append({**opened, "hostIP": host_ip} if host_ip else opened)
        return said

    def from_image(self, image: str) -> Self:
        """Its container runs this image."""
        said, container = self._container()
        container["image"] = image
        return said

    def tolerates(
        self, key: str = "", effect: str = "", *, value: str | None = None, seconds: int | None = None
    ) -> Self:
        """Without a value: whatever the taint's value is; without a key: every taint."""
        toleration: Doc = {"operator": "Exists"} if value is None else {"operator": "Equal", "value": value}
        given = {"key": key, "effect": effect, "tolerationSeconds": seconds}
        toleration |= {field: one for field, one in given.items() if one not in ("", None)}
        return self._appended("spec", "tolerations", toleration)

    def selects(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Only nodes with these labels."""
        return self._merged("spec", "nodeSelector", {**(labels or {}), **more})

    def requires_node(self, key: str, *values: str, operator: str = "In") -> Self:
        """One more way in which a node may fit."""
        terms = ("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
        term = {"matchExpressions": [_expression(key, operator, values)]}
        return self._appended("spec", "affinity", "nodeAffinity", *terms, term)

    def prefers_node(self, key: str, *values: str, weight: int = 1, operator: str = "In") -> Self:
        """Rather on nodes whose label has one of these values."""
        term = {"weight": weight, "preference": {"matchExpressions": [_expression(key, operator, values)]}}
        return self._appended(
            "spec", "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution", term
        )

    def beside(self, labels: Mapping[str, str], *, over: str = HOSTNAME) -> Self:
        """Only where a pod with these labels is, in the same domain of `over`."""
        return self._near("podAffinity", labels, over)

    def apart_from(self, labels: Mapping[str, str], *, over: str = HOSTNAME) -> Self:
        """Only where no pod with these labels is, in the same domain of `over`."""
        return self._near("podAntiAffinity", labels, over)

    def spread(self, labels: Mapping[str, str], *, over: str, skew: int = 1, when: str = "DoNotSchedule") -> Self:
        """Spread evenly with other pods of these labels over the domains of a node label."""
        constraint = {"maxSkew": skew, "topologyKey": over, "whenUnsatisfiable": when}
        return self._appended(
            "spec", "topologySpreadConstraints", {**constraint, "labelSelector": {"matchLabels": dict(labels)}}
        )

    def gated(self, name: str) -> Self:
        """With one more scheduling gate."""
        return self._appended("spec", "schedulingGates", {"name": name})

    def of_priority(self, class_name: str) -> Self:
        """Of this PriorityClass."""
        return self._set("spec", "priorityClassName", class_name)

    def scheduled_by(self, name: str) -> Self:
        """Served by the scheduler of this name."""
        return self._set("spec", "schedulerName", name)

    def on(self, node: str) -> Self:
        """On this node already, past any scheduler."""
        return self._set("spec", "nodeName", node)

    def restarting(self, policy: str) -> Self:
        """Always, OnFailure or Never."""
        return self._set("spec", "restartPolicy", policy)

    def starting_after(self, delay: str) -> Self:
        """Its containers start so long after it got its node (simulated)."""
        return self.annotated({START_DELAY: delay})

    def running_for(self, time: str) -> Self:
        """Its containers run so long and then end (simulated)."""
        return self.annotated({RUN_TIME: time})

    def exiting(self, code: int) -> Self:
        """Its containers end with this code (simulated)."""
        return self.annotated({EXIT_CODE: str(code)})

    def ending_after(self, delay: str) -> Self:
        """How long it takes to stop once it is deleted."""
        return self.annotated({TERMINATE_DELAY: delay})

    def in_group(self, name: str) -> Self:
        """A member of a Volcano PodGroup."""
        return self.annotated({"scheduling.k8s.io/group-name": name})

    def template(self) -> Doc:
        """This pod as the template of a workload: without name and namespace."""
        doc = self.doc()
        metadata = {field: value for field, value in doc["metadata"].items() if field in ("labels", "annotations")}
        return {"metadata": metadata, "spec": doc["spec"]}

    def _container(self) -> tuple[Self, Any]:
        said, spec = self._at(("spec",))
        return said, spec["containers"][0]

    def _near(self, field: str, labels: Mapping[str, str], over: str) -> Self:
        term = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": over}
        return self._appended("spec", "affinity", field, "requiredDuringSchedulingIgnoredDuringExecution", term)


class NodeBuilder(Builder):
    """A simulated node."""

    kind = kinds.NODE

    def __init__(self, name: str) -> None:
        self._doc = simulated_node(name)

    def offers(self, resources: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """With these amounts of resources, as capacity and as allocatable."""
        given = {**(resources or {}), **more}
        return self._merged("status", "capacity", given)._merged("status", "allocatable", given)

    def in_zone(self, zone: str, *, region: str = "") -> Self:
        """With the labels of a zone and, if given, a region."""
        said = self.labelled({"topology.kubernetes.io/zone": zone})
        return said.labelled({"topology.kubernetes.io/region": region}) if region else said

    def tainted(self, key: str, effect: str = "NoSchedule", *, value: str = "") -> Self:
        """With one more taint."""
        taint = {"key": key, "effect": effect}
        return self._appended("spec", "taints", {**taint, "value": value} if value else taint)

    def cordoned(self) -> Self:
        """Marked as unschedulable."""
        return self._set("spec", "unschedulable", True)

    def failing(self, since: str = "true") -> Self:
        """A node whose kubelet is silent, from a time on or from the start."""
        return self.annotated({FAIL: since})


class WorkloadBuilder(Builder):
    """An owner of pods made from a template."""

    def __init__(self, name: str, namespace: str = "default") -> None:
        super().__init__(name, namespace)
        self._doc["spec"] = {"template": pod(name).template()}

    def of(self, template: PodBuilder) -> Self:
        """Pods like this one."""
        return self._set("spec", "template", template.template())


class ReplicatedBuilder(WorkloadBuilder):
    """A workload of equal pods that it finds by a label."""

    def __init__(self, name: str, namespace: str = "default") -> None:
        super().__init__(name, namespace)
        self._doc["spec"]["selector"] = {"matchLabels": {"app": name}}
        self._doc["spec"]["template"]["metadata"]["labels"] = {"app": name}

    def of(self, template: PodBuilder) -> Self:
        labels = self._doc["spec"]["selector"]["matchLabels"]
        return super().of(template.labelled(labels))

    def replicas(self, count: int) -> Self:
        """With so many pods."""
        return self._set("spec", "replicas", count)


class ReplicaSetBuilder(ReplicatedBuilder):
    """A ReplicaSet."""

    kind = kinds.REPLICA_SET


class DeploymentBuilder(ReplicatedBuilder):
    """A Deployment."""

    kind = kinds.DEPLOYMENT

    def rolling(self, *, surge: int | str, unavailable: int | str) -> Self:
        """Updated pod by pod, with so many more and so many fewer than wanted meanwhile."""
        rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
        return self._set("spec", "strategy", {"type": "RollingUpdate", "rollingUpdate": rolling})

    def recreating(self) -> Self:
        """Updated by ending all pods before new ones are made."""
        return self._set("spec", "strategy", {"type": "Recreate"})


class JobBuilder(WorkloadBuilder):
    """A Job."""

    kind = kinds.JOB

    def __init__(self, name: str, namespace: str = "default") -> None:
        super().__init__(name, namespace)
        self._doc["spec"]["template"] = pod(name).restarting("Never").template()

    def of(self, template: PodBuilder) -> Self:
        """Pods like this one; a Job's pods may not restart for ever."""
        policy = template.doc()["spec"].get("restartPolicy", "Never")
        return super().of(template.restarting(policy))

    def times(self, completions: int, *, at_once: int = 1) -> Self:
        """Done when so many pods have succeeded, at most `at_once` of them at a time."""
        return self.having(completions=completions, parallelism=at_once)

    def indexed(self) -> Self:
        """Its pods are numbered."""
        return self.having(completionMode="Indexed")


class PriorityClassBuilder(Builder):
    """A PriorityClass."""

    kind = kinds.PRIORITY_CLASS

    def worth(self, value: int) -> Self:
        """Of this priority."""
        said, doc = self._at(())
        doc["value"] = value
        return said

    def by_default(self) -> Self:
        """Of pods that name no class."""
        said, doc = self._at(())
        doc["globalDefault"] = True
        return said

    def never_preempting(self) -> Self:
        """Its pods evict nobody."""
        said, doc = self._at(())
        doc["preemptionPolicy"] = "Never"
        return said


class PodGroupBuilder(Builder):
    """A Volcano PodGroup."""

    kind = VC_POD_GROUP

    def of_at_least(self, members: int) -> Self:
        """Started with so many members or not at all."""
        return self.having(minMember=members)

    def in_queue(self, name: str) -> Self:
        """In this queue."""
        return self.having(queue=name)


class QueueBuilder(Builder):
    """A Volcano Queue."""

    kind = VC_QUEUE

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._doc["spec"] = {"weight": 1, "reclaimable": True}

    def weighing(self, weight: int) -> Self:
        """With this weight."""
        return self.having(weight=weight)

    def capped_at(self, resources: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Never more than these amounts (capability)."""
        return self._merged("spec", "capability", {**(resources or {}), **more})

    def deserving(self, resources: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Entitled to these amounts (deserved)."""
        return self._merged("spec", "deserved", {**(resources or {}), **more})


class NamespaceBuilder(Builder):
    """A namespace."""

    kind = kinds.NAMESPACE


def pod(name: str, namespace: str = "default") -> PodBuilder:
    """A pod of one container that requests nothing, unless set otherwise."""
    return PodBuilder(name, namespace)


def node(name: str) -> NodeBuilder:
    """A simulated node of 8 cores and 32Gi, unless set otherwise."""
    return NodeBuilder(name)


def nodes(count: int, resources: Mapping[str, str] | None = None, /, **more: str) -> list[NodeBuilder]:
    """Simulated nodes `n0`, `n1` and so on, all alike: 4 cores, 16Gi and 110 pods, unless set otherwise."""
    offered = {**(resources or {}), **more} or {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return [node(f"n{number}").offers(offered) for number in range(count)]


def replica_set(name: str, namespace: str = "default") -> ReplicaSetBuilder:
    """A ReplicaSet of one pod."""
    return ReplicaSetBuilder(name, namespace)


def deployment(name: str, namespace: str = "default") -> DeploymentBuilder:
    """A Deployment of one pod."""
    return DeploymentBuilder(name, namespace)


def job(name: str, namespace: str = "default") -> JobBuilder:
    """A Job of one pod."""
    return JobBuilder(name, namespace)


def priority_class(name: str, value: int = 0) -> PriorityClassBuilder:
    """A PriorityClass of this priority."""
    return PriorityClassBuilder(name).worth(value)


def podgroup(name: str, members: int = 1, namespace: str = "default") -> PodGroupBuilder:
    """A Volcano PodGroup of at least so many members."""
    return PodGroupBuilder(name, namespace).of_at_least(members)


def queue(name: str) -> QueueBuilder:
    """A Volcano Queue of weight 1."""
    return QueueBuilder(name)


def namespace(name: str) -> NamespaceBuilder:
    """A namespace."""
    return NamespaceBuilder(name)


def _expression(key: str, operator: str, values: Sequence[str]) -> Doc:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
