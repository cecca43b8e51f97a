"""Finding selectors by labels and labels by selectors, without trying every pair.

Nearly every selector names some value that a key must have (`app in (web)`). It is filed under those pairs, so that a
pod's labels lead to the few selectors that can match, however many there are; selectors that name none are tried
always. What is found are candidates: the caller still asks whether they match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from fairlead.core.model.requirements import Op

if TYPE_CHECKING:
    from fairlead.core.model.requirements import LabelSelector, Requirement

Item = TypeVar("Item")
Pair = tuple[str, str]


def _naming(selectors: Iterable[LabelSelector]) -> Iterator[Requirement]:
    """The requirements that name values, one of which the labels must have."""
    return (r for selector in selectors for r in selector.requirements if r.op is Op.IN)


class BySelector(Generic[Item]):
    """Things with selectors, all of which must match, found by labels."""

    def __init__(self) -> None:
        self._by_pair: dict[Pair, dict[Item, None]] = {}
        self._always: dict[Item, None] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, item: Item, selectors: Iterable[LabelSelector]) -> None:
        for place in self._places(selectors):
            place[item] = None
        self._size += 1

    def remove(self, item: Item, selectors: Iterable[LabelSelector]) -> None:
        selectors = tuple(selectors)
        for place in self._places(selectors):
            del place[item]
        for pair in _pairs(selectors):
            if not self._by_pair[pair]:
                del self._by_pair[pair]
        self._size -= 1

    def candidates(self, labels: Mapping[str, str]) -> Iterator[Item]:
        """Each thing that may match, once."""
        yield from self._always
        if self._by_pair:
            for pair in labels.items():
                yield from self._by_pair.get(pair, ())

    def _places(self, selectors: Iterable[LabelSelector]) -> list[dict[Item, None]]:
        selectors = tuple(selectors)
        if any(selector.nothing for selector in selectors):
            return []
        pairs = _pairs(selectors)
        return [self._by_pair.setdefault(pair, {}) for pair in pairs] if pairs else [self._always]


def _pairs(selectors: Iterable[LabelSelector]) -> list[Pair]:
    """Where a thing is filed: under the pairs of one requirement, so that labels find it at most once."""
    selectors = tuple(selectors)
    if any(selector.nothing for selector in selectors):
        return []
    narrowest = min(_naming(selectors), key=lambda requirement: len(requirement.values), default=None)
    return [] if narrowest is None else [(narrowest.key, value) for value in narrowest.values]


class ByLabels(Generic[Item]):
    """Things with labels, found by selectors."""

    def __init__(self) -> None:
        self._by_pair: dict[Pair, dict[Item, None]] = {}
        self._all: dict[Item, None] = {}

    def add(self, item: Item, labels: Mapping[str, str]) -> None:
        self._all[item] = None
        for pair in labels.items():
            self._by_pair.setdefault(pair, {})[item] = None

    def remove(self, item: Item, labels: Mapping[str, str]) -> None:
        del self._all[item]
        for pair in labels.items():
            place = self._by_pair[pair]
            del place[item]
            if not place:
                del self._by_pair[pair]

    def candidates(self, selectors: Iterable[LabelSelector]) -> Iterable[Item]:
        """The things that may match all of these selectors."""
        selectors = tuple(selectors)
        if any(selector.nothing for selector in selectors):
            return ()
        best: Iterable[Item] = self._all
        fewest = len(self._all)
        for requirement in _naming(selectors):
            places = [
                self._by_pair[pair]
                for value in requirement.values
                if (pair := (requirement.key, value)) in self._by_pair
            ]
            found = sum(len(place) for place in places)
            if found < fewest:
                fewest, best = found, [item for place in places for item in place]
        return best
