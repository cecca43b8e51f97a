"""QueueTallies: what the queues count for the metrics."""

from __future__ import annotations

from collections import Counter


class QueueTallies:
    __slots__ = ("blamed", "hints_asked", "incoming")

    def __init__(self) -> None:
        self.incoming: Counter[tuple[str, str]] = Counter()
        """(queue, event label): what `queue_incoming_pods_total` counts."""
        self.blamed: Counter[tuple[str, str]] = Counter()
        """(plugin, profile): waiting pods that the plugin refused, the gauge `unschedulable_pods`."""
        self.hints_asked: Counter[tuple[str, str, str]] = Counter()
        """(plugin, event label, `Queue`, `QueueSkip` or `Error`): how often a hint gave that answer."""
