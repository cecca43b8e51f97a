"""The changes that the answer to a question suggests for a workload that waits."""

from __future__ import annotations

import json
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


def commands(change: Doc) -> list[str]:
    """The commands of a change, in order."""
    return [step["command"] for step in change.get("steps", ()) if "command" in step]


def patch(change: Doc) -> Doc:
    """The one patch of a change: what it changes in a file, or what its command patches."""
    (made,) = [step for step in change["steps"] if step.get("patch") or "-p '" in step.get("command", "")]
    return made["patch"] if "patch" in made else json.loads(made["command"].partition("-p '")[2].rstrip("'"))


def targets(change: Doc) -> list[str]:
    """What is changed in the file, as kind/name."""
    return [target for step in change["steps"] for target in step.get("targets", ())]
