"""The documents that record_cases.py sends: small ones of every kind, pods of many shapes, and many wrong ones."""

from __future__ import annotations

from collections.abc import Iterator

from builders import ONCE, SELECTOR, TEMPLATE, Change, Doc, container, pod, put, thing
from wrong_cases import wrong_others, wrong_pods

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
    yield thing(
        "v1",
        "PersistentVolume",
        spec={"capacity": {"storage": "1024Mi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}},
    )
    yield thing(
        "v1",
        "PersistentVolumeClaim",
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    )
    yield thing("v1", "ResourceQuota", spec={"hard": {"cpu": "1000m", "pods": 3}})
    yield thing("v1", "LimitRange", spec={"limits": [{"type": "Container", "max": {"cpu": "2"}}]})
    yield thing("v1", "ReplicationController", spec={"selector": {"a": "b"}, "template": TEMPLATE})
    yield thing("v1", "ReplicationController", spec={"template": TEMPLATE})
    yield thing("v1", "PodTemplate", template=TEMPLATE)
    yield thing("v1", "Endpoints", subsets=[{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80}]}])
    for kind in ("Deployment", "ReplicaSet", "DaemonSet"):
        yield thing("apps/v1", kind, spec={"selector": SELECTOR, "template": TEMPLATE})
    yield thing("apps/v1", "StatefulSet", spec={"selector": SELECTOR, "template": TEMPLATE, "serviceName": "s"})
    yield thing(
        "apps/v1",
        "StatefulSet",
        spec={
            "selector": SELECTOR,
            "template": TEMPLATE,
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "v"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
                }
            ],
        },
    )
    yield thing(
        "apps/v1",
        "Deployment",
        spec={"selector": SELECTOR, "template": TEMPLATE, "replicas": 0, "strategy": {"type": "Recreate"}},
    )
    yield thing("apps/v1", "ControllerRevision", revision=1)
    yield thing("batch/v1", "Job", spec={"template": {"spec": {"containers": [container()], "restartPolicy": "Never"}}})
    yield thing(
        "batch/v1", "Job", spec={"completions": 5, "parallelism": 2, "completionMode": "Indexed", "template": ONCE}
    )
    yield thing("batch/v1", "CronJob", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ONCE}}})
    yield thing("policy/v1", "PodDisruptionBudget", spec={"selector": SELECTOR, "minAvailable": 1})
    yield thing("scheduling.k8s.io/v1", "PriorityClass", "p1", value=5)
    yield thing("node.k8s.io/v1", "RuntimeClass", "r1", handler="h")
    yield thing("coordination.k8s.io/v1", "Lease", spec={"holderIdentity": "me", "leaseDurationSeconds": 15})
    yield thing(
        "events.k8s.io/v1",
        "Event",
        eventTime="2026-01-01T00:00:00.000000Z",
        reportingController="a.b/c",
        reportingInstance="i",
        action="Doing",
        reason="Test",
        type="Normal",
        note="n",
        regarding={"kind": "Pod", "namespace": "default", "name": "p"},
    )
    yield thing("storage.k8s.io/v1", "StorageClass", "s1", provisioner="p")
    yield thing("storage.k8s.io/v1", "CSINode", "c1", spec={"drivers": [{"name": "d", "nodeID": "n"}]})
    yield thing("storage.k8s.io/v1", "CSIDriver", "d1", spec={})
    yield thing("storage.k8s.io/v1", "CSIStorageCapacity", storageClassName="s1", capacity="1024Gi")
    yield thing(
        "storage.k8s.io/v1",
        "VolumeAttachment",
        spec={"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
    )
    yield thing("storage.k8s.io/v1", "VolumeAttributesClass", "v1", driverName="d", parameters={"a": "b"})
    requests = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    yield thing("resource.k8s.io/v1", "ResourceClaim", spec=requests)
    yield thing("resource.k8s.io/v1", "ResourceClaimTemplate", spec={"spec": requests})
    yield thing(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "slice",
        spec={
            "driver": "d.example",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0", "capacity": {"memory": {"value": "1024Mi"}}}],
        },
    )
    yield thing("resource.k8s.io/v1", "DeviceClass", "gpu", spec={"selectors": [{"cel": {"expression": "true"}}]})
    yield thing(
        "rbac.authorization.k8s.io/v1", "Role", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    )
    yield thing(
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        subjects=[{"kind": "User", "name": "u"}],
        roleRef={"kind": "Role", "name": "r"},
    )
    yield thing(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        addressType="IPv4",
        endpoints=[{"addresses": ["10.1.1.1"]}],
        ports=[{"port": 80}],
    )
    yield thing(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        spec={"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}},
    )


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
    yield pod(
        containers=[container(startupProbe={"grpc": {"port": 80}}, lifecycle={"preStop": {"httpGet": {"port": "web"}}})]
    )
    yield pod(
        containers=[
            container(
                env=[
                    {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "B", "value": "x"},
                ]
            )
        ]
    )
    yield pod(initContainers=[container(name="i"), container(name="s", restartPolicy="Always")])
    yield pod(
        serviceAccountName="me",
        volumes=[
            {"name": "a"},
            {"name": "b", "secret": {"secretName": "s"}},
            {"name": "c", "configMap": {"name": "m"}},
            {"name": "d", "hostPath": {"path": "/"}},
            {"name": "e", "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            {"name": "f", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {"name": "g", "persistentVolumeClaim": {"claimName": "x"}},
        ],
        containers=[container(volumeMounts=[{"name": "a", "mountPath": "/a"}])],
    )
    yield pod(priorityClassName="high")
    yield pod(priorityClassName="patient")
    yield pod(priorityClassName="system-node-critical")
    yield pod(priority=0)
    yield pod(runtimeClassName="kata")
    yield pod(schedulingGates=[{"name": "a.b/c"}])
    yield pod(nodeName="n1")
    yield pod(
        tolerations=[
            {
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 5,
            },
            {"operator": "Exists", "effect": "NoSchedule"},
        ]
    )
    yield pod(tolerations=[{"operator": "Exists"}])
    yield pod(
        labels={"app": "x", "hash": "1"},
        topologySpreadConstraints=[
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "matchLabelKeys": ["hash"],
                "labelSelector": {"matchLabels": {"app": "x"}},
            }
        ],
    )
    term = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "x"}}}
    yield pod(
        labels={"app": "x", "hash": "1"},
        affinity={
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**term, "matchLabelKeys": ["hash"]}]},
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": {**term, "mismatchLabelKeys": ["hash"]}}
                ]
            },
        },
    )
    yield pod(
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
                }
            }
        }
    )
    yield pod(serviceAccountName="me", restartPolicy="Never", dnsPolicy="Default", terminationGracePeriodSeconds=0)
    yield pod(nodeSelector={}, hostNetwork=False, nodeName="", volumes=[], schedulerName="other")
    yield pod(schedulingGroup={"podGroupName": "g"})
    yield pod(resources={"requests": {"cpu": "1"}})
    yield pod(resourceClaims=[{"name": "r", "resourceClaimName": "c"}])
    yield pod(overhead={"cpu": "1"})
    yield pod(ephemeralContainers=[])
    yield pod(securityContext={"runAsUser": 0}, imagePullSecrets=[{"name": "s"}])


def created() -> Iterator[Doc]:
    yield from small_ones()
    yield from whole_pods()
    yield from wrong_pods()
    yield from wrong_others()


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
    yield (
        thing(
            "v1",
            "PersistentVolumeClaim",
            "u",
            spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        ),
        [
            ("", put("spec.accessModes", ["ReadOnlyMany"])),
            ("", put("spec.volumeName", "v")),
            ("status", put("status.phase", "Bound")),
        ],
    )
    yield (
        thing(
            "v1",
            "PersistentVolume",
            "u",
            spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}},
        ),
        [
            ("", put("spec.hostPath.path", "/y")),
            ("", put("spec.claimRef", {"namespace": "default", "name": "x"})),
            ("", put("spec.capacity.storage", "2Gi")),
            ("status", put("status.phase", "Bound")),
        ],
    )
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
