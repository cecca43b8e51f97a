"""How often the interpreter looks for cycles among the objects of a process that schedules.

A scheduler makes millions of small records, hardly any of them in cycles, beside a hundred thousand that live as long
as the cluster. With Python's default threshold of 700 allocations, garbage collection takes a tenth of the time. Here
objects that exist at the start are never examined again, and the rest every 100,000 allocations. A process that loads a
whole cluster later calls `spare_what_lives` after that.
"""

from __future__ import annotations

import gc

_ALLOCATIONS = 100_000


def collect_rarely() -> None:
    """Never examine objects that exist now again, and later ones rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, 50, 100)


def spare_what_lives() -> None:
    """Exclude objects that were made since `collect_rarely` too. There is no collection first, so that this takes no
    time; garbage in cycles among them stays."""
    gc.freeze()
