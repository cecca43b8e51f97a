"""How often the interpreter looks for cycles among the objects of a process that schedules.

A scheduler makes millions of small records, hardly any in cycles, beside a hundred thousand that live as long as the
cluster. Python's own rhythm looks at them every 700 allocations and takes a tenth of the time with it; here what lives
at the start is never looked at again, and the rest every hundred thousand allocations.
"""

from __future__ import annotations

import gc

_ALLOCATIONS = 100_000


def collect_rarely() -> None:
    """To be called once, when all that lives for long has been made."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, 50, 100)
