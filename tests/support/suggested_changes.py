"""The changes that the answer to a question suggests for a workload that waits."""

from __future__ import annotations

from typing import Any

from fairlead.core.model.flow import Doc
from fairlead.testing import Harness
from fairlead.testing.asking import answer_of


def changes(cluster: Harness, *objects: Any) -> dict[str, Doc]:
    """By kind, the changes with which a workload of these objects would run; without them it has to wait."""
    documents = [one if isinstance(one, dict) else one.doc() for one in objects]
    answer = answer_of(cluster, {"kind": "SimulateQuestion", "changes": True}, documents)
    assert answer["verdict"] == "Waits"
    return {one["kind"]: one for one in answer.get("changes", ())}
