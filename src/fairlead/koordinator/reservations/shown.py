"""What other plugins ask about reservations in the middle of an attempt: which ones a row has for the pod.

While nodes are searched, the reserve pods of all matching reservations are off their rows; afterwards they are back,
and only the one that was chosen may be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.pod import Pod
    from fairlead.koordinator.reservations.holdings import ReservationState
    from fairlead.koordinator.reservations.plugin import ReservationNote

NOTE = "Reservation"


def _note(cycle: Cycle) -> ReservationNote | None:
    note: ReservationNote | None = cycle.notes.get(NOTE)
    return note


def usable_on(cycle: Cycle, row: int) -> Sequence[ReservationState]:
    """The reservations of a row that the pod may take from now."""
    note = _note(cycle)
    if note is None:
        return ()
    if note.assumed is not None:
        return (note.assumed,)
    return note.rows[row].states if row in note.rows and note.taken else ()


def rows_for_pod(cycle: Cycle) -> Collection[int] | None:
    """The rows that have reservations which the pod may use, or would; None if it may be any row."""
    note = _note(cycle)
    if note is None:
        return ()
    if note.pre is not None:
        return None if note.pre.taken is not None else note.pre.rows.keys()
    return None if note.assumed is not None else note.rows.keys()


def taken_over_on(cycle: Cycle, row: int) -> Sequence[Pod]:
    """The pods of a row whose CPUs and devices the reservation that is tried may take over."""
    note = _note(cycle)
    if note is None or note.pre is None:
        return ()
    if note.pre.taken is not None:
        return note.pre.taken
    return note.pre.rows[row].pods if note.taken and row in note.pre.rows else ()


def is_taken_off(cycle: Cycle) -> bool:
    """Whether reserve pods are off their rows at the moment."""
    note = _note(cycle)
    return note is not None and note.taken


def chosen_on(cycle: Cycle, row: int) -> ReservationState | None:
    """The reservation that the pod would use on a row."""
    note = _note(cycle)
    if note is None or note.demand.ignores or row not in note.rows:
        return None
    return note.kind.judge(note.rows[row]).chosen
