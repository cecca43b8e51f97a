"""Queues whose settings cannot hold: guarantees beyond the cluster or the capability, parents that do not exist.

The original logs these, or crashes on them; here they are reported before anything runs. Amounts are in base units, as
volcano/records/queues.py reads them from the documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from fairlead.core.model.quantity import format_quantity
from fairlead.volcano.config.records import HIERARCHY
from fairlead.volcano.config.traps import Trap

if TYPE_CHECKING:
    from fairlead.volcano.config.records import VolcanoConfig
    from fairlead.volcano.records.queues import Queue

Units = Mapping[str, int]
ROOT = "root"


def traps_of_queues(config: VolcanoConfig | None, queues: Iterable[Queue], total: Units | None = None) -> list[Trap]:
    """`total` is what the nodes can allocate together, where it is known."""
    known = {queue.name: queue for queue in queues}
    found = [trap for queue in known.values() for trap in _of_one(queue)]
    if total is not None:
        found += _guarantees_against(known.values(), total)
        found += _deserved_against(config, known.values(), total)
    found += _of_tree(known)
    if config is not None:
        found += _of_plugins(config, known)
    return found


def _of_one(queue: Queue) -> Iterator[Trap]:
    at = ("queue", queue.name)
    for low, high, floor, ceiling in (
        ("guarantee", "capability", queue.guarantee, queue.capability),
        ("guarantee", "deserved", queue.guarantee, queue.deserved),
        ("deserved", "capability", queue.deserved, queue.capability),
    ):
        for resource, amount in (floor or {}).items():
            limit = (ceiling or {}).get(resource)
            if limit is not None and amount > limit:
                yield Trap(
                    at,
                    f"its {low} of {resource} is {_said(resource, amount)}, above its {high} of "
                    f"{_said(resource, limit)}",
                    f"{low} must not exceed {high}; the queue never gets more than the smaller of the two",
                    f"lower {low}.{resource} or raise {high}.{resource}",
                )


def _guarantees_against(queues: Iterable[Queue], total: Units) -> Iterator[Trap]:
    for resource, promised, there in _beyond(total, [queue.guarantee for queue in queues if queue.name != ROOT]):
        yield Trap(
            (),
            f"queues are guaranteed {promised} {resource}, and all nodes together have {there}",
            "nothing is left for queues without a guarantee, and not every guarantee can be kept",
            "lower the guarantees or add nodes",
        )


def _deserved_against(config: VolcanoConfig | None, queues: Iterable[Queue], total: Units) -> Iterator[Trap]:
    """Leaves only: what is above them deserves the same again."""
    if config is None or not config.has("capacity"):
        return
    queues = list(queues)
    parents = {queue.parent for queue in queues}
    leaves = [queue for queue in queues if queue.name != ROOT and queue.name not in parents]
    for resource, promised, there in _beyond(total, [queue.deserved for queue in leaves]):
        yield Trap(
            (),
            f"queues deserve {promised} {resource} together, and all nodes have {there}",
            "when all want theirs, some have less than they deserve and reclaim finds nobody who has more",
            f"lower spec.deserved.{resource} of some, or add nodes",
        )


def _beyond(total: Units, promises: Iterable[Units | None]) -> Iterator[tuple[str, str, str]]:
    """Resources of which more is promised than there is: how much it comes to, and how much there is."""
    sums: Counter[str] = Counter()
    for promise in promises:
        sums.update(promise or {})
    for resource, amount in sums.items():
        there = total.get(resource, 0)
        if amount > there:
            yield resource, _said(resource, amount), _said(resource, there)


def _of_tree(queues: Mapping[str, Queue]) -> Iterator[Trap]:
    for queue in queues.values():
        if queue.parent and queue.parent != ROOT and queue.parent not in queues:
            yield Trap(
                ("queue", queue.name),
                f'its parent "{queue.parent}" does not exist',
                "a capacity plugin with enableHierarchy then gives it and all below it nothing; the original stops all "
                "queues",
                f'create "{queue.parent}", or correct spec.parent',
            )
        elif _turns_round(queue, queues):
            yield Trap(
                ("queue", queue.name),
                "it is its own ancestor",
                "queues must form a tree: those in a circle have nothing; the original stops all queues",
                "correct spec.parent",
            )
    yield from _children_against_parents(queues)


def _turns_round(queue: Queue, queues: Mapping[str, Queue]) -> bool:
    at, steps = queues.get(queue.parent), 0
    while at is not None and at is not queue and steps < len(queues):
        at, steps = queues.get(at.parent), steps + 1
    return at is queue


def _children_against_parents(queues: Mapping[str, Queue]) -> Iterator[Trap]:
    sums: dict[tuple[str, str, str], int] = {}
    for queue in queues.values():
        if queue.parent and queue.parent != ROOT and queue.parent in queues:
            for what, amounts in (("guarantee", queue.guarantee), ("deserved", queue.deserved)):
                for resource, amount in (amounts or {}).items():
                    key = (queue.parent, what, resource)
                    sums[key] = sums.get(key, 0) + amount
    for (name, what, resource), amount in sums.items():
        own = (getattr(queues[name], what) or {}).get(resource, 0)
        if amount > own:
            yield Trap(
                ("queue", name),
                f"its children's {what} of {resource} adds up to {_said(resource, amount)}, its own is "
                f"{_said(resource, own)}",
                "children share what their parent has",
                f"raise {what}.{resource} of the parent or lower the children's",
            )


def _nobody_gives(config: VolcanoConfig, queues: Mapping[str, Queue]) -> Iterator[Trap]:
    taken = [action for action in ("reclaim", "gangreclaim") if action in config.actions]
    others = [queue for queue in queues.values() if queue.name != ROOT]
    if taken and len(others) > 1 and not any(queue.reclaimable for queue in others):
        yield Trap(
            ("actions",),
            f"{' and '.join(taken)} will take nothing from anybody",
            "every queue says reclaimable: false",
            "set reclaimable: true for the queues that may lose what they borrowed",
        )


def _of_plugins(config: VolcanoConfig, queues: Mapping[str, Queue]) -> Iterator[Trap]:
    yield from _nobody_gives(config, queues)
    capacity = config.find("capacity")
    parents = sorted(queue.name for queue in queues.values() if queue.parent not in ("", ROOT))
    if parents and (capacity is None or not capacity.on(HIERARCHY, default=False)):
        yield Trap(
            capacity.path if capacity is not None else (),
            f"the parents of queues are ignored ({', '.join(parents[:3])}{', ...' if len(parents) > 3 else ''})",
            "only capacity with enableHierarchy: true looks at them",
            "list capacity with enableHierarchy: true",
        )
    if capacity is None:
        deserving = sorted(queue.name for queue in queues.values() if queue.deserved and queue.name != ROOT)
        if deserving:
            yield Trap(
                (),
                f"spec.deserved of queues is ignored ({', '.join(deserving[:3])})",
                "only the plugin capacity reads it; proportion computes what queues deserve from their weights",
                "list capacity in the place of proportion",
            )
        return
    for queue in queues.values():
        if not queue.deserved and queue.name != ROOT and "reclaim" in config.actions:
            yield Trap(
                ("queue", queue.name),
                "everything it runs may be reclaimed by others, and it may reclaim nothing",
                "with the plugin capacity a queue without spec.deserved is owed nothing",
                "set spec.deserved",
            )


def _said(resource: str, amount: int) -> str:
    return format_quantity(amount, resource)
