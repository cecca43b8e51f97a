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

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlead.cli.device_flags import parse_device
from fairlead.cli.fleet import INSTANCE_TYPE, NodeShape
from fairlead.cluster.kubelets.simulated_nodes import SIMULATED
from fairlead.config.problems import Path as FieldPath
from fairlead.config.problems import dotted
from fairlead.config.shapes import ConfigStruct, GoField, Misfit, Scalar, Shape, ShapeDecoder, WrongValue
from fairlead.config.yaml_text import read_documents
from fairlead.core.model.syntax import subdomain_complaints
from fairlead.errors import ConfigError

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

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


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise WrongValue("is not a number of nodes")
    return value


def _list_of(kind: type, message: str, hint: str = "") -> Scalar:
    """A list whose items are all of one type. It is one leaf, because one message is about the whole list."""

    def read(value: Any) -> tuple[Any, ...]:
        if value and (not isinstance(value, list) or not all(isinstance(one, kind) for one in value)):
            raise WrongValue(message, hint)
        return tuple(value or ())

    return Scalar("list", read)


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(one, str | int | float) for one in value.values()):
        raise WrongValue("is not a mapping of plain values")
    return {str(name): str(one) for name, one in value.items()}


_TEXTS = Scalar("texts", _texts)
_TEXT = Scalar("text", str)
_SHAPE = ConfigStruct(
    "shape",
    {
        "count": Scalar("count", _count),
        "name": _TEXT,
        "instanceType": _TEXT,
        "resources": _TEXTS,
        "labels": _TEXTS,
        "taints": _list_of(dict, "is not a list of taints"),
        "devices": _list_of(str, "is not a list of devices", "for example [gpu.example.com:8]"),
    },
)


class _FleetDecoder(ShapeDecoder):
    """Raises a ConfigError at the first thing that does not fit."""

    def __init__(self, file: Path, at: FieldPath) -> None:
        super().__init__(at)
        self._file = file

    def fail(self, path: FieldPath, message: str, hint: str = "") -> ConfigError:
        return ConfigError(message, file=str(self._file), path=dotted(path), hint=hint)

    def _unknown(self, path: FieldPath, name: Any, known: Sequence[str]) -> None:
        raise self.fail(path, "unknown field", f"known: {', '.join(known)}")

    def _misfit(self, path: FieldPath, shape: Shape, value: Any, field: GoField, misfit: Misfit) -> None:
        raise self.fail(path, "is not a mapping")

    def _wrong(self, path: FieldPath, shape: Shape, error: ValueError) -> None:
        raise self.fail(path, str(error), error.hint if isinstance(error, WrongValue) else "")


def _shape(path: Path, number: int, entry: Any) -> NodeShape:
    decoder = _FleetDecoder(path, ("nodes", number))
    fields = decoder.decode(_SHAPE, entry)
    labels = fields.get("labels", {})
    if "instanceType" in fields:
        labels[INSTANCE_TYPE] = fields["instanceType"]
    try:
        return NodeShape(
            fields.get("resources", {}),
            fields.get("count", 1),
            fields.get("name", ""),
            labels,
            fields.get("taints", ()),
            tuple(parse_device(one) for one in fields.get("devices", ())),
        )
    except ConfigError as error:
        raise decoder.fail(("nodes", number), error.message, error.hint) from None
