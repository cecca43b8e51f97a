"""PodParts: the parts of a pod that some plugins read, as a key by which pods are equal to them.

| part | is |
|---|---|
| `spec` | the pod's shape: its compiled spec |
| `node` | the node that it names |
| `namespace`, `name`, `labels`, `annotations` | these |
| `labels.KEY`, `annotations.KEY` | the value of one label or annotation |
| `owner` | the kind of its controller |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from fairlead.core.model.pod import Pod

_WHOLE = frozenset({"labels", "annotations", "namespace", "name", "owner"})
_PARTS = _WHOLE | {"spec", "node"}
DEFAULT_READS = frozenset({"spec", "labels", "annotations", "namespace"})
"""What an answer is taken to depend on if its plugin does not say."""


def unknown_parts(reads: Iterable[str]) -> list[str]:
    """What is no part of a pod, in order."""
    return sorted(part for part in reads if part not in _PARTS and not part.startswith(("labels.", "annotations.")))


def _keys(parts: Iterable[str], prefix: str) -> tuple[str, ...]:
    return tuple(sorted(part.removeprefix(prefix) for part in parts if part.startswith(prefix)))


class PodParts:
    """The union of what plugins read, each as its `reads`. Every key has the shape and the named node, which cost
    nothing: pods of one template share a shape."""

    __slots__ = ("_annotations", "_labels", "_shape_alone", "_whole", "names")

    def __init__(self, reads: Iterable[frozenset[str]]) -> None:
        parts: frozenset[str] = frozenset().union(*reads)
        self.names = "name" in parts
        """Whether somebody reads names: then no two pods are equal."""
        self._shape_alone = parts <= {"spec", "node"}
        self._whole = parts & _WHOLE
        self._labels, self._annotations = _keys(parts, "labels."), _keys(parts, "annotations.")

    def of(self, pod: Pod) -> Hashable:
        """The key of a pod."""
        if self._shape_alone:
            return (pod.shape, pod.node_name) if pod.node_name else pod.shape
        key: list[Hashable] = [pod.shape, pod.node_name]
        if self._labels:
            key += map(pod.labels.get, self._labels)
        if self._annotations:
            key += map(pod.annotations.get, self._annotations)
        whole = self._whole
        if whole:
            key.append(pod.namespace if "namespace" in whole else None)
            key.append(frozenset(pod.labels.items()) if "labels" in whole else None)
            key.append(frozenset(pod.annotations.items()) if "annotations" in whole else None)
            key.append(pod.uid if "name" in whole else None)
            key.append(pod.owner.kind if "owner" in whole and pod.owner is not None else None)
        return tuple(key)
