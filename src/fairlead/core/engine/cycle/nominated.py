"""Filter with nominated pods: a row must fit a pod with and without the pods nominated to it.

Only nominated pods of the same or a higher priority count. Where sums of requests decide alone, the refusals are cached
with the results of the pod's signature, and only rows that changed are tried again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.refusals import expected_on, judge_with
from fairlead.core.framework.sums import shortage_with, sums_alone
from fairlead.core.framework.verdicts import FEASIBLE

if TYPE_CHECKING:
    from fairlead.core.engine.cycle.placement import Search
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.evaluate import Evaluator
    from fairlead.core.framework.sums import Sums
    from fairlead.core.model.pod import Pod


def refused_for_nominated(cycle: Cycle, evaluator: Evaluator, search: Search) -> dict[int, int]:
    """The rows that refuse the pod because of nominated pods, with the codes of the refusals."""
    nominated = search.nominated
    if not nominated:
        return {}
    sums = sums_alone(cycle)
    trial = _Trial(cycle, evaluator, search, sums)
    if sums is None or search.promises is None:
        return dict(trial.refusals(nominated))
    table, results = cycle.cluster.table, cycle.results
    assert results is not None
    cached = results.nominated
    logs = (search.promises, table.static, table.counted)
    stale = [row for row in cached.stale(logs, tuple(nominated)) if row in nominated or row in cached.codes]
    for row in stale:
        cached.codes.pop(row, None)
    cached.codes.update(trial.refusals([row for row in stale if row in nominated]))
    refused = dict(cached.codes)
    own = table.row_of.get(cycle.pod.nominated_node) if cycle.pod.nominated_node else None
    if own is not None and own in nominated:  # other pods of this signature are not nominated to that row
        refused.pop(own, None)
        refused.update(trial.refusals([own]))
    return refused


class _Trial:
    def __init__(self, cycle: Cycle, evaluator: Evaluator, search: Search, sums: Sums | None) -> None:
        self._cycle = cycle
        self._evaluator = evaluator
        self._nominated = search.nominated
        self._sums = sums

    def refusals(self, rows: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Which of some rows refuse the pod because of pods nominated to them, and with which code."""
        alive = self._cycle.cluster.table.alive
        for row in rows:
            expected = expected_on(self._nominated, self._cycle.pod, row)
            if expected and alive[row]:
                code = self._judge(expected, row)
                if code != FEASIBLE:
                    yield row, code

    def _judge(self, expected: Sequence[Pod], row: int) -> int:
        results = self._cycle.results
        assert results is not None
        if self._sums is None or results.static.codes[row] != FEASIBLE:
            return judge_with(self._cycle, self._evaluator, row, expected)
        verdict = shortage_with(self._sums, self._cycle.cluster.table, row, expected)
        return FEASIBLE if verdict is None else self._evaluator.codes.code(verdict)
