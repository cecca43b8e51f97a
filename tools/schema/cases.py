"""The documents that record_cases.py sends: small ones of every kind, pods of many shapes, and many wrong ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Doc = dict[str, Any]


def thing(api_version: str, kind: str, name: str = "x", **fields: Any) -> Doc:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def container(**fields: Any) -> Doc:
    return {"name": "c", "image": "nginx", **fields}


def pod(name: str = "x", *, labels: Doc | None = None, annotations: Doc | None = None, **spec: Any) -> Doc:
    doc = thing("v1", "Pod", name, spec={"containers": [container()], **spec})
    if labels is not None:
        doc["metadata"]["labels"] = labels
    if annotations is not None:
        doc["metadata"]["annotations"] = annotations
    return doc


TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}}
ONCE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()], "restartPolicy": "Never"}}
SELECTOR = {"matchLabels": {"a": "b"}}
METADATA_ONLY = {"a": "b"}

SURROUNDINGS: list[Doc] = [
    thing("scheduling.k8s.io/v1", "PriorityClass", "high", value=1000, description="x"),
    thing("scheduling.k8s.io/v1", "PriorityClass", "patient", value=10, preemptionPolicy="Never"),
    thing("node.k8s.io/v1", "RuntimeClass", "kata", handler="kata", overhead={"podFixed": {"cpu": "250m"}},
          scheduling={"nodeSelector": {"kata": "yes"}, "tolerations": [{"key": "kata", "operator": "Exists"}]}),
]  # fmt: skip


def small_ones() -> Iterator[Doc]:
    yield thing("v1", "Namespace", "space")
    yield thing("v1", "Node", "n1")
    yield thing("v1", "Node", "n2", status={"capacity": {"cpu": "4000m", "memory": "8192Mi", "pods": 110}})
    yield thing("v1", "Node", "n3", spec={"taints": [{"key": "a", "effect": "NoSchedule"}], "unschedulable": True})
    yield thing(
        "v1", "Node", "n4", status={"capacity": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]}
    )
    yield thing("v1", "Service", spec={"ports": [{"port": 80}], "selector": {"a": "b"}, "clusterIP": "None"})
    yield thing("v1", "Service", spec={"type": "ExternalName", "externalName": "a.example"})
    yield thing("v1", "ConfigMap", data={"a": "b"})
    yield thing("v1", "Secret", stringData={"a": "b"})
    yield thing("v1", "Secret", data={"a": "Yg=="}, type="x/y")
    yield thing("v1", "ServiceAccount")
    yield thing("v1", "Event", involvedObject={"kind": "Pod", "namespace": "default", "name": "p"}, reason="Test")
    yield thing("v1", "PersistentVolume", spec={"capacity": {"storage": "1024Mi"}, "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/x"}})  # fmt: skip
    yield thing("v1", "PersistentVolumeClaim", spec={"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}})  # fmt: skip
    yield thing("v1", "ResourceQuota", spec={"hard": {"cpu": "1000m", "pods": 3}})
    yield thing("v1", "LimitRange", spec={"limits": [{"type": "Container", "max": {"cpu": "2"}}]})
    yield thing("v1", "ReplicationController", spec={"selector": {"a": "b"}, "template": TEMPLATE})
    yield thing("v1", "ReplicationController", spec={"template": TEMPLATE})
    yield thing("v1", "PodTemplate", template=TEMPLATE)
    yield thing("v1", "Endpoints", subsets=[{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80}]}])
    for kind in ("Deployment", "ReplicaSet", "DaemonSet"):
        yield thing("apps/v1", kind, spec={"selector": SELECTOR, "template": TEMPLATE})
    yield thing("apps/v1", "StatefulSet", spec={"selector": SELECTOR, "template": TEMPLATE, "serviceName": "s"})
    yield thing("apps/v1", "StatefulSet", spec={"selector": SELECTOR, "template": TEMPLATE, "volumeClaimTemplates": [
        {"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"],
         "resources": {"requests": {"storage": "1Gi"}}}}]})  # fmt: skip
    yield thing("apps/v1", "Deployment", spec={"selector": SELECTOR, "template": TEMPLATE, "replicas": 0,
                "strategy": {"type": "Recreate"}})  # fmt: skip
    yield thing("apps/v1", "ControllerRevision", revision=1)
    yield thing("batch/v1", "Job", spec={"template": {"spec": {"containers": [container()], "restartPolicy": "Never"}}})
    yield thing("batch/v1", "Job", spec={"completions": 5, "parallelism": 2, "completionMode": "Indexed",
                "template": ONCE})  # fmt: skip
    yield thing("batch/v1", "CronJob", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ONCE}}})
    yield thing("policy/v1", "PodDisruptionBudget", spec={"selector": SELECTOR, "minAvailable": 1})
    yield thing("scheduling.k8s.io/v1", "PriorityClass", "p1", value=5)
    yield thing("scheduling.k8s.io/v1alpha2", "PodGroup", spec={"schedulingPolicy": {"gang": {"minCount": 3}}})
    yield thing("scheduling.k8s.io/v1alpha2", "PodGroup", spec={"schedulingPolicy": {"basic": {}}})
    yield thing("scheduling.k8s.io/v1alpha2", "Workload", spec={"podGroupTemplates": [
        {"name": "a", "schedulingPolicy": {"gang": {"minCount": 3}}}]})  # fmt: skip
    yield thing("node.k8s.io/v1", "RuntimeClass", "r1", handler="h")
    yield thing("coordination.k8s.io/v1", "Lease", spec={"holderIdentity": "me", "leaseDurationSeconds": 15})
    yield thing("events.k8s.io/v1", "Event", eventTime="2026-01-01T00:00:00.000000Z", reportingController="a.b/c",
                reportingInstance="i", action="Doing", reason="Test", type="Normal", note="n",
                regarding={"kind": "Pod", "namespace": "default", "name": "p"})  # fmt: skip
    yield thing("storage.k8s.io/v1", "StorageClass", "s1", provisioner="p")
    yield thing("storage.k8s.io/v1", "CSINode", "c1", spec={"drivers": [{"name": "d", "nodeID": "n"}]})
    yield thing("storage.k8s.io/v1", "CSIDriver", "d1", spec={})
    yield thing("storage.k8s.io/v1", "CSIStorageCapacity", storageClassName="s1", capacity="1024Gi")
    yield thing("storage.k8s.io/v1", "VolumeAttachment", spec={"attacher": "a", "nodeName": "n",
                "source": {"persistentVolumeName": "v"}})  # fmt: skip
    yield thing("storage.k8s.io/v1", "VolumeAttributesClass", "v1", driverName="d", parameters={"a": "b"})
    requests = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    yield thing("resource.k8s.io/v1", "ResourceClaim", spec=requests)
    yield thing("resource.k8s.io/v1", "ResourceClaimTemplate", spec={"spec": requests})
    yield thing("resource.k8s.io/v1", "ResourceSlice", "slice", spec={"driver": "d.example", "nodeName": "n",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu-0", "capacity": {"memory": {"value": "1024Mi"}}}]})  # fmt: skip
    yield thing("resource.k8s.io/v1", "DeviceClass", "gpu", spec={"selectors": [{"cel": {"expression": "true"}}]})
    yield thing("rbac.authorization.k8s.io/v1", "Role", rules=[{"apiGroups": [""], "resources": ["pods"],
                "verbs": ["get"]}])  # fmt: skip
    yield thing("rbac.authorization.k8s.io/v1", "RoleBinding", subjects=[{"kind": "User", "name": "u"}],
                roleRef={"kind": "Role", "name": "r"})  # fmt: skip
    yield thing("discovery.k8s.io/v1", "EndpointSlice", addressType="IPv4", endpoints=[{"addresses": ["10.1.1.1"]}],
                ports=[{"port": 80}])  # fmt: skip
    yield thing("autoscaling/v2", "HorizontalPodAutoscaler", spec={"maxReplicas": 3,
                "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}})  # fmt: skip


def whole_pods() -> Iterator[Doc]:
    yield pod()
    yield pod(labels={"app": "x"}, annotations={"k": "v"})
    for image in ("nginx:latest", "nginx:1.2", "reg:5000/nginx", "nginx@sha256:" + "a" * 64):
        yield pod(containers=[container(image=image)])
    yield pod(containers=[container(resources={"limits": {"cpu": "1000m", "memory": "1024Mi"}})])
    yield pod(containers=[container(resources={"limits": {"cpu": "2"}, "requests": {"cpu": "0.5", "memory": 1e9}})])
    yield pod(containers=[container(resources={"limits": {"cpu": 1, "memory": "1Gi"}}), container(name="d")])
    yield pod(containers=[container(ports=[{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}])])
    yield pod(hostNetwork=True, containers=[container(ports=[{"containerPort": 80}])])
    yield pod(
        containers=[container(livenessProbe={"httpGet": {"port": 80}}, readinessProbe={"exec": {"command": ["x"]}})]
    )
    yield pod(containers=[container(startupProbe={"grpc": {"port": 80}},
                                    lifecycle={"preStop": {"httpGet": {"port": "web"}}})])  # fmt: skip
    yield pod(containers=[container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                                         {"name": "B", "value": "x"}])])  # fmt: skip
    yield pod(initContainers=[container(name="i"), container(name="s", restartPolicy="Always")])
    yield pod(serviceAccountName="me",
              volumes=[{"name": "a"}, {"name": "b", "secret": {"secretName": "s"}},
                       {"name": "c", "configMap": {"name": "m"}},
                       {"name": "d", "hostPath": {"path": "/"}}, {"name": "e", "downwardAPI": {"items": [
                           {"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
                       {"name": "f", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
                       {"name": "g", "persistentVolumeClaim": {"claimName": "x"}}],
              containers=[container(volumeMounts=[{"name": "a", "mountPath": "/a"}])])  # fmt: skip
    yield pod(priorityClassName="high")
    yield pod(priorityClassName="patient")
    yield pod(priorityClassName="system-node-critical")
    yield pod(priority=0)
    yield pod(runtimeClassName="kata")
    yield pod(schedulingGates=[{"name": "a.b/c"}])
    yield pod(nodeName="n1")
    yield pod(tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
                            "tolerationSeconds": 5},
                           {"operator": "Exists", "effect": "NoSchedule"}])  # fmt: skip
    yield pod(tolerations=[{"operator": "Exists"}])
    yield pod(labels={"app": "x", "hash": "1"}, topologySpreadConstraints=[
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["hash"],
         "labelSelector": {"matchLabels": {"app": "x"}}}])  # fmt: skip
    term = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "x"}}}
    yield pod(labels={"app": "x", "hash": "1"}, affinity={"podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{**term, "matchLabelKeys": ["hash"]}]}, "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {
            **term, "mismatchLabelKeys": ["hash"]}}]}})  # fmt: skip
    yield pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]}}})  # fmt: skip
    yield pod(serviceAccountName="me", restartPolicy="Never", dnsPolicy="Default", terminationGracePeriodSeconds=0)
    yield pod(nodeSelector={}, hostNetwork=False, nodeName="", volumes=[], schedulerName="other")
    yield pod(schedulingGroup={"podGroupName": "g"})
    yield pod(resources={"requests": {"cpu": "1"}})
    yield pod(resourceClaims=[{"name": "r", "resourceClaimName": "c"}])
    yield pod(overhead={"cpu": "1"})
    yield pod(ephemeralContainers=[])
    yield pod(securityContext={"runAsUser": 0}, imagePullSecrets=[{"name": "s"}])


def wrong_pods() -> Iterator[Doc]:
    yield pod("Upper")
    yield pod("a" * 254)
    yield pod("-a")
    yield pod(labels={"a b": "c"})
    yield pod(labels={"a": "c d"})
    yield pod(labels={"a/b/c": "d", "x" * 64: "y"})
    yield pod(annotations={"a b": "c"})
    yield thing("v1", "Pod", spec={})
    yield pod(containers=[])
    yield pod(containers=[{}])
    yield pod(containers=[{"name": "c"}])
    yield pod(containers=[{"name": "C_", "image": "i"}])
    yield pod(containers=[container(), container()])
    yield pod(containers=[container(image=" x")])
    yield pod(containers=[container(imagePullPolicy="Sometimes")])
    yield pod(containers=[container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})])
    yield pod(containers=[container(resources={"requests": {"cpu": "-1"}})])
    yield pod(containers=[container(resources={"requests": {"foo": "1"}})])
    yield pod(containers=[container(resources={"requests": {"a.b/c": "1"}})])
    yield pod(containers=[container(resources={"limits": {"a.b/c": "1"}, "requests": {"a.b/c": "2"}})])
    yield pod(containers=[container(resources={"limits": {"a.b/c": "1500m"}})])
    yield pod(containers=[container(resources={"limits": {"hugepages-2Mi": "2Mi"}})])
    yield pod(containers=[container(resources={"limits": {"cpu": "1"}, "claims": [{"name": "z"}]})])
    yield pod(containers=[container(ports=[{"containerPort": 0}])])
    yield pod(containers=[container(ports=[{"containerPort": 70000}])])
    yield pod(containers=[container(ports=[{"containerPort": 80, "protocol": "X"}])])
    yield pod(containers=[container(ports=[{"containerPort": 80, "name": "UP"}, {"containerPort": 80, "name": "a"},
                                           {"containerPort": 81, "name": "a"}])])  # fmt: skip
    yield pod(
        containers=[container(ports=[{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}])]
    )
    yield pod(hostNetwork=True, containers=[container(ports=[{"containerPort": 80, "hostPort": 81}])])
    yield pod(containers=[container(env=[{"name": ""}])])
    yield pod(containers=[container(env=[{"name": "a", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}])])
    yield pod(containers=[container(volumeMounts=[{"name": "nope", "mountPath": "/a"}])])
    yield pod(containers=[container(volumeMounts=[{"name": "nope"}])])
    yield pod(containers=[container(livenessProbe={})])
    yield pod(containers=[container(livenessProbe={"httpGet": {"port": 0}, "periodSeconds": -1})])
    yield pod(containers=[container(terminationMessagePolicy="X")])
    yield pod(volumes=[{"name": "A"}, {"name": "b", "emptyDir": {}}, {"name": "b", "emptyDir": {}}])
    yield pod(volumes=[{"name": "b", "emptyDir": {}, "hostPath": {"path": "/"}}])
    yield pod(
        volumes=[{"name": "b", "secret": {}}, {"name": "c", "persistentVolumeClaim": {}}, {"name": "d", "hostPath": {}}]
    )
    yield pod(restartPolicy="X")
    yield pod(dnsPolicy="X")
    yield pod(dnsPolicy="None")
    yield pod(terminationGracePeriodSeconds=-1)
    yield pod(activeDeadlineSeconds=0)
    yield pod(nodeSelector={"a b": "c"})
    yield pod(nodeSelector={"a": "c d"})
    yield pod(nodeName="N_")
    yield pod(priorityClassName="missing")
    yield pod(priority=7)
    yield pod(priorityClassName="high", priority=7)
    yield pod(preemptionPolicy="X")
    yield pod(runtimeClassName="missing")
    yield pod(runtimeClassName="kata", nodeSelector={"kata": "no"})
    yield pod(runtimeClassName="kata", overhead={"cpu": "1"})
    yield pod(schedulingGates=[{"name": ""}, {"name": "A b"}, {"name": "x"}, {"name": "x"}])
    yield pod(schedulingGates=[{"name": "x"}], nodeName="n")
    yield pod(schedulerName="A_b")
    yield pod(serviceAccountName="A_b")
    yield pod(hostname="A_b", subdomain="A_b")
    yield pod(tolerations=[{"key": "a b"}])
    yield pod(tolerations=[{"key": "", "operator": "Equal"}])
    yield pod(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}])
    yield pod(tolerations=[{"key": "a", "operator": "X"}])
    yield pod(tolerations=[{"key": "a", "effect": "X"}])
    yield pod(tolerations=[{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 3}])
    yield pod(tolerations=[{"key": "a", "value": "c d"}])
    yield pod(tolerations=[{"key": "a", "operator": "Gt", "value": "x"}])
    yield pod(topologySpreadConstraints=[{}])
    yield pod(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "X"}])
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    yield pod(topologySpreadConstraints=[spread, spread])
    yield pod(topologySpreadConstraints=[{**spread, "minDomains": 0}])
    yield pod(topologySpreadConstraints=[{**spread, "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}])
    yield pod(topologySpreadConstraints=[{**spread, "nodeAffinityPolicy": "X", "nodeTaintsPolicy": "Y"}])
    yield pod(topologySpreadConstraints=[{**spread, "matchLabelKeys": ["x"]}])
    yield pod(topologySpreadConstraints=[{**spread, "labelSelector": {"matchLabels": {"a b": "c"}}}])
    yield pod(
        topologySpreadConstraints=[{**spread, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "X"}]}}]
    )
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    for terms in ([], [{}], [{"matchExpressions": [{"key": "a", "operator": "X"}]}],
                  [{"matchExpressions": [{"key": "a", "operator": "In"}]}],
                  [{"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}],
                  [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["x"]}]}],
                  [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]}],
                  [{"matchExpressions": [{"key": "a b", "operator": "Exists"}]}],
                  [{"matchFields": [{"key": "metadata.x", "operator": "In", "values": ["a"]}]}],
                  [{"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}],
                  [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}]):  # fmt: skip
        yield pod(affinity={"nodeAffinity": {required: {"nodeSelectorTerms": terms}}})
    yield pod(affinity={"nodeAffinity": {preferred: [{"weight": 0, "preference": {}}, {"weight": 101, "preference": {
        "matchExpressions": [{"key": "a", "operator": "In", "values": []}]}}]}})  # fmt: skip
    for term in ({}, {"topologyKey": "a b"}, {"topologyKey": "z", "labelSelector": {"matchLabels": {"a b": "c"}}},
                 {"topologyKey": "z", "namespaces": ["A_"]}, {"topologyKey": "z", "matchLabelKeys": ["a"]},
                 {"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]},
                 {"topologyKey": "z", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
                 {"topologyKey": "z", "namespaceSelector": {"matchExpressions": [
                     {"key": "a", "operator": "DoesNotExist", "values": ["a"]}]}}):  # fmt: skip
        yield pod(affinity={"podAffinity": {required: [term]}})
        yield pod(affinity={"podAntiAffinity": {preferred: [{"weight": 200, "podAffinityTerm": term}]}})
    yield pod(resources={"requests": {"cpu": "1"}, "limits": {"cpu": "500m"}})
    yield pod(resourceClaims=[{"name": "A_", "resourceClaimName": "c"}, {"name": "b"}, {"name": "b",
              "resourceClaimName": "c", "resourceClaimTemplateName": "d"}])  # fmt: skip
    yield pod(schedulingGroup={"podGroupName": "A_"})
    yield pod(initContainers=[container(name="c")])
    yield pod(initContainers=[container(name="i", restartPolicy="Sometimes")])
    yield pod(ephemeralContainers=[{"name": "e", "image": "i"}])
    yield pod(hostAliases=[{"ip": "x"}], imagePullSecrets=[{}])
    yield pod(securityContext={"runAsUser": -1})
    yield pod(os={"name": "plan9"})
    yield pod(readinessGates=[{"conditionType": "a b"}])
    yield pod(foo=1)
    yield pod(containers=[container(bar=1, imagePullPolicy="X")])
    yield pod(priority="high")
    with_owner = pod()
    with_owner["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "", "name": "", "uid": ""}]
    with_owner["metadata"]["finalizers"] = ["plain"]
    yield with_owner


def wrong_others() -> Iterator[Doc]:
    yield thing("v1", "Namespace", "A_")
    yield thing("v1", "Namespace", "a.b")
    yield thing("v1", "Node", "N_")
    yield thing("v1", "Node", "n", spec={"taints": [{"key": "a", "effect": "X"}, {"key": "", "effect": "NoSchedule"},
                {"key": "a", "effect": ""}, {"key": "k", "value": "c d", "effect": "NoExecute"}]})  # fmt: skip
    yield thing("v1", "Node", "n", spec={"taints": [{"key": "a", "effect": "NoSchedule"}] * 2})
    yield thing("v1", "Node", "n", status={"capacity": {"cpu": "-1"}, "allocatable": {"a.b/c": "1500m"}})
    yield thing("v1", "Node", "n", spec={"podCIDRs": ["x"], "providerID": "a"})
    yield thing("v1", "ConfigMap", "A_", data={"a b": "c"})
    yield thing("v1", "Secret", data={"a b": "Yg=="})
    yield thing("v1", "Service", "1x", spec={"ports": [{"port": 80}], "clusterIP": "None"})
    yield thing("v1", "Service", spec={"clusterIP": "None", "ports": [{"port": 0}, {"port": 81}]})
    yield thing("v1", "Service", spec={"clusterIP": "None", "type": "X", "ports": [{"port": 81, "targetPort": 0}]})
    yield thing("v1", "PersistentVolume", spec={})
    yield thing("v1", "PersistentVolumeClaim", spec={})
    yield thing(
        "v1", "PersistentVolumeClaim", spec={"accessModes": ["X"], "resources": {"requests": {"storage": "-1"}}}
    )
    for hard in ({"foo": "1"}, {"pods": "1500m"}, {"cpu": "-1"}):
        yield thing("v1", "ResourceQuota", spec={"hard": hard})
    for kind in ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet"):
        yield thing("apps/v1", kind, spec={"template": TEMPLATE})
        yield thing("apps/v1", kind, spec={"selector": {}, "template": TEMPLATE})
        yield thing("apps/v1", kind, spec={"selector": {"matchLabels": {"a": "c"}}, "template": TEMPLATE})
        yield thing("apps/v1", kind, spec={"selector": SELECTOR, "template": {"metadata": {"labels": {"a": "b"}}}})
        yield thing("apps/v1", kind, spec={"selector": SELECTOR, "template": ONCE})
        yield thing("apps/v1", kind, "A_", spec={"selector": {"matchLabels": {"a b": "c"}}, "template": TEMPLATE})
        yield thing("apps/v1", kind, spec={"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]},
                    "template": TEMPLATE})  # fmt: skip
    for kind in ("Deployment", "ReplicaSet", "StatefulSet"):
        yield thing("apps/v1", kind, spec={"selector": SELECTOR, "template": TEMPLATE, "replicas": -1})
    yield thing("apps/v1", "Deployment", spec={"selector": SELECTOR, "template": TEMPLATE, "strategy": {
        "type": "Recreate", "rollingUpdate": {"maxSurge": 1}}})  # fmt: skip
    yield thing("apps/v1", "Deployment", spec={"selector": SELECTOR, "template": TEMPLATE, "minReadySeconds": -1,
                "revisionHistoryLimit": -1, "progressDeadlineSeconds": 0})  # fmt: skip
    yield thing("apps/v1", "Deployment", spec={"selector": SELECTOR, "template": TEMPLATE, "strategy": {
        "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}})  # fmt: skip
    yield thing("apps/v1", "Deployment", spec={"selector": SELECTOR, "template": TEMPLATE, "strategy": {
        "rollingUpdate": {"maxSurge": "x", "maxUnavailable": "200%"}}})  # fmt: skip
    yield thing("v1", "ReplicationController", spec={"selector": {"a": "c"}, "template": TEMPLATE, "replicas": -1})
    yield thing("batch/v1", "Job", spec={"template": {"spec": {"containers": [container()]}}})
    yield thing("batch/v1", "Job", spec={"template": ONCE, "parallelism": -1, "completions": -1, "backoffLimit": -1,
                "activeDeadlineSeconds": -1, "ttlSecondsAfterFinished": -1})  # fmt: skip
    yield thing("batch/v1", "Job", spec={"template": ONCE, "completionMode": "X"})
    yield thing("batch/v1", "Job", spec={"template": ONCE, "completionMode": "Indexed"})
    yield thing("batch/v1", "Job", spec={"template": ONCE, "selector": SELECTOR})
    yield thing("batch/v1", "Job", spec={})
    yield thing("batch/v1", "CronJob", spec={"schedule": "x", "jobTemplate": {"spec": {"template": ONCE}}})
    yield thing("batch/v1", "CronJob", spec={"jobTemplate": {"spec": {"template": TEMPLATE}}, "concurrencyPolicy": "X",
                "startingDeadlineSeconds": -1})  # fmt: skip
    yield thing("policy/v1", "PodDisruptionBudget", spec={"minAvailable": 1, "maxUnavailable": 1})
    yield thing("policy/v1", "PodDisruptionBudget", spec={"minAvailable": -1, "selector": {"matchLabels": {"a b": ""}}})
    yield thing("policy/v1", "PodDisruptionBudget", spec={"minAvailable": "200%"})
    yield thing("scheduling.k8s.io/v1", "PriorityClass", "p", value=2000000000)
    yield thing("scheduling.k8s.io/v1", "PriorityClass", "system-x", value=1)
    yield thing("scheduling.k8s.io/v1", "PriorityClass", "p", value=1, preemptionPolicy="X")
    yield thing("scheduling.k8s.io/v1alpha2", "PodGroup", spec={"schedulingPolicy": {}})
    yield thing("scheduling.k8s.io/v1alpha2", "PodGroup", spec={"schedulingPolicy": {"gang": {"minCount": 0}}})
    yield thing("scheduling.k8s.io/v1alpha2", "PodGroup", spec={})
    yield thing("scheduling.k8s.io/v1alpha2", "Workload", spec={})
    yield thing("scheduling.k8s.io/v1alpha2", "Workload", spec={"podGroupTemplates": [
        {"name": "A_", "schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}}]})  # fmt: skip
    yield thing("node.k8s.io/v1", "RuntimeClass", "r", handler="A_")
    yield thing("coordination.k8s.io/v1", "Lease", spec={"leaseDurationSeconds": 0, "leaseTransitions": -1})
    yield thing("storage.k8s.io/v1", "StorageClass", "s", provisioner="")
    yield thing("storage.k8s.io/v1", "StorageClass", "s", provisioner="p", reclaimPolicy="X", volumeBindingMode="X")


def created() -> Iterator[Doc]:
    yield from small_ones()
    yield from whole_pods()
    yield from wrong_pods()
    yield from wrong_others()


Change = Callable[[Doc], Any]


def put(path: str, value: Any) -> Change:
    """A change of one value; a value of None removes it."""

    def change(doc: Doc) -> None:
        *way, last = path.split(".")
        node: Any = doc
        for name in way:
            node = node[int(name)] if isinstance(node, list) else node.setdefault(name, {})
        if value is None:
            node.pop(last)
        else:
            node[int(last) if isinstance(node, list) else last] = value

    return change


def updated() -> Iterator[tuple[Doc, list[tuple[str, Change]]]]:
    """An object to start from, and changes of it through the main door or a subresource."""
    yield (
        pod("u1", labels={"a": "b"}, schedulingGates=[{"name": "x"}, {"name": "y"}], nodeSelector={"k": "v"}),
        [
            ("", put("metadata.labels.c", "d")),
            ("", put("metadata.annotations.c", "d")),
            ("", put("spec.containers.0.image", "other")),
            ("", put("spec.containers.0.image", "")),
            ("", put("spec.containers.0.name", "other")),
            ("", put("spec.containers.0.resources", {"requests": {"cpu": "1"}})),
            ("", put("spec.schedulerName", "other")),
            ("", put("spec.priority", 3)),
            ("", put("spec.schedulingGates", [{"name": "y"}])),
            ("", put("spec.schedulingGates", None)),
            ("", put("spec.schedulingGates", [{"name": "x"}, {"name": "y"}, {"name": "z"}])),
            ("", put("spec.nodeSelector.more", "v")),
            ("", put("spec.nodeSelector", {"other": "v"})),
            ("", put("spec.tolerations", [{"key": "a", "operator": "Exists"}])),
            ("", put("spec.activeDeadlineSeconds", 5)),
            ("", put("spec.terminationGracePeriodSeconds", 5)),
            ("", put("spec.nodeName", "n")),
            ("", put("spec.containers", [])),
            ("", put("status.phase", "Running")),
            ("status", put("status.phase", "Running")),
            (
                "status",
                put("status.conditions", [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]),
            ),
            ("status", put("spec.nodeName", "n")),
            ("status", put("metadata.labels.c", "d")),
            ("status", put("status.nominatedNodeName", "n9")),
            ("status", put("status.containerStatuses", [{"name": "c", "ready": True, "state": {"running": {}}}])),
            ("", put("metadata.labels", {"a b": "c"})),
        ],
    )
    yield (
        pod("u2"),
        [
            ("", put("spec.schedulingGates", [{"name": "z"}])),
            ("", put("spec.nodeSelector", {"z": "z"})),
            ("", put("spec.tolerations", [])),
            ("", put("spec.restartPolicy", "Never")),
        ],
    )
    yield (
        thing("v1", "Node", "u-node", status={"capacity": {"cpu": "4"}}),
        [
            ("", put("spec.taints", [{"key": "a", "effect": "NoSchedule"}])),
            ("", put("spec.taints", [{"key": "a", "effect": "Nope"}])),
            ("", put("spec.unschedulable", True)),
            ("", put("status.capacity", {"cpu": "5"})),
            ("", put("metadata.labels", {"a": "b"})),
            ("", put("spec.providerID", "p")),
            ("status", put("status.capacity", {"cpu": "5"})),
            ("status", put("status.allocatable", {"cpu": "3000m"})),
            ("status", put("spec.unschedulable", True)),
            ("status", put("metadata.labels", {"a": "b"})),
            ("status", put("status.conditions", [{"type": "Ready", "status": "True"}])),
        ],
    )
    yield (
        thing("apps/v1", "Deployment", "u", spec={"selector": SELECTOR, "template": TEMPLATE}),
        [
            ("", put("spec.replicas", 3)),
            ("", put("spec.replicas", -3)),
            ("", put("spec.selector.matchLabels.a", "c")),
            ("", put("spec.template.spec.containers.0.image", "other")),
            ("", put("metadata.annotations.x", "y")),
            ("", put("metadata.labels.x", "y")),
            ("", put("status.replicas", 3)),
            ("status", put("status.replicas", 3)),
            ("status", put("status", {"replicas": 3, "readyReplicas": 5})),
            ("status", put("spec.replicas", 3)),
            ("status", put("metadata.labels.x", "y")),
        ],
    )
    yield (
        thing("apps/v1", "ReplicaSet", "u", spec={"selector": SELECTOR, "template": TEMPLATE}),
        [
            ("", put("spec.replicas", 3)),
            ("", put("spec.selector.matchLabels.a", "c")),
            ("", put("metadata.annotations.x", "y")),
            ("status", put("status.replicas", 3)),
            ("status", put("metadata.labels.x", "y")),
        ],
    )
    yield (
        thing("apps/v1", "StatefulSet", "u", spec={"selector": SELECTOR, "template": TEMPLATE, "serviceName": "s"}),
        [
            ("", put("spec.replicas", 3)),
            ("", put("spec.serviceName", "t")),
            ("status", put("status.replicas", 1)),
        ],
    )
    yield (
        thing("apps/v1", "DaemonSet", "u", spec={"selector": SELECTOR, "template": TEMPLATE}),
        [
            ("", put("spec.template.spec.containers.0.image", "other")),
            ("", put("spec.selector.matchLabels.a", "c")),
        ],
    )
    yield (
        thing("batch/v1", "Job", "u", spec={"template": ONCE}),
        [
            ("", put("spec.parallelism", 3)),
            ("", put("spec.completions", 3)),
            ("", put("spec.suspend", True)),
            ("", put("spec.template.spec.containers.0.image", "other")),
            ("status", put("status.active", 1)),
        ],
    )
    yield (
        thing("batch/v1", "CronJob", "u", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ONCE}}}),
        [
            ("", put("spec.schedule", "1 * * * *")),
            ("status", put("status.lastScheduleTime", "2026-01-01T00:00:00Z")),
        ],
    )
    yield (
        thing("scheduling.k8s.io/v1", "PriorityClass", "u", value=5),
        [
            ("", put("value", 6)),
            ("", put("preemptionPolicy", "Never")),
            ("", put("globalDefault", True)),
            ("", put("description", "x")),
        ],
    )
    yield (
        thing("policy/v1", "PodDisruptionBudget", "u", spec={"selector": SELECTOR, "minAvailable": 1}),
        [
            ("", put("spec.minAvailable", 2)),
            ("status", put("status.disruptionsAllowed", 2)),
        ],
    )
    yield thing("v1", "PersistentVolumeClaim", "u", spec={"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}}), [
        ("", put("spec.accessModes", ["ReadOnlyMany"])),
        ("", put("spec.volumeName", "v")),
        ("status", put("status.phase", "Bound")),
    ]  # fmt: skip
    yield thing("v1", "PersistentVolume", "u", spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/x"}}), [
        ("", put("spec.hostPath.path", "/y")),
        ("", put("spec.claimRef", {"namespace": "default", "name": "x"})),
        ("", put("spec.capacity.storage", "2Gi")),
        ("status", put("status.phase", "Bound")),
    ]  # fmt: skip
    yield (
        thing("v1", "ConfigMap", "u", data={"a": "b"}, immutable=True),
        [
            ("", put("data.a", "c")),
            ("", put("immutable", None)),
        ],
    )
    yield (
        thing("v1", "Secret", "u", data={"a": "Yg=="}),
        [
            ("", put("type", "other/type")),
            ("", put("stringData", {"c": "d"})),
        ],
    )
    yield (
        thing("storage.k8s.io/v1", "StorageClass", "u", provisioner="p"),
        [
            ("", put("provisioner", "q")),
            ("", put("parameters", {"a": "b"})),
            ("", put("reclaimPolicy", "Retain")),
            ("", put("allowVolumeExpansion", True)),
        ],
    )
    yield thing("node.k8s.io/v1", "RuntimeClass", "u", handler="h"), [("", put("handler", "i"))]
    yield thing("scheduling.k8s.io/v1alpha2", "PodGroup", "u", spec={"schedulingPolicy": {"gang": {"minCount": 3}}}), [
        ("", put("spec.schedulingPolicy.gang.minCount", 4)),
        ("status", put("status.conditions", [{"type": "x", "status": "True", "reason": "R", "message": "m",
                                              "lastTransitionTime": "2026-01-01T00:00:00Z"}])),
    ]  # fmt: skip
    yield (
        thing("coordination.k8s.io/v1", "Lease", "u", spec={"holderIdentity": "me"}),
        [
            ("", put("spec.holderIdentity", "you")),
        ],
    )
    yield (
        thing("v1", "Service", "u", spec={"ports": [{"port": 80}], "clusterIP": "None"}),
        [
            ("", put("spec.ports.0.port", 81)),
        ],
    )
    yield (
        thing("v1", "Namespace", "u-space"),
        [
            ("", put("metadata.labels.x", "y")),
            ("", put("metadata.labels", None)),
            ("status", put("status.phase", "Terminating")),
        ],
    )
