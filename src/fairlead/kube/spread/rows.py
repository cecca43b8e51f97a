"""Which pods a spread constraint counts, and on which rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairlead.core.model.taints import first_untolerated
from fairlead.core.state.columns import ABSENT
from fairlead.kube.affinity.selected import PodSelection
from fairlead.kube.nodes.node_affinity import rows_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.pod import Pod
    from fairlead.core.model.requirements import LabelSelector
    from fairlead.core.model.terms import SpreadConstraint
    from fairlead.core.state.nodes import Nodes
    from fairlead.kube.affinity.counts import DomainTally
    from fairlead.kube.affinity.domains import CountedRows
    from fairlead.kube.affinity.index import AffinityIndex


class Effective(NamedTuple):
    """A constraint as it holds for one pod."""

    constraint: SpreadConstraint
    selector: LabelSelector

    @property
    def key(self) -> str:
        return self.constraint.topology_key


def own_constraints(pod: Pod, *, hard: bool) -> list[Effective]:
    """A pod's own constraints; raises ValueError if a selector is broken."""
    found = []
    for constraint in pod.shape.spread:
        if constraint.hard is hard:
            if constraint.selector_error:
                raise ValueError(constraint.selector_error)
            found.append(Effective(constraint, constraint.selector_for(pod.labels)))
    return found


def tally_of(of: Effective, pod: Pod, index: AffinityIndex) -> DomainTally | None:
    """The counts of pods that a constraint selects and that are not terminating; None if it counts none, as an empty
    selector does."""
    if of.selector.empty:
        return None
    return index.selected.count(PodSelection(frozenset((pod.namespace,)), of.selector), live=True)


def counted_rows(of: Effective, pod: Pod, index: AffinityIndex, keys: tuple[str, ...]) -> CountedRows:
    """The rows that have all these keys and that the constraint's policies admit."""
    shape, constraint = pod.shape, of.constraint
    by_affinity = constraint.honor_affinity and bool(shape.node_selector or shape.required_node_affinity is not None)
    by_taints = constraint.honor_taints
    who = (keys, shape if by_affinity else None, shape.tolerations if by_taints else None)

    def mask(nodes: Nodes) -> NDArray[np.bool_]:
        rows = nodes.take(nodes.table.alive).copy()
        for key in keys:
            rows &= nodes.label(key) != ABSENT
        if by_affinity:
            rows &= rows_for(pod, nodes)
        if by_taints:
            admitted = [first_untolerated(taints, shape.tolerations) is None for taints in nodes.table.taints.sets]
            rows &= np.array(admitted, dtype=np.bool_)[nodes.take(nodes.table.taint_code)]
        return rows

    return index.domains.counted(of.key, who, mask)
