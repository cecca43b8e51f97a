"""One attempt at one pod: place it, or make room, or say why not; then reserve and permit.

The attempt ends in a value: `Committed`, a placement that is ASSUMED and may begin its way to the API, or a `Failure`.
Everything in between goes through a Statement, so that a refusal by `reserve` or `permit` leaves no trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.engine.cycle.outcome import Failure
from fairlead.engine.cycle.placement import Blocked, Broken, Placed, Search, place
from fairlead.errors import FairleadError
from fairlead.framework.calls import asked
from fairlead.framework.points import Permission, merge_permits, merge_rescues, merge_reserved
from fairlead.model.reasons import Code, Diagnosis, Status, Verdict, failed, with_rescue
from fairlead.model.records import record
from fairlead.state.statement import Statement

if TYPE_CHECKING:
    from fairlead.framework.cycle import Cycle
    from fairlead.framework.evaluate import Evaluator
    from fairlead.framework.plugin import Rescued
    from fairlead.framework.refusals import Refusals
    from fairlead.model.pod import Pod


@record(frozen=True, slots=True)
class Committed:
    placed: Placed
    permission: Permission


@dataclass(frozen=True, slots=True)
class Rescue:
    """A failure after which room is being made: whom to evict, on which node, for the pod that failed."""

    failure: Failure
    rescued: Rescued


def attempt(cycle: Cycle, evaluator: Evaluator, search: Search) -> Committed | Failure | Rescue:
    answer = place(cycle, evaluator, search)
    if isinstance(answer, Broken):
        return Failure(answer.status, answer.status.message)
    if isinstance(answer, Blocked):
        return rescue(cycle, answer.refusals)
    return _commit(cycle, answer)


def _commit(cycle: Cycle, placed: Placed) -> Committed | Failure:
    """Assume, reserve, permit."""
    statement = Statement(cycle.cluster)
    statement.assign(cycle.pod, placed.row)
    statement.commit()
    try:
        refused = merge_reserved(cycle, placed.row)
        if refused is None:
            permission = merge_permits(cycle, placed.row)
            if permission.status is None:
                return Committed(placed, permission)
            refused = permission.status
    except FairleadError as error:
        refused = failed(str(error))
    undo(cycle, placed.row)
    return refused_on_node(refused)


def undo(cycle: Cycle, row: int) -> Pod | None:
    """Unreserve in reverse, then forget the placement. None if the pod was not assumed any more."""
    for plugin in reversed(cycle.profile.at("reserve")):
        plugin.unreserve(cycle, row)
    return cycle.cluster.forget(cycle.pod.uid)


def refused_on_node(status: Status) -> Failure:
    """A refusal after a node was chosen speaks of that one node: `0/1 nodes are available: ...`."""
    if not status.code.rejected:
        return Failure(status, status.message)
    verdict = Verdict(status.plugin, status.reasons, status.code is Code.UNRESOLVABLE)
    diagnosis = Diagnosis(total=1, counts={verdict: 1})
    plugins = frozenset({status.plugin})
    pending = plugins if status.code is Code.PENDING else frozenset[str]()
    return Failure(status, diagnosis.message, plugins, pending)


def rescue(cycle: Cycle, refusals: Refusals) -> Failure | Rescue:
    """PostFilter: nothing fits; can room be made?"""
    diagnosis = refusals.diagnosis
    plugins = cycle.profile.at("rescue")
    blamed = diagnosis.unschedulable_plugins
    if not plugins:
        status = Status(Code.UNSCHEDULABLE, (diagnosis.message,))
        return Failure(status, diagnosis.message, blamed, diagnosis.pending_plugins, refusals=refusals)
    try:
        rescued = merge_rescues((plugin.name, asked(plugin, "rescue", cycle, refusals)) for plugin in plugins)
    except FairleadError as error:
        return Failure(failed(str(error)), str(error))
    text = "" if rescued.status.ok else rescued.status.message
    message = with_rescue(diagnosis.message, text)
    failure = Failure(
        Status(Code.UNSCHEDULABLE, (message,)),
        message,
        blamed,
        diagnosis.pending_plugins,
        nominated=rescued.nominated,
        refusals=refusals,
    )
    return Rescue(failure, rescued) if rescued.status.ok else failure
