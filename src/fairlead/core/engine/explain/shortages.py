"""Shortages: the amounts behind "Insufficient cpu": what a pod requests, what the largest node has, and what is free.

The refusals of an attempt name resources only. The amounts are read from the table on request, so they are
those of now; attempts pay nothing for them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.explanation import Shortage
from fairlead.core.model.quantity import format_quantity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.state.table import NodeTable

_NAMED = re.compile(r"Insufficient ([A-Za-z0-9][A-Za-z0-9._/-]*[A-Za-z0-9])")


def shortages(
    request: Mapping[str, int], texts: Iterable[str], table: NodeTable, nodes: Iterable[str] | None = None
) -> tuple[Shortage, ...]:
    """The resources that `texts` say are insufficient and that no node has enough of; all that they name, if each is
    found somewhere but not together. `nodes` are those that refused; None: all of the table."""
    named = [name for name in dict.fromkeys(named_in(texts)) if request.get(name)]
    rows = _rows(table, nodes)
    if not named or not len(rows):
        return ()
    found = {name: _most(table, name, rows) for name in named}
    lacking = [name for name in named if request[name] > found[name][1]] or named
    return tuple(
        Shortage(name, *(format_quantity(units, name) for units in (request[name], *found[name]))) for name in lacking
    )


def names_amounts(reason: str) -> bool:
    """Whether a reason says that a resource is insufficient."""
    return _NAMED.search(reason) is not None


def of_members(requests: Iterable[Mapping[str, int]], texts: Collection[str], table: NodeTable) -> tuple[Shortage, ...]:
    """What the waiting members of a group are short of; members that request the same are one line."""
    distinct = {tuple(request.items()): request for request in requests}
    found = (shortages(request, texts, table) for request in distinct.values())
    return tuple(dict.fromkeys(one for lines in found for one in lines))


def named_in(texts: Iterable[str]) -> Iterator[str]:
    """The resources that texts say are insufficient."""
    for text in texts:
        yield from _NAMED.findall(text)


def _rows(table: NodeTable, nodes: Iterable[str] | None) -> NDArray[np.int32]:
    names = table.row_of if nodes is None else nodes
    return np.array([row for name in names if (row := table.row_of.get(name)) is not None], dtype=np.int32)


def _most(table: NodeTable, resource: str, rows: NDArray[np.int32]) -> tuple[int, int]:
    """The most that one of the rows has of a resource, and the most that one has left."""
    if resource not in table.allocatable:
        return 0, 0
    has = left = table.allocatable[resource][rows]
    if resource in table.requested:
        left = has - table.requested[resource][rows]
    return int(has.max()), max(0, int(left.max()))
