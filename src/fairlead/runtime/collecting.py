"""How often the interpreter looks for cycles among the objects of a process of fairlead: a command, a worker.

A scheduler makes millions of small records, hardly any of them in cycles, beside a hundred thousand that live as long
as the cluster. With Python's default threshold of 700 allocations, garbage collection takes a tenth of the time. Here
objects that exist at the start are never examined again, and the rest every 100,000 allocations.

An experiment makes no cycles to speak of either, and millions of records that live as long as its pods: examining them
takes some hundredths of its time and finds a few hundred objects. There they are examined only every 5,000,000
allocations that were not given back, which bounds what cycles of a user's plugin may hold.

A process that starts imports a thousand modules and loads a whole cluster. Nearly all it makes meanwhile lives as long
as the process, so that examining it finds nothing; `loading` leaves that out.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_ALLOCATIONS = 100_000
ALLOCATIONS_OF_EXPERIMENTS = 5_000_000
_ALLOCATIONS_WHILE_LOADING = 10_000_000
"""More than a cluster of 50,000 pods makes; a start that never ends still does not fill the memory with garbage."""


def collect_rarely(allocations: int = _ALLOCATIONS) -> None:
    """Never examine objects that exist now again, and later ones after so many further allocations."""
    gc.collect()
    examine_rarely(allocations)


def examine_rarely(allocations: int = _ALLOCATIONS) -> None:
    """The same without a collection now: for a process that has only begun, where it finds nothing worth its time."""
    gc.freeze()
    gc.set_threshold(allocations, 50, 100)


@contextmanager
def loading() -> Iterator[None]:
    """Examine hardly any object that is made inside, none of them ever again, and later ones rarely. There is no
    collection at the end, so that this takes no time; garbage in cycles among them stays."""
    gc.set_threshold(_ALLOCATIONS_WHILE_LOADING)
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(_ALLOCATIONS, 50, 100)
