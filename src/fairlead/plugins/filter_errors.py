"""Failures that a filter meets on some rows: they end the attempt, unless nobody would have asked about those rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairlead.errors import FairleadError
from fairlead.framework.verdicts import FEASIBLE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.cycle import Cycle


def fail_on(cycle: Cycle, plugin: str, rows: NDArray[np.bool_], text: str) -> None:
    """Fail the attempt if the plugin would be asked about one of these rows (a mask over the whole table)."""
    if (cycle.cluster.table.alive[: len(rows)] & rows & ~_refused_before(cycle, plugin, len(rows))).any():
        raise FairleadError(f'running "{plugin}" filter plugin: {text}')


def _refused_before(cycle: Cycle, plugin: str, size: int) -> NDArray[np.bool_]:
    """Rows that were refused before the plugin's turn: nobody asks it about them, so an error there says nothing."""
    refused = np.zeros(size, dtype=np.bool_)
    results = cycle.results
    if results is not None:
        turn = [asked.name for asked in cycle.profile.at("filter")].index(plugin)
        earlier = results.codes.ranks < turn
        for codes in results.refusals(size):
            refused |= earlier[codes]
    if cycle.uncached_refusals is not None:
        refused |= cycle.uncached_refusals[:size] != FEASIBLE
    return refused
