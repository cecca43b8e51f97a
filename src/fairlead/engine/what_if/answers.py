"""answer: one question as a document in, its answer as a document out. Whatever carries questions calls this.

    {"kind": "SimulateQuestion", "objects": [...], "replaces": [uid, ...], "changes": true}

Wrong questions raise BadRequest. The scheduler that is given is changed by the question, so it must be a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.engine.what_if.simulate import Branch, simulate
from fairlead.engine.what_if.workload import Workload
from fairlead.errors import BadRequest

if TYPE_CHECKING:
    from fairlead.engine.scheduler import Scheduler
    from fairlead.model.flow import Doc


def answer(scheduler: Scheduler, question: Doc, branch: Branch | None = None) -> Doc:
    """The answer of a copy of a scheduler. `branch` calls functions in further copies of it."""
    kind = question.get("kind")
    if kind == "SimulateQuestion":
        return _simulate(scheduler, question, branch)
    raise BadRequest(f"there is no question {kind!r}")


def workload_of(question: Doc) -> Workload:
    objects: Any = question.get("objects")
    if not isinstance(objects, list) or not all(isinstance(one, dict) and "metadata" in one for one in objects):
        raise BadRequest("objects: a list of objects is needed")
    workload = Workload.of(objects, question.get("replaces") or ())
    if not workload.pods:
        raise BadRequest("objects: nothing in them would be scheduled: there are no pods")
    return workload


def _simulate(scheduler: Scheduler, question: Doc, branch: Branch | None) -> Doc:
    workload, now = workload_of(question), float(question.get("now") or 0.0)
    return simulate(scheduler, workload, branch, now=now).to_document()
