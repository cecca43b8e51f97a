"""NumaViews: which CPUs of which nodes can still be had, from what nodes report and what was given since.

A node reports its free CPUs some time after pods came and went. In between, what was given to pods counts as taken. A
report in which some resource did not shrink is believed as it is; one in which all did only if it leaves no more than
was known to be left, because a pod that came lately may not be in it yet.

Invariant: the CPUs given to a pod are among those of the report that its node's view came from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

    from fairlead.volcano.records.topology import NumaTopology

_CPU = "cpu"


@dataclass(slots=True)
class View:
    """`report` is the newest there is, `free` what the one that is believed says, `given` by pod what went since."""

    report: NumaTopology
    free: frozenset[int]
    given: dict[str, frozenset[int]] = field(default_factory=dict)

    def left(self) -> frozenset[int]:
        return self.free.difference(*self.given.values())


class NumaViews:
    """Kept from round to round."""

    def __init__(self) -> None:
        self._views: dict[str, View] = {}

    def see(self, report: NumaTopology, pods: Container[str]) -> View:
        """The view of a node, after its newest report; pods that are not there any more hold nothing."""
        view = self._views.get(report.node)
        if view is None or (view.report is not report and _is_believed(view, report)):
            view = self._views[report.node] = View(report, _free(report))
        view.report = report
        view.given = {uid: cpus for uid, cpus in view.given.items() if uid in pods}
        return view

    def keep_only(self, nodes: Container[str]) -> None:
        self._views = {name: view for name, view in self._views.items() if name in nodes}


def _is_believed(view: View, report: NumaTopology) -> bool:
    before, now = view.report.allocatable, report.allocatable
    if any(len(cpus) <= len(now.get(resource, ())) for resource, cpus in before.items()):
        return True
    return len(view.left()) >= len(_free(report))


def _free(report: NumaTopology) -> frozenset[int]:
    return report.allocatable.get(_CPU, frozenset()) & report.cpus.keys()
