"""Documents that an API server refuses: pods with one thing wrong each, then the other kinds."""

from __future__ import annotations

from collections.abc import Iterator

from builders import ONCE, SELECTOR, TEMPLATE, Doc, container, pod, thing


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
    yield pod(
        containers=[
            container(
                ports=[
                    {"containerPort": 80, "name": "UP"},
                    {"containerPort": 80, "name": "a"},
                    {"containerPort": 81, "name": "a"},
                ]
            )
        ]
    )
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
    for terms in (
        [],
        [{}],
        [{"matchExpressions": [{"key": "a", "operator": "X"}]}],
        [{"matchExpressions": [{"key": "a", "operator": "In"}]}],
        [{"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}],
        [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["x"]}]}],
        [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]}],
        [{"matchExpressions": [{"key": "a b", "operator": "Exists"}]}],
        [{"matchFields": [{"key": "metadata.x", "operator": "In", "values": ["a"]}]}],
        [{"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}],
        [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}],
    ):
        yield pod(affinity={"nodeAffinity": {required: {"nodeSelectorTerms": terms}}})
    yield pod(
        affinity={
            "nodeAffinity": {
                preferred: [
                    {"weight": 0, "preference": {}},
                    {"weight": 101, "preference": {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}},
                ]
            }
        }
    )
    for term in (
        {},
        {"topologyKey": "a b"},
        {"topologyKey": "z", "labelSelector": {"matchLabels": {"a b": "c"}}},
        {"topologyKey": "z", "namespaces": ["A_"]},
        {"topologyKey": "z", "matchLabelKeys": ["a"]},
        {"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]},
        {"topologyKey": "z", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
        {
            "topologyKey": "z",
            "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist", "values": ["a"]}]},
        },
    ):
        yield pod(affinity={"podAffinity": {required: [term]}})
        yield pod(affinity={"podAntiAffinity": {preferred: [{"weight": 200, "podAffinityTerm": term}]}})
    yield pod(resources={"requests": {"cpu": "1"}, "limits": {"cpu": "500m"}})
    yield pod(
        resourceClaims=[
            {"name": "A_", "resourceClaimName": "c"},
            {"name": "b"},
            {"name": "b", "resourceClaimName": "c", "resourceClaimTemplateName": "d"},
        ]
    )
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
    yield thing(
        "v1",
        "Node",
        "n",
        spec={
            "taints": [
                {"key": "a", "effect": "X"},
                {"key": "", "effect": "NoSchedule"},
                {"key": "a", "effect": ""},
                {"key": "k", "value": "c d", "effect": "NoExecute"},
            ]
        },
    )
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
        yield thing(
            "apps/v1",
            kind,
            spec={"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}, "template": TEMPLATE},
        )
    for kind in ("Deployment", "ReplicaSet", "StatefulSet"):
        yield thing("apps/v1", kind, spec={"selector": SELECTOR, "template": TEMPLATE, "replicas": -1})
    yield thing(
        "apps/v1",
        "Deployment",
        spec={
            "selector": SELECTOR,
            "template": TEMPLATE,
            "strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}},
        },
    )
    yield thing(
        "apps/v1",
        "Deployment",
        spec={
            "selector": SELECTOR,
            "template": TEMPLATE,
            "minReadySeconds": -1,
            "revisionHistoryLimit": -1,
            "progressDeadlineSeconds": 0,
        },
    )
    yield thing(
        "apps/v1",
        "Deployment",
        spec={
            "selector": SELECTOR,
            "template": TEMPLATE,
            "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
        },
    )
    yield thing(
        "apps/v1",
        "Deployment",
        spec={
            "selector": SELECTOR,
            "template": TEMPLATE,
            "strategy": {"rollingUpdate": {"maxSurge": "x", "maxUnavailable": "200%"}},
        },
    )
    yield thing("v1", "ReplicationController", spec={"selector": {"a": "c"}, "template": TEMPLATE, "replicas": -1})
    yield thing("batch/v1", "Job", spec={"template": {"spec": {"containers": [container()]}}})
    yield thing(
        "batch/v1",
        "Job",
        spec={
            "template": ONCE,
            "parallelism": -1,
            "completions": -1,
            "backoffLimit": -1,
            "activeDeadlineSeconds": -1,
            "ttlSecondsAfterFinished": -1,
        },
    )
    yield thing("batch/v1", "Job", spec={"template": ONCE, "completionMode": "X"})
    yield thing("batch/v1", "Job", spec={"template": ONCE, "completionMode": "Indexed"})
    yield thing("batch/v1", "Job", spec={"template": ONCE, "selector": SELECTOR})
    yield thing("batch/v1", "Job", spec={})
    yield thing("batch/v1", "CronJob", spec={"schedule": "x", "jobTemplate": {"spec": {"template": ONCE}}})
    yield thing(
        "batch/v1",
        "CronJob",
        spec={"jobTemplate": {"spec": {"template": TEMPLATE}}, "concurrencyPolicy": "X", "startingDeadlineSeconds": -1},
    )
    yield thing("policy/v1", "PodDisruptionBudget", spec={"minAvailable": 1, "maxUnavailable": 1})
    yield thing("policy/v1", "PodDisruptionBudget", spec={"minAvailable": -1, "selector": {"matchLabels": {"a b": ""}}})
    yield thing("policy/v1", "PodDisruptionBudget", spec={"minAvailable": "200%"})
    yield thing("scheduling.k8s.io/v1", "PriorityClass", "p", value=2000000000)
    yield thing("scheduling.k8s.io/v1", "PriorityClass", "system-x", value=1)
    yield thing("scheduling.k8s.io/v1", "PriorityClass", "p", value=1, preemptionPolicy="X")
    yield thing("node.k8s.io/v1", "RuntimeClass", "r", handler="A_")
    yield thing("coordination.k8s.io/v1", "Lease", spec={"leaseDurationSeconds": 0, "leaseTransitions": -1})
    yield thing("storage.k8s.io/v1", "StorageClass", "s", provisioner="")
    yield thing("storage.k8s.io/v1", "StorageClass", "s", provisioner="p", reclaimPolicy="X", volumeBindingMode="X")
