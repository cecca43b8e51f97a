"""The arithmetic of a rolling update: by how much the new pods may grow and the old ones may shrink at a time.

The total stays at or below `replicas + surge`, and the available at or above `replicas - unavailable`. It stands here
because two need it: the controller of Deployments, and the questions that try a rolling update before it is made.
"""

from __future__ import annotations


def may_grow(replicas: int, surge: int, size: int, everything: int) -> int:
    """How many new pods may be added to `size` of them, if there are `everything` in all."""
    return max(0, min(replicas + surge - everything, replicas - size))


def may_go(replicas: int, unavailable: int, everything: int, not_yet: int) -> int:
    """How many old pods may go if none of them is available; `not_yet` of the new ones are not available yet."""
    return max(0, everything - (replicas - unavailable) - not_yet)
