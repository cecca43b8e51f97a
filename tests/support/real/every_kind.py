"""One or more documents of every kind that is served, as a user would write them: short, with the defaults left out."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

Doc = dict[str, Any]
RECORDED = Path(__file__).parents[2] / "unit/cluster/data/recorded.json"
_CONTAINER = {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}}}
_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [_CONTAINER]}}
_MOUNTING = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {
        "containers": [
            _CONTAINER | {"volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/w"}]}
        ]
    },
}
_GANG = {"gang": {"minCount": 2}}
_VOLCANO_TASK = {"name": "t", "replicas": 2, "template": {"spec": {"containers": [_CONTAINER]}}}
_CLUSTER_WIDE = frozenset({
    "Namespace", "Node", "PersistentVolume", "PriorityClass", "RuntimeClass", "StorageClass", "CSINode", "CSIDriver",
    "VolumeAttachment", "VolumeAttributesClass", "ResourceSlice", "DeviceClass", "ClusterRole", "ClusterRoleBinding",
    "IngressClass", "CustomResourceDefinition", "Queue", "Numatopology", "HyperNode", "NodeShard",
})  # fmt: skip


def _thing(api_version: str, kind: str, name: str = "x", **fields: Any) -> Doc:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def _backend(port: int) -> Doc:
    return {"service": {"name": "s", "port": {"number": port}}}


_FURTHER: list[Doc] = [
    _thing("apps/v1", "ControllerRevision", revision=1, data={"spec": {"a": 1}}),
    _thing("apps/v1", "StatefulSet", spec={
        "selector": {"matchLabels": {"a": "b"}}, "serviceName": "s", "template": _MOUNTING,
        "volumeClaimTemplates": [
            {"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"],
             "resources": {"requests": {"storage": "1024Mi"}}}},
            {"metadata": {"name": "w"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "s",
             "resources": {"requests": {"storage": "1Gi"}}}},
        ]}),
    _thing("autoscaling/v1", "HorizontalPodAutoscaler", spec={
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 5,
        "targetCPUUtilizationPercentage": 60}),
    _thing("autoscaling/v2", "HorizontalPodAutoscaler", spec={
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 5,
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 10}}}),
    _thing("rbac.authorization.k8s.io/v1", "ClusterRole", rules=[
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
    _thing("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", subjects=[
        {"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}),
    _thing("networking.k8s.io/v1", "NetworkPolicy", spec={
        "podSelector": {},
        "ingress": [{"ports": [{"port": 80}], "from": [{"podSelector": {"matchLabels": {"a": "b"}}}]}]}),
    _thing("networking.k8s.io/v1", "Ingress", spec={
        "rules": [{"host": "a.example", "http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": _backend(80)}]}}]}),
    _thing("networking.k8s.io/v1", "IngressClass", spec={"controller": "example.com/c"}),
    _thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.every.example.com", spec={
        "group": "every.example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}],
    }),
]  # fmt: skip
_VOLCANO: list[Doc] = [
    _thing("batch.volcano.sh/v1alpha1", "Job", spec={"minAvailable": 1, "schedulerName": "volcano", "queue": "default",
           "tasks": [_VOLCANO_TASK]}),
    _thing("batch.volcano.sh/v1alpha1", "CronJob", spec={"schedule": "* * * * *", "concurrencyPolicy": "Allow",
           "jobTemplate": {"spec": {"minAvailable": 1, "queue": "default", "tasks": [_VOLCANO_TASK]}}}),
    _thing("bus.volcano.sh/v1alpha1", "Command", action="OpenQueue"),
    _thing("scheduling.volcano.sh/v1beta1", "PodGroup", spec={"minMember": 2, "queue": "default"}),
    _thing("scheduling.volcano.sh/v1beta1", "Queue", spec={"weight": 2, "capability": {"cpu": "4000m"}}),
    _thing("flow.volcano.sh/v1alpha1", "JobTemplate", spec={"minAvailable": 1, "tasks": [_VOLCANO_TASK]}),
    _thing("flow.volcano.sh/v1alpha1", "JobFlow", spec={"jobRetainPolicy": "retain", "flows": [{"name": "x"}]}),
    _thing("nodeinfo.volcano.sh/v1alpha1", "Numatopology", spec={"policies": {"TopologyManagerPolicy": "none"}}),
    _thing("topology.volcano.sh/v1alpha1", "HyperNode", spec={"tier": 1, "members": [
        {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}]}),
    _thing("shard.volcano.sh/v1alpha1", "NodeShard", spec={"nodesDesired": ["n1"]}),
]  # fmt: skip


def _groups(version: str) -> list[Doc]:
    api_version = f"scheduling.k8s.io/{version}"
    templates = [{"name": "a", "schedulingPolicy": _GANG}]
    return [
        _thing(api_version, "PodGroup", spec={"schedulingPolicy": _GANG}),
        _thing(api_version, "Workload", spec={"podGroupTemplates": templates}),
    ]


def documents(prefix: str, *, groups: str) -> list[Doc]:
    """All of them, each with a name of its own; `groups` is the version of PodGroups and Workloads."""
    recorded = json.loads(RECORDED.read_text())
    good = [case["doc"] for case in recorded["created"] if case["answer"]["kind"] != "Status"]
    named = [
        _named(doc, f"{prefix}-{number}") for number, doc in enumerate([*good, *_FURTHER, *_groups(groups), *_VOLCANO])
    ]
    return [*recorded["surroundings"], *named]


def groups_alone(prefix: str, *, groups: str) -> list[Doc]:
    return [_named(doc, f"{prefix}-{number}") for number, doc in enumerate(_groups(groups))]


def _named(doc: Doc, name: str) -> Doc:
    doc = copy.deepcopy(doc)
    if doc["kind"] != "CustomResourceDefinition":
        doc["metadata"]["name"] = name
    if doc["kind"] not in _CLUSTER_WIDE:
        # Where no pods are made, what bounds them bounds none.
        doc["metadata"]["namespace"] = "kube-public" if doc["kind"] in ("ResourceQuota", "LimitRange") else "default"
    if doc["kind"] == "Command":
        doc["target"] = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "q", "uid": "u"}
    return doc
