"""AffinityIndex: all that inter-pod affinity and topology spreading read of the pods on nodes, kept up to date.

`selected` counts pods by what selects them, `terms` counts what they say of others, `domains` knows which rows a spread
constraint counts, `workloads` what selects a pod that has no constraint of its own. A cluster has one index, made when
a policy first asks. Keeping it costs the same whatever the number of pods, and asking costs a few passes over the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.core.model import kinds
from fairlead.core.model.documents import EMPTY
from fairlead.kube.affinity.domains import Domains
from fairlead.kube.affinity.existing import AffinityTerms
from fairlead.kube.affinity.selected import PodSelection, SelectedPods
from fairlead.kube.affinity.workloads import Workloads

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.terms import AffinityTerm
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.object_index import KindIndex


class AffinityIndex:
    def __init__(self, cluster: Cluster) -> None:
        table = cluster.table
        self._table = table
        self._namespaces: KindIndex = cluster.object_index.of(kinds.NAMESPACE)
        self._reaches: dict[AffinityTerm, PodSelection] = {}
        self._reaches_version = -1
        self._labels = {row: node.labels for row, node in table.alive_rows()}
        self.selected = SelectedPods(table)
        self.terms = AffinityTerms(table)
        self.domains = Domains(table)
        self.workloads = Workloads(cluster.object_index)

    # ---- following ----

    def occupied(self, pod: Pod, row: int) -> None:
        self.selected.add(pod, row, 1)
        self.terms.add(pod, row, 1)

    def vacated(self, pod: Pod, row: int) -> None:
        self.selected.add(pod, row, -1)
        self.terms.add(pod, row, -1)

    def node_changed(self, row: int) -> None:
        node = self._table.nodes[row]
        labels = EMPTY if node is None else node.labels
        if labels != self._labels.get(row, EMPTY) and self._table.pods[row]:
            self.selected.labels_changed(row)
            self.terms.labels_changed(row)
        self._labels[row] = labels

    # ---- namespaces ----

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """The labels of a namespace, none if it is not known."""
        record = self._namespaces.get(namespace)
        labels: Mapping[str, str] = EMPTY if record is None else record.labels
        return labels

    def reach(self, term: AffinityTerm) -> PodSelection:
        """Whom a term of the pod that is to be placed means. As in the original, its namespace selector is first used
        to look up namespaces, and then once more on a namespace without labels: a selector that only excludes
        therefore means every namespace."""
        if term.namespace_selector.nothing:
            return PodSelection(term.namespaces, term.selector)
        if self._reaches_version != self._namespaces.version or len(self._reaches) > 8192:
            self._reaches.clear()
            self._reaches_version = self._namespaces.version
        found = self._reaches.get(term)
        if found is None:
            found = self._reaches[term] = PodSelection(self._meant(term), term.selector)
        return found

    def _meant(self, term: AffinityTerm) -> frozenset[str] | None:
        selector = term.namespace_selector
        if selector.matches(EMPTY):
            return None
        return term.namespaces | {name for name, record in self._namespaces.items() if selector.matches(record.labels)}


def affinity_index(cluster: Cluster) -> AffinityIndex:
    return cluster.index(AffinityIndex, AffinityIndex)
