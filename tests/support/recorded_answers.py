"""The parts of answers recorded from real API servers that the embedded one never has."""

from __future__ import annotations

from typing import Any

# Nobody in the embedded cluster takes these finalizers away again, so they are not put on.
FINALIZERS = ("kubernetes.io/pv-protection", "kubernetes.io/pvc-protection", "kubernetes.io/vac-protection",
              "scheduling.k8s.io/podgroup-protection")  # fmt: skip


def clean(node: Any) -> Any:
    """Without nulls, which we never store."""
    if isinstance(node, dict):
        return {key: clean(value) for key, value in node.items() if value is not None}
    return [clean(value) for value in node] if isinstance(node, list) else node
