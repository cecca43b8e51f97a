"""How often the interpreter looks for cycles among the objects of a process that schedules.

A scheduler makes millions of small records, hardly any in cycles, beside a hundred thousand that live as long as the
cluster. Python's own rhythm looks at them every 700 allocations and takes a tenth of the time with it; here what lives
at the start is never looked at again, and the rest every hundred thousand allocations. Who takes in a whole cluster
after that spares it once it is there.
"""

from __future__ import annotations

import gc

_ALLOCATIONS = 100_000


def collect_rarely() -> None:
    """What lives now is never looked at again, what comes later rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, 50, 100)


def spare_what_lives() -> None:
    """Neither is what has come since then; whatever of it is garbage in cycles stays, so that this costs nothing."""
    gc.freeze()
