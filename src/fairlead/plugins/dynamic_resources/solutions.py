"""Solutions: what searches found, shared by all rows that are alike.

Rows with the same signature (state/devices.py) see devices that are equal in kind and use, so one search answers for
all of them, and the answer holds until the signature changes. Failures are not kept: their texts name devices.
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

Answer = Solution | Nothing
_SPECS_KEY = tuple["ClaimSpec", ...]


class Solutions:
    def __init__(self, selecting: Selecting, *, filter_timeout: float) -> None:
        self._selecting = selecting
        self._most_steps = int(filter_timeout * _STEPS_PER_SECOND)
        self._known: dict[tuple[bool, _SPECS_KEY], dict[int, Answer]] = {}
        self._basis: tuple[DeviceIndex, int] | None = None
        """Whose signatures the answers are about, and the version of the classes then."""
        self.steps = 0
        """Steps of all searches so far."""
        self.searches = 0

    def of_rows(
        self, wanted: Sequence[Wanted], rows: NDArray[np.intp], devices: DeviceIndex, *, compatible: bool
    ) -> dict[int, Answer | AllocationFailed]:
        """The answer for each signature that occurs among the rows, or what its search failed with."""
        column = devices.signatures()
        answers = self._answers(wanted, devices, compatible=compatible)
        found: dict[int, Answer | AllocationFailed] = {}
        signatures = column[rows]
        for signature in np.unique(signatures).tolist():
            answer = answers.get(signature)
            if answer is None:
                row = int(rows[int(np.argmax(signatures == signature))])
                try:
                    answer = answers[signature] = self._search(wanted, row, devices, compatible=compatible)
                except AllocationFailed as error:
                    found[signature] = error
                    continue
            found[signature] = answer
        return found

    def of_row(self, wanted: Sequence[Wanted], row: int, devices: DeviceIndex, *, compatible: bool) -> Answer:
        signature = int(devices.signatures()[row])
        answers = self._answers(wanted, devices, compatible=compatible)
        answer = answers.get(signature)
        if answer is None:
            answer = answers[signature] = self._search(wanted, row, devices, compatible=compatible)
        return answer

    def _answers(self, wanted: Sequence[Wanted], devices: DeviceIndex, *, compatible: bool) -> dict[int, Answer]:
        basis = (devices, devices.classes.version)
        if self._basis != basis or len(self._known) > _MOST_SPECS:
            self._basis = basis
            self._known.clear()
        return self._known.setdefault((compatible, tuple([claim.spec for claim in wanted])), {})

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
