"""PodSource: who has the template of some pods of a workload, and how a patch of the template is written there.

A change of a pod is a change of its source: of the Deployment, the Job, the object of a family, or of the pod itself if
nobody made it. Pods that nobody made are alike for a change but each has a file of its own, so they are one source with
a target for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from fairlead.core.engine.what_if.families import what_ifs

if TYPE_CHECKING:
    from fairlead.core.engine.what_if.families import PodOwner
    from fairlead.core.engine.what_if.workload import Workload
    from fairlead.core.model.flow import Doc


_TEMPLATED = (
    "deployment", "statefulset", "daemonset", "replicaset", "replicationcontroller", "job",
)  # fmt: skip
"""Owners whose one pod template is `spec.template`. Where the templates of others are, their operators know."""
Patches = Sequence["Doc"]
"""Patches of templates, one for each pod of a source."""


@dataclass(frozen=True, slots=True)
class PodSource:
    """`targets` are kind/name, as kubectl takes it: one, or one for each of `pods`, positions in the workload.
    `wrap` makes a patch of the first target of patches of its templates; it is None if nobody knows where they are."""

    targets: tuple[str, ...]
    pods: tuple[int, ...]
    wrap: Callable[[Patches], Doc] | None
    owner: Doc | None

    @property
    def target(self) -> str:
        return self.targets[0]


def sources_of(workload: Workload) -> list[PodSource]:
    """All sources of a workload's pods, in the order of the pods."""
    runs_of = {one["metadata"]["name"]: owner for one in workload.objects if (owner := _cron_job(one)) is not None}
    found: dict[str, tuple[list[int], Doc | None]] = {}
    for at, pod in enumerate(workload.pods):
        owner = _controller_of(pod)
        if owner is not None and owner["kind"] == "Job":
            owner = runs_of.get(owner["name"], owner)
        found.setdefault("" if owner is None else _target(pod, owner), ([], owner))[0].append(at)
    return [_source(workload, target, tuple(pods), owner) for target, (pods, owner) in found.items()]


def _source(workload: Workload, target: str, pods: tuple[int, ...], owner: Doc | None) -> PodSource:
    if owner is None:
        names = tuple(f"pod/{workload.pods[at]['metadata']['name']}" for at in pods)
        return PodSource(names, pods, lambda patches: patches[0], None)
    form = form_of(owner)
    kind = target.partition("/")[0]
    if form is not None:
        return PodSource((target,), pods, partial(form.templates, [workload.pods[at] for at in pods]), owner)
    if kind == "cronjob":
        return PodSource((target,), pods, lambda patches: {"spec": {"jobTemplate": _template(patches)}}, owner)
    return PodSource((target,), pods, _template if kind in _TEMPLATED else None, owner)


def _template(patches: Patches) -> Doc:
    return {"spec": {"template": patches[0]}}


def _cron_job(document: Doc) -> Doc | None:
    if document["kind"] != "Job":
        return None
    owner = _controller_of(document)
    return owner if owner is not None and owner["kind"] == "CronJob" else None


def _target(pod: Doc, owner: Mapping[str, Any]) -> str:
    kind, name = str(owner["kind"]).lower(), str(owner["name"])
    if kind == "replicaset" and (label := (pod["metadata"].get("labels") or {}).get("pod-template-hash")):
        kind, name = "deployment", name.removesuffix(f"-{label}")
    form = form_of(owner)
    return f"{kind if form is None else form.resource}/{name}"


def target_of(document: Doc) -> str:
    """An object as kind/name, as kubectl takes it and as a source of pods has it."""
    api, kind, name = document["apiVersion"].partition("/")[0], document["kind"].lower(), document["metadata"]["name"]
    form = form_of(document)
    if form is not None:
        return f"{form.resource}/{name}"
    return f"podgroups.{api}/{name}" if kind == "podgroup" else f"{kind}/{name}"


def _controller_of(document: Doc) -> Doc | None:
    return next((one for one in document["metadata"].get("ownerReferences") or () if one.get("controller")), None)


def form_of(owner: Mapping[str, Any] | None) -> PodOwner | None:
    """How an owner is changed, if that is a family's to say."""
    group = "" if owner is None else owner["apiVersion"].partition("/")[0]
    return next((found for one in what_ifs() if (found := one.owners.get(group)) is not None), None)
