"""Edits: one change of a workload or of the cluster that might let it run, not yet tried.

Each edit is made from what refused the workload: fewer pods, a smaller request of what is short, one selector, taint or
rule of placement less, a group that need not be close together. An edit is a function of the Workload; whether it helps
is found out by trying (least_change.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fairlead.core.engine.what_if.families import what_ifs
from fairlead.core.model.group import TOPOLOGY_KEY_ANNOTATION
from fairlead.core.model.quantity import format_quantity, parse_quantity, to_units

if TYPE_CHECKING:
    from fairlead.core.engine.what_if.families import PodOwner
    from fairlead.core.engine.what_if.workload import Workload
    from fairlead.core.model.flow import Doc
    from fairlead.core.state.cluster import Cluster

_GROUP_KINDS = ("PodGroup",)
_DIALECTS = {
    "deployment": "strategic", "statefulset": "strategic", "daemonset": "strategic", "replicaset": "strategic",
}  # fmt: skip
"""How `kubectl patch` changes each kind that may be changed in place."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_APART = "if the pods need not be close together"


@dataclass(frozen=True, slots=True)
class Edit:
    """`says` is for people. `patch` is what to change in `target` (kind/name), `command` how, if it may be
    changed in place."""

    kind: str
    cost: int
    says: str
    workload: Workload
    target: str = ""
    patch: Doc | None = None
    command: str = ""
    fixed: bool = False
    """Whether the API lets it be changed only before it is created."""

    def to_document(self) -> Doc:
        doc: Doc = {"kind": self.kind, "cost": self.cost, "says": self.says}
        if self.target:
            doc["target"] = self.target
        if self.patch is not None:
            doc["patch"] = self.patch
        command = self.command or self._patch_command()
        return doc | ({"command": command} if command else {})

    def _patch_command(self) -> str:
        """A command for what may be changed in place: pods and the templates of Jobs may not, their file may."""
        kind = self.target.partition("/")[0]
        dialect = "merge" if kind.startswith("podgroups.") else _DIALECTS.get(kind)
        if self.patch is None or dialect is None or self.fixed:
            return ""
        where = namespace_option(self.workload)
        patch = json.dumps(self.patch, separators=(",", ":"))
        return f"kubectl patch {self.target}{where} --type={dialect} -p '{patch}'"


def namespace_option(workload: Workload) -> str:
    """Arguments of kubectl for the namespace of a workload's objects; nothing if it is the default one."""
    namespace = workload.pods[0]["metadata"].get("namespace") or "default"
    return "" if namespace == "default" else f" -n {namespace}"


# ---- what pods ask of nodes ----


def easier_pods(workload: Workload, cluster: Cluster) -> Iterator[Edit]:
    """One demand less in every pod: a selector, a rule of affinity or spreading; or one toleration more."""
    specs = [pod["spec"] for pod in workload.pods]
    for key in dict.fromkeys(key for spec in specs for key in spec.get("nodeSelector") or {}):
        changed = [_less(spec, "nodeSelector", key) for spec in specs]
        patch: Doc = {"nodeSelector": {key: None}}
        yield _edit(workload, "selector", 10, f"without the node selector {key}", changed, patch)
    for part in ("nodeAffinity", "podAffinity", "podAntiAffinity"):
        if any(((spec.get("affinity") or {}).get(part) or {}).get(_REQUIRED) for spec in specs):
            changed = [{**spec, "affinity": _less(spec.get("affinity") or {}, part, _REQUIRED)} for spec in specs]
            patch = {"affinity": {part: {_REQUIRED: None}}}
            yield _edit(workload, "affinity", 11, f"without the required {part}", changed, patch)
    if any(one.get("whenUnsatisfiable") == "DoNotSchedule" for spec in specs for one in _spread(spec)):
        soft = [{**one, "whenUnsatisfiable": "ScheduleAnyway"} for one in _spread(specs[0])]
        changed = [{**spec, "topologySpreadConstraints": soft} for spec in specs]
        says = "with topology spread that is only preferred"
        yield _edit(workload, "spread", 11, says, changed, {"topologySpreadConstraints": soft})
    yield from _tolerations(workload, specs, cluster)


def _tolerations(workload: Workload, specs: Sequence[Doc], cluster: Cluster) -> Iterator[Edit]:
    taints = {(one.key, one.value, one.effect) for node in cluster.table.nodes if node for one in node.taints}
    for key, value, effect in sorted(taints):
        more = {"key": key, "operator": "Equal", "value": value, "effect": effect}
        known = specs[0].get("tolerations") or []
        if effect not in ("NoSchedule", "NoExecute") or more in known:
            continue
        changed = [{**spec, "tolerations": [*(spec.get("tolerations") or []), more]} for spec in specs]
        says = f"with a toleration of the taint {key}={value}:{effect}"
        yield _edit(workload, "toleration", 10, says, changed, {"tolerations": [*known, more]})


def _spread(spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return spec.get("topologySpreadConstraints") or ()


def _less(spec: Mapping[str, Any], field: str, *keys: str) -> Doc:
    return {**spec, field: {name: value for name, value in (spec.get(field) or {}).items() if name not in keys}}


def _edit(workload: Workload, kind: str, cost: int, says: str, specs: Sequence[Doc], patch: Doc) -> Edit:
    pods = tuple({**pod, "spec": spec} for pod, spec in zip(workload.pods, specs, strict=True))
    target, wrap = _template_of(workload)
    return Edit(kind, cost, says, replace(workload, pods=pods), target, wrap({"spec": patch}))


def _template_of(workload: Workload) -> tuple[str, Callable[[Doc], Doc]]:
    """Who has the templates of the pods, and how a patch of a template is written there. A pod that nobody made is its
    own."""
    pod = workload.pods[0]
    owner = _controller_of(pod)
    if owner is None:
        return f"pod/{pod['metadata']['name']}", lambda patch: patch
    kind, name = owner["kind"].lower(), owner["name"]
    if kind == "replicaset" and (label := (pod["metadata"].get("labels") or {}).get("pod-template-hash")):
        kind, name = "deployment", name.removesuffix(f"-{label}")
    form = _form_of(owner)
    if form is not None:
        return f"{form.resource}/{name}", partial(form.templates, workload.pods)
    return f"{kind}/{name}", lambda patch: {"spec": {"template": patch}}


def _controller_of(pod: Doc) -> Doc | None:
    return next((one for one in pod["metadata"].get("ownerReferences") or () if one.get("controller")), None)


def _form_of(owner: Mapping[str, Any] | None) -> PodOwner | None:
    """How an owner is changed, if that is a family's to say."""
    group = "" if owner is None else owner["apiVersion"].partition("/")[0]
    return next((found for one in what_ifs() if (found := one.owners.get(group)) is not None), None)


# ---- amounts ----


def requests_of(workload: Workload, resource: str) -> int:
    """The most that one container of a pod requests, in base units; 0 if none does."""
    found = [_asked(container, resource) for pod in workload.pods for container in pod["spec"]["containers"]]
    return max(found, default=0)


def _asked(container: Mapping[str, Any], resource: str) -> int:
    resources = container.get("resources") or {}
    text = (resources.get("requests") or {}).get(resource) or (resources.get("limits") or {}).get(resource)
    return to_units(resource, parse_quantity(text)) if text is not None else 0


def with_request(workload: Workload, resource: str, amount: int) -> Edit:
    """Containers that request more get so much."""
    text = format_quantity(amount, resource)
    pods = tuple(
        {
            **pod,
            "spec": {
                **pod["spec"],
                "containers": [_asking(one, resource, amount, text) for one in pod["spec"]["containers"]],
            },
        }
        for pod in workload.pods
    )
    asked = format_quantity(requests_of(workload, resource), resource)
    target, wrap = _template_of(workload)
    containers = [
        {"name": one["name"], "resources": one.get("resources") or {}} for one in pods[0]["spec"]["containers"]
    ]
    return Edit(
        "request",
        20,
        f"with a request of {resource} {text} instead of {asked} in each pod",
        replace(workload, pods=pods),
        target,
        None if target.startswith("pod/") else wrap({"spec": {"containers": containers}}),
    )


def _asking(container: Doc, resource: str, amount: int, text: str) -> Doc:
    if _asked(container, resource) <= amount:
        return container
    resources = {part: dict(values) for part, values in (container.get("resources") or {}).items()}
    for part in ("requests", "limits"):
        if part in resources and resource in resources[part] and (part == "requests" or "." in resource):
            resources[part][resource] = text
    return {**container, "resources": resources}


def devices_of(workload: Workload) -> int:
    """The most devices that one request of the workload's claims requests."""
    return max((int(asked.get("count") or 1) for asked in _exact_requests(workload.objects)), default=0)


def _exact_requests(objects: Sequence[Doc]) -> Iterator[Mapping[str, Any]]:
    for one in objects:
        if one["kind"] == "ResourceClaim":
            requests = ((one.get("spec") or {}).get("devices") or {}).get("requests") or ()
            yield from (request["exactly"] for request in requests if _counts(request.get("exactly")))


def _counts(asked: Mapping[str, Any] | None) -> bool:
    return asked is not None and asked.get("allocationMode", "ExactCount") == "ExactCount"


def with_devices(workload: Workload, count: int) -> Edit:
    """Claims that request no more devices than so many with each request."""
    objects = tuple(_asking_devices(one, count) if one["kind"] == "ResourceClaim" else one for one in workload.objects)
    says = f"with {count} instead of {devices_of(workload)} devices in each request of its claims"
    return Edit("devices", 22, says, replace(workload, objects=objects))


def _asking_devices(claim: Doc, count: int) -> Doc:
    spec = claim["spec"]
    requests = [
        {**one, "exactly": {**one["exactly"], "count": min(count, int(one["exactly"].get("count") or 1))}}
        if _counts(one.get("exactly"))
        else one
        for one in spec["devices"]["requests"]
    ]
    return {**claim, "spec": {**spec, "devices": {**spec["devices"], "requests": requests}}}


def with_pods(workload: Workload, count: int) -> Edit:
    """Only the first pods, and groups that want no more than those."""
    objects = tuple(_smaller_group(one, count) for one in workload.objects)
    target, _ = _template_of(workload)
    kind = target.partition("/")[0]
    command = ""
    patch: Doc | None = None
    if kind in ("deployment", "statefulset", "replicaset"):
        command = f"kubectl scale {target}{namespace_option(workload)} --replicas={count}"
    elif kind == "job":
        patch = {"spec": {"parallelism": count, "completions": count}}
    elif (form := _form_of(_controller_of(workload.pods[0]))) is not None:
        patch = form.scaled(workload.pods, count)
    says = f"with {count} instead of {len(workload.pods)} pods"
    made = replace(workload, objects=objects, pods=workload.pods[:count])
    return Edit("replicas", 20, says, made, target, patch, command)


def _smaller_group(document: Doc, count: int) -> Doc:
    if document["kind"] not in _GROUP_KINDS:
        return document
    spec = dict(document.get("spec") or {})
    if spec.get("minMember", 0) > count:
        spec["minMember"] = count
        spec.pop("minResources", None)
        spec.pop("minTaskMember", None)
    gang = (spec.get("schedulingPolicy") or {}).get("gang")
    if gang and gang.get("minCount", 0) > count:
        spec["schedulingPolicy"] = {**spec["schedulingPolicy"], "gang": {**gang, "minCount": count}}
    return {**document, "spec": spec}


# ---- groups ----


def easier_groups(workload: Workload) -> Iterator[Edit]:
    """Groups that need not be close together."""
    closeness = _closeness()
    for number, one in enumerate(workload.objects):
        if one["kind"] not in _GROUP_KINDS:
            continue
        spec, (target, fixed) = one.get("spec") or {}, group_target(one)
        for field in ("networkTopology", "schedulingConstraints"):
            if spec.get(field):
                loose = {**one, "spec": {name: value for name, value in spec.items() if name != field}}
                patch: Doc = {"spec": {field: None}}
                yield Edit("closeness", 30, _APART, with_object(workload, number, loose), target, patch, fixed=fixed)
        annotations = one["metadata"].get("annotations") or {}
        near = [key for key in closeness if key in annotations]
        if near:
            kept = {key: value for key, value in annotations.items() if key not in near}
            loose = {**one, "metadata": {**one["metadata"], "annotations": kept}}
            patch = {"metadata": {"annotations": dict.fromkeys(near)}}
            yield Edit("closeness", 30, _APART, with_object(workload, number, loose), target, patch)
    yield from _pods_apart(workload, closeness)


def _closeness() -> list[str]:
    """Annotations by which groups and pods ask to be close together."""
    return sorted({TOPOLOGY_KEY_ANNOTATION, *(key for one in what_ifs() for key in one.closeness)})


def _pods_apart(workload: Workload, closeness: Collection[str]) -> Iterator[Edit]:
    """Closeness that stands in annotations of the pods, where their gang has no object."""
    near = {key for pod in workload.pods for key in pod["metadata"].get("annotations") or {} if key in closeness}
    if near:
        pods = tuple(
            {**pod, "metadata": _less(pod["metadata"], "annotations", *near)}
            if pod["metadata"].get("annotations")
            else pod
            for pod in workload.pods
        )
        target, wrap = _template_of(workload)
        patch = wrap({"metadata": {"annotations": dict.fromkeys(sorted(near))}})
        yield Edit("closeness", 30, _APART, replace(workload, pods=pods), target, patch)


def group_target(group: Doc) -> tuple[str, bool]:
    """What is to be changed for another group, and whether that can only be done before it is created. A group that a
    family's owner of pods makes is changed there; the native API does not let its groups be changed."""
    metadata = group["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        if (form := _form_of(owner)) is not None:
            return f"{form.resource}/{owner['name']}", True
    api = group["apiVersion"].partition("/")[0]
    return f"podgroups.{api}/{metadata['name']}", api == "scheduling.k8s.io"


def with_object(workload: Workload, number: int, document: Doc) -> Workload:
    """The workload with another document in the place of one of its objects."""
    objects = (*workload.objects[:number], document, *workload.objects[number + 1 :])
    return replace(workload, objects=objects)
