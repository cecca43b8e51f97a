"""ExistingTerms: what the pods on nodes say of other pods, as distinct terms with counts.

A thousand pods of one template say the same; it is one `TermCount`, found by the labels of the pod that is to be
placed. Few pods are counted by going over their rows; from some number on, sums by topology domain are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from fairlead.kube.affinity.counts import DomainSums, add_into
from fairlead.kube.affinity.finding import BySelector

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.pod import Pod
    from fairlead.core.model.shape import PodShape
    from fairlead.core.model.terms import AffinityTerm
    from fairlead.core.state.table import NodeTable

_FEW = 32
_IDLE_KEPT = 256
"""Shapes without pods are kept for a while: trials take pods away and put them back."""


class TermCount:
    """One distinct term. `weight` is None if the term is required, and negative if it says "away from"."""

    __slots__ = ("_rows", "_sums", "_table", "key", "shapes", "term", "weight")

    def __init__(self, table: NodeTable, term: AffinityTerm, weight: int | None) -> None:
        self._table = table
        self.term = term
        self.weight = weight
        self.key = term.topology_key
        self._rows: dict[int, int] = {}
        self._sums: DomainSums | None = None
        self.shapes = 0
        """How many shapes say this."""

    def __bool__(self) -> bool:
        return bool(self._rows)

    def add(self, row: int, amount: int) -> None:
        add_into(self._rows, row, amount)
        if self._sums is not None:
            self._sums.add(row, amount)
            if len(self._rows) < _FEW // 2:
                self._sums = None

    def add_to(self, counts: NDArray[np.int64], amount: int, among: Container[int] | None = None) -> bool:
        """Add this term's count in each domain, times `amount`, to counts by code; with `among`, only what lies on
        those rows. Says whether there was any count, which is not the same as a sum other than zero."""
        if len(self._rows) > _FEW and among is None:
            sums = self._kept_sums()[: len(counts)]
            counts += amount * sums
            return bool(np.count_nonzero(sums))
        codes = self._table.label(self.key).codes
        somewhere = False
        for row, count in self._rows.items():
            code = codes[row]
            if code >= 0 and (among is None or row in among):
                counts[code] += amount * count
                somewhere = True
        return somewhere

    def _kept_sums(self) -> NDArray[np.int32]:
        if self._sums is None:
            rows = np.fromiter(self._rows, dtype=np.intp, count=len(self._rows))
            counts = np.fromiter(self._rows.values(), dtype=np.int32, count=len(self._rows))
            self._sums = DomainSums(self._table.label(self.key), counts, rows)
        return self._sums.current()

    def labels_changed(self, row: int) -> None:
        if row in self._rows:
            self._sums = None

    def on_rows(self) -> dict[int, int]:
        return dict(self._rows)


class ExistingTerms:
    """Terms of one sort (say, required anti-affinity) of the pods on nodes."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._counts: dict[tuple[int | None, AffinityTerm], TermCount] = {}
        self._by_selector: BySelector[TermCount] = BySelector()

    def __len__(self) -> int:
        return len(self._counts)

    def matching(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> Iterator[TermCount]:
        """The terms that speak of such a pod."""
        for count in self._by_selector.candidates(labels):
            if count and count.term.matches(namespace, labels, namespace_labels):
                yield count

    def join(self, weight: int | None, term: AffinityTerm) -> TermCount:
        """A shape that says this has come."""
        count = self._counts.get((weight, term))
        if count is None:
            count = self._counts[weight, term] = TermCount(self._table, term, weight)
            self._by_selector.add(count, (term.selector,))
        count.shapes += 1
        return count

    def leave(self, count: TermCount) -> None:
        count.shapes -= 1
        if not count.shapes:
            del self._counts[count.weight, count.term]
            self._by_selector.remove(count, (count.term.selector,))

    def labels_changed(self, row: int) -> None:
        for count in self._counts.values():
            count.labels_changed(row)

    def all(self) -> Collection[TermCount]:
        return self._counts.values()

    def counts(self) -> dict[tuple[int | None, AffinityTerm], dict[int, int]]:
        """Everything, for comparison in checks."""
        return {key: count.on_rows() for key, count in self._counts.items() if count}


class _Said:
    """The terms of one shape, and how many pods of that shape lie on nodes."""

    __slots__ = ("anti", "pods", "pulls")

    def __init__(self, anti: tuple[TermCount, ...], pulls: tuple[TermCount, ...]) -> None:
        self.anti = anti
        self.pulls = pulls
        self.pods = 0


class AffinityTerms:
    """All that pods on nodes say: `anti` keeps others away, `pulls` make a domain better or worse for them."""

    def __init__(self, table: NodeTable) -> None:
        self.anti = ExistingTerms(table)
        self.pulls = ExistingTerms(table)
        self._said: dict[PodShape, _Said] = {}
        self._idle: dict[PodShape, None] = {}

    def add(self, pod: Pod, row: int, amount: int) -> None:
        shape = pod.shape
        if not shape.has_pod_affinity:
            return
        said = self._said.get(shape)
        if said is None:
            said = self._said[shape] = self._meet(shape)
        said.pods += amount
        for count in said.anti:
            count.add(row, amount)
        for count in said.pulls:
            count.add(row, amount)
        if not said.pods:
            self._idle[shape] = None
            if len(self._idle) > _IDLE_KEPT:
                self._drop_idle()

    def _meet(self, shape: PodShape) -> _Said:
        weighted = [(weight, term) for weight, term in shape.preferred_pod_affinity]
        weighted += [(-weight, term) for weight, term in shape.preferred_pod_anti_affinity]
        required = [self.pulls.join(None, term) for term in shape.pod_affinity]
        preferred = [self.pulls.join(weight, term) for weight, term in weighted]
        return _Said(
            anti=tuple(self.anti.join(None, term) for term in shape.pod_anti_affinity),
            pulls=(*required, *preferred),
        )

    def _drop_idle(self) -> None:
        for shape in self._idle:
            said = self._said[shape]
            if not said.pods:
                del self._said[shape]
                for count in said.anti:
                    self.anti.leave(count)
                for count in said.pulls:
                    self.pulls.leave(count)
        self._idle.clear()

    def labels_changed(self, row: int) -> None:
        self.anti.labels_changed(row)
        self.pulls.labels_changed(row)
