"""Effects: what plugins ask the scheduler to do besides their answers: writes, and orders for pods that wait in Permit.

It is an argument of the calls that may request something (`cycle.effects`, and the one of `next_pod`), so that a plugin
that makes such a call decides what becomes of it. The Scheduler has one Effects for all of its cycles: it carries the
orders out before the next attempt and sends the writes at the end of the step. A trial or a replay makes its own.

The writes of an Errand are not here: the Errand returns them, because their replies go back to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.framework.raised import RaisedErrors
from fairlead.core.model.records import record

if TYPE_CHECKING:
    from fairlead.core.model.flow import Write


@record(frozen=True, slots=True)
class PermitOrder:
    """What a plugin says of a pod that waits for its permission: with a message it is refused, else it may go on.
    `together` are the uids of the pods that were tried with it: the place that it gives up is no news for them."""

    uid: str
    plugin: str
    message: str = ""
    keeps_nomination: bool = False
    together: frozenset[str] = frozenset()


class Effects:
    """Writes and permit orders, each in the order in which plugins requested them."""

    __slots__ = ("permit_orders", "raised", "writes")

    def __init__(self) -> None:
        self.writes: list[Write] = []
        """A claim that is given up, a claim that the scheduler made and deletes."""
        self.permit_orders: list[PermitOrder] = []
        self.raised = RaisedErrors()
        """What plugins raised while they were asked."""

    def take_writes(self) -> list[Write]:
        """The writes since this was last called."""
        taken, self.writes = self.writes, []
        return taken

    def take_permit_orders(self) -> list[PermitOrder]:
        """The orders since this was last called."""
        taken, self.permit_orders = self.permit_orders, []
        return taken
