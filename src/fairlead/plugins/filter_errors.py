"""Failures that a filter meets on some rows: they end the attempt, unless nobody would have asked about those rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.errors import FairleadError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.framework.cycle import Cycle


def fail_on(cycle: Cycle, plugin: str, rows: NDArray[np.bool_], text: str) -> None:
    """Fail the attempt if the plugin would be asked about one of these rows (a mask over the whole table). Rows that
    others refuse for reasons of their own are never asked about, so an error there says nothing."""
    alive = cycle.cluster.table.alive[: len(rows)] & rows
    if cycle.remembered is not None:
        alive &= cycle.remembered.ok[: len(rows)]
    if alive.any():
        raise FairleadError(f'running "{plugin}" filter plugin: {text}')
