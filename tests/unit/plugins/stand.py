"""Nodes and pods in one line each, compiled, and what an event about them means to a plugin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.framework.plugin import Hint, Plugin
from fairlead.model.events import ActionType, ClusterEvent
from fairlead.model.node import Node, compile_node
from fairlead.model.pod import Pod, Shapes, compile_pod

Doc = dict[str, Any]
SHAPES = Shapes()
ROOMY = {"cpu": "4", "memory": "8Gi", "pods": "10"}


def node_doc(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Doc] = (),
    unschedulable: bool = False,
    images: Sequence[Doc] = (),
    features: Sequence[str] = (),
    allocatable: Mapping[str, str] | None = None,
) -> Doc:
    """A node; without `allocatable` it has room."""
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": dict(labels or {})},
        "spec": {"taints": list(taints), "unschedulable": unschedulable},
        "status": {
            "allocatable": dict(ROOMY if allocatable is None else allocatable),
            "images": list(images),
            "declaredFeatures": list(features),
        },
    }


def pod_doc(name: str = "p", *, requests: Mapping[str, str] | None = None, uid: str = "", **spec: Any) -> Doc:
    """A pod of one container, unless `containers` says otherwise."""
    containers = [{"name": "c", "resources": {"requests": dict(requests or {})}}]
    return {
        "metadata": {"name": name, "uid": uid or f"uid-{name}", "namespace": "default"},
        "spec": {"containers": containers, **spec},
    }


def asking(requests: Mapping[str, str], **more: Any) -> Doc:
    """A container."""
    return {"name": "c", "resources": {"requests": dict(requests)}, **more}


def compiled(document: Doc) -> Pod:
    return compile_pod(document, SHAPES)


def a_pod(name: str = "p", **more: Any) -> Pod:
    return compiled(pod_doc(name, **more))


def a_node(name: str = "n", **more: Any) -> Node:
    return compile_node(node_doc(name, **more))


def hint(
    plugin: Plugin, resource: str, action: ActionType, pod: Pod, *, old: object = None, new: object = None
) -> Hint | None:
    """What an event means for a pod that the plugin refused; None if the plugin does not listen to it."""
    event = ClusterEvent(resource, action)
    for interest in plugin.events() or ():
        if interest.event.match(event):
            return Hint.QUEUE if interest.hint is None else interest.hint(pod, old, new)
    return None
