"""A class plugin with columns: pods may only run on nodes of their tier or a better one, and rather on their own.

The same policy as a function of one node would be shorter; as arithmetic on whole columns it costs the same for 5,000
nodes as the function does for a few. `scope` is STATIC because the answer depends on nothing but the Node object, so it
is cached until the node changes.
"""

from collections.abc import Iterable

import numpy as np

from fairlead import CachedPlugin, Cycle, Interest, Nodes, Reason, Reject, Scope, interests

TIERS = ("bronze", "silver", "gold")
LABEL = "example.com/tier"


class Tiers(CachedPlugin):
    name = "Tiers"
    scope = Scope.STATIC
    reads = frozenset({f"labels.{LABEL}"})
    _TOO_LOW = Reason(name, "node(s) of too low a tier", final=True)

    def events(self) -> tuple[Interest, ...]:
        return interests("node-added", "node-labels")

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        yield Reject(self._TOO_LOW, self._tiers(nodes) < self._wanted(cycle))

    def score(self, cycle: Cycle, nodes: Nodes) -> "np.ndarray":
        above = self._tiers(nodes) - self._wanted(cycle)
        return 100 - 50 * np.clip(above, 0, 2)

    def _wanted(self, cycle: Cycle) -> int:
        tier = cycle.pod.labels.get(LABEL, TIERS[0])
        return TIERS.index(tier) if tier in TIERS else 0

    def _tiers(self, nodes: Nodes) -> "np.ndarray":
        """The tier of each node as a number: the label's codes, looked up in a table of a few entries."""
        ranks = [TIERS.index(value) if value in TIERS else 0 for value in nodes.label_values(LABEL)]
        return np.array([*ranks, 0], dtype=np.int64)[nodes.label(LABEL)]
