"""Solutions: what searches found, shared by all rows that are alike.

Rows with the same signature (kube/claims/devices.py) see devices that are equal in kind and use, so one search answers
for all of them, and the answer holds until the signature changes. For claims of one template the answers are a column
over the rows, of which only rows whose signature changed are looked at again. Failures are not kept: their texts name
devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.kube.claims.results import check_selectors
from fairlead.kube.claims.search import (
    AllocationDeferred,
    AllocationFailed,
    DeviceSearch,
    Nothing,
    OutOfSteps,
    Solution,
    Wanted,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.device_claims import ClaimSpec
    from fairlead.core.state.nodes import Nodes
    from fairlead.kube.claims.devices import DeviceIndex
    from fairlead.kube.claims.selecting import Selecting

_STEPS_PER_SECOND = 50_000
"""How many steps of a search stand for a second of the original's filterTimeout: the core has no clock."""
_MOST_SPECS = 512

_MOST_ANSWERS = 1 << 16

Answer = Solution | Nothing
_SPECS_KEY = tuple["ClaimSpec", ...]
_UNKNOWN, _FOUND = 0, 1
_NOTHINGS = tuple(Nothing)
_NOTHING_CODES = tuple(enumerate(_NOTHINGS, start=2))


class _Answers:
    """What is known about one list of claims: the answer of each signature, and of each row what it comes to."""

    __slots__ = ("by_signature", "codes", "counts", "mark", "unknown")

    def __init__(self, devices: DeviceIndex) -> None:
        self.by_signature: dict[int, Answer] = {}
        self.codes: NDArray[np.int8] = np.zeros(0, dtype=np.int8)
        self.unknown: set[int] = set()
        """The rows whose code is not known."""
        self.counts = [0] * (2 + len(_NOTHING_CODES))
        """How many rows have each code."""
        self.mark = devices.row_signatures.changed.mark

    def catch_up(self, devices: DeviceIndex, high: int) -> None:
        """Rows that changed have the answer of their new signature, or none that is known."""
        if self.mark != devices.row_signatures.changed.mark:
            rows = devices.row_signatures.changed.since(self.mark)
            for row in range(len(self.codes)) if rows is None else rows:
                if row < len(self.codes):
                    answer = self.by_signature.get(devices.row_signatures.of_row(row))
                    if answer is not None:
                        self.put(row, answer)
                    else:
                        self._put(row, _UNKNOWN)
                        self.unknown.add(row)
            self.mark = devices.row_signatures.changed.mark
        if len(self.codes) < high:
            self.unknown.update(range(len(self.codes), high))
            wider = np.zeros(high, dtype=np.int8)
            wider[: len(self.codes)] = self.codes
            self.codes = wider

    def put(self, row: int, answer: Answer) -> None:
        self._put(row, _FOUND if isinstance(answer, Solution) else 2 + _NOTHINGS.index(answer))
        self.unknown.discard(row)

    def _put(self, row: int, code: int) -> None:
        self.counts[self.codes.item(row)] -= 1
        self.counts[code] += 1
        self.codes[row] = code

    def refused(self, nodes: Nodes, here: NDArray[np.bool_]) -> list[tuple[Nothing, NDArray[np.bool_]]]:
        """Rows `here` that have no solution, by why. A mask may be empty."""
        found = [(code, nothing) for code, nothing in _NOTHING_CODES if self.counts[code]]
        if not found:
            return []
        codes = nodes.take(self.codes)
        return [(nothing, (codes == code) & here) for code, nothing in found]


class Solutions:
    def __init__(self, selecting: Selecting, *, filter_timeout: float) -> None:
        self._selecting = selecting
        self._most_steps = int(filter_timeout * _STEPS_PER_SECOND)
        self._known: dict[tuple[bool, _SPECS_KEY], _Answers] = {}
        self._devices: DeviceIndex | None = None
        self._classes = 0
        """Whose signatures the answers are about, and the version of the classes then."""
        self.steps = 0
        """Steps of all searches so far."""
        self.searches = 0

    def refusals(
        self, wanted: Sequence[Wanted], nodes: Nodes, here: NDArray[np.bool_], devices: DeviceIndex, *, compatible: bool
    ) -> tuple[list[tuple[Nothing, NDArray[np.bool_]]], dict[tuple[str, bool], NDArray[np.bool_]]]:
        """Which of the nodes `here` have no solution, by why; and on which the search failed, by its text and whether
        that is an error or only for later. A mask may be empty."""
        high = len(devices.signatures())
        answers = self._answers(wanted, devices, compatible=compatible)
        answers.catch_up(devices, high)
        failures: dict[tuple[str, bool], NDArray[np.bool_]] = {}
        failed: dict[int, tuple[str, bool]] = {}
        for at, row in _unknown(answers, nodes, here) if answers.unknown else ():
            signature = devices.row_signatures.of_row(row)
            if signature not in failed:
                try:
                    answers.put(row, self._answer(wanted, row, devices, answers, compatible=compatible))
                    continue
                except AllocationFailed as error:
                    failed[signature] = str(error), not isinstance(error, AllocationDeferred)
            failures.setdefault(failed[signature], nodes.none())[at] = True
        return answers.refused(nodes, here), failures

    def of_rows(
        self, wanted: Sequence[Wanted], rows: NDArray[np.intp], devices: DeviceIndex, *, compatible: bool
    ) -> dict[int, Answer | AllocationFailed]:
        """The answer for each signature that occurs among the rows, or what its search failed with."""
        signatures = devices.signatures()[rows]
        answers = self._answers(wanted, devices, compatible=compatible)
        found: dict[int, Answer | AllocationFailed] = {}
        for row, signature in zip(rows.tolist(), signatures.tolist(), strict=True):
            if signature not in found:
                try:
                    found[signature] = self._answer(wanted, row, devices, answers, compatible=compatible)
                except AllocationFailed as error:
                    found[signature] = error
        return found

    def of_row(self, wanted: Sequence[Wanted], row: int, devices: DeviceIndex, *, compatible: bool) -> Answer:
        devices.signatures()
        answers = self._answers(wanted, devices, compatible=compatible)
        return self._answer(wanted, row, devices, answers, compatible=compatible)

    def _answer(
        self, wanted: Sequence[Wanted], row: int, devices: DeviceIndex, answers: _Answers, *, compatible: bool
    ) -> Answer:
        """The answer for a row whose signature is up to date."""
        signature = devices.row_signatures.of_row(row)
        answer = answers.by_signature.get(signature)
        if answer is None:
            answer = answers.by_signature[signature] = self._search(wanted, row, devices, compatible=compatible)
        return answer

    def _answers(self, wanted: Sequence[Wanted], devices: DeviceIndex, *, compatible: bool) -> _Answers:
        version = devices.classes.version
        if self._devices is not devices or self._classes != version or len(self._known) > _MOST_SPECS:
            self._devices, self._classes = devices, version
            self._known.clear()
        key = compatible, tuple([claim.spec for claim in wanted])
        answers = self._known.get(key)
        if answers is None or len(answers.by_signature) > _MOST_ANSWERS:
            answers = self._known[key] = _Answers(devices)
        return answers

    def _search(self, wanted: Sequence[Wanted], row: int, devices: DeviceIndex, *, compatible: bool) -> Answer:
        view = devices.view(row)
        search = DeviceSearch(
            wanted, view, devices, self._selecting, compatible=compatible, most_steps=self._most_steps
        )
        self.searches += 1
        try:
            answer = search.run()
        except OutOfSteps:
            raise AllocationFailed(f"node {view.name}: timed out trying to allocate devices") from None
        finally:
            self.steps += search.steps
        if isinstance(answer, Solution):
            check_selectors(answer, wanted, view)
        return answer


def _unknown(answers: _Answers, nodes: Nodes, here: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Of the nodes `here` those whose answer is not known: where in the selection they are, and their rows."""
    if nodes.rows is None:
        return [(row, row) for row in sorted(answers.unknown) if row < len(here) and here[row]]
    rows = nodes.rows.tolist()
    return [(at, rows[at]) for at in np.flatnonzero(here).tolist() if rows[at] in answers.unknown]
