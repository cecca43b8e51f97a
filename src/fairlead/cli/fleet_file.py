"""`--nodes-file`: simulated nodes from a file, by shape or as whole Node objects.

    nodes:
    - count: 4
      name: gpu                       # gpu-0 ... gpu-3
      instanceType: p4d.24xlarge
      resources: {cpu: 96, memory: 1152Gi, nvidia.com/gpu: 8}
      labels: {team: ml}
      taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
      devices: ["gpu.example.com:8,model=H100"]   # as --device has them, for these nodes alone

Node objects (one, several documents, or a List as `kubectl get nodes -o yaml` prints it) are taken as they are, but for
what belongs to the cluster that they come from, and are simulated from then on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlead.cli.device_flags import parse_device
from fairlead.cli.fleet import INSTANCE_TYPE, NodeShape
from fairlead.cluster.kubelets.simulated_nodes import SIMULATED
from fairlead.config.yaml_text import read_documents
from fairlead.core.model.syntax import subdomain_complaints
from fairlead.errors import ConfigError

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_FIELDS = ("count", "name", "instanceType", "resources", "labels", "taints", "devices")
_OF_THE_OTHER_CLUSTER = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink")


def read_fleet_file(path: Path) -> tuple[list[NodeShape], list[Doc]]:
    """Shapes, and Node objects. Raises ConfigError that names the file and the field."""
    documents = [one for one in read_documents(path) if one is not None]
    shapes: list[NodeShape] = []
    nodes: list[Doc] = []
    for document in documents:
        if isinstance(document, dict) and isinstance(document.get("nodes"), list) and "kind" not in document:
            shapes += (_shape(path, number, entry) for number, entry in enumerate(document["nodes"]))
        else:
            nodes += (_node(path, one) for one in _items(document))
    if not shapes and not nodes:
        raise ConfigError("names no nodes", file=str(path), hint="a list under `nodes`, or Node objects")
    return shapes, nodes


def _items(document: Any) -> Iterator[Any]:
    if isinstance(document, dict) and str(document.get("kind", "")).endswith("List"):
        yield from document.get("items") or ()
    else:
        yield document


def _node(path: Path, node: Any) -> Doc:
    of_node = node.get("metadata") if isinstance(node, dict) and node.get("kind") == "Node" else None
    if not isinstance(of_node, dict) or not of_node.get("name"):
        what = node.get("kind") if isinstance(node, dict) else type(node).__name__
        raise ConfigError(f"a Node with a name is expected here, not {what}", file=str(path))
    if complaints := subdomain_complaints(str(of_node["name"])):
        raise ConfigError(f'"{of_node["name"]}" is not the name of a node: {complaints[0]}', file=str(path))
    metadata = {name: value for name, value in of_node.items() if name not in _OF_THE_OTHER_CLUSTER}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), SIMULATED: "true"}
    return {"apiVersion": "v1", "spec": {}, **node, "metadata": metadata}


def _shape(path: Path, number: int, entry: Any) -> NodeShape:
    where = f"nodes[{number}]"
    if not isinstance(entry, dict):
        raise ConfigError("is not a mapping", file=str(path), path=where)
    for name in entry:
        if name not in _FIELDS:
            raise ConfigError(
                "unknown field", file=str(path), path=f"{where}.{name}", hint=f"known: {', '.join(_FIELDS)}"
            )
    count = entry.get("count", 1)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ConfigError("is not a number of nodes", file=str(path), path=f"{where}.count")
    labels = _texts(path, f"{where}.labels", entry.get("labels"))
    if "instanceType" in entry:
        labels[INSTANCE_TYPE] = str(entry["instanceType"])
    taints = entry.get("taints") or []
    if not isinstance(taints, list) or not all(isinstance(one, dict) for one in taints):
        raise ConfigError("is not a list of taints", file=str(path), path=f"{where}.taints")
    devices = entry.get("devices") or []
    if not isinstance(devices, list) or not all(isinstance(one, str) for one in devices):
        example = "for example [gpu.example.com:8]"
        raise ConfigError("is not a list of devices", file=str(path), path=f"{where}.devices", hint=example)
    try:
        return NodeShape(
            _texts(path, f"{where}.resources", entry.get("resources")),
            count,
            str(entry.get("name", "")),
            labels,
            tuple(taints),
            tuple(parse_device(one) for one in devices),
        )
    except ConfigError as error:
        raise ConfigError(error.message, file=str(path), path=where, hint=error.hint) from None


def _texts(path: Path, where: str, value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(one, str | int | float) for one in value.values()):
        raise ConfigError("is not a mapping of plain values", file=str(path), path=where)
    return {str(name): str(one) for name, one in value.items()}
