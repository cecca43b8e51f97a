"""Objects at the edges of what the API server accepts: sizes, selectors, affinities, volumes, references to nothing.

After each of them the scheduler must still place a pod and a gang. What the API server refuses is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from soak.cluster import GROUPS, PODS, QUEUES, Doc, node, pod, pod_group

MOST = "9223372036854775807"
CORE, IN_DEFAULT = "/api/v1", "/api/v1/namespaces/default"
STORAGE, POLICY = "/apis/storage.k8s.io/v1", "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
LONG = "a" * 63
Odd = tuple[str, Doc]


def odd_objects(*, volcano: bool) -> list[Odd]:
    """Where to post them, and what."""
    found = [*_nodes(), *_pods(), *_amounts(), *_volumes(), *_others()]
    return [*found, *_volcanos()] if volcano else found


# ---- nodes ----


def _nodes() -> Iterator[Odd]:
    rooms: list[dict[str, str]] = [
        {"cpu": MOST, "memory": "8191Pi", "pods": MOST},
        {"cpu": "0", "memory": "0", "pods": "0"},
        {"cpu": "1n", "memory": "1m", "pods": "1"},
        {"cpu": "8", "pods": "110", "example.com/thing": MOST},
        {"cpu": f"{MOST}m", "memory": f"{MOST}m", "pods": "1"},
        {"cpu": "1e18", "memory": "1e18", "pods": "1e9"},
        {"cpu": "0.0001", "memory": "0.5", "pods": "3"},
        {"cpu": "8"},
        {"memory": "1Gi"},
        {"pods": "110"},
        {},
        {"cpu": "8", "memory": "64Gi", "pods": "110", "ephemeral-storage": "8Ei"},
        {"cpu": "8", "memory": "64Gi", "pods": "110", "hugepages-2Mi": MOST},
        {"cpu": "8", "memory": "64Gi", "pods": "110", "attachable-volumes-csi-none": "0"},
        {"cpu": "8", "memory": "64Gi", "pods": "110", f"example.com/{LONG}": "1"},
    ]
    for at, room in enumerate(rooms):
        doc = node(f"odd-room-{at}")
        doc["status"]["capacity"] = doc["status"]["allocatable"] = room
        yield f"{CORE}/nodes", doc
    lopsided = node("odd-lopsided")
    lopsided["status"]["allocatable"] = {"cpu": "100000", "memory": "1Ei", "pods": "1"}
    yield f"{CORE}/nodes", lopsided
    yield f"{CORE}/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "odd-bare"}}
    more: list[tuple[str, Doc]] = [
        ("labels", {"metadata": {"labels": {"topology.kubernetes.io/zone": "", "kubernetes.io/hostname": "node-0"}}}),
        ("number", {"metadata": {"labels": {"x": "-0", "y": MOST, "z": "007"}}}),
        ("annotated", {"metadata": {"annotations": {"volcano.sh/oversubscription-cpu": "9" * 400}}}),
        ("negative", {"metadata": {"annotations": {"volcano.sh/oversubscription-memory": "-1"}}}),
        ("taints", {"spec": {"taints": [{"key": "k", "effect": effect} for effect in ("NoSchedule", "NoExecute")]}}),
        ("valued", {"spec": {"taints": [{"key": "k", "value": LONG, "effect": "PreferNoSchedule"}] * 1}}),
        ("cordoned", {"spec": {"unschedulable": True}}),
        ("provider", {"spec": {"providerID": "///"}}),
        ("cidr", {"spec": {"podCIDR": "10.0.0.0/32", "podCIDRs": ["10.0.0.0/32"]}}),
        ("images", {"status": {"images": [{"names": ["none", "none:1"], "sizeBytes": int(MOST)}] * 50}}),
        ("unready", {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}),
        ("twice", {"status": {"conditions": [{"type": "Ready", "status": said} for said in ("True", "False")]}}),
        ("features", {"status": {"declaredFeatures": ["A", "B"]}}),
        ("runtime", {"status": {"runtimeHandlers": [{"name": ""}, {"name": "odd"}]}}),
    ]
    for name, parts in more:
        doc = node(f"odd-{name}")
        for part, content in parts.items():
            doc[part] = {**doc.get(part, {}), **content}
        yield f"{CORE}/nodes", doc


# ---- pods ----


def _required(*terms: Doc) -> Doc:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def _preferred(weight: int, term: Doc) -> Doc:
    return {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "preference": term}]}
    }


def _between_pods(kind: str, term: Doc, weight: int = 0) -> Doc:
    if weight:
        return {
            kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": term}]}
        }
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _expression(key: str, operator: str, *values: str) -> Doc:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


def _affinities() -> list[Doc]:
    host = "kubernetes.io/hostname"
    everybody: Doc = {"topologyKey": host, "labelSelector": {}}
    return [
        {},
        {"nodeAffinity": {}},
        {"podAffinity": {}},
        {"podAntiAffinity": {}},
        {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}},
        _required({}),
        _required({"matchExpressions": []}),
        _required(_expression("x", "Gt", MOST)),
        _required(_expression("x", "Lt", f"-{MOST}")),
        _required(_expression("x", "Gt", "-1")),
        _required(_expression("x", "In", "")),
        _required(_expression("x", "NotIn", *map(str, range(500)))),
        _required(_expression("x", "DoesNotExist"), _expression("x", "Exists")),
        _required(*(_expression("x", "In", str(at)) for at in range(200))),
        _required({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["none"]}]}),
        _required({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["node-0"]}]}),
        _preferred(100, {"matchExpressions": []}),
        _preferred(1, _expression("y", "Gt", "0")),
        _preferred(100, {}),
        _between_pods("podAffinity", {"topologyKey": "none", "labelSelector": {}}),
        _between_pods("podAffinity", everybody),
        _between_pods("podAntiAffinity", everybody),
        _between_pods("podAffinity", {"topologyKey": host}),
        _between_pods("podAntiAffinity", {"topologyKey": host, "namespaces": ["nowhere"], "labelSelector": {}}),
        _between_pods(
            "podAntiAffinity",
            {"topologyKey": host, "namespaceSelector": {}, "labelSelector": {"matchLabels": {"never": "there"}}},
        ),
        _between_pods("podAffinity", {**everybody, "matchLabelKeys": ["app"]}),
        _between_pods("podAffinity", {**everybody, "mismatchLabelKeys": ["app"]}),
        _between_pods("podAffinity", everybody, weight=100),
        _between_pods("podAntiAffinity", everybody, weight=100),
        _between_pods("podAntiAffinity", {"topologyKey": host}, weight=1),
    ]


def _spreads() -> list[Doc]:
    base: Doc = {"maxSkew": 1, "topologyKey": "x", "whenUnsatisfiable": "DoNotSchedule"}
    soft = {**base, "whenUnsatisfiable": "ScheduleAnyway"}
    return [
        {**soft, "maxSkew": 2147483647},
        {**base, "minDomains": 2147483647, "labelSelector": {}},
        base,
        soft,
        {**base, "labelSelector": {}, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"},
        {**base, "labelSelector": {}, "matchLabelKeys": ["none"]},
        {**soft, "topologyKey": "kubernetes.io/hostname"},
        {**base, "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": ""}}},
    ]


def _pods() -> Iterator[Odd]:
    specs: list[Doc] = [
        {"nodeName": "nobody"},
        {"nodeName": "odd-bare"},
        {"nodeSelector": {"a": ""}},
        {"nodeSelector": {"x": "-0"}},
        {"priority": None},
        {"hostNetwork": True},
        {"hostPID": True},
        {"schedulingGates": [{"name": "a"}]},
        {"schedulingGates": [{"name": f"example.com/{at}"} for at in range(50)]},
        {"overhead": {"cpu": "1"}},
        {"priorityClassName": "system-node-critical"},
        {"preemptionPolicy": "Never"},
        {"restartPolicy": "Never", "activeDeadlineSeconds": 2147483647},
        {"terminationGracePeriodSeconds": 2147483647},
        {"tolerations": [{"operator": "Exists"}]},
        {"tolerations": [{"key": "k", "operator": "Exists", "effect": ""}]},
        {"tolerations": [{"key": "k", "value": LONG, "effect": "NoExecute", "tolerationSeconds": -1}]},
        {"tolerations": [{"key": f"k{at}", "operator": "Exists"} for at in range(300)]},
        {"schedulerName": "nobody-serves-this"},
        {"hostname": "h", "subdomain": "s"},
        {"os": {"name": "windows"}},
        {"runtimeClassName": "none"},
        {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["::1"]}},
        {"resourceClaims": [{"name": "c", "resourceClaimName": "none"}]},
        {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "none"}]},
        {"readinessGates": [{"conditionType": "example.com/never"}]},
        {"shareProcessNamespace": True},
    ]
    specs += [{"affinity": affinity} for affinity in _affinities()]
    specs += [{"topologySpreadConstraints": [spread]} for spread in _spreads()]
    specs.append({"topologySpreadConstraints": _spreads()[2:3] * 1 + [{**_spreads()[2], "topologyKey": "y"}]})
    for at, spec in enumerate(specs):
        doc = pod(f"odd-{at}")
        doc["spec"] = {**doc["spec"], **spec}
        yield PODS, doc
    for at, metadata in enumerate(_metadata()):
        doc = pod(f"odd-metadata-{at}")
        doc["metadata"] |= metadata
        yield PODS, doc


def _metadata() -> list[Doc]:
    owner = {"apiVersion": "none/v1", "kind": "Nothing", "name": "n", "uid": "00000000-0000-0000-0000-000000000000"}
    return [
        {"ownerReferences": [owner]},
        {"ownerReferences": [{**owner, "controller": True}]},
        {"finalizers": ["example.com/never"]},
        {"labels": {f"l{at}": LONG for at in range(200)}},
        {"annotations": {"scheduling.k8s.io/group-name": ""}},
        {"annotations": {"x": "y" * 200_000}},
        {"annotations": {"scheduling.k8s.io/group-name": "no-such-group"}},
        {"annotations": {"volcano.sh/preemptable": "perhaps", "volcano.sh/task-spec": ""}},
        {"labels": {"scheduling.x-k8s.io/pod-group": "no-such-group"}},
        {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "\u0000".strip("\u0000") or "ü€"}},
    ]


def _amounts() -> Iterator[Odd]:
    for at, cpu in enumerate(("0", "1n", MOST, f"{MOST}m", "1e18", "0.0001", "1.0000000001", "9E")):
        yield PODS, pod(f"odd-cpu-{at}", cpu=cpu)
    requests: list[dict[str, str]] = [
        {},
        {"memory": MOST},
        {"memory": "1n"},
        {"memory": "0.5"},
        {"ephemeral-storage": "8Ei"},
        {"example.com/none": "1"},
        {"example.com/thing": MOST},
        {"hugepages-2Mi": "2Mi", "cpu": "1m"},
        {"nvidia.com/gpu": "0"},
        {"volcano.sh/vgpu-number": "1"},
    ]
    for at, asked in enumerate(requests):
        doc = pod(f"odd-asks-{at}")
        extended = {name: amount for name, amount in asked.items() if "/" in name or name.startswith("huge")}
        doc["spec"]["containers"][0]["resources"] = {"requests": asked, **({"limits": extended} if extended else {})}
        yield PODS, doc
    for at, ports in enumerate(
        (
            [{"containerPort": 65535, "hostPort": 65535, "hostIP": "::"}],
            [{"containerPort": 1, "hostPort": 1, "protocol": "SCTP"}],
            [{"containerPort": number, "hostPort": number} for number in range(2000, 2200)],
        )
    ):
        doc = pod(f"odd-ports-{at}")
        doc["spec"]["containers"][0]["ports"] = ports
        yield PODS, doc
    many = pod("odd-containers")
    many["spec"]["containers"] = [{"name": f"c{at}", "image": "none"} for at in range(100)]
    yield PODS, many
    first = pod("odd-sidecar")
    first["spec"]["initContainers"] = [{"name": "i", "image": "none", "restartPolicy": "Always"}]
    yield PODS, first
    whole = pod("odd-whole")
    whole["spec"]["resources"] = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    yield PODS, whole


# ---- volumes ----


def _volumes() -> Iterator[Odd]:
    largest: Doc = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "8Ei"}}}
    volumes: list[Doc] = [
        {"persistentVolumeClaim": {"claimName": "none"}},
        {"csi": {"driver": "none"}},
        {"emptyDir": {"sizeLimit": "0"}},
        {"ephemeral": {"volumeClaimTemplate": {"spec": largest}}},
        {"nfs": {"server": "::1", "path": "/"}},
        {"persistentVolumeClaim": {"claimName": "odd-claim"}},
        {"persistentVolumeClaim": {"claimName": "odd-bound"}},
        {"persistentVolumeClaim": {"claimName": "odd-lost"}},
        {"awsElasticBlockStore": {"volumeID": "v"}},
        {"gcePersistentDisk": {"pdName": "p"}},
        {"iscsi": {"targetPortal": "p", "iqn": "iqn.2000-01.a:b", "lun": 0}},
        {"rbd": {"monitors": ["m"], "image": "i"}},
        {"projected": {"sources": []}},
        {"configMap": {"name": "none"}},
    ]
    claims: list[tuple[str, Doc]] = [
        ("odd-claim", {"storageClassName": "none"}),
        ("odd-bound", {"volumeName": "none"}),
        ("odd-lost", {"volumeName": "odd-volume"}),
        ("odd-selecting", {"selector": {"matchLabels": {"a": ""}}}),
        ("odd-block", {"volumeMode": "Block", "storageClassName": ""}),
        ("odd-later", {"storageClassName": "odd-later"}),
    ]
    for name, spec in claims:
        body = {"metadata": {"name": name}, "spec": {**largest, **spec}}
        yield f"{IN_DEFAULT}/persistentvolumeclaims", {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **body}
    yield (
        f"{STORAGE}/storageclasses",
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "odd-later"},
            "provisioner": "nobody/here",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "none", "values": ["a", "b"]}]}],
        },
    )
    volume = {
        "capacity": {"storage": "1n"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "none", "volumeHandle": "h"},
        "claimRef": {"namespace": "nowhere", "name": "nothing"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [_expression("none", "Exists")]}},
    }
    body = {"metadata": {"name": "odd-volume"}, "spec": volume}
    yield f"{CORE}/persistentvolumes", {"apiVersion": "v1", "kind": "PersistentVolume", **body}
    for at, source in enumerate([*volumes, {"persistentVolumeClaim": {"claimName": "odd-later"}}]):
        doc = pod(f"odd-volume-{at}")
        doc["spec"]["volumes"] = [{"name": "v", **source}]
        yield PODS, doc


# ---- everything else that a scheduler reads ----


def _others() -> Iterator[Odd]:
    for at, spec in enumerate(
        (
            {},
            {"selector": {}},
            {"minAvailable": 0, "selector": {}},
            {"maxUnavailable": "100%", "selector": {}},
            {"minAvailable": 2147483647, "selector": {"matchLabels": {"a": ""}}},
        )
    ):
        yield (
            POLICY,
            {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": f"odd-{at}"}, "spec": spec},
        )
    for at, value in enumerate((1000000000, -2147483648, 0)):
        yield (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": f"odd-{at}"},
                "value": value,
                "preemptionPolicy": "Never" if at else "PreemptLowerPriority",
            },
        )
        yield PODS, pod(f"odd-priority-{at}", priority=f"odd-{at}")
    yield (
        f"{CORE}/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "odd", "labels": {"": ""}}},
    )
    yield (
        f"{CORE}/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "odd-2", "labels": {"a": ""}}},
    )
    yield (
        f"{IN_DEFAULT}/services",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "odd"},
            "spec": {"clusterIP": "None", "selector": {"a": ""}},
        },
    )
    yield (
        f"{IN_DEFAULT}/replicationcontrollers",
        {
            "apiVersion": "v1",
            "kind": "ReplicationController",
            "metadata": {"name": "odd"},
            "spec": {
                "replicas": 0,
                "selector": {"a": ""},
                "template": {
                    "metadata": {"labels": {"a": ""}},
                    "spec": {"containers": [{"name": "c", "image": "none"}]},
                },
            },
        },
    )
    yield (
        f"{STORAGE}/csinodes",
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": "node-0"},
            "spec": {"drivers": [{"name": "none", "nodeID": "n", "allocatable": {"count": 0}, "topologyKeys": ["x"]}]},
        },
    )
    yield (
        f"{STORAGE}/csidrivers",
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": "none"},
            "spec": {"storageCapacity": True},
        },
    )
    yield (
        f"{STORAGE}/namespaces/default/csistoragecapacities",
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIStorageCapacity",
            "metadata": {"name": "odd"},
            "storageClassName": "odd-later",
            "capacity": "8Ei",
            "maximumVolumeSize": "0",
        },
    )
    resource = "/apis/resource.k8s.io/v1"
    yield (
        f"{resource}/deviceclasses",
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "odd"},
            "spec": {"selectors": [{"cel": {"expression": "device.attributes['none'].missing == 1"}}]},
        },
    )
    yield (
        f"{resource}/resourceslices",
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "odd"},
            "spec": {
                "driver": "none.example.com",
                "nodeName": "nobody",
                "devices": [],
                "pool": {"name": "p", "generation": 0, "resourceSliceCount": 5},
            },
        },
    )
    yield (
        f"{resource}/namespaces/default/resourceclaims",
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "odd"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "odd", "count": 32}}]}},
        },
    )
    claiming = pod("odd-claiming")
    claiming["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": "odd"}]
    claiming["spec"]["containers"][0]["resources"]["claims"] = [{"name": "c"}]
    yield PODS, claiming


# ---- Volcano's ----


def _volcanos() -> Iterator[Odd]:
    queues: list[Doc] = [
        {},
        {"weight": 1, "capability": {"cpu": "0"}},
        {"weight": 2147483647},
        {"weight": 1, "parent": "none"},
        {"weight": 1, "parent": "odd-0"},
        {"weight": 1, "capability": {"cpu": MOST, "example.com/none": MOST}},
        {"weight": 1, "guarantee": {"resource": {"cpu": MOST}}},
        {"weight": 1, "deserved": {"memory": "1n"}},
        {"weight": 1, "reclaimable": False, "priority": -2147483648},
        {"weight": 0},
    ]
    for at, spec in enumerate(queues):
        yield (
            QUEUES,
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": f"odd-{at}"},
                "spec": spec,
            },
        )
    groups: list[dict[str, Any]] = [
        {},
        {"minMember": 0},
        {"minMember": 2147483647},
        {"minMember": -1},
        {"queue": "none"},
        {"queue": "odd-1"},
        {"minResources": {"cpu": MOST}},
        {"minResources": {"cpu": "1n", "example.com/none": "1"}},
        {"minTaskMember": {"": 1}},
        {"minTaskMember": {"a": 2147483647}},
        {"priorityClassName": "none"},
        {"networkTopology": {"mode": "hard", "highestTierAllowed": 0}},
        {"networkTopology": {"mode": "hard", "highestTierAllowed": 2147483647}},
        {"networkTopology": {"mode": "soft"}},
    ]
    for at, spec in enumerate(groups):
        name = f"odd-group-{at}"
        doc = pod_group(name, 1)
        doc["spec"] = {**({} if not spec else doc["spec"]), **spec}
        yield GROUPS, doc
        yield PODS, pod(f"{name}-0", scheduler="volcano", group=name)
    yield PODS, pod("odd-without-group", scheduler="volcano")
    for at, affinity in enumerate(_affinities()[5:20:3]):
        yield GROUPS, pod_group(f"odd-choosy-{at}", 1)
        doc = pod(f"odd-choosy-{at}", scheduler="volcano", group=f"odd-choosy-{at}")
        doc["spec"]["affinity"] = affinity
        yield PODS, doc
    for at, cpu in enumerate(("0", "1n", MOST, "1e18", "0.0001")):
        yield GROUPS, pod_group(f"odd-asking-{at}", 1)
        yield PODS, pod(f"odd-asking-{at}", cpu=cpu, scheduler="volcano", group=f"odd-asking-{at}")
