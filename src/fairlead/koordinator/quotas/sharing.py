"""Water-filling: how an amount is shared among quotas by minimum, request and weight.

Everybody gets its minimum, or less if it requests less and lends the rest. What is left is shared by weight among those
that request more; who has enough gives the surplus back, and it is shared again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """One participant. `least` is its minimum, or what it uses already where that is guaranteed."""

    weight: int
    request: int
    least: int
    lends: bool


def share_out(total: int, shares: Sequence[Share], *, rounds_up: bool) -> list[int]:
    """What each gets. With `rounds_up` parts are rounded to the nearest unit, as in the original, so that they may come
    to a few units more than the total; otherwise they never do."""
    given = [_first(share) for share in shares]
    left = total - sum(given)
    wanting = [at for at, share in enumerate(shares) if share.request > share.least]
    while left > 0 and wanting:
        weights = sum(shares[at].weight for at in wanting)
        if weights <= 0:
            break
        parts = _parts(left, [shares[at].weight for at in wanting], weights, rounds_up=rounds_up)
        surplus, still = 0, []
        for at, part in zip(wanting, parts, strict=True):
            given[at] += part
            if given[at] < shares[at].request:
                still.append(at)
            else:
                surplus += given[at] - shares[at].request
                given[at] = shares[at].request
        left, wanting = surplus, still
    return given


def _first(share: Share) -> int:
    if share.request > share.least or not share.lends:
        return share.least
    return share.request


def _parts(total: int, weights: Sequence[int], whole: int, *, rounds_up: bool) -> list[int]:
    """The parts of a total by weight."""
    if rounds_up:
        return [int(float(weight) * float(total) / float(whole) + 0.5) for weight in weights]
    parts = [weight * total // whole for weight in weights]
    remainders = sorted(range(len(weights)), key=lambda at: (-(weights[at] * total % whole), at))
    for at in remainders[: total - sum(parts)]:
        parts[at] += 1
    return parts
