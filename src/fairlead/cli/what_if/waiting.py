"""The least changes for a pod that waits already: its documents are read from the API, with all pods of its group."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlead.cli.cluster_access import ask_cluster
from fairlead.cli.what_if.asking import Whom, put_question
from fairlead.model import kinds

if TYPE_CHECKING:
    from fairlead.api.client.client import KubeApi
    from fairlead.model.flow import Doc


def changes_for_pod(
    whom: tuple[Path | None, str | None, str | None, Path | None], namespace: str, name: str
) -> list[dict[str, Any]]:
    """What would let a waiting pod run, as documents, the cheapest first."""
    kubeconfig, context, server, token_file = whom

    async def read(api: KubeApi, _: str) -> Doc:
        return await api.get(kinds.POD, namespace, name)

    pod = {"apiVersion": "v1", "kind": "Pod", **ask_cluster(read, kubeconfig, context), "status": {"phase": "Pending"}}
    question = {
        "kind": "SimulateQuestion", "changes": True, "objects": [pod], "replaces": [pod["metadata"]["uid"]],
    }  # fmt: skip
    answer = put_question(Whom(kubeconfig, context, server, token_file, None), question)
    found: list[dict[str, Any]] = answer.get("changes", [])
    return found
