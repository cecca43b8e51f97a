"""The queues of a cluster, with those that are given by number counted out.

A QueueSpec with a `count` stands for so many equal queues, `name-0`, `name-1` and so on. Its name, where a class of
jobs lists its queues, stands for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.lab.scenario.records import QueueSpec


def each_queue(queues: Sequence[QueueSpec]) -> list[QueueSpec]:
    """All queues, each by itself."""
    return [replace(one, name=name, count=0) for one in queues for name in _names(one)]


def names_of_queues(queues: Sequence[QueueSpec]) -> Mapping[str, Sequence[str]]:
    """By the name of an entry, the names of the queues that it stands for."""
    return {one.name: _names(one) for one in queues}


def _names(queue: QueueSpec) -> Sequence[str]:
    return [f"{queue.name}-{number}" for number in range(queue.count)] if queue.count else [queue.name]
