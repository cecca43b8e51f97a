"""The values of a search for a node: what it starts from (`Search`), what it leaves to the next (`LastSearch`), and
its answers.

`Placed` is a row and how it compared with the next best, `Blocked` the reasons why there is none, and `Broken` a
failure that says nothing about the cluster. core/engine/cycle/attempt.py makes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.core.framework.results.constant import plugin_score
from fairlead.core.model.records import record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.core.engine.cycle.run import EqualPodRun
    from fairlead.core.framework.refusals import Refusals
    from fairlead.core.framework.results.constant import Contribution
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.reasons import Status
    from fairlead.core.state.touchlog import TouchLog


@dataclass(slots=True)
class LastSearch:
    """What a search leaves to the next one."""

    start: int = 0
    """Where the last sample of nodes ended (nextStartNodeIndex)."""
    run: EqualPodRun | None = None
    """Equal pods that were placed last, one after the other."""


@record(frozen=True, slots=True)
class Search:
    """What one search for a node starts from. It is made for one attempt, so that nothing that narrows this attempt is
    left to the next."""

    last: LastSearch = field(default_factory=LastSearch)
    nominated: Mapping[int, Sequence[Pod]] = field(default_factory=dict)
    """Pods nominated to rows."""
    promises: TouchLog | None = None
    """The log of rows whose nominations changed, if one is kept."""
    within: NDArray[np.int32] | None = None
    """The only rows in question: a gang searches one part of the cluster."""
    preferred_row: int = -1
    """The row that the pod had before its bind failed; it gets it again if it still fits."""


@record(frozen=True, slots=True)
class ScoredRow:
    """A feasible row, its total, and each plugin's weighted score."""

    row: int
    total: int
    scores: tuple[tuple[str, int], ...] = ()


@record(frozen=True, slots=True)
class Placed:
    """The chosen row, how many rows were feasible and how many were judged, and the next best."""

    row: int
    feasible: int
    judged: int
    chosen: ScoredRow
    runner_up: ScoredRow | None = None
    sheet: ScoreSheet | None = None


@record(frozen=True, slots=True)
class Blocked:
    """No row is feasible, and why."""

    refusals: Refusals


@dataclass(frozen=True, slots=True)
class Broken:
    """The attempt failed: a plugin raised or answered with an error."""

    status: Status


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSheet:
    """Every feasible row with every plugin's weighted score; valid until the table changes."""

    rows: NDArray[np.int32]
    totals: NDArray[np.int64]
    contributions: Sequence[Contribution]

    def candidate(self, position: int) -> ScoredRow:
        row = int(self.rows[position])
        scores = tuple([plugin_score(c.plugin, c.at(row, position)) for c in self.contributions])
        return ScoredRow(row, int(self.totals[position]), scores)
