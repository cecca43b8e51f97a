"""A score with arguments from the configuration file: cheap instance types first.

Scores are prices, in whatever unit; `normalize_score` turns them into 0 to 100 over the nodes that are left, cheapest
best. Nodes of unknown type count as the most expensive known one. See prices.yaml beside this file.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairlead import CachedPlugin, Cycle, Nodes, Scope

INSTANCE_TYPE = "node.kubernetes.io/instance-type"


class Prices(CachedPlugin):
    name = "Prices"
    scope = Scope.STATIC
    reads = frozenset()

    def __init__(self, args: Mapping[str, Any]) -> None:
        prices = args.get("prices") if isinstance(args, Mapping) else None
        if not prices:
            raise ValueError("args.prices must map instance types to prices")
        self._prices = {str(kind): round(float(price) * 1000) for kind, price in prices.items()}

    def score(self, cycle: Cycle, nodes: Nodes) -> "np.ndarray":
        dearest = max(self._prices.values())
        by_code = [self._prices.get(value, dearest) for value in nodes.label_values(INSTANCE_TYPE)]
        return np.array([*by_code, dearest], dtype=np.int64)[nodes.label(INSTANCE_TYPE)]

    def normalize_score(self, cycle: Cycle, nodes: Nodes, raw: "np.ndarray") -> "np.ndarray":
        spread = int(raw.max() - raw.min())
        return 100 * (raw.max() - raw) // spread if spread else np.full(len(raw), 100)
