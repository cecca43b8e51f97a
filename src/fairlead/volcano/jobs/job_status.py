"""The status of a Volcano Job as the controller writes it: counters, phase, conditions and times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.cluster.controllers.writes import merge_patch, patch_status
from fairlead.core.model.durations import format_duration
from fairlead.core.model.times import seconds_of, timestamp
from fairlead.volcano.jobs.phases import PENDING
from fairlead.volcano.kinds import VC_JOB

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, Write
    from fairlead.volcano.jobs.phases import JobState
    from fairlead.volcano.records.quirks import Quirks


def controlled_of(job: Doc) -> dict[str, str]:
    """A copy of what the Job's plugins and claims have noted."""
    return dict((job.get("status") or {}).get("controlledResources") or {})


def synced_status(job: Doc, state: JobState, controlled: dict[str, str], now: float, quirks: Quirks) -> Write | None:
    """The write that makes the status that of `state`; None if it is already."""
    known = job.get("status") or {}
    fresh = _with_times(known, {**state.document(), **_noted(controlled)}, state, now)
    if _same(known, fresh):
        return None
    if quirks.times_move_with_counters:
        fresh = _with_times(known, fresh, state, now, always=True)
    return patch_status(VC_JOB, job, merge_patch(known, fresh))


def killed_status(job: Doc, state: JobState, controlled: dict[str, str], now: float) -> Write | None:
    """The same after a kill, which also says how long the Job has run."""
    known = job.get("status") or {}
    fresh = _with_times(known, {**state.document(), **_noted(controlled)}, state, now)
    since = fresh["state"].get("lastTransitionTime")
    created = job["metadata"].get("creationTimestamp")
    if since and created:
        fresh["runningDuration"] = format_duration(max(0.0, seconds_of(since) - seconds_of(created)))
    if _same(known, fresh) and known.get("runningDuration") == fresh.get("runningDuration"):
        return None
    return patch_status(VC_JOB, job, merge_patch(known, fresh))


def _noted(controlled: dict[str, str]) -> dict[str, Any]:
    return {"controlledResources": controlled} if controlled else {}


def _with_times(known: Doc, fresh: Doc, state: JobState, now: float, *, always: bool = False) -> dict[str, Any]:
    """With state and conditions: a phase that is new, or `always`, gets the time."""
    before = known.get("state") or {}
    conditions = list(known.get("conditions") or ())
    if not before and state.phase != PENDING:  # a new Job is Pending, if for an instant
        conditions = [{"status": PENDING, "lastTransitionTime": timestamp(now)}]
    if always or before.get("phase") != state.phase:
        phase_status = {"phase": state.phase, "lastTransitionTime": timestamp(now)}
        others = [one for one in conditions if one.get("status") != state.phase]
        conditions = [*others, {"status": state.phase, "lastTransitionTime": timestamp(now)}]
    else:
        phase_status = dict(before)
    return {**fresh, "state": phase_status, "conditions": conditions}


def _same(known: Doc, fresh: Doc) -> bool:
    """Equal but for the running time, which only kills set."""
    if "runningDuration" not in known and "runningDuration" not in fresh:
        return known == fresh
    return {**known, "runningDuration": None} == {**fresh, "runningDuration": None}
