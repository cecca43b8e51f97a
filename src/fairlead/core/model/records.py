"""record: a dataclass that nobody may change, quick to make.

Frozen dataclasses are guarded twice, by the type checker and by the interpreter, and the second guard makes creating
one three times as slow. Records that come and go with every pod use this instead of `dataclass`: the type checker sees
a frozen dataclass, the interpreter an ordinary one. They are hashed as frozen ones are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import dataclass

    def record(*, frozen, eq=True, **options):
        return dataclass(eq=eq, unsafe_hash=frozen and eq, **options)


__all__ = ["record"]
