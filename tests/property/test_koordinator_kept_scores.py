"""NodeNUMAResource keeps the scores of plain rows: they are those that would be worked out anew, whatever happened."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from fairlead.plugins.koordinator.numa.plugin import NodeNUMAResource
from fairlead.state.nodes import Nodes
from tests.support.documents import node
from tests.support.koordinator import KoordScenario, koord_pod, koord_reservation


@pytest.mark.parametrize("seed", range(4))
def test_kept_scores_are_those_worked_out_anew(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    kept = NodeNUMAResource._kept_scores

    def checked(self: NodeNUMAResource, cluster: Any, nodes: Nodes, asked: Any) -> Any:
        nonlocal compared
        found = kept(self, cluster, nodes, asked)
        np.testing.assert_array_equal(found, self._plain_scores(nodes, asked))
        compared += 1
        return found

    monkeypatch.setattr(NodeNUMAResource, "_kept_scores", checked)
    rng, scenario = Random(seed), KoordScenario()
    for number in range(3):
        scenario.tell(node(f"n{number}", cpu=8))
    for number in range(30):
        what = rng.randrange(10)
        if what == 0:
            scenario.tell(node(f"m{number}", cpu=rng.choice([4, 16])))
        elif what == 1:
            scenario.tell(koord_reservation(f"r{number}", request={"cpu": "2"}, owners={"app": "web"}))
        elif what == 2:
            pods = sorted(key for key in scenario.docs if key[0] == "pods")
            if pods:
                scenario.gone(scenario.docs[rng.choice(pods)])
        else:
            labels = {"app": rng.choice(["web", "db"])}
            scenario.tell(koord_pod(f"p{number}", cpu=str(rng.randrange(1, 4)), labels=labels))
        scenario.settle()
    assert compared > 5
    assert not scenario.backlog.complaints
