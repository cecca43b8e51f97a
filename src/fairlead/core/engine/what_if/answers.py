"""answer: one question as a document in, its answer as a document out. Whatever carries questions calls this.

    {"kind": "SimulateQuestion", "objects": [...], "changes": true}
    {"kind": "FitQuestion", "objects": [...], "most": 1000}
    {"kind": "NeedQuestion", "objects": [...]}
    {"kind": "DrainQuestion", "nodes": [name, ...]}
    {"kind": "EvictionsQuestion", "namespace": "default"}
    {"kind": "RowsQuestion", "of": "workloads" | "quotas" | "devices", "nodes": [name, ...]}

What objects of a question that exist already stand for is said beside `objects`, in the fields of a Workload:
`replaces` and `running` (uids of pods), `removes` (objects), `rollouts`, `exists` (kind/name), `commands` (whether
changes are made by commands, not in a file), and `anew`, the objects and the same fields if it were made from nothing.

Wrong questions raise BadRequest. The scheduler that is given is changed by the question, so it must be a copy.
"""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy.ma  # noqa: F401  # numpy loads it when it is first needed, which would be in every copy anew

from fairlead.core.engine.explain.rows import KINDS, rows_document
from fairlead.core.engine.what_if.capacity import MOST, drain, fit, need
from fairlead.core.engine.what_if.families import what_ifs
from fairlead.core.engine.what_if.least_change import least_changes
from fairlead.core.engine.what_if.rollout import Rollout
from fairlead.core.engine.what_if.simulate import Branch, simulate
from fairlead.core.engine.what_if.workload import Workload
from fairlead.core.model.explanation import SCHEMA
from fairlead.errors import BadRequest

if TYPE_CHECKING:
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.model.flow import Doc


MOST_ASKED = 100_000
MOST_OBJECTS = 100_000


def answer(scheduler: Scheduler, question: Doc, branch: Branch | None = None) -> Doc:
    """The answer of a copy of a scheduler. `branch` calls functions in further copies of it."""
    kind = question.get("kind")
    now = _number(question, "now", 0.0)
    if kind == "SimulateQuestion":
        return _simulate(scheduler, question, branch, now)
    if kind == "EvictionsQuestion":
        namespace = str(question.get("namespace") or "")
        records = [one.to_document(namespace) for one in scheduler.ledger.of(namespace)]
        return {"apiVersion": SCHEMA, "kind": "EvictionList", "items": records}
    if kind == "RowsQuestion":
        return _rows(scheduler, question, now)
    if kind == "FitQuestion":
        return fit(scheduler, workload_of(question), now, _most(question))
    if branch is not None and kind == "NeedQuestion":
        return need(scheduler, workload_of(question), branch, now)
    if branch is not None and kind == "DrainQuestion":
        return drain(scheduler, _texts(question, "nodes"), branch, now)
    raise BadRequest(f"there is no question {kind!r}")


def _rows(scheduler: Scheduler, question: Doc, now: float) -> Doc:
    what = question.get("of")
    if not isinstance(what, str) or what not in KINDS:
        raise BadRequest(f"of: one of {', '.join(KINDS)} is needed")
    return rows_document(scheduler, what, _texts(question, "nodes"), now)


def _number(question: Doc, field: str, default: float) -> float:
    value = question.get(field)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise BadRequest(f"{field}: a number is needed")
    return float(value)


def _most(question: Doc) -> int:
    value = question.get("most")
    if value is None:
        return MOST
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_ASKED:
        raise BadRequest(f"most: a whole number from 1 to {MOST_ASKED} is needed")
    return value


def _texts(question: Doc, field: str) -> list[str]:
    value = question.get(field)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadRequest(f"{field}: a list of texts is needed")
    return value


_OF_OBJECTS = ("apiVersion", "kind")


def _is_object(one: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(one.get("metadata"), dict):
        return False
    named = [*(one.get(field) for field in _OF_OBJECTS), one["metadata"].get("name"), one["metadata"].get("uid", "")]
    return all(isinstance(value, str) for value in named)


def workload_of(question: Doc) -> Workload:
    workload = _workload(question)
    anew = question.get("anew")
    if anew is not None:
        if not isinstance(anew, dict):
            raise BadRequest("anew: an object is needed")
        workload = replace(workload, anew=_workload(anew))
    in_file = question.get("commands") is not True
    return replace(workload, exists=frozenset(_texts(question, "exists")), in_file=in_file)


def _workload(part: Doc) -> Workload:
    objects = _objects(part, "objects")
    try:
        workload = replace(
            Workload.of(objects, _texts(part, "replaces")),
            removes=tuple(_objects(part, "removes")) if part.get("removes") else (),
            running=frozenset(_texts(part, "running")),
            rollouts=tuple(map(Rollout.of, part.get("rollouts") or ())),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadRequest(f"objects: {type(error).__name__}: {error}") from None
    if not workload.pods:
        needs = "".join(f"; {one.pods_need}" for one in what_ifs() if one.pods_need)
        raise BadRequest(f"objects: nobody makes pods of them, so nothing would be scheduled{needs}")
    return workload


def _objects(part: Doc, field: str) -> list[Doc]:
    objects: Any = part.get(field)
    if not isinstance(objects, list) or not all(map(_is_object, objects)):
        raise BadRequest(f"{field}: a list of objects with apiVersion, kind and metadata.name is needed")
    if len(objects) > MOST_OBJECTS:
        raise BadRequest(f"{field}: at most {MOST_OBJECTS} objects can be asked about at a time")
    return objects


def _simulate(scheduler: Scheduler, question: Doc, branch: Branch | None, now: float) -> Doc:
    workload = workload_of(question)
    if branch is None or not question.get("changes"):
        return simulate(scheduler, workload, branch, now=now).to_document()
    forecast = branch(lambda: simulate(scheduler, workload, branch, now=now))
    if not forecast.runs:
        changes, tried = least_changes(scheduler, workload, forecast, branch, now)
        forecast = replace(forecast, changes=tuple(changes), tried=tried)
    document: Doc = forecast.to_document()
    return document
