"""Edits: one change of a workload or of the cluster that might let it run, not yet tried.

Each edit is made from what refused the workload: fewer pods, a smaller request of what is short, one selector, taint or
rule of placement less, a group that need not be close together. An edit is a function of the Workload; whether it helps
is found out by trying (least_change.py).

An edit says in Steps what has to be done for it, and its workload is what comes of exactly these. What does not exist
yet is changed in its file. What exists is changed in place where the API and its controller let it, and `otherwise` is
what remains if that does not help: all of its old pods go before the new ones come.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fairlead.core.engine.what_if.families import what_ifs
from fairlead.core.engine.what_if.sources import PodSource, form_of, sources_of
from fairlead.core.model.group import TOPOLOGY_KEY_ANNOTATION
from fairlead.core.model.quantity import format_quantity, parse_quantity, to_units

if TYPE_CHECKING:
    from fairlead.core.engine.what_if.workload import Workload
    from fairlead.core.model.flow import Doc
    from fairlead.core.state.cluster import Cluster

_GROUP_KINDS = ("PodGroup",)
_ROLLING = ("deployment", "statefulset", "daemonset")
"""Kinds whose template may be changed in place, and whose controller then replaces their pods."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_APART = "if the pods need not be close together"
Change = Callable[["Doc"], "Doc"]
"""A function of a pod's document."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do: a `command`; or in the file a `patch` of each target; or `targets` left out of the file."""

    command: str = ""
    targets: tuple[str, ...] = ()
    patch: Doc | None = None

    def to_document(self) -> Doc:
        if self.command:
            return {"command": self.command}
        doc: Doc = {"targets": list(self.targets)}
        return doc if self.patch is None else doc | {"patch": self.patch}


@dataclass(frozen=True, slots=True)
class Edit:
    """`says` is for people, `steps` are what has to be done, in order. `otherwise` is the same change in another way,
    to be tried if this one does not help."""

    kind: str
    cost: int
    says: str
    workload: Workload
    steps: tuple[Step, ...] = ()
    otherwise: Edit | None = None

    def to_document(self) -> Doc:
        doc: Doc = {"kind": self.kind, "cost": self.cost, "says": self.says}
        return doc | ({"steps": [step.to_document() for step in self.steps]} if self.steps else {})


def namespace_option(namespace: str) -> str:
    """What kubectl has to be told of a namespace; nothing if it is the default one."""
    return "" if namespace in ("", "default") else f" -n {namespace}"


def _namespace(workload: Workload) -> str:
    return namespace_option(str(workload.pods[0]["metadata"].get("namespace") or "default"))


def _patch_step(workload: Workload, target: str, patch: Doc, dialect: str) -> Step:
    if workload.in_file:
        return Step(targets=(target,), patch=patch)
    text = json.dumps(patch, separators=(",", ":"))
    return Step(f"kubectl patch {target}{_namespace(workload)} --type={dialect} -p '{text}'")


# ---- a change of templates ----


def template_edit(
    workload: Workload, kind: str, cost: int, says: str, change: Change, patch: Callable[[Doc], Doc]
) -> Edit:
    """An edit of all pods. `patch` makes of a changed pod what a patch of its template says."""
    base = workload.anew or workload
    later = replace(base, pods=tuple(map(change, base.pods)))
    written = [(one, _wrapped(later, one, patch)) for one in sources_of(later)]
    there = [one.target for one in sources_of(later) if not workload.exists.isdisjoint(one.targets)]
    if workload.anew is None or not there:
        return Edit(kind, cost, says, later, _file_steps(later, patch))
    anew = Edit(kind, cost + 2, f"{says}, made anew", later.at_once(), tuple(_steps_anew(workload, later, patch)))
    if not all(target.partition("/")[0] in _ROLLING for target in there):
        return anew
    steps = [_patch_step(workload, one.target, wrapped, "strategic") for one, wrapped in written if wrapped is not None]
    return Edit(kind, cost, says, later, tuple(steps), anew)


def _steps_anew(workload: Workload, later: Workload, patch: Callable[[Doc], Doc]) -> Iterator[Step]:
    """How all old pods go before the new ones come: a Deployment does it by itself if it is told to."""
    gone: list[str] = []
    for one in sources_of(later):
        wrapped = _wrapped(later, one, patch)
        if one.target.startswith("deployment/") and wrapped is not None:
            strategy: Doc = {"strategy": {"type": "Recreate", "rollingUpdate": None}}
            yield _patch_step(workload, one.target, {"spec": {**strategy, **wrapped["spec"]}}, "strategic")
        else:
            gone += [target for target in one.targets if target in workload.exists]
    if gone:
        yield Step(f"kubectl delete {' '.join(gone)}{_namespace(workload)}")
        yield from (step for step in _file_steps(later, patch) if not step.targets[0].startswith("deployment/"))


def _wrapped(workload: Workload, source: PodSource, patch: Callable[[Doc], Doc]) -> Doc | None:
    return None if source.wrap is None else source.wrap([patch(workload.pods[at]) for at in source.pods])


def _file_steps(workload: Workload, patch: Callable[[Doc], Doc]) -> tuple[Step, ...]:
    """Patches of the files of all who have templates; pods without an owner that need the same one share it."""
    shared: dict[str, tuple[list[str], Doc]] = {}
    for one in sources_of(workload):
        for at, target in zip(one.pods, one.targets, strict=False):
            single = replace(one, pods=(at,)) if one.owner is None else one
            wrapped = _wrapped(workload, single, patch)
            if wrapped:
                shared.setdefault(json.dumps(wrapped, sort_keys=True), ([], wrapped))[0].append(target)
    return tuple(Step(targets=tuple(targets), patch=wrapped) for targets, wrapped in shared.values())


# ---- what pods ask of nodes ----


def easier_pods(workload: Workload, cluster: Cluster) -> Iterator[Edit]:
    """One demand less in every pod: a selector, a rule of affinity or spreading; or one toleration more."""
    specs = [pod["spec"] for pod in workload.pods]
    for key in dict.fromkeys(key for spec in specs for key in spec.get("nodeSelector") or {}):
        patch: Doc = {"nodeSelector": {key: None}}
        says = f"without the node selector {key}"
        yield _edit(workload, "selector", 10, says, partial(_without_selector, key), partial(_always, patch))
    for part in ("nodeAffinity", "podAffinity", "podAntiAffinity"):
        if any(((spec.get("affinity") or {}).get(part) or {}).get(_REQUIRED) for spec in specs):
            patch = {"affinity": {part: {_REQUIRED: None}}}
            says = f"without the required {part}"
            yield _edit(workload, "affinity", 11, says, partial(_without_affinity, part), partial(_always, patch))
    if any(one.get("whenUnsatisfiable") == "DoNotSchedule" for spec in specs for one in _spread(spec)):
        says = "with topology spread that is only preferred"
        yield _edit(workload, "spread", 11, says, _softly_spread, lambda spec: _only(spec, "topologySpreadConstraints"))
    yield from _tolerations(workload, specs, cluster)


def _always(patch: Doc, _: Doc) -> Doc:
    return patch


def _without_selector(key: str, spec: Doc) -> Doc:
    return _less(spec, "nodeSelector", key)


def _without_affinity(part: str, spec: Doc) -> Doc:
    return {**spec, "affinity": _less(spec.get("affinity") or {}, part, _REQUIRED)}


def _softly_spread(spec: Doc) -> Doc:
    soft = [{**one, "whenUnsatisfiable": "ScheduleAnyway"} for one in _spread(spec)]
    return {**spec, "topologySpreadConstraints": soft} if soft else spec


def _only(spec: Doc, field: str) -> Doc:
    return {field: spec[field]} if spec.get(field) else {}


def _tolerations(workload: Workload, specs: Sequence[Doc], cluster: Cluster) -> Iterator[Edit]:
    taints = {(one.key, one.value, one.effect) for node in cluster.table.nodes if node for one in node.taints}
    for key, value, effect in sorted(taints):
        more = {"key": key, "operator": "Equal", "value": value, "effect": effect}
        if effect not in ("NoSchedule", "NoExecute") or more in (specs[0].get("tolerations") or []):
            continue
        says = f"with a toleration of the taint {key}={value}:{effect}"
        yield _edit(workload, "toleration", 10, says, partial(_tolerant, more), _written_tolerations)


def _tolerant(more: Doc, spec: Doc) -> Doc:
    return {**spec, "tolerations": [*(spec.get("tolerations") or []), more]}


def _written_tolerations(spec: Doc) -> Doc:
    return {"tolerations": [one for one in spec["tolerations"] if not _by_default(one)]}


def _by_default(toleration: Mapping[str, Any]) -> bool:
    """Whether admission adds it to every pod by itself, so that nobody has to write it."""
    key, effect = str(toleration.get("key") or ""), toleration.get("effect")
    known = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    return key in known and effect == "NoExecute" and toleration.get("tolerationSeconds") == 300


def _spread(spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return spec.get("topologySpreadConstraints") or ()


def _less(spec: Mapping[str, Any], field: str, *keys: str) -> Doc:
    return {**spec, field: {name: value for name, value in (spec.get(field) or {}).items() if name not in keys}}


def _edit(workload: Workload, kind: str, cost: int, says: str, change: Change, patch: Change) -> Edit:
    """An edit of all pods' specs; `patch` is made of a changed spec."""

    def changed(pod: Doc) -> Doc:
        return {**pod, "spec": change(pod["spec"])}

    return template_edit(workload, kind, cost, says, changed, lambda pod: {"spec": patch(pod["spec"])})


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
    asked = format_quantity(requests_of(workload, resource), resource)

    def less(spec: Doc) -> Doc:
        return {**spec, "containers": [_asking(one, resource, amount, text) for one in spec["containers"]]}

    def patch(spec: Doc) -> Doc:
        return {"containers": [_resources(one, resource) for one in spec["containers"]]}

    says = f"with a request of {resource} {text} instead of {asked} in each pod"
    return _edit(workload, "request", 20, says, less, patch)


def _resources(container: Mapping[str, Any], resource: str) -> Doc:
    """What a patch says of a container: its name, and what it asks of a resource."""
    resources = container.get("resources") or {}
    kept = {part: {resource: values[resource]} for part, values in resources.items() if _has(values, resource)}
    return {"name": container["name"], "resources": kept}


def _has(values: object, resource: str) -> bool:
    return isinstance(values, Mapping) and resource in values


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
    """Claims that ask for no more devices than so many with each request. What a claim asks for cannot be changed once
    it is there, so it goes with its pods first."""
    base = workload.anew or workload
    objects = tuple(_asking_devices(one, count) if one["kind"] == "ResourceClaim" else one for one in base.objects)
    says = f"with {count} instead of {devices_of(base)} devices in each request of its claims"
    written = [(_claim_target(base, one), one) for one in objects if one["kind"] == "ResourceClaim"]
    steps = {
        target: Step(
            targets=(target,), patch=wrap({"spec": {"devices": {"requests": one["spec"]["devices"]["requests"]}}})
        )
        for (target, wrap), one in written
    }
    made = replace(base, objects=objects).at_once()
    if workload.anew is None:
        return Edit("devices", 22, says, made, tuple(steps.values()))
    gone = sorted({*(t for one in sources_of(made) for t in one.targets if t in workload.exists), *steps})
    delete = Step(f"kubectl delete {' '.join(gone)}{_namespace(workload)}")
    there = sorted({target for one in sources_of(made) for target in one.targets if target in workload.exists})
    return Edit(
        "devices",
        24,
        says,
        made,
        (delete, *steps.values(), *((Step(targets=tuple(there), patch={}),) if there else ())),
    )


def _claim_target(workload: Workload, claim: Doc) -> tuple[str, Change]:
    """Where what a claim asks for is written: in its template if it was made from one, and how a patch of it is."""
    name = claim["metadata"]["name"]
    by = (claim["metadata"].get("annotations") or {}).get("resource.kubernetes.io/pod-claim-name")
    for pod in workload.pods:
        for one in pod["spec"].get("resourceClaims") or ():
            if one["name"] == by and one.get("resourceClaimTemplateName"):
                return f"resourceclaimtemplate/{one['resourceClaimTemplateName']}", lambda patch: {"spec": patch}
    return f"resourceclaim/{name}", lambda patch: patch


def _asking_devices(claim: Doc, count: int) -> Doc:
    spec = claim["spec"]
    requests = [
        {**one, "exactly": {**one["exactly"], "count": min(count, int(one["exactly"].get("count") or 1))}}
        if _counts(one.get("exactly"))
        else one
        for one in spec["devices"]["requests"]
    ]
    return {**claim, "spec": {**spec, "devices": {**spec["devices"], "requests": requests}}}


def with_pods(workload: Workload, count: int) -> Edit | None:
    """Only the first pods, and groups that want no more than those. None if nobody can be told so."""
    says = f"with {count} instead of {len(workload.pods)} pods"
    sources = sources_of(workload)
    loose = all(one.target.startswith("pod/") for one in sources)
    if workload.rollouts or (len(sources) != 1 and not loose):
        return None
    form = form_of(sources[0].owner)
    there = sources[0].target in workload.exists
    base = workload.anew if form is not None and there and workload.anew is not None else workload
    dropped = base.pods[count:]
    objects = tuple(_smaller_group(one, count) for one in base.objects)
    gone = frozenset(pod["metadata"]["uid"] for pod in dropped) & base.running
    made = replace(
        base.at_once(),
        objects=objects,
        pods=base.pods[:count],
        replaces=base.at_once().replaces | gone,
        running=base.running - gone,
    )
    if form is not None:
        file = Step(targets=(sources[0].target,), patch=form.scaled(base.pods, count))
        delete = Step(f"kubectl delete {sources[0].target}{_namespace(workload)}")
        return Edit("replicas", 20, says, made, (delete, file) if there else (file,))
    if loose:
        return Edit("replicas", 20, says, made, _without_pods(workload, dropped, objects))
    return _scaled(workload, sources[0].target, count, says, made)


def _scaled(workload: Workload, target: str, count: int, says: str, made: Workload) -> Edit | None:
    kind = target.partition("/")[0]
    if kind in ("deployment", "statefulset", "replicaset"):
        scale = Step(f"kubectl scale {target}{_namespace(workload)} --replicas={count}")
        return Edit(
            "replicas", 20, says, made, (scale if not workload.in_file else _file(target, {"replicas": count}),)
        )
    if kind == "job":
        return Edit(
            "replicas", 20, says, made, (_patch_step(workload, target, {"spec": {"parallelism": count}}, "merge"),)
        )
    return None


def _file(target: str, spec: Doc) -> Step:
    return Step(targets=(target,), patch={"spec": spec})


def _without_pods(workload: Workload, dropped: Sequence[Doc], objects: Sequence[Doc]) -> tuple[Step, ...]:
    """Pods that nobody owns are left out, or deleted, and their group asks for no more than are left."""
    names = [f"pod/{pod['metadata']['name']}" for pod in dropped]
    steps: list[Step] = []
    for before, after in zip(workload.objects, objects, strict=True):
        if after != before:
            target, patch = group_target(after)[0], {"spec": _difference(before["spec"], after["spec"])}
            steps.append(_patch_step(workload, target, patch, "merge"))
    there = [name for name in names if name in workload.exists]
    if there:
        steps.append(Step(f"kubectl delete {' '.join(there)}{_namespace(workload)}"))
    if workload.in_file:
        steps.append(Step(targets=tuple(names)))
    return tuple(steps)


def _difference(before: Doc, after: Doc) -> Doc:
    """A merge patch of one into the other."""
    changed: Doc = dict.fromkeys(key for key in before if key not in after)
    for key, value in after.items():
        known = before.get(key)
        if value != known:
            changed[key] = _difference(known, value) if isinstance(value, dict) and isinstance(known, dict) else value
    return changed


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
    for one in workload.objects:
        if one["kind"] not in _GROUP_KINDS:
            continue
        for field in ("networkTopology", "schedulingConstraints"):
            if (one.get("spec") or {}).get(field):
                yield from group_edits(workload, one, "closeness", 30, _APART, {"spec": {field: None}})
        near = [key for key in closeness if key in (one["metadata"].get("annotations") or {})]
        if near:
            patch: Doc = {"metadata": {"annotations": dict.fromkeys(near)}}
            yield from group_edits(workload, one, "closeness", 30, _APART, patch)
    yield from _pods_apart(workload, closeness)


def group_edits(workload: Workload, group: Doc, kind: str, cost: int, says: str, patch: Doc) -> Iterator[Edit]:
    """The edit of a group by a merge patch, where it can be changed; at most one."""
    target, fixed = group_target(group)
    if target not in workload.exists:
        yield Edit(kind, cost, says, _with_group(workload, target, patch), (Step(targets=(target,), patch=patch),))
    elif not fixed:
        yield Edit(
            kind, cost, says, _with_group(workload, target, patch), (_patch_step(workload, target, patch, "merge"),)
        )
    elif not target.startswith("podgroups.") and workload.anew is not None:
        delete = Step(f"kubectl delete {target}{_namespace(workload)}")
        made = _with_group(workload.anew.at_once(), target, patch)
        yield Edit(kind, cost, says, made, (delete, Step(targets=(target,), patch=patch)))


def _with_group(workload: Workload, target: str, patch: Doc) -> Workload:
    objects = tuple(
        _merged(one, patch) if one["kind"] in _GROUP_KINDS and group_target(one)[0] == target else one
        for one in workload.objects
    )
    return replace(workload, objects=objects)


def _merged(document: Doc, patch: Doc) -> Doc:
    merged = {key: value for key, value in document.items() if key not in patch or patch[key] is not None}
    for key, value in patch.items():
        if value is not None:
            known = merged.get(key)
            merged[key] = _merged(known if isinstance(known, dict) else {}, value) if isinstance(value, dict) else value
    return merged


def _closeness() -> list[str]:
    """Annotations by which groups and pods ask to be close together."""
    return sorted({TOPOLOGY_KEY_ANNOTATION, *(key for one in what_ifs() for key in one.closeness)})


def _pods_apart(workload: Workload, closeness: Collection[str]) -> Iterator[Edit]:
    """Closeness that stands in annotations of the pods, where their gang has no object."""
    near = {key for pod in workload.pods for key in pod["metadata"].get("annotations") or {} if key in closeness}

    def apart(pod: Doc) -> Doc:
        if not pod["metadata"].get("annotations"):
            return pod
        return {**pod, "metadata": _less(pod["metadata"], "annotations", *near)}

    if near:
        patch: Doc = {"metadata": {"annotations": dict.fromkeys(sorted(near))}}
        yield template_edit(workload, "closeness", 30, _APART, apart, lambda _: patch)


def group_target(group: Doc) -> tuple[str, bool]:
    """What is to be changed for another group, and whether that can only be done before it is created. A group that a
    family's owner of pods makes is changed there; the native API does not let its groups be changed."""
    metadata = group["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        if (form := form_of(owner)) is not None:
            return f"{form.resource}/{owner['name']}", True
    api = group["apiVersion"].partition("/")[0]
    return f"podgroups.{api}/{metadata['name']}", api == "scheduling.k8s.io"
