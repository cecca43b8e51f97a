"""Selected: how many pods of certain namespaces and labels are where, counted once and then kept.

Pods are filed by what can be selected of them, namespace and labels; equal ones are one `LabelSet` with its counts per
row. What somebody wants counted is a `Group`: it is made when first requested, from the distinct label sets (never from
the pods), and follows from then on. Groups not requested in a long time are dropped; asking again makes them anew.

Invariant: a group's tally is the sum over the label sets that it matches.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from fairlead.kube.affinity.counts import DomainTally, add_into
from fairlead.kube.affinity.finding import ByLabels, BySelector

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.requirements import LabelSelector
    from fairlead.core.state.table import NodeTable

_MEMORY_BYTES = 32 << 20
_BYTES_PER_ROW = 8
_EMPTY_KEPT = 256
"""Label sets without pods are kept for a while: trials take pods away and put them back."""


class PodSelection(NamedTuple):
    """Which pods are meant: those in these namespaces (None for all) that a selector picks."""

    namespaces: frozenset[str] | None
    selector: LabelSelector

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(labels)


class LabelSet:
    """Pods of one namespace with the same labels, by row: those that are not terminating, and all."""

    __slots__ = ("every", "groups", "key", "labels", "live", "live_groups", "namespace")

    def __init__(self, key: tuple[str, frozenset[tuple[str, str]]], labels: Mapping[str, str]) -> None:
        self.key = key
        self.namespace = key[0]
        self.labels = labels
        self.live: dict[int, int] = {}
        self.every: dict[int, int] = {}
        self.live_groups: list[Group] = []
        self.groups: list[Group] = []

    def add(self, row: int, amount: int, *, live: bool) -> None:
        add_into(self.every, row, amount)
        for group in self.groups:
            group.tally.add(row, amount)
        if live:
            add_into(self.live, row, amount)
            for group in self.live_groups:
                group.tally.add(row, amount)


class Group:
    """Pods that are within every one of some reaches; `live` leaves out those that are terminating."""

    __slots__ = ("live", "reaches", "tally")

    def __init__(self, reaches: tuple[PodSelection, ...], live: bool, tally: DomainTally) -> None:
        self.reaches = reaches
        self.live = live
        self.tally = tally

    def covers(self, labels: LabelSet) -> bool:
        return all(reach.covers(labels.namespace, labels.labels) for reach in self.reaches)

    def followers(self, labels: LabelSet) -> list[Group]:
        """Where a label set lists groups of this kind."""
        return labels.live_groups if self.live else labels.groups


class SelectedPods:
    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._sets: dict[tuple[str, frozenset[tuple[str, str]]], LabelSet] = {}
        self._by_labels: ByLabels[LabelSet] = ByLabels()
        self._groups: OrderedDict[tuple[bool, tuple[PodSelection, ...]], Group] = OrderedDict()
        self._by_selector: BySelector[Group] = BySelector()
        self._empty: dict[LabelSet, None] = {}
        self._last: LabelSet | None = None
        """That of the last pod: pods of one template share their labels, and so do all that have none."""

    # ---- asking ----

    def count(self, *reaches: PodSelection, live: bool) -> DomainTally:
        """How many pods are within all these reaches. The tally is good as long as no pod moves."""
        key = (live, reaches)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = self._make(reaches, live)
            self._drop_oldest()
        else:
            self._groups.move_to_end(key)
        return group.tally

    def __len__(self) -> int:
        """How many groups are kept."""
        return len(self._groups)

    def _make(self, reaches: tuple[PodSelection, ...], live: bool) -> Group:
        on_rows: dict[int, int] = {}
        group = Group(reaches, live, DomainTally(self._table, {}))
        for labels in self._by_labels.candidates(reach.selector for reach in reaches):
            if group.covers(labels):
                group.followers(labels).append(group)
                for row, count in (labels.live if live else labels.every).items():
                    on_rows[row] = on_rows.get(row, 0) + count
        group.tally = DomainTally(self._table, on_rows)
        self._by_selector.add(group, (reach.selector for reach in reaches))
        return group

    def _drop_oldest(self) -> None:
        limit = max(64, _MEMORY_BYTES // (self._table.capacity * _BYTES_PER_ROW))
        while len(self._groups) > limit:
            _, group = self._groups.popitem(last=False)
            self._by_selector.remove(group, (reach.selector for reach in group.reaches))
            for labels in self._by_labels.candidates(reach.selector for reach in group.reaches):
                if group in group.followers(labels):
                    group.followers(labels).remove(group)

    # ---- following ----

    def add(self, pod: Pod, row: int, amount: int) -> None:
        labels = self._last
        if labels is None or labels.labels is not pod.labels or labels.namespace != pod.namespace:
            labels = self._last = self._set_of(pod)
        labels.add(row, amount, live=pod.deletion_time is None)
        if not labels.every:
            self._empty[labels] = None
            if len(self._empty) > _EMPTY_KEPT:
                self._drop_empty()

    def _set_of(self, pod: Pod) -> LabelSet:
        key = (pod.namespace, frozenset(pod.labels.items()))
        labels = self._sets.get(key)
        if labels is None:
            labels = self._sets[key] = self._meet(LabelSet(key, pod.labels))
        return labels

    def _meet(self, labels: LabelSet) -> LabelSet:
        self._by_labels.add(labels, labels.labels)
        for group in self._by_selector.candidates(labels.labels):
            if group.covers(labels):
                group.followers(labels).append(group)
        return labels

    def _drop_empty(self) -> None:
        for labels in self._empty:
            if not labels.every:
                del self._sets[labels.key]
                self._by_labels.remove(labels, labels.labels)
        self._empty.clear()
        self._last = None

    def labels_changed(self, row: int) -> None:
        """A node's labels are not what they were."""
        for group in self._groups.values():
            group.tally.labels_changed(row)
