"""Groups that can never start: their queue does not exist or takes no groups, or their minimum is more than the queue,
one of its ancestors or the whole cluster can ever have.

Such a group waits for ever without an error anywhere. Amounts are in base units, as core/model/group.py reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from fairlead.core.model.quantity import format_quantity
from fairlead.volcano.config.records import HIERARCHY
from fairlead.volcano.config.traps import Trap

if TYPE_CHECKING:
    from fairlead.core.model.group import PodGroup
    from fairlead.volcano.config.records import VolcanoConfig
    from fairlead.volcano.records.queues import Queue

Units = Mapping[str, int]
_DEFAULT_QUEUE = "default"
_OVER = ("Running", "Completed")


def traps_of_groups(
    config: VolcanoConfig, groups: Iterable[PodGroup], queues: Iterable[Queue], total: Units | None = None
) -> list[Trap]:
    """Of groups that still wait. `total` is what the nodes can allocate together, where it is known."""
    known = {queue.name: queue for queue in queues}
    capacity = config.find("capacity")
    tree = capacity is not None and capacity.on(HIERARCHY, default=False)
    found: list[Trap] = []
    for group in groups:
        if group.phase not in _OVER:
            found += _of_queue(group, known, tree=tree)
            found += _of_minimum(group, known, total, tree=tree)
    return found


def _of_queue(group: PodGroup, queues: Mapping[str, Queue], *, tree: bool) -> Iterator[Trap]:
    name = group.queue or _DEFAULT_QUEUE
    if name not in queues:
        if name != _DEFAULT_QUEUE:
            yield Trap(
                ("podgroup", group.key),
                f'its queue "{name}" does not exist',
                "a group without a queue is not looked at, and nothing is written to it",
                f'create the queue "{name}", or correct spec.queue',
            )
    elif tree and any(queue.parent == name for queue in queues.values()):
        yield Trap(
            ("podgroup", group.key),
            f'its queue "{name}" has queues below it',
            "with enableHierarchy only queues without children take groups; the original then lets nobody in, in any "
            "queue",
            "name one of the queues below it",
        )


def _of_minimum(group: PodGroup, queues: Mapping[str, Queue], total: Units | None, *, tree: bool) -> Iterator[Trap]:
    for resource, amount in (group.min_resources or {}).items():
        for queue in _line(group.queue or _DEFAULT_QUEUE, queues, tree=tree):
            limit = (queue.capability or {}).get(resource)
            if limit is not None and amount > limit:
                yield _too_large(group, resource, amount, f"the capability of queue {queue.name} is", limit)
        if total is not None and amount > total.get(resource, 0):
            yield _too_large(group, resource, amount, "all nodes together have", total.get(resource, 0))


def _too_large(group: PodGroup, resource: str, amount: int, bound: str, limit: int) -> Trap:
    said, most = format_quantity(amount, resource), format_quantity(limit, resource)
    return Trap(
        ("podgroup", group.key),
        f"its minResources of {resource} is {said}, and {bound} {most}",
        "a group is let in only if its whole minimum has room, so this one waits for ever",
        f"lower minResources.{resource} (and minMember), or raise the limit",
    )


def _line(name: str, queues: Mapping[str, Queue], *, tree: bool) -> Iterator[Queue]:
    """A queue and, in a tree, those above it."""
    seen: set[str] = set()
    while name in queues and name not in seen:
        yield queues[name]
        seen.add(name)
        name = queues[name].parent if tree else ""
