"""Nodes that exist only as documents, and how to recognise them.

A node is simulated if its annotation `fairlead.io/simulated` is "true", or if it is one of kwok's
(`kwok.x-k8s.io/node: fake`). Its kubelet can be made to fail: `fairlead.io/fail` is "true", or the time from which on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.core.model.hashes import fnv32a
from fairlead.core.model.times import seconds_of, timestamp

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

SIMULATED = "fairlead.io/simulated"
FAIL = "fairlead.io/fail"
KUBELET_VERSION = "v1.36.4"
ARCHITECTURE = "amd64"

_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def is_simulated(node: Doc) -> bool:
    annotations = node["metadata"].get("annotations") or {}
    return annotations.get(SIMULATED) == "true" or annotations.get("kwok.x-k8s.io/node") == "fake"


def fails_from(node: Doc) -> float | None:
    """Since when, or from when on, this node's kubelet is silent; None if it works."""
    text = (node["metadata"].get("annotations") or {}).get(FAIL)
    if text is None or text in ("", "false"):
        return None
    try:
        return seconds_of(text)
    except ValueError:
        return float("-inf")


def simulated_node(
    name: str,
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    pods: str = "110",
    zone: str = "",
    region: str = "",
    ip: str = "",
    extra: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Doc] = (),
    now: float = 0.0,
) -> Doc:
    """A ready node of a given shape. `extra` are further resources, as `{"nvidia.com/gpu": "8"}`."""
    resources = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi", **(extra or {})}
    spec: Doc = {"taints": list(taints)} if taints else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": _labels(name, zone, region) | dict(labels or {}),
            "annotations": {SIMULATED: "true"},
        },
        "spec": spec,
        "status": healthy_status(name, now=now, ip=ip) | {"capacity": resources, "allocatable": dict(resources)},
    }


def healthy_status(name: str, *, now: float, ip: str = "") -> Doc:
    """What a kubelet reports of itself when all is well, resources aside."""
    return {
        "addresses": [{"type": "InternalIP", "address": ip or address_of(name)}, {"type": "Hostname", "address": name}],
        "conditions": healthy_conditions(now),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": node_facts(),
    }


def healthy_conditions(now: float, known: Sequence[Doc] = ()) -> list[Doc]:
    """The four conditions a kubelet owns, then those of others; transition times stay where nothing changed."""
    before = {one["type"]: one for one in known}
    ours = []
    for type_, status, reason, message in _HEALTHY:
        old = before.pop(type_, {})
        since = old.get("lastTransitionTime") if old.get("status") == status else None
        ours.append(
            {
                "type": type_,
                "status": status,
                "lastHeartbeatTime": timestamp(now),
                "lastTransitionTime": since or timestamp(now),
                "reason": reason,
                "message": message,
            }
        )
    return ours + list(before.values())


def node_facts() -> Doc:
    """`status.nodeInfo`; the server requests every one of these fields."""
    return {
        "architecture": ARCHITECTURE,
        "bootID": "",
        "containerRuntimeVersion": "fairlead://simulated",
        "kernelVersion": "simulated",
        "kubeProxyVersion": KUBELET_VERSION,
        "kubeletVersion": KUBELET_VERSION,
        "machineID": "",
        "operatingSystem": "linux",
        "osImage": "simulated",
        "systemUUID": "",
    }


def address_of(name: str) -> str:
    """An address in 172.16.0.0/12 that depends on the name alone (FNV-1a, 20 bits); unique enough for people."""
    digest = fnv32a(name)
    host = (digest ^ digest >> 20) & 0xFFFFF
    return f"172.{16 + (host >> 16)}.{host >> 8 & 255}.{host & 255}"


def _labels(name: str, zone: str, region: str) -> dict[str, str]:
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": ARCHITECTURE,
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": ARCHITECTURE,
        "node.kubernetes.io/instance-type": "simulated",
    }
    if zone:
        labels["topology.kubernetes.io/zone"] = zone
    if region:
        labels["topology.kubernetes.io/region"] = region
    return labels
