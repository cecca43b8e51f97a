"""Objects of Volcano that deploy/volcano-admission.yaml refuses, with the reason, and those that it accepts.

The real API server with these policies and the embedded API are tested with the same objects, because the policies
are written by hand beside the embedded rules.
"""

from __future__ import annotations

from typing import Any

from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.kinds import Kind
from fairlead.volcano.kinds import VC_CRON_JOB, VC_HYPER_NODE, VC_JOB, VC_JOB_FLOW, VC_POD_GROUP, VC_QUEUE


def task(name: str = "w", replicas: int = 1, **more: Any) -> Doc:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}
    return {"name": name, "replicas": replicas, "template": template, **more}


def job(*tasks: Doc, **spec: Any) -> tuple[Kind, Doc]:
    return VC_JOB, {"tasks": list(tasks) or [task()], **spec}


def policies(*listed: Doc) -> tuple[Kind, Doc]:
    return job(task(policies=list(listed)))


def queue(**spec: Any) -> tuple[Kind, Doc]:
    return VC_QUEUE, spec


def cron(schedule: str, **spec: Any) -> tuple[Kind, Doc]:
    return VC_CRON_JOB, {"schedule": schedule, "jobTemplate": {"spec": job()[1]}, **spec}


def flow(**depends: list[str]) -> tuple[Kind, Doc]:
    return VC_JOB_FLOW, {"flows": [{"name": name, "dependsOn": {"targets": on}} for name, on in depends.items()]}


def hyper_node(*patterns: str) -> tuple[Kind, Doc]:
    members = [{"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}} for pattern in patterns]
    return VC_HYPER_NODE, {"tier": 1, "members": members}


def waiting(**depends: list[str]) -> tuple[Kind, Doc]:
    return job(*(task(name, dependsOn={"name": on}) for name, on in depends.items()))


TIERS = {"highestTierAllowed": 1, "highestTierName": "rack"}
PARTS = {"totalPartitions": 2, "partitionSize": 2}
CODE = {"exitCode": 3, "action": "AbortJob"}
NUMA = {"topologyPolicy": "single-numa-node"}
DAG = "doesn't form a directed acyclic graph(DAG)"
REFUSED: tuple[tuple[tuple[Kind, Doc], str], ...] = (
    ((VC_JOB, {"minAvailable": 1}), "No task specified in job spec"),
    (job(plugins={"mpi": []}), "The specified mpi master task was not found"),
    (job(task("m"), plugins={"mpi": ["--master=n"]}), "The specified mpi master task was not found"),
    (job(task(minAvailable=2)), "'minAvailable' is greater than 'replicas' in task: w, job: it"),
    (job(minAvailable=2), "job 'minAvailable' should not be greater than total replicas in tasks"),
    (job(task(), task()), "duplicated task name w"),
    (job(networkTopology=TIERS), "must not specify 'highestTierAllowed' and 'highestTierName'"),
    (job(task(replicas=3, partitionPolicy=PARTS)), "'Replicas' are not equal to TotalPartitions*PartitionSize"),
    (job(task(replicas=4, minAvailable=4, partitionPolicy={**PARTS, "minPartitions": 1})),
     "'MinAvailable' is not equal to MinPartitions*PartitionSize"),
    (policies({"event": "PodFailed", "exitCode": 3, "action": "RestartJob"}), "must not specify event and exitCode"),
    (policies({"action": "RestartJob"}), "either event and exitCode should be specified"),
    (policies({"event": "PodRunning", "action": "RestartJob"}), "invalid policy event"),
    (policies({"event": "PodFailed", "action": "SyncJob"}), "invalid policy action"),
    (policies({"exitCode": 3, "action": "Again"}), "invalid policy action"),
    (policies({"exitCode": 0, "action": "RestartJob"}), "0 is not a valid error code"),
    (policies({"exitCode": 3, "action": "RestartJob"}, {"exitCode": 3, "action": "AbortJob"}), "duplicate exitCode"),
    (policies({"event": "PodFailed", "action": "RestartJob"}, {"events": ["PodFailed"], "action": "AbortJob"}),
     "duplicate event"),
    (policies({"event": "*", "action": "RestartJob"}, {"event": "PodFailed", "action": "AbortJob"}),
     "if there's * here, no other policy should be here"),
    (job(task("w" * 61)), "no more than 63 characters"),
    (job(plugins={"teleport": []}), "unable to find job plugin: teleport"),
    (job(volumes=[{"mountPath": "/a"}]), "either VolumeClaim or VolumeClaimName must be specified"),
    (job(volumes=[{"mountPath": "/a", "volumeClaimName": "x"}] * 2), "duplicated mountPath: /a"),
    (job(volumes=[{"mountPath": "/a", "volumeClaimName": "x", "volumeClaim": {}}]), "conflict: If you want to use"),
    (job(volumes=[{"mountPath": "/a", "volumeClaimName": "A_b"}]), "invalid VolumeClaimName"),
    (job(task(**NUMA)), "the cpu request isn't an integer"),
    (waiting(a=["b"], b=["a"]), DAG),
    (waiting(a=["c"]), DAG),
    (job(queue="root"), "can not submit job to root queue"),
    (job(queue="shut"), "queue `shut` status is `Closed`"),
    (job(queue="inner"), "can only submit job to leaf queue, queue `inner` has child queues"),
    ((VC_POD_GROUP, {"queue": "shut"}), "can only submit PodGroup to queue with state `Open`, queue `shut`"),
    ((VC_POD_GROUP, {"queue": "inner"}), "can not submit PodGroup to queue `inner`"),
    ((VC_POD_GROUP, {"networkTopology": TIERS}), "must not specify 'highestTierAllowed' and 'highestTierName'"),
    (queue(capability={"cpu": "-1"}), "capability must be greater than or equal to 0"),
    (queue(guarantee={"resource": {"cpu": 1}}), "deserved must be >= guarantee"),
    (queue(deserved={"cpu": "2"}, guarantee={"resource": {"cpu": "3"}}), "deserved must be >= guarantee"),
    (queue(deserved={"memory": "2Gi"}, capability={"memory": "1Gi"}), "deserved must be <= capability"),
    (queue(parent="it"), "queue it cannot use itself as parent"),
    (queue(parent="inner", capability={"cpu": "9"}), "capability exceeds that of its parent inner"),
    (cron(""), "schedule is required"),
    (cron("CRON_TZ=UTC * * * * *"), "schedule should not contain TZ or CRON_TZ"),
    (cron("every day"), "schedule is not a valid cron expression"),
    (cron("* * * * *", timeZone="Local"), "timeZone can't be Local"),
    (cron("* * * * *", timeZone="Europe/../x"), "unknown timeZone"),
    (flow(a=["b"], b=["a"]), "jobflow Flow is not DAG"),
    (flow(a=["x"]), "jobflow Flow is not DAG: vertex is not defined"),
    (hyper_node("a(b"), "missing closing )"),
)  # fmt: skip
ACCEPTED: tuple[tuple[Kind, Doc], ...] = (
    job(),
    job(
        task("m"),
        task("n", 4, minAvailable=2, partitionPolicy={**PARTS, "minPartitions": 1}),
        minAvailable=3,
        plugins={"mpi": ["--master=m", "--worker=n"], "svc": []},
        queue="leaf",
        minSuccess=9,
        policies=[{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}, CODE],
        volumes=[{"mountPath": "/a", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}],
    ),
    policies({"event": "*", "action": "RestartJob", "timeout": "10s"}),
    waiting(a=[], b=["a"], c=["a", "b"]),
    waiting(t0=[], **{f"t{index}": [f"t{index - 1}"] for index in range(1, 20)}),
    (VC_POD_GROUP, {"minMember": 1, "queue": "leaf"}),
    queue(parent="inner", capability={"cpu": 2}, deserved={"cpu": "1500m"}, guarantee={"resource": {"cpu": "1"}}),
    cron("*/5 2-4 * JAN,FEB mon", timeZone="Europe/Berlin"),
    cron("@daily"),
    cron("@every 1h30m"),
    flow(a=[], b=["a"]),
    hyper_node("node-[0-9]+", ".*"),
)


def creation(kind: Kind, spec: Doc, *, name: str = "it", dry: bool = True, **metadata: Any) -> Write:
    """The request that creates this object, unless told otherwise a dry run."""
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name, **metadata}, "spec": spec}
    params = {"dryRun": "All"} if dry else {}
    return Write(Verb.CREATE, kind, "default" if kind.namespaced else "", name, body, params=params)
