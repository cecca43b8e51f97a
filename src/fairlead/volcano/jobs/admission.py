"""What Volcano's admission webhooks do to Jobs, done by the server itself, in their words.

    create   queue, scheduler, retries, names and minima of tasks are filled in; plugins bring those that they need
    check    tasks, policies, partitions, plugins, volumes, the queue, and that dependencies form no circle
    update   replicas, minima and the priority class may change, nothing else

A refused Job gets one message with everything that is wrong with it. Each part ends as the original's does (some with a
semicolon, some with a full stop), because clients show the text as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from fairlead.cluster.admission.names import dns_subdomain, qualified_name
from fairlead.cluster.admission.pod_defaults import default_pod_spec
from fairlead.cluster.admission.pods import check_pod_spec
from fairlead.cluster.admission.problems import ValidationProblems, worded
from fairlead.cluster.admission.webhook_denial import Denied
from fairlead.cluster.store.quantities import QUANTITY_ERROR, NotAQuantity, amount
from fairlead.volcano.kinds import VC_QUEUE
from fairlead.volcano.queues.tree_rules import children_of

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView

_WEBHOOK = "validatejob.volcano.sh"
_DEFAULT_RETRIES = 3
_EVENTS = (
    "*", "PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed", "JobUpdated",
)  # fmt: skip
ACTIONS = (
    "AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob",
    "ResumeJob",
)  # fmt: skip
_BRINGS = {"tensorflow": ("svc",), "mpi": ("svc", "ssh"), "pytorch": ("svc",), "ray": ("svc",)}
"""Plugin -> the plugins that it needs."""
_PLUGINS = frozenset({"env", "svc", "ssh", "tensorflow", "pytorch", "mpi", "ray", "hcclrank"})
TWO_TIERS = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"


# ---- made different ----


def mutate_job(doc: Doc) -> Doc:
    """A new Job with what its author left out."""
    spec = dict(doc.get("spec") or {})
    spec["queue"] = spec.get("queue") or "default"
    spec["schedulerName"] = spec.get("schedulerName") or "volcano"
    spec["maxRetry"] = spec.get("maxRetry") or _DEFAULT_RETRIES
    if spec.get("tasks"):
        spec["tasks"] = _filled_tasks(default_ports(spec["tasks"]))
    if not spec.get("minAvailable"):
        spec["minAvailable"] = sum(_minimum(task) for task in spec.get("tasks") or ())
    if spec.get("plugins") is not None:
        spec["plugins"] = _with_needed(spec["plugins"])
    return {**doc, "spec": spec}


def _minimum(task: Doc) -> int:
    known = task.get("minAvailable")
    return int(task.get("replicas") or 0) if known is None else int(known)


def _filled_tasks(tasks: list[Doc]) -> list[Doc]:
    """If one task had to be filled in, all are written anew, as the original's patch does it."""
    filled = [_filled_task(index, task) for index, task in enumerate(tasks)]
    return [_rewritten(task) for task in filled] if filled != tasks else tasks


def _filled_task(index: int, task: Doc) -> Doc:
    out = dict(task)
    out["name"] = task.get("name") or f"default{index}"
    template_spec = (task.get("template") or {}).get("spec") or {}
    if template_spec.get("hostNetwork") and not template_spec.get("dnsPolicy"):
        out["template"] = {**task["template"], "spec": {**template_spec, "dnsPolicy": "ClusterFirstWithHostNet"}}
    if task.get("minAvailable") is None:
        policy = task.get("partitionPolicy") or {}
        partitions = int(policy.get("minPartitions") or 0)
        derived = partitions * int(policy.get("partitionSize") or 0)
        out["minAvailable"] = derived if partitions > 0 else int(task.get("replicas") or 0)
    out["maxRetry"] = task.get("maxRetry") or _DEFAULT_RETRIES
    return out


def _rewritten(task: Doc) -> Doc:
    out = {name: value for name, value in task.items() if name != "replicas" or value}
    if "template" in out:
        template = {"metadata": {}, **out["template"]}
        if template.get("spec"):
            template["spec"] = _with_resources(template["spec"])
        out["template"] = template
    return out


def _with_resources(spec: Doc) -> Doc:
    """Containers written anew have an empty `resources` where they had none."""
    out = dict(spec)
    for field in ("containers", "initContainers"):
        if spec.get(field):
            out[field] = [{"resources": {}, **container} for container in spec[field]]
    return out


def default_ports(tasks: list[Doc]) -> list[Doc]:
    """The one default that the definitions give to pod templates: ports are TCP."""
    return [_with_protocols(task) for task in tasks]


def _with_protocols(task: Doc) -> Doc:
    spec = (task.get("template") or {}).get("spec") or {}
    both = ("containers", "initContainers")
    fields = [field for field in both if any(one.get("ports") for one in spec.get(field) or ())]
    if not fields:
        return task
    out = dict(spec)
    for field in fields:
        out[field] = [
            {**one, "ports": [{"protocol": "TCP", **port} for port in one["ports"]]} if one.get("ports") else one
            for one in spec[field]
        ]
    return {**task, "template": {**task["template"], "spec": out}}


def _with_needed(plugins: dict[str, Any]) -> dict[str, Any]:
    out = dict(plugins)
    for name in plugins:
        for needed in _BRINGS.get(name, ()):
            out.setdefault(needed, [])
    return out


# ---- refused ----


def admit_job(view: DocView, job: Doc) -> None:
    """Raises Denied if a Job may not be made like that."""
    spec = job.get("spec") or {}
    if not spec.get("tasks"):
        raise Denied(_WEBHOOK, "No task specified in job spec")
    if "mpi" in (spec.get("plugins") or {}) and not _has_mpi_master(spec):
        raise Denied(_WEBHOOK, "The specified mpi master task was not found")
    why = "".join(_complaints(view, job, spec)).strip()
    if why:
        raise Denied(_WEBHOOK, why)


def admit_job_update(new: Doc, old: Doc) -> None:
    """Raises Denied if a Job may not be changed like that: the first thing that is wrong."""
    why = next(filter(None, _update_complaints(new, new["spec"], old["spec"])), "")
    if why:
        raise Denied(_WEBHOOK, why)


def _complaints(view: DocView, job: Doc, spec: Doc) -> Iterator[str]:
    tasks, name = spec["tasks"], job["metadata"]["name"]
    yield _tier_complaint(spec.get("networkTopology"))
    yield from _task_complaints(name, tasks)
    if found := qualified_name(name):
        yield f"create job with name {name} validate failed {_listed(found)}"
    if sum(int(task.get("replicas") or 0) for task in _looked_at(tasks)) < int(spec.get("minAvailable") or 0):
        yield " job 'minAvailable' should not be greater than total replicas in tasks;"
    yield _policy_complaint(spec.get("policies") or (), "spec.policies")
    for plugin in sorted(spec.get("plugins") or ()):
        if plugin not in known_plugins():
            yield f" unable to find job plugin: {plugin};"
    yield _volume_complaint(spec.get("volumes") or ())
    yield from _queue_complaints(view, spec.get("queue") or "")
    if any(task.get("dependsOn") is not None for task in tasks) and not _is_acyclic(tasks):
        yield " job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);"


@lru_cache(maxsize=1)
def known_plugins() -> frozenset[str]:
    """Those that ship with fairlead and those of other packages."""
    return _PLUGINS | {point.name for point in entry_points(group="fairlead.job_plugins")}


def _has_mpi_master(spec: Doc) -> bool:
    master = "master"
    for argument in spec["plugins"]["mpi"] or ():
        name, _, value = argument.lstrip("-").partition("=")
        master = value if name == "master" and value else master
    return any(task.get("name") == master for task in spec["tasks"])


def _tier_complaint(topology: Doc | None) -> str:
    topology = topology or {}
    both = topology.get("highestTierAllowed") is not None and topology.get("highestTierName")
    return TWO_TIERS if both else ""


# ---- tasks ----


def _looked_at(tasks: list[Doc]) -> Iterator[Doc]:
    """Tasks up to and with the first whose name was used before."""
    seen: set[str] = set()
    for task in tasks:
        yield task
        if task.get("name") in seen:
            return
        seen.add(task.get("name") or "")


def _task_complaints(job: str, tasks: list[Doc]) -> Iterator[str]:
    seen: set[str] = set()
    for index, task in enumerate(_looked_at(tasks)):
        name, minimum = task.get("name") or "", task.get("minAvailable")
        if minimum is not None and minimum > int(task.get("replicas") or 0):
            yield f" 'minAvailable' is greater than 'replicas' in task: {name}, job: {job};"
        if name in seen:
            yield f" duplicated task name {name};"
            return
        seen.add(name)
        yield _policy_complaint(task.get("policies") or (), "spec.tasks.policies")
        pod = f"{job}-{name}-{index}"
        if found := qualified_name(pod):
            yield f"create pod with name {pod} validate failed {_listed(found)};"
        yield _template_complaint(index, task) or _numa_complaint(index, task)
        yield _partition_complaint(job, task)


def _template_complaint(index: int, task: Doc) -> str:
    problems = ValidationProblems()
    spec = default_pod_spec((task.get("template") or {}).get("spec") or {}, template=True)
    try:
        check_pod_spec(problems, "template.spec", spec)
    except NotAQuantity as error:  # the definition of a Job does not look into its templates
        return f'spec.task[{index}].template.spec: Invalid value: "{error}": {QUANTITY_ERROR}. '
    if not problems:
        return ""
    return f"spec.task[{index}]." + "".join(f"{path}: {message}. " for _, path, message in problems.found)


def _numa_complaint(index: int, task: Doc) -> str:
    if task.get("topologyPolicy") in (None, "", "none"):
        return ""
    spec = (task.get("template") or {}).get("spec") or {}
    for number, container in enumerate([*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]):
        resources = container.get("resources") or {}
        requests = resources.get("requests") or resources.get("limits") or {}
        cpus = amount(requests.get("cpu") or 0)
        if cpus.denominator != 1 or cpus == 0:
            return f"the cpu request isn't  an integer in spec.task[{index}] container[{number}]."
    return ""


def _partition_complaint(job: str, task: Doc) -> str:
    policy = task.get("partitionPolicy")
    if not policy:
        return ""
    total, size = int(policy.get("totalPartitions") or 0), int(policy.get("partitionSize") or 0)
    least, minimum = int(policy.get("minPartitions") or 0), task.get("minAvailable")
    what = ""
    if total <= 0:
        what = "'TotalPartitions' must be greater than 0"
    elif size <= 0:
        what = "'PartitionSize' must be greater than 0"
    elif int(task.get("replicas") or 0) != total * size:
        what = "'Replicas' are not equal to TotalPartitions*PartitionSize"
    elif minimum is not None and least > 0 and least * size != minimum:
        what = "'MinAvailable' is not equal to MinPartitions*PartitionSize"
    where = f" in task: {task.get('name') or ''}, job: {job}" if what else ""
    return what + where + _tier_complaint(policy.get("networkTopology"))


# ---- policies ----


def _policy_complaint(policies: Any, path: str) -> str:
    faults = list(_policy_faults(policies, path))
    if not faults:
        return ""
    head = f"{len(faults)} error{'s' if len(faults) > 1 else ''} occurred:\n"
    body = "".join(f"\t* {fault}\n" for fault in faults)
    return f"{head}{body}\n valid events are {_listed(_EVENTS)}, valid actions are {_listed(ACTIONS)};"


def _policy_faults(policies: Any, path: str) -> Iterator[str]:
    """The first fault of the list, and that `*` is not alone."""
    events: set[str] = set()
    codes: set[int] = set()
    for policy in policies:
        fault = _policy_fault(policy, path, events, codes)
        if fault:
            yield fault
            break
    if "*" in events and len(events) > 1:
        yield "if there's * here, no other policy should be here"


def _policy_fault(policy: Doc, path: str, events: set[str], codes: set[int]) -> str:
    listed = [*(policy.get("events") or ()), *filter(None, (policy.get("event"),))]
    code = policy.get("exitCode")
    if listed and code is not None:
        return "must not specify event and exitCode simultaneously"
    if not listed and code is None:
        return "either event and exitCode should be specified"
    if not listed:
        return _code_fault(int(code or 0), codes)
    for event in dict.fromkeys(listed):
        if event not in _EVENTS:
            return f"{path}: Invalid value: {worded(event)}: invalid policy event"
        action = policy.get("action") or ""
        if action not in ACTIONS:
            return f"{path}: Invalid value: {worded(action)}: invalid policy action"
        if event in events:
            return f"duplicate event {event}  across different policy"
        events.add(event)
    return ""


def _code_fault(code: int, codes: set[int]) -> str:
    if code == 0:
        return "0 is not a valid error code"
    if code in codes:
        return f"duplicate exitCode {code}"
    codes.add(code)
    return ""


def _listed(words: Any) -> str:
    """As Go prints a list."""
    return f"[{' '.join(words)}]"


# ---- volumes, queue, dependencies ----


def _volume_complaint(volumes: Any) -> str:
    paths: set[str] = set()
    for volume in volumes:
        path, claim = volume.get("mountPath") or "", volume.get("volumeClaimName") or ""
        if not path:
            return " mountPath is required;"
        if path in paths:
            return f" duplicated mountPath: {path};"
        if volume.get("volumeClaim") is None and not claim:
            return " either VolumeClaim or VolumeClaimName must be specified;"
        if claim and volume.get("volumeClaim") is not None:
            return (
                "conflict: If you want to use an existing PVC, just specify VolumeClaimName."
                "If you want to create a new PVC, you do not need to specify VolumeClaimName"
            )
        if claim and (found := dns_subdomain(claim)):
            return f"invalid VolumeClaimName {claim} : {_listed(found)}"
        paths.add(path)
    return ""


def _queue_complaints(view: DocView, name: str) -> Iterator[str]:
    queue = view.get(VC_QUEUE, "", name)
    if queue is None and name == "default":
        return  # the job controller makes it when the first Job needs it
    if queue is None:
        yield f' unable to find job queue: queue.scheduling.volcano.sh "{name}" not found;'
        return
    state = (queue.get("status") or {}).get("state") or ""
    if state != "Open":
        yield f" can only submit job to queue with state `Open`, queue `{name}` status is `{state}`;"
    if name == "root":
        yield " can not submit job to root queue;"
    elif children := children_of(view, name):
        yield f" can only submit job to leaf queue, queue `{name}` has {len(children)} child queues;"


def _is_acyclic(tasks: list[Doc]) -> bool:
    """Whether every task can start at some time: a name that is no task never does."""
    waits = {task.get("name"): set((task.get("dependsOn") or {}).get("name") or ()) for task in tasks}
    while ready := [name for name, others in waits.items() if not others & waits.keys() and others <= waits.keys()]:
        for name in ready:
            del waits[name]
            for others in waits.values():
                others.discard(name)
    return not waits


# ---- updates ----


def _update_complaints(new: Doc, spec: Doc, before: Doc) -> Iterator[str]:
    tasks, total = spec.get("tasks") or [], 0
    for task in tasks:
        minimum, replicas = task.get("minAvailable"), int(task.get("replicas") or 0)
        if minimum is not None and minimum > replicas:
            yield f"'minAvailable' must be <= 'replicas' in task: {task.get('name') or ''}"
        yield _partition_complaint(new["metadata"]["name"], task)
        total += replicas
    if int(spec.get("minAvailable") or 0) > total:
        yield "job 'minAvailable' must not be greater than total replicas"
    yield _tier_complaint(spec.get("networkTopology"))
    if len(tasks) != len(before.get("tasks") or []):
        yield "job updates may not add or remove tasks"
    if _fixed(spec) != _fixed(before):
        yield (
            "job updates may not change fields other than `minAvailable`, "
            "`tasks[*].replicas under spec` and `PriorityClassName`"
        )


def _fixed(spec: Doc) -> Doc:
    """What of a spec may not change."""
    out = {name: value for name, value in spec.items() if name not in ("minAvailable", "priorityClassName")}
    out["tasks"] = [
        {name: value for name, value in task.items() if name not in ("replicas", "minAvailable")}
        for task in spec.get("tasks") or ()
    ]
    out["volumes"] = [
        {name: value for name, value in volume.items() if name != "volumeClaimName" or "volumeClaim" not in volume}
        for volume in spec.get("volumes") or ()
    ]
    return out
