"""Selectors over columns: which rows a requirement, a term or a node selector accepts, without a loop over nodes.

The scalar twins are the `matches` methods of core/model/selectors.py; a property test holds them together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.requirements import Op
from fairlead.core.state.columns import ABSENT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.requirements import Requirement
    from fairlead.core.model.selectors import NodeSelector, NodeSelectorTerm
    from fairlead.core.state.nodes import Nodes


def rows_meeting(nodes: Nodes, requirement: Requirement) -> NDArray[np.bool_]:
    """Rows whose labels meet one requirement."""
    column = nodes.table.label(requirement.key)
    codes = nodes.take(column.codes)
    op = requirement.op
    if op in (Op.EXISTS, Op.DOES_NOT_EXIST):
        present: NDArray[np.bool_] = codes != ABSENT
        return present if op is Op.EXISTS else ~present
    if op in (Op.GT, Op.LT):
        return _compare(nodes, requirement)
    wanted = [column.code(value) for value in requirement.values]
    found = codes == wanted[0] if len(wanted) == 1 else np.isin(codes, wanted)
    return ~found if op is Op.NOT_IN else found


def _compare(nodes: Nodes, requirement: Requirement) -> NDArray[np.bool_]:
    column = nodes.table.label(requirement.key)
    codes = nodes.take(column.codes)
    numbers, valid = column.numbers()
    bound = int(requirement.values[0])
    values = numbers[codes]
    outcome = values > bound if requirement.op is Op.GT else values < bound
    return valid[codes] & outcome


def rows_named(nodes: Nodes, requirement: Requirement) -> NDArray[np.bool_]:
    """Rows that meet a requirement on a field. The only field that a node shows is its name; others read as empty."""
    if requirement.key != "metadata.name":
        verdict = requirement.accepts("")
        return nodes.all() if verdict else nodes.none()
    rows = [nodes.table.row_of[name] for name in requirement.values if name in nodes.table.row_of]
    found = nodes.mask_of(rows)
    return ~found if requirement.op is Op.NOT_IN else found


def rows_matching_term(nodes: Nodes, term: NodeSelectorTerm) -> NDArray[np.bool_]:
    if term.error:
        return nodes.none()
    found = nodes.all()
    for requirement in term.expressions:
        found &= rows_meeting(nodes, requirement)
    for requirement in term.fields:
        found &= rows_named(nodes, requirement)
    return found


def rows_matching(nodes: Nodes, selector: NodeSelector) -> NDArray[np.bool_]:
    """Rows that some term of a node selector accepts."""
    found = nodes.none()
    for term in selector.terms:
        found |= rows_matching_term(nodes, term)
    return found


def rows_with_labels(nodes: Nodes, labels: Iterable[tuple[str, str]]) -> NDArray[np.bool_]:
    """Rows that carry all these labels."""
    found = nodes.all()
    for key, value in labels:
        column = nodes.table.label(key)
        found &= nodes.take(column.codes) == column.code(value)
    return found
