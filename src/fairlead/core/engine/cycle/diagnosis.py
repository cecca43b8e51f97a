"""Why no row is feasible: the verdict on every row that was looked at, and the Diagnosis that users read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.engine.cycle.placement import Blocked
from fairlead.core.framework.extender import PSEUDO_PLUGIN
from fairlead.core.framework.refusals import UNJUDGED, Refusals
from fairlead.core.framework.verdicts import FEASIBLE
from fairlead.core.model.reasons import Diagnosis, Status, unresolvable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.engine.cycle.placement import Search
    from fairlead.core.framework.evaluate import Evaluator
    from fairlead.core.framework.points import PreFilterResult
    from fairlead.core.framework.verdicts import VerdictCodes
    from fairlead.core.model.reasons import Verdict


def refused_by_prefilter(
    status: Status, preparation: PreFilterResult, evaluator: Evaluator, search: Search, *, total: int, high: int
) -> Blocked:
    """PreFilter refused the pod: no row was judged."""
    diagnosis = Diagnosis(
        total=total,
        counts={},
        absent=status,
        absent_count=total,
        early=status,
        unschedulable_plugins=preparation.rejectors,
    )
    codes = np.full(high, UNJUDGED, dtype=np.int32)
    return Blocked(Refusals(diagnosis, codes, evaluator, search.nominated, search.promises))


def refused_everywhere(
    codes: NDArray[np.int32],
    preparation: PreFilterResult,
    evaluator: Evaluator,
    search: Search,
    *,
    total: int,
    nominated: int | None,
    by_extender: bool,
) -> Blocked:
    """No row passed. `codes` is the verdict on each row, UNJUDGED where nobody looked; `nominated` is the row that the
    pod is nominated to, which is looked at even if PreFilter excluded it."""
    counts = _counts(codes, evaluator.codes)
    absent = _absent(codes, preparation, evaluator.codes, nominated)
    plugins = {*preparation.narrowed_by, *(verdict.plugin for verdict in counts)}
    if by_extender:
        plugins.add(PSEUDO_PLUGIN)
    diagnosis = Diagnosis(
        total=total,
        counts=counts,
        absent=absent,
        absent_count=total - sum(counts.values()) if absent else 0,
        unschedulable_plugins=frozenset(plugins),
    )
    return Blocked(Refusals(diagnosis, codes, evaluator, search.nominated, search.promises))


def _counts(codes: NDArray[np.int32], verdicts: VerdictCodes) -> dict[Verdict, int]:
    refused = codes[codes > FEASIBLE]
    histogram = np.bincount(refused) if len(refused) else ()
    return {verdicts.verdict(code): int(n) for code, n in enumerate(histogram) if n}


def _absent(
    codes: NDArray[np.int32], preparation: PreFilterResult, verdicts: VerdictCodes, nominated: int | None
) -> Status | None:
    """Why nobody looked at the other rows: PreFilter excluded them. The plugin that refused the nominated row is named
    too, as in the original."""
    if preparation.names is None:
        return None
    named = set(preparation.narrowed_by)
    if nominated is not None and codes[nominated] > FEASIBLE:
        named.add(verdicts.verdict(int(codes[nominated])).plugin)
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(named))}]")
