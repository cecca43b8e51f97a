"""PodShape: all that scheduling reads of a pod's spec, compiled once and shared by all pods that are alike.

Pods come in herds made from one template. `Shapes.of` takes the parts of a document that matter, looks their encoding
up, and in the common case is done. What is not found is compiled, and then looked up again by what it means, so that
two ways of writing the same (`1000m` and `1`, other labels order, a resize that changed nothing) are one shape too.

Invariant: two pods of equal meaning to scheduling have the same PodShape object, so shapes compare by identity, and
whatever is remembered about one holds for all its pods. Names, labels and places are the Pod's own.
"""

from __future__ import annotations

import marshal
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from fairlead.core.model.containers import Container, containers_of
from fairlead.core.model.pod_volumes import RELEVANT_SOURCES, PodVolume, image_references, parse_volumes
from fairlead.core.model.quality import quality_of_service
from fairlead.core.model.records import record
from fairlead.core.model.requests import (
    SAYS_RESOURCES,
    pod_requests,
    reports_resources,
    resize_is_infeasible,
    resized_containers,
)
from fairlead.core.model.taints import Toleration, parse_tolerations
from fairlead.core.model.terms import (
    AffinityTerm,
    SpreadConstraint,
    parse_node_affinity,
    parse_pod_affinity,
    parse_spread,
)

if TYPE_CHECKING:
    from fairlead.core.model.selectors import NodeSelector, NodeSelectorTerm

DEFAULT_SCHEDULER = "default-scheduler"
_SPEC_FIELDS = (
    "tolerations", "nodeSelector", "priority", "priorityClassName", "schedulerName", "preemptionPolicy",
    "topologySpreadConstraints", "overhead", "resources", "hostNetwork", "hostUsers",
)  # fmt: skip
_CONTAINER_FIELDS = ("name", "image", "resources", "ports", "restartPolicyRules")
_SELDOM = frozenset({"initContainers", "affinity", "volumes"})
_SAME = 1024
"""So many specs and lists of containers are kept to be recognised, at most."""
_AMOUNTS = ("request", "fit_request", "score_request", "exact_request")


@record(frozen=True, slots=True, eq=False, weakref_slot=True)
class PodShape:
    """Requests are in base units and always have cpu, memory and ephemeral-storage, and every scalar resource that is
    named, zeros included: `request` is what a node books for the pod (it follows a resize in progress), `fit_request`
    what the fit check wants, `score_request` what the fit score assumes. `exact_request` is `request` in nanos.
    `containers` have what each requests by itself; `quality` is the class of service that follows from it."""

    request: dict[str, int]
    fit_request: dict[str, int]
    score_request: dict[str, int]
    exact_request: dict[str, int]
    nonzero_cpu: int
    nonzero_memory: int
    priority: int
    has_priority: bool
    priority_class: str
    preemption_policy: str
    scheduler_name: str
    tolerations: tuple[Toleration, ...]
    node_selector: tuple[tuple[str, str], ...] | None
    required_node_affinity: NodeSelector | None
    preferred_node_affinity: tuple[tuple[int, NodeSelectorTerm], ...] | None
    preferred_error: str
    affinity_names: frozenset[str] | None
    has_pod_affinity: bool
    pod_affinity: tuple[AffinityTerm, ...]
    pod_anti_affinity: tuple[AffinityTerm, ...]
    preferred_pod_affinity: tuple[tuple[int, AffinityTerm], ...]
    preferred_pod_anti_affinity: tuple[tuple[int, AffinityTerm], ...]
    affinity_error: str
    spread: tuple[SpreadConstraint, ...]
    host_ports: tuple[tuple[str, str, int], ...]
    images: tuple[str, ...]
    image_volumes: tuple[str, ...]
    containers: tuple[Container, ...]
    quality: str
    volumes: tuple[PodVolume, ...]
    required_features: frozenset[str]
    claims: bool

    @property
    def container_count(self) -> int:
        return len(self.containers)

    @property
    def has_required_affinity(self) -> bool:
        return self.required_node_affinity is not None

    def selects(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether the node selector and the required node affinity accept a node with these labels and this name."""
        if any(labels.get(key) != value for key, value in self.node_selector or ()):
            return False
        return self.required_node_affinity is None or self.required_node_affinity.matches(labels, name)

    @property
    def scalars(self) -> list[str]:
        """The scalar resources that are named."""
        return list(self.fit_request)[3:]


_amounts = attrgetter(*_AMOUNTS)
_other_fields = attrgetter(*(field.name for field in fields(PodShape) if field.name not in _AMOUNTS))


@dataclass(slots=True, eq=False)
class _SharedContainers:
    """A list of containers that several specs may share, one such spec and its shape. Its `others`, the other fields
    that a shape depends on, are read when a second spec has the list, which no document from a real API server does."""

    containers: list[Any]
    spec: Mapping[str, Any]
    shape: PodShape
    others: list[Any] | None = None


def _others(spec: Mapping[str, Any]) -> list[Any]:
    """The fields beside the containers that the shape of most pods depends on."""
    return [*map(spec.get, _SPEC_FIELDS), bool(spec.get("resourceClaims"))]


class Shapes:
    """The shapes in use. The memory of encodings is bounded: it has two halves, and the older half is dropped when the
    younger one is full. Shapes themselves live as long as somebody holds them."""

    def __init__(self, remembered: int = 8192) -> None:
        self._limit = remembered
        self._recognised = min(_SAME, remembered)
        self._young: dict[bytes, PodShape] = {}
        self._old: dict[bytes, PodShape] = {}
        self._shared: dict[bytes, Mapping[str, str]] = {}
        self._same: dict[int, _SharedContainers] = {}
        """By the identity of a list of containers."""
        self._specs: dict[int, tuple[Any, PodShape]] = {}
        """By the identity of a spec: the spec, and its shape if that follows from the spec alone."""
        self._by_meaning: WeakValueDictionary[Hashable, PodShape] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._by_meaning)

    def of(self, document: Mapping[str, Any]) -> PodShape:
        """The shape of a pod's document."""
        spec, status = document["spec"], document.get("status")
        if status and not SAYS_RESOURCES.isdisjoint(status) and reports_resources(status):
            return self._by_encoding(document)
        # An embedded Store shares specs and their lists between versions of a pod, and between pods of one template.
        known = self._specs.get(id(spec))
        if known is not None and known[0] is spec:
            return known[1]
        containers = spec.get("containers")
        if not containers or not _SELDOM.isdisjoint(spec):
            return self._by_encoding(document)
        shape = self._by_containers(document, spec, containers)
        if len(self._specs) >= self._recognised:
            self._specs.clear()
        self._specs[id(spec)] = spec, shape
        return shape

    def _by_containers(self, document: Mapping[str, Any], spec: Mapping[str, Any], containers: list[Any]) -> PodShape:
        same = self._same.get(id(containers))
        if same is not None and same.containers is containers:
            if same.others is None:
                same.others = _others(same.spec)
            if same.others == _others(spec):
                return same.shape
        shape = self._by_encoding(document)
        if len(self._same) >= self._recognised:
            self._same.clear()
        self._same[id(containers)] = _SharedContainers(containers, spec, shape)
        return shape

    def _by_encoding(self, document: Mapping[str, Any]) -> PodShape:
        encoding = marshal.dumps(_relevant(document), 2)
        return self._young.get(encoding) or self._remember(encoding, document)

    def share(self, texts: Mapping[str, str]) -> Mapping[str, str]:
        """Labels or annotations equal to these, and the same object for as many pods as have them."""
        encoding = marshal.dumps(texts, 2)  # type: ignore[arg-type]  # a dict, read only
        shared = self._shared.get(encoding)
        if shared is None:
            if len(self._shared) >= self._limit:
                self._shared.clear()
            shared = self._shared[encoding] = texts
        return shared

    def _remember(self, encoding: bytes, document: Mapping[str, Any]) -> PodShape:
        shape = self._old.get(encoding)
        if shape is None:
            shape = compile_shape(document)
            shape = self._by_meaning.setdefault(_meaning(shape), shape)
        if len(self._young) >= self._limit:
            self._old, self._young = self._young, {}
            self._same.clear()
            self._specs.clear()
        self._young[encoding] = shape
        return shape


def _meaning(shape: PodShape) -> Hashable:
    return _other_fields(shape), *[tuple(sorted(amounts.items())) for amounts in _amounts(shape)]


def _relevant(document: Mapping[str, Any]) -> list[Any]:
    """The parts of a document that a shape depends on. Parts that do not matter may be among them (compiling forgets
    them), but nothing that differs from pod to pod of one template."""
    spec = document["spec"]
    relevant = _others(spec)
    relevant.append([[*map(container.get, _CONTAINER_FIELDS)] for container in spec.get("containers") or ()])
    if not _SELDOM.isdisjoint(spec):
        relevant += _seldom_relevant(spec, document["metadata"].get("namespace"))
    if (status := document.get("status")) and not SAYS_RESOURCES.isdisjoint(status):
        relevant += _relevant_status(spec, status)
    return relevant


def _seldom_relevant(spec: Mapping[str, Any], namespace: str | None) -> Iterator[Any]:
    """The same of fields that many pods do not have."""
    affinity, volumes = spec.get("affinity"), spec.get("volumes")
    if init_containers := spec.get("initContainers"):
        keys = (*_CONTAINER_FIELDS, "restartPolicy")
        yield [[*map(container.get, keys)] for container in init_containers]
    if affinity is not None:
        yield "affinity", affinity, namespace
    if volumes:
        yield [v for v in volumes if not RELEVANT_SOURCES.isdisjoint(v)]


def _relevant_status(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Iterator[Any]:
    """What the kubelet says of resources, where it says anything. Statuses belong to containers by name."""
    reported = [(s.get("name"), s["resources"], s.get("allocatedResources")) for s in resized_containers(status)]
    of_pod = status.get("resources")
    if reported or of_pod is not None:
        yield reported
        yield [c.get("name") for c in (spec.get("containers") or []) + (spec.get("initContainers") or [])]
        yield "status", of_pod, status.get("allocatedResources"), resize_is_infeasible(status)


def compile_shape(document: Mapping[str, Any]) -> PodShape:
    """The shape of a pod's document, not shared with anybody yet."""
    spec, metadata = document["spec"], document.get("metadata") or {}
    requests = pod_requests(spec, document.get("status") or {})
    nodes = parse_node_affinity(spec.get("affinity"))
    pods = parse_pod_affinity(spec.get("affinity"), metadata.get("namespace") or "")
    containers, init_containers = spec.get("containers") or [], spec.get("initContainers") or []
    node_selector = spec.get("nodeSelector")
    return PodShape(
        request=requests.booked,
        fit_request=requests.fit,
        score_request=requests.score,
        exact_request=requests.exact,
        nonzero_cpu=requests.nonzero_cpu,
        nonzero_memory=requests.nonzero_memory,
        priority=spec.get("priority") or 0,
        has_priority=spec.get("priority") is not None,
        priority_class=spec.get("priorityClassName") or "",
        preemption_policy=spec.get("preemptionPolicy") or "PreemptLowerPriority",
        scheduler_name=spec.get("schedulerName") or DEFAULT_SCHEDULER,
        tolerations=parse_tolerations(spec.get("tolerations")),
        node_selector=None if node_selector is None else tuple(sorted(node_selector.items())),
        required_node_affinity=nodes.required,
        preferred_node_affinity=nodes.preferred,
        preferred_error=nodes.preferred_error,
        affinity_names=nodes.names,
        has_pod_affinity=pods.present,
        pod_affinity=pods.required,
        pod_anti_affinity=pods.required_anti,
        preferred_pod_affinity=pods.preferred,
        preferred_pod_anti_affinity=pods.preferred_anti,
        affinity_error=pods.error,
        spread=parse_spread(spec.get("topologySpreadConstraints")),
        host_ports=tuple(dict.fromkeys(_host_ports(containers, init_containers))),
        images=tuple(normalised_image(c.get("image") or "") for c in init_containers + containers),
        image_volumes=tuple(normalised_image(reference) for reference in image_references(spec.get("volumes"))),
        containers=containers_of(spec),
        quality=quality_of_service(spec),
        volumes=parse_volumes(spec.get("volumes")),
        required_features=frozenset(_required_features(spec, init_containers + containers)),
        claims=bool(spec.get("resourceClaims")),
    )


def normalised_image(name: str) -> str:
    """An image name with a tag: `nginx` is `nginx:latest`. A colon before the last slash is a port, not a tag."""
    return name if name.rfind(":") > name.rfind("/") else name + ":latest"


def _host_ports(
    containers: list[Mapping[str, Any]], init_containers: list[Mapping[str, Any]]
) -> Iterator[tuple[str, str, int]]:
    """Ports on the node as (ip, protocol, port), of containers and sidecars."""
    sidecars = [container for container in init_containers if container.get("restartPolicy") == "Always"]
    for container in containers + sidecars:
        for port in container.get("ports") or ():
            if (number := port.get("hostPort") or 0) > 0:
                yield port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", number


def _required_features(spec: Mapping[str, Any], containers: list[Mapping[str, Any]]) -> Iterator[str]:
    """The features that a node must declare before the pod may run there."""
    rules = (rule for container in containers for rule in container.get("restartPolicyRules") or ())
    if any(rule.get("action") == "RestartAllContainers" for rule in rules):
        yield "RestartAllContainersOnContainerExits"
    if spec.get("hostNetwork") and spec.get("hostUsers") is False:
        yield "UserNamespacesHostNetworkSupport"
