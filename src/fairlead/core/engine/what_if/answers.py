"""answer: one question as a document in, its answer as a document out. Whatever carries questions calls this.

    {"kind": "SimulateQuestion", "objects": [...], "replaces": [uid, ...], "changes": true}
    {"kind": "FitQuestion", "objects": [...], "most": 1000}
    {"kind": "NeedQuestion", "objects": [...]}
    {"kind": "DrainQuestion", "nodes": [name, ...]}
    {"kind": "EvictionsQuestion", "namespace": "default"}

Wrong questions raise BadRequest. The scheduler that is given is changed by the question, so it must be a copy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy.ma  # noqa: F401  # numpy loads it when it is first needed, which would be in every copy anew

from fairlead.core.engine.what_if.capacity import MOST, drain, fit, need
from fairlead.core.engine.what_if.least_change import least_changes
from fairlead.core.engine.what_if.simulate import Branch, simulate
from fairlead.core.engine.what_if.workload import Workload
from fairlead.core.model.explanation import SCHEMA
from fairlead.errors import BadRequest

if TYPE_CHECKING:
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.model.flow import Doc


def answer(scheduler: Scheduler, question: Doc, branch: Branch | None = None) -> Doc:
    """The answer of a copy of a scheduler. `branch` calls functions in further copies of it."""
    kind = question.get("kind")
    now = float(question.get("now") or 0.0)
    if kind == "SimulateQuestion":
        return _simulate(scheduler, question, branch, now)
    if kind == "EvictionsQuestion":
        namespace = str(question.get("namespace") or "")
        records = [one.to_document(namespace) for one in scheduler.ledger.of(namespace)]
        return {"apiVersion": SCHEMA, "kind": "EvictionList", "items": records}
    if kind == "FitQuestion":
        return fit(scheduler, workload_of(question), now, int(question.get("most") or MOST))
    if branch is not None and kind == "NeedQuestion":
        return need(scheduler, workload_of(question), branch, now)
    if branch is not None and kind == "DrainQuestion":
        return drain(scheduler, list(map(str, question.get("nodes") or ())), branch, now)
    raise BadRequest(f"there is no question {kind!r}")


def workload_of(question: Doc) -> Workload:
    objects: Any = question.get("objects")
    if not isinstance(objects, list) or not all(isinstance(one, dict) and "metadata" in one for one in objects):
        raise BadRequest("objects: a list of objects is needed")
    workload = Workload.of(objects, question.get("replaces") or ())
    if not workload.pods:
        raise BadRequest(
            "objects: nobody makes pods of them, so nothing would be scheduled; a Volcano Job needs its queue"
        )
    return workload


def _simulate(scheduler: Scheduler, question: Doc, branch: Branch | None, now: float) -> Doc:
    workload = workload_of(question)
    if branch is None or not question.get("changes"):
        return simulate(scheduler, workload, branch, now=now).to_document()
    forecast = branch(lambda: simulate(scheduler, workload, branch, now=now))
    if not forecast.runs:
        changes = least_changes(scheduler, workload, forecast, branch, now)
        forecast = replace(forecast, changes=tuple(changes))
    document: Doc = forecast.to_document()
    return document
