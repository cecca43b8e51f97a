"""WhatIf: what one family adds to questions about what would happen; `what_ifs` returns it for all families.

A question is about objects of any family, and so is a change that would help: more of a queue, another template of a
job, the end of a reservation. The record of a family names its part (`Family.what_if`); the modules beside this one
know no family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from fairlead.core.family import brought

if TYPE_CHECKING:
    from fairlead.core.engine.what_if.cluster_changes import Allowance, HolderEnd
    from fairlead.core.engine.what_if.edits import Edit
    from fairlead.core.engine.what_if.workload import Workload
    from fairlead.core.model.flow import Doc
    from fairlead.core.state.cluster import Cluster


@dataclass(frozen=True, slots=True)
class PodOwner:
    """How objects of one API group that own pods are changed, where a plain `spec.template` does not say it.

    `templates` makes a patch of the owner from the pods and a patch of the template of each, `scaled` from the pods and
    how many of them are left. A group that such an object makes is changed in the object, before it is created.
    """

    resource: str
    """What kubectl calls it, such as `jobs.example.com`."""
    templates: Callable[[Sequence[Doc], Sequence[Doc]], Doc]
    scaled: Callable[[Sequence[Doc], int], Doc]


@dataclass(frozen=True, slots=True)
class Awaited:
    """An object of the question before which a pod is not made: its key, and whether a patch of it lets pods in."""

    key: str
    lets_in: Callable[[Doc], bool]


def _none(*_: object) -> tuple[()]:
    return ()


def _nobody(*_: object) -> None:
    return None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """One family's part in the questions; every field may be left out."""

    queues_of: Callable[[Workload], Iterable[str]] = _none
    """The names of the queues in which a workload's pods would count."""
    allowances: Callable[[Workload, Cluster], Iterable[tuple[Allowance, ...]]] = _none
    """For each queue or quota of a workload what it and those above it allow, the own one first; those without a limit
    are left out. All of a line are raised together, because each of them may be the one that is full."""
    edits: Callable[[Workload, Cluster], Iterable[Edit]] = _none
    """Further changes of a workload that are worth trying."""
    end_of: Callable[[str, Cluster, Workload], HolderEnd | None] = _nobody
    """The end of somebody who holds what is short and is not a pod of the cluster."""
    awaited_by: Callable[[Doc, Sequence[Doc]], Awaited | None] = _nobody
    """What of the question's objects a pod waits for before its controller would make it."""
    closeness: tuple[str, ...] = ()
    """Annotations by which groups and pods ask to be close together."""
    owners: Mapping[str, PodOwner] = field(default_factory=dict)
    """Owners of pods, by their API group."""
    hundreds: frozenset[str] = frozenset()
    """Resources of which a pod may request hundreds, which are whole devices, or for less than one."""
    pods_need: str = ""
    """Sentences on what objects of the family need before pods are made of them."""


@cache
def what_ifs() -> tuple[WhatIf, ...]:
    """The parts of all families, in their order."""
    return tuple(brought("what_if"))
