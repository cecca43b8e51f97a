"""Solutions: what searches found, shared by all rows that are alike.

Rows with the same signature (state/devices.py) see devices that are equal in kind and use, so one search answers for
all of them, and the answer holds until the signature changes. For claims of one template the answers are a column over
the rows, of which only rows whose signature changed are looked at again. Failures are not kept: their texts name
devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.plugins.dynamic_resources.results import check_selectors
from fairlead.plugins.dynamic_resources.search import (
    AllocationFailed,
    DeviceSearch,
    Nothing,
    OutOfSteps,
    Solution,
    Wanted,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.model.device_claims import ClaimSpec
    from fairlead.plugins.dynamic_resources.selecting import Selecting
    from fairlead.state.devices import DeviceIndex

_STEPS_PER_SECOND = 50_000
"""How many steps of a search stand for a second of the original's filterTimeout: the core has no clock."""
_MOST_SPECS = 512

_MOST_ANSWERS = 1 << 16

Answer = Solution | Nothing
_SPECS_KEY = tuple["ClaimSpec", ...]
_UNKNOWN, _FOUND = 0, 1
_CODES: dict[Nothing, int] = {nothing: code for code, nothing in enumerate(Nothing, start=2)}


def _code(answer: Answer | AllocationFailed) -> int:
    if isinstance(answer, Solution):
        return _FOUND
    return _UNKNOWN if isinstance(answer, AllocationFailed) else _CODES[answer]


class _Answers:
    """What is known about one list of claims: the answer of each signature, and of each row what it comes to."""

    __slots__ = ("by_signature", "codes", "mark")

    def __init__(self, devices: DeviceIndex) -> None:
        self.by_signature: dict[int, Answer] = {}
        self.codes: NDArray[np.int8] = np.zeros(0, dtype=np.int8)
        self.mark = devices.changed.mark

    def catch_up(self, devices: DeviceIndex, high: int) -> NDArray[np.int8]:
        """The column of codes, of which rows that changed are unknown."""
        if self.mark != devices.changed.mark:
            rows = devices.changed.rows_since(self.mark)
            self.codes[rows[rows < len(self.codes)]] = _UNKNOWN
            self.mark = devices.changed.mark
        if len(self.codes) < high:
            wider = np.zeros(high, dtype=np.int8)
            wider[: len(self.codes)] = self.codes
            self.codes = wider
        return self.codes


class Solutions:
    def __init__(self, selecting: Selecting, *, filter_timeout: float) -> None:
        self._selecting = selecting
        self._most_steps = int(filter_timeout * _STEPS_PER_SECOND)
        self._known: dict[tuple[bool, _SPECS_KEY], _Answers] = {}
        self._basis: tuple[DeviceIndex, int] | None = None
        """Whose signatures the answers are about, and the version of the classes then."""
        self.steps = 0
        """Steps of all searches so far."""
        self.searches = 0

    def refusals(
        self, wanted: Sequence[Wanted], rows: NDArray[np.intp], devices: DeviceIndex, *, compatible: bool
    ) -> tuple[dict[Nothing, NDArray[np.bool_]], dict[str, NDArray[np.bool_]]]:
        """Which of the rows have no solution, by why; and on which the search failed, by its text."""
        signatures = devices.signatures()
        answers = self._answers(wanted, devices, compatible=compatible)
        column = answers.catch_up(devices, len(signatures))
        failures: dict[str, NDArray[np.bool_]] = {}
        unknown = rows[column[rows] == _UNKNOWN]
        if len(unknown):
            found = self._found(wanted, unknown, devices, answers, compatible=compatible)
            column[unknown] = [_code(found[signature]) for signature in signatures[unknown].tolist()]
            for signature, answer in found.items():
                if isinstance(answer, AllocationFailed):
                    failed = failures.setdefault(str(answer), np.zeros(len(rows), dtype=np.bool_))
                    failed |= signatures[rows] == signature
        codes = column[rows]
        refused = {nothing: codes == code for nothing, code in _CODES.items()}
        return {nothing: mask for nothing, mask in refused.items() if mask.any()}, failures

    def of_rows(
        self, wanted: Sequence[Wanted], rows: NDArray[np.intp], devices: DeviceIndex, *, compatible: bool
    ) -> dict[int, Answer | AllocationFailed]:
        """The answer for each signature that occurs among the rows, or what its search failed with."""
        devices.signatures()
        answers = self._answers(wanted, devices, compatible=compatible)
        return self._found(wanted, rows, devices, answers, compatible=compatible)

    def _found(
        self,
        wanted: Sequence[Wanted],
        rows: NDArray[np.intp],
        devices: DeviceIndex,
        answers: _Answers,
        *,
        compatible: bool,
    ) -> dict[int, Answer | AllocationFailed]:
        found: dict[int, Answer | AllocationFailed] = {}
        for row, signature in zip(rows.tolist(), devices.signatures()[rows].tolist(), strict=True):
            if signature in found:
                continue
            answer = answers.by_signature.get(signature)
            if answer is None:
                try:
                    answer = self._search(wanted, row, devices, compatible=compatible)
                except AllocationFailed as error:
                    found[signature] = error
                    continue
                answers.by_signature[signature] = answer
            found[signature] = answer
        return found

    def of_row(self, wanted: Sequence[Wanted], row: int, devices: DeviceIndex, *, compatible: bool) -> Answer:
        signature = int(devices.signatures()[row])
        answers = self._answers(wanted, devices, compatible=compatible)
        answer = answers.by_signature.get(signature)
        if answer is None:
            answer = self._search(wanted, row, devices, compatible=compatible)
            answers.by_signature[signature] = answer
        return answer

    def _answers(self, wanted: Sequence[Wanted], devices: DeviceIndex, *, compatible: bool) -> _Answers:
        basis = (devices, devices.classes.version)
        if self._basis != basis or len(self._known) > _MOST_SPECS:
            self._basis = basis
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
        )  # fmt: skip
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
