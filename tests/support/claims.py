"""Documents of devices, resource claims and the pods that have them, and the devices that a cluster has allocated."""

from __future__ import annotations

from typing import Any

from fairlead.core.model import kinds as k
from fairlead.testing.harness import Harness

DRIVER = "gpu.example.com"
API = "resource.k8s.io/v1"


def device_class(name: str = "gpu", **spec: Any) -> dict[str, Any]:
    """A DeviceClass of all devices of the driver."""
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    return {
        "apiVersion": API,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors, **spec},
    }


def gpus(node: str, count: int = 2, **device: Any) -> dict[str, Any]:
    """A ResourceSlice with the devices of a node, which are on NUMA nodes 0 and 1 in turn."""
    spec = {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{at}", "attributes": {"numa": {"int": at % 2}}, **device} for at in range(count)],
    }
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": f"{node}-gpu"}, "spec": spec}


def devices(count: int = 1, **more: Any) -> dict[str, Any]:
    """The spec of a claim for so many devices of the class `gpu`."""
    return {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "gpu", "count": count}}], **more}}


def template(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """A ResourceClaimTemplate with the spec of a claim."""
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": API, "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": {"spec": spec}}


def claim(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """A ResourceClaim with this spec."""
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def pod(
    name: str, *, of: str = "", shared: str = "", labels: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """A pod with a claim: one of its own, made of a template, or one that it shares."""
    entry = {"name": "g", **({"resourceClaimTemplateName": of} if of else {"resourceClaimName": shared})}
    container = {"name": "c", "image": "x", "resources": {"claims": [{"name": "g"}]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "spec": {"containers": [container], "resourceClaims": [entry], **spec},
    }


def held(cluster: Harness) -> list[tuple[str, str]]:
    """Devices that are allocated, each as pool and name; one that is given twice is there twice."""
    claims = [doc.get("status") or {} for doc in cluster.store.list(k.RESOURCE_CLAIM)]
    return sorted(
        (result["pool"], result["device"])
        for status in claims
        for result in (status.get("allocation") or {}).get("devices", {}).get("results", ())
    )


def gang(name: str, least: int) -> dict[str, Any]:
    """A PodGroup of the scheduler-plugins, whose members start when there is room for at least so many."""
    api = "scheduling.x-k8s.io/v1alpha1"
    return {
        "apiVersion": api,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": least},
    }
