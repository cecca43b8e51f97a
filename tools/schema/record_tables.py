"""Asks a real API server to print the documents of cases.py, and pods, nodes and others in many states.

The answers become tests/unit/cluster/data/tables.json: for each kind the columns, and pairs of a document and its
cells.
Run it after record_cases.py, against a server that also has Volcano's CustomResourceDefinitions.

    tools/schema/record_tables.py --server https://127.0.0.1:6443 --token TOKEN
"""

from __future__ import annotations

import argparse
import json
import time
import urllib.request
from pathlib import Path
from typing import Any

import cases
from record_cases import Server, address, tidy

from fairlead.core.model.kinds import Kind, Registry, served_kinds

TARGET = Path(__file__).parents[2] / "tests/unit/cluster/data/tables.json"
Doc = dict[str, Any]
ENDED = {
    "exitCode": 0,
    "reason": "Completed",
    "startedAt": "2026-01-01T00:00:00Z",
    "finishedAt": "2026-01-01T00:00:09Z",
}


def container_status(**fields: Any) -> Doc:
    return {"name": "c", "image": "nginx", "imageID": "", "restartCount": 0, "ready": False, **fields}


def pods() -> list[tuple[Doc, Doc]]:
    """Pods and the statuses they get."""
    running, waiting = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, {"waiting": {"reason": "ContainerCreating"}}
    crash = {"waiting": {"reason": "CrashLoopBackOff"}}
    last = {"terminated": {**ENDED, "exitCode": 1, "reason": "Error"}}
    init = [{"name": "i", "image": "nginx"}, {"name": "j", "image": "nginx"}]
    sidecar = [{"name": "i", "image": "nginx", "restartPolicy": "Always"}]
    scheduled = {"type": "PodScheduled", "status": "True"}
    init_status = container_status(name="i")
    return [
        (cases.pod("t-plain"), {"phase": "Pending"}),
        (cases.pod("t-gated", schedulingGates=[{"name": "x"}]), {}),
        (
            cases.pod("t-creating", nodeName="n"),
            {"phase": "Pending", "containerStatuses": [container_status(state=waiting)]},
        ),
        (
            cases.pod("t-running", nodeName="n"),
            {
                "phase": "Running",
                "podIP": "10.1.2.3",
                "podIPs": [{"ip": "10.1.2.3"}],
                "conditions": [scheduled],
                "containerStatuses": [container_status(state=running, ready=True)],
            },
        ),
        (
            cases.pod("t-crash", nodeName="n"),
            {"phase": "Running", "containerStatuses": [container_status(state=crash, lastState=last, restartCount=3)]},
        ),
        (
            cases.pod("t-done"),
            {"phase": "Succeeded", "containerStatuses": [container_status(state={"terminated": ENDED})]},
        ),
        (
            cases.pod("t-failed"),
            {
                "phase": "Failed",
                "containerStatuses": [container_status(state={"terminated": {**ENDED, "exitCode": 3, "reason": ""}})],
            },
        ),
        (
            cases.pod("t-killed"),
            {
                "phase": "Failed",
                "containerStatuses": [
                    container_status(state={"terminated": {**ENDED, "exitCode": 137, "signal": 9, "reason": ""}})
                ],
            },
        ),
        (cases.pod("t-evicted"), {"phase": "Failed", "reason": "Evicted"}),
        (
            cases.pod("t-init", initContainers=init),
            {
                "phase": "Pending",
                "initContainerStatuses": [
                    {**init_status, "state": {"terminated": ENDED}},
                    container_status(name="j", state=running),
                ],
            },
        ),
        (
            cases.pod("t-init-crash", initContainers=init),
            {"phase": "Pending", "initContainerStatuses": [{**init_status, "state": crash, "restartCount": 2}]},
        ),
        (
            cases.pod("t-init-failed", initContainers=init),
            {
                "phase": "Failed",
                "initContainerStatuses": [
                    {**init_status, "state": {"terminated": {**ENDED, "exitCode": 2, "reason": ""}}}
                ],
            },
        ),
        (
            cases.pod("t-sidecar", initContainers=sidecar),
            {
                "phase": "Running",
                "initContainerStatuses": [{**init_status, "state": running, "started": True, "ready": True}],
                "containerStatuses": [container_status(state=running, ready=True)],
            },
        ),
        (
            cases.pod("t-gates", readinessGates=[{"conditionType": "a"}, {"conditionType": "b"}]),
            {"phase": "Running", "nominatedNodeName": "m", "conditions": [{"type": "a", "status": "True"}]},
        ),
        (
            cases.pod("t-half", containers=[cases.container(), cases.container(name="d")]),
            {
                "phase": "Running",
                "containerStatuses": [
                    container_status(state=running, ready=True),
                    container_status(name="d", state={"terminated": ENDED}),
                ],
            },
        ),
    ]


def others() -> list[tuple[Doc, Doc]]:
    ready = {"type": "Ready", "status": "True"}
    role = {"node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/a": ""}
    labelled = cases.thing("v1", "Node", "t-roles", spec={"unschedulable": True})
    labelled["metadata"]["labels"] = role
    addresses = [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "h"}]
    system = dict.fromkeys(("machineID", "systemUUID", "bootID", "kubeProxyVersion", "operatingSystem"), "x")
    system |= {
        "architecture": "amd64",
        "kubeletVersion": "v1.36.4",
        "osImage": "Linux",
        "kernelVersion": "6",
        "containerRuntimeVersion": "fake://1",
    }
    selected = {"selector": cases.SELECTOR, "template": cases.TEMPLATE, "replicas": 3}
    job = cases.thing("batch/v1", "Job", "t-job", spec={"template": cases.ONCE, "parallelism": 4})
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
        "hostPath": {"path": "/x"},
        "claimRef": {"namespace": "a", "name": "b"},
        "storageClassName": "s",
    }
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "v"}
    sink = {"kind": "Pod", "namespace": "default", "name": "p", "fieldPath": "spec.containers{c}"}
    default_class = cases.thing("storage.k8s.io/v1", "StorageClass", "t-default", provisioner="p")
    default_class["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    vc_tasks = [{"name": "t", "replicas": 1, "template": cases.ONCE}]
    return [
        (labelled, {"conditions": [ready], "addresses": addresses, "nodeInfo": system}),
        (cases.thing("v1", "Node", "t-notready"), {"conditions": [{**ready, "status": "Unknown"}]}),
        (
            cases.thing("apps/v1", "Deployment", "t", spec=selected),
            {"replicas": 3, "readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 2, "unavailableReplicas": 1},
        ),
        (cases.thing("apps/v1", "ReplicaSet", "t", spec=selected), {"replicas": 3, "readyReplicas": 2}),
        (
            cases.thing("apps/v1", "StatefulSet", "t", spec={**selected, "serviceName": "s"}),
            {"replicas": 3, "readyReplicas": 1},
        ),
        (
            cases.thing("v1", "ReplicationController", "t", spec={"selector": {"a": "b"}, "template": cases.TEMPLATE}),
            {"replicas": 1},
        ),
        (job, {"active": 4, "succeeded": 2, "startTime": "2026-01-01T00:00:00Z"}),
        (
            cases.thing(
                "batch/v1",
                "CronJob",
                "t",
                spec={
                    "schedule": "* * * * *",
                    "timeZone": "Etc/UTC",
                    "suspend": True,
                    "jobTemplate": {"spec": {"template": cases.ONCE}},
                },
            ),
            {},
        ),
        (
            cases.thing(
                "v1",
                "Service",
                "t",
                spec={
                    "ports": [{"port": 80}, {"port": 81, "name": "b"}][:1],
                    "selector": {"a": "b"},
                    "clusterIP": "None",
                    "externalIPs": [],
                },
            ),
            {},
        ),
        (cases.thing("v1", "Service", "t-out", spec={"type": "ExternalName", "externalName": "a.example"}), {}),
        (cases.thing("v1", "PersistentVolume", "t", spec=volume), {"phase": "Bound"}),
        (
            cases.thing("v1", "PersistentVolumeClaim", "t", spec=claim),
            {"phase": "Bound", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"]},
        ),
        (
            cases.thing(
                "v1",
                "Event",
                "t",
                involvedObject=sink,
                reason="R",
                type="Warning",
                message=" m\n",
                count=3,
                source={"component": "kubelet", "host": "n"},
                firstTimestamp="2026-01-01T00:00:00Z",
                lastTimestamp="2026-01-01T01:00:00Z",
            ),
            {},
        ),
        (
            cases.thing(
                "v1",
                "Event",
                "t-one",
                involvedObject={**sink, "fieldPath": ""},
                reason="R",
                type="Normal",
                message="m",
                firstTimestamp="2026-01-01T00:00:00Z",
                lastTimestamp="2026-01-01T00:00:00Z",
                count=1,
            ),
            {},
        ),
        (
            cases.thing(
                "events.k8s.io/v1",
                "Event",
                "t-new",
                regarding=sink,
                reason="R",
                type="Normal",
                note="n",
                action="A",
                reportingController="x.y/z",
                reportingInstance="i",
                eventTime="2026-01-01T00:00:00.000000Z",
                series={"count": 5, "lastObservedTime": "2026-01-01T01:00:00.000000Z"},
            ),
            {},
        ),
        (
            cases.thing("v1", "ResourceQuota", "t", spec={"hard": {"cpu": "1", "limits.cpu": "2"}}),
            {"hard": {"cpu": "1", "limits.cpu": "2", "pods": "3"}, "used": {"cpu": "500m", "pods": "1"}},
        ),
        (default_class, {}),
        (
            cases.thing(
                "policy/v1", "PodDisruptionBudget", "t", spec={"selector": cases.SELECTOR, "maxUnavailable": "50%"}
            ),
            {"disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
        ),
        (cases.thing("scheduling.volcano.sh/v1beta1", "Queue", "t", spec={"weight": 2, "parent": "root"}), {}),
        (
            cases.thing("scheduling.volcano.sh/v1beta1", "PodGroup", "t", spec={"minMember": 3, "queue": "q"}),
            {"phase": "Running", "running": 2},
        ),
        (
            cases.thing(
                "batch.volcano.sh/v1alpha1", "Job", "t", spec={"minAvailable": 1, "tasks": vc_tasks, "queue": "q"}
            ),
            {"state": {"phase": "Running"}, "running": 1},
        ),
        (
            cases.thing(
                "topology.volcano.sh/v1alpha1",
                "HyperNode",
                "t",
                spec={"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n"}}}]},
            ),
            {"nodeCount": 4},
        ),
        (cases.thing("scheduling.x-k8s.io/v1alpha1", "PodGroup", "t", spec={"minMember": 3}), {"phase": "Pending"}),
        (cases.thing("flow.volcano.sh/v1alpha1", "JobFlow", "t", spec={}), {"state": {"phase": "Running"}}),
    ]


def table(server: Server, kind: Kind) -> Doc:
    headers = {"Authorization": f"Bearer {server.token}", "Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    request = urllib.request.Request(f"{server.url}{kind.path()}?includeObject=Object", headers=headers)
    with urllib.request.urlopen(request, context=server.context) as answer:
        found: Doc = json.load(answer)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    options = parser.parse_args()
    server = Server(options.server, options.token)
    for doc in cases.small_ones():
        server.call("POST", address(doc), doc)
    for doc, status in [*pods(), *others()]:
        made = server.call("POST", address(doc), doc)
        kind = Registry().by_kind(doc["apiVersion"], doc["kind"])
        if made["kind"] == "Status":
            print(made["message"])
        elif status and kind and "status" in kind.subresources:
            made["status"] = {**made.get("status", {}), **status}
            answer = server.call("PUT", f"{address(doc)}/{doc['metadata']['name']}/status", made)
            if answer["kind"] == "Status":
                print(answer["message"])
    recorded = {}
    for kind in served_kinds():
        try:
            found = table(server, kind)
        except OSError as missing:
            print(kind, missing)
            continue
        columns = [[one["name"], one["type"], one["format"], one["priority"]] for one in found["columnDefinitions"]]
        rows = [{"doc": tidied(row["object"]), "cells": row["cells"]} for row in found["rows"]][:24]
        recorded[f"{kind.api_version}/{kind.kind}"] = {"columns": columns, "rows": rows, "now": time.time()}
    TARGET.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
    print(sum(len(one["rows"]) for one in recorded.values()), "rows of", len(recorded), "kinds")


def tidied(doc: Doc) -> Doc:
    created = doc["metadata"].get("creationTimestamp")
    out = tidy(doc)
    return {**out, "metadata": {**out["metadata"], "creationTimestamp": created}}


if __name__ == "__main__":
    main()
