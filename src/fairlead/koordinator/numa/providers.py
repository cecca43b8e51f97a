"""Who else has a say in the NUMA nodes that a pod is kept to: plugins that give hints beside NodeNUMAResource.

A provider names itself when it has looked at the pod. Its hints are merged with those of the others, and it is asked
again whether it can serve the pod on the NUMA nodes that came of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from fairlead.core.model.reasons import Status, unschedulable

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.numa_hints import NumaNodes
    from fairlead.koordinator.numa.merging import Hints
    from fairlead.koordinator.numa.plugin import NumaNote

_NOTE = "koordinator.numa.providers"
_NUMA_NOTE = "NodeNUMAResource"


class NumaHintProvider(Protocol):
    def numa_hints(self, cycle: Cycle, row: int) -> Hints | Status:
        """The sets of NUMA nodes that could serve the pod, by resource; empty if it does not care."""

    def fits_numa(self, cycle: Cycle, row: int, nodes: NumaNodes | None) -> Status | None:
        """Why the pod cannot be served on some NUMA nodes of a row; None if it can."""


def provide_hints(cycle: Cycle, provider: NumaHintProvider) -> None:
    """Have a provider asked in this attempt."""
    cycle.notes[_NOTE] = (*cycle.notes.get(_NOTE, ()), provider)


def _providers(cycle: Cycle) -> Sequence[NumaHintProvider]:
    found: Sequence[NumaHintProvider] = cycle.notes.get(_NOTE, ())
    return found


def gather_hints(cycle: Cycle, row: int, own: Hints | Status) -> list[Hints] | Status:
    """The hints of NodeNUMAResource and of all providers; a refusal with the reasons of all who refuse the row."""
    said = [own, *(provider.numa_hints(cycle, row) for provider in _providers(cycle))]
    reasons = [one.message for one in said if isinstance(one, Status)]
    return unschedulable(*reasons) if reasons else [one for one in said if not isinstance(one, Status)]


def refused_elsewhere(cycle: Cycle, row: int, nodes: NumaNodes | None) -> Status | None:
    """The first refusal of a provider on some NUMA nodes of a row."""
    for provider in _providers(cycle):
        refused = provider.fits_numa(cycle, row, nodes)
        if refused is not None:
            return refused
    return None


def settled_rows(cycle: Cycle) -> Mapping[int, NumaNodes | None]:
    """The NUMA nodes that the pod is kept to, by row; None is any."""
    note: NumaNote | None = cycle.notes.get(_NUMA_NOTE)
    return {} if note is None else note.affinity
