"""Random storage for random clusters: volumes that are there, that wait for a pod and that are made for one; limits.

Three classes: `local` has no provisioner and waits for the first pod, `made` is provisioned once a
node is chosen (the recorder plays the provisioner) and may be tied to zones or to the capacity that is left, `fast` is
bound at once.
"""

from __future__ import annotations

from random import Random
from typing import Any

Doc = dict[str, Any]

DRIVER = "csi.example.com"
ZONE = "topology.kubernetes.io/zone"
_MODES = ("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany")


def storage(rng: Random, nodes: list[str]) -> list[Doc]:
    """Classes, limits, volumes and claims. Volumes of one class have sizes of their own: which of two equal ones a
    claim gets is chance."""
    sizes = rng.sample(range(1, 30), 12)
    objects = _classes(rng) + _limits(rng, nodes)
    objects += [_local_volume(rng, nodes, number, sizes.pop()) for number in range(rng.randint(0, 6))]
    objects += [_claim(rng, f"wait{number}", "local") for number in range(rng.randint(0, 3))]
    objects += [_claim(rng, f"made{number}", "made") for number in range(rng.randint(0, 2))]
    for number in range(rng.randint(1, 4)):
        mode = rng.choice(_MODES)
        objects.append(_bound_volume(rng, number, sizes.pop(), mode))
        objects.append(_claim(rng, f"bound{number}", "fast", modes=[mode], volumeName=f"pv{number}"))
    return objects


def claims_of(objects: list[Doc]) -> list[str]:
    return [doc["metadata"]["name"] for doc in objects if doc["kind"] == "PersistentVolumeClaim"]


def inline_disk(rng: Random) -> Doc:
    disk = {"monitors": [rng.choice(["10.0.0.8:6789", "10.0.0.9:6789"])], "image": rng.choice(["a", "b"])}
    return {"name": "inline", "rbd": disk | ({"readOnly": True} if rng.random() < 0.5 else {})}


def _classes(rng: Random) -> list[Doc]:
    made = _object(
        "storage.k8s.io/v1", "StorageClass", "made", provisioner=DRIVER, volumeBindingMode="WaitForFirstConsumer"
    )
    if rng.random() < 0.5:
        values = rng.sample(["z1", "z2", "z3"], 2)
        made["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": values}]}]
    classes = [
        made,
        _object("storage.k8s.io/v1", "StorageClass", "fast", provisioner=DRIVER, volumeBindingMode="Immediate"),
        _object("storage.k8s.io/v1", "StorageClass", "local", provisioner="kubernetes.io/no-provisioner",
                volumeBindingMode="WaitForFirstConsumer"),
    ]  # fmt: skip
    if rng.random() < 0.5:
        classes.append(_object("storage.k8s.io/v1", "CSIDriver", DRIVER, spec={"storageCapacity": True}))
        classes += [_capacity(rng, number) for number in range(rng.randint(0, 3))]
    return classes


def _capacity(rng: Random, number: int) -> Doc:
    where = rng.choice([{}, {"matchLabels": {ZONE: rng.choice(["z1", "z2"])}}, {"matchLabels": {"disk": "ssd"}}])
    made = _object(
        "storage.k8s.io/v1",
        "CSIStorageCapacity",
        f"left{number}",
        storageClassName="made",
        capacity=f"{rng.choice([1, 3, 50])}Gi",
        nodeTopology=where,
    )
    made["metadata"]["namespace"] = "default"
    if rng.random() < 0.3:
        made["maximumVolumeSize"] = "2Gi"
    return made


def _limits(rng: Random, nodes: list[str]) -> list[Doc]:
    found = []
    for name in nodes:
        if rng.random() < 0.6:
            driver: Doc = {"name": DRIVER, "nodeID": name, "topologyKeys": [ZONE]}
            if rng.random() < 0.8:
                driver["allocatable"] = {"count": rng.randint(0, 2)}
            found.append(_object("storage.k8s.io/v1", "CSINode", name, spec={"drivers": [driver]}))
    return found


def _local_volume(rng: Random, nodes: list[str], number: int, size: int) -> Doc:
    on = rng.sample(nodes, min(len(nodes), rng.randint(1, 3)))
    made = _volume(f"local{number}", size, "local", list({"ReadWriteOnce", rng.choice(_MODES[:3])}))
    made["spec"] |= {"local": {"path": "/mnt"}, "nodeAffinity": _within("kubernetes.io/hostname", on)}
    if rng.random() < 0.3:
        made["metadata"]["labels"] = {"tier": rng.choice(["front", "back"])}
    if rng.random() < 0.1:
        made["spec"]["volumeMode"] = "Block"
    return made


def _bound_volume(rng: Random, number: int, size: int, mode: str) -> Doc:
    made = _volume(f"pv{number}", size, "fast", [mode])
    made["spec"]["csi"] = {"driver": DRIVER, "volumeHandle": f"h{number}"}
    if rng.random() < 0.4:
        made["spec"]["nodeAffinity"] = _within(ZONE, rng.sample(["z1", "z2", "z3"], 2))
    if rng.random() < 0.3:
        made["metadata"]["labels"] = {ZONE: rng.choice(["z1", "z2", "z1__z2"])}
    return made


def _volume(name: str, size: int, storage_class: str, modes: list[str]) -> Doc:
    return _object(
        "v1",
        "PersistentVolume",
        name,
        spec={
            "capacity": {"storage": f"{size}Gi"},
            "accessModes": sorted(modes),
            "storageClassName": storage_class,
            "persistentVolumeReclaimPolicy": "Retain",
        },
    )


def _claim(rng: Random, name: str, storage_class: str, *, modes: list[str] | None = None, **more: Any) -> Doc:
    size = 1 if storage_class == "fast" else rng.choice([1, 2, 5, 20])
    made = _object(
        "v1",
        "PersistentVolumeClaim",
        name,
        spec={
            "accessModes": modes or ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": f"{size}Gi"}},
            **more,
        },
    )
    made["metadata"]["namespace"] = "default"
    if storage_class == "local" and rng.random() < 0.2:
        made["spec"]["selector"] = {"matchLabels": {"tier": rng.choice(["front", "back"])}}
    return made


def _within(key: str, values: list[str]) -> Doc:
    expression = {"key": key, "operator": "In", "values": values}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def _object(api_version: str, kind: str, name: str, **fields: Any) -> Doc:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}
