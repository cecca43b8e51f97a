"""SentStatuses: which statuses were requested and not shown yet: each is requested once, and a lost one again."""

from __future__ import annotations

from typing import Any

_AGAIN_AFTER = 10.0
"""Seconds until a status that nobody has shown since is sent again."""


class SentStatuses:
    def __init__(self) -> None:
        self._sent: dict[str, tuple[Any, float]] = {}

    def is_due(self, key: str, wanted: Any, shown: Any, now: float) -> bool:
        """Whether a status must be sent; if so it counts as sent now."""
        if wanted == shown:
            self._sent.pop(key, None)
            return False
        before = self._sent.get(key)
        if before is not None and before[0] == wanted and now < before[1] + _AGAIN_AFTER:
            return False
        self._sent[key] = (wanted, now)
        return True

    def forget(self, key: str) -> None:
        self._sent.pop(key, None)

    def again_at(self) -> float | None:
        """When the first of them is to be sent again."""
        return min((at + _AGAIN_AFTER for _, at in self._sent.values()), default=None)

    def overdue(self, now: float) -> list[str]:
        return [key for key, (_, at) in self._sent.items() if now >= at + _AGAIN_AFTER]
