"""Jobs and groups in questions about what would happen: how a Job is changed, when it makes pods, and a group's end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.core.engine.what_if.cluster_changes import HolderEnd
from fairlead.core.engine.what_if.families import Awaited, PodOwner
from fairlead.volcano.jobs.job_pods import TASK_SPEC
from fairlead.volcano.kinds import GROUP_ANNOTATION, VC_JOB, VC_POD_GROUP

if TYPE_CHECKING:
    from fairlead.core.engine.what_if.trial import Trial
    from fairlead.core.engine.what_if.workload import Workload
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster

_LETS_IN = ("Inqueue", "Running")
"""Phases of a group in which its Job has its pods made."""


def _templates(pods: Sequence[Doc], patches: Sequence[Doc]) -> Doc:
    """Each task with the patch of its first pod."""
    first: dict[str, Doc] = {}
    for pod, patch in zip(pods, patches, strict=True):
        first.setdefault(_task(pod), {"template": patch})
    return _in_tasks(first)


def _scaled(pods: Sequence[Doc], count: int) -> Doc:
    kept = dict.fromkeys(_tasks(pods), 0) | _tasks(pods[:count])
    tasks = _in_tasks({task: {"replicas": number} for task, number in kept.items()})
    return {"spec": {"minAvailable": count, **tasks["spec"]}}


def _tasks(pods: Sequence[Doc]) -> dict[str, int]:
    """How many pods each task of a Job has."""
    return dict(Counter(map(_task, pods)))


def _task(pod: Doc) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(TASK_SPEC, ""))


def _in_tasks(changes: Mapping[str, Doc]) -> Doc:
    return {"spec": {"tasks": [{"name": task, **change} for task, change in changes.items()]}}


OWNERS: Mapping[str, PodOwner] = {VC_JOB.group: PodOwner("jobs.batch.volcano.sh", _templates, _scaled)}


def awaited_by(pod: Doc, objects: Sequence[Doc]) -> Awaited | None:
    """The group of a Job's pod: the Job's controller makes no pods before the group is let into its queue."""
    metadata = pod["metadata"]
    owners = metadata.get("ownerReferences") or ()
    if not any(one["kind"] == VC_JOB.kind and one["apiVersion"] == VC_JOB.api_version for one in owners):
        return None
    name = (metadata.get("annotations") or {}).get(GROUP_ANNOTATION, "")
    if not any(one["kind"] == VC_POD_GROUP.kind and one["metadata"]["name"] == name for one in objects):
        return None
    return Awaited(f"{metadata['namespace']}/{name}", _lets_in)


def _lets_in(patch: Doc) -> bool:
    return (patch.get("status") or {}).get("phase") in _LETS_IN


def end_of(who: str, cluster: Cluster, workload: Workload) -> HolderEnd | None:
    """The end of a group: it goes with all its pods but those of the workload itself."""
    if who not in cluster.object_index.of(VC_POD_GROUP):
        return None
    members = [one.seen for one in cluster.pods.values() if _group_of(one.seen) == who]
    if any(pod.uid in workload.own for pod in members) or _is_own(who, workload):
        return None
    group = cluster.object_index.of(VC_POD_GROUP)[who]
    owners = {f"{pod.owner.kind} {pod.namespace}/{pod.owner.name}" for pod in members if pod.owner is not None}
    named = owners.pop() if len(owners) == 1 else f"the group {who}"
    if not members and group.first_owner:
        named = f"Job {who.partition('/')[0]}/{group.first_owner}"
    return HolderEnd(lambda trial: _end_group(trial, who, members), f"when {named} has ended")


def _is_own(who: str, workload: Workload) -> bool:
    """Whether the group is the workload's, as it is or as it would be made anew."""
    objects = [*workload.objects, *(() if workload.anew is None else workload.anew.removes)]
    return any(one["kind"] == VC_POD_GROUP.kind and _key(one["metadata"]) == who for one in objects)


def _key(metadata: Mapping[str, str]) -> str:
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def _group_of(pod: Pod) -> str:
    ref = pod.group_ref
    return f"{pod.namespace}/{ref.name}" if ref is not None else ""


def _end_group(trial: Trial, key: str, pods: Sequence[Pod]) -> None:
    namespace, _, name = key.partition("/")
    trial.remove_pods(pods)
    trial.remove(VC_POD_GROUP, {"metadata": {"namespace": namespace, "name": name}})
