"""Small documents to compile, written as an API would send them."""

from __future__ import annotations

from typing import Any

Doc = dict[str, Any]


def pod_doc(name: str = "web-1", *, namespace: str = "default", status: Doc | None = None, **spec: Any) -> Doc:
    containers = spec.pop("containers", [container()])
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
        "spec": {"containers": containers, **spec},
        "status": status or {},
    }


def container(name: str = "main", image: str = "nginx", **requests: Any) -> Doc:
    """Resources by keyword, with `_` for `-`."""
    asked = {resource.replace("_", "-"): amount for resource, amount in requests.items()}
    return {"name": name, "image": image, "resources": {"requests": asked} if asked else {}}


def sidecar(name: str = "side", **requests: Any) -> Doc:
    return container(name, **requests) | {"restartPolicy": "Always"}
