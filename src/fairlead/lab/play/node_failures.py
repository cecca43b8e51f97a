"""NodeFailures: nodes of a run that fall silent and come back, at times drawn from a scenario."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from random import Random
from typing import TYPE_CHECKING

from fairlead.cluster.kubelets.simulated_nodes import FAIL
from fairlead.core.model import kinds
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.lab.scenario.drawing import draw

if TYPE_CHECKING:
    from fairlead.lab.scenario.records import NodeFailureSpec
    from fairlead.testing.harness import Harness


class NodeFailures:
    """`spec` None lets no node fail."""

    def __init__(self, spec: NodeFailureSpec | None, cluster: Harness, rng: Random) -> None:
        self._spec = spec
        self._cluster = cluster
        self._rng = rng
        self._silences: dict[str, list[float]] = defaultdict(list)

    def begin(self, nodes: Iterable[str]) -> None:
        """Put the first failure of each node on the agenda."""
        if self._spec is not None:
            for name in nodes:
                self._fail_later(name, self._spec)

    def silences(self, node: str) -> Sequence[float]:
        """How long each silence of a node that is over lasted."""
        return self._silences.get(node, ())

    def _fail_later(self, name: str, spec: NodeFailureSpec) -> None:
        at = self._cluster.now + draw(spec.every, self._rng)
        repair = draw(spec.repair, self._rng)
        self._cluster.runtime.at(at, lambda: self._silence(name, "true"))
        self._cluster.runtime.at(at + repair, lambda: self._recover(name, repair, spec))

    def _silence(self, name: str, value: str | None) -> None:
        body = {"metadata": {"annotations": {FAIL: value}}}
        store = self._cluster.store
        store.perform(Write(Verb.PATCH, kinds.NODE, "", name, body=body, patch_type=PatchType.MERGE))

    def _recover(self, name: str, silent: float, spec: NodeFailureSpec) -> None:
        self._silences[name].append(silent)
        self._silence(name, None)
        self._fail_later(name, spec)
