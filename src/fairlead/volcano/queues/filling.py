"""Filling: what queues deserve of a cluster that they share by weight.

In every step what is left is offered to all queues that do not have enough yet, by weight, up to what they request and
may have, and at least what they are guaranteed. All queues are the rows of one array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.volcano.records.amounts import EPSILON, PODS, Amounts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.volcano.queues.account import QuotaAccount


def share_out(total: Amounts, accounts: Sequence[QuotaAccount]) -> None:
    """Set what each queue deserves. The order of accounts decides how rounding errors add up."""
    if not accounts:
        return
    names = _names(total, accounts)
    deserved = fill(
        np.array([total.get(name) for name in names]),
        weights=np.array([account.rules.weight for account in accounts], dtype=np.float64),
        request=_matrix([account.request for account in accounts], names),
        limit=_matrix([account.limit for account in accounts], names, missing=np.inf),
        guarantee=_matrix([account.guarantee for account in accounts], names),
        counted=np.array([name != PODS for name in names]),
    )
    for account, row in zip(accounts, deserved.tolist(), strict=True):
        account.deserved = Amounts()
        for name, amount in zip(names, row, strict=True):
            if name in ("cpu", "memory") or name in total.scalars or name in account.guarantee.scalars:
                account.deserved.set(name, amount)


def _names(total: Amounts, accounts: Sequence[QuotaAccount]) -> list[str]:
    names = dict.fromkeys(["cpu", "memory", *total.scalars])
    for account in accounts:
        names |= dict.fromkeys([*account.request.scalars, *account.guarantee.scalars])
    return list(names)


def _matrix(amounts: Sequence[Amounts], names: Sequence[str], missing: float = 0.0) -> NDArray[np.float64]:
    """Rows of amounts; what one does not name is `missing` (cpu and memory are always named)."""
    return np.array(
        [
            [each.get(name) if name in ("cpu", "memory") or name in each.scalars else missing for name in names]
            for each in amounts
        ],
        dtype=np.float64,
    )


def fill(
    total: NDArray[np.float64],
    *,
    weights: NDArray[np.float64],
    request: NDArray[np.float64],
    limit: NDArray[np.float64],
    guarantee: NDArray[np.float64],
    counted: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """What each queue (a row) deserves of each dimension (a column). `counted` are the dimensions of which something
    must be left for another step."""
    deserved = np.zeros(request.shape, dtype=np.float64)
    content = np.zeros(len(weights), dtype=np.bool_)
    remaining = total.copy()
    first = request.shape[1] > 2  # the original then counts names that come up for the first time as a change
    while (weight := weights[~content].sum()) > 0:
        before = deserved.copy()
        offered = before + remaining * (weights / weight)[:, None]
        wanted = np.maximum(np.minimum(np.minimum(offered, limit), request), guarantee)
        deserved[~content] = wanted[~content]
        met = ((request < deserved) | (np.abs(request - deserved) < EPSILON)).all(axis=1)
        stuck = (deserved == before).all(axis=1)
        content |= met | (stuck & (not first))
        change = deserved - before
        left = np.maximum(0.0, remaining + np.maximum(-change, 0).sum(axis=0) - np.maximum(change, 0).sum(axis=0))
        if (left[counted] < EPSILON).all() or (left == remaining).all():
            break
        remaining = left
        first = False
    return deserved
