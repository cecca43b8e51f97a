"""agree: tests that the fast version of a plugin gives the same answers as a simple one, on random clusters.

    def test_the_fast_one_agrees():
        agree(not_in_maintenance, NotInMaintenance())

Filters must refuse the same nodes for the same pods, with the same words; scores must give the same numbers. The first
difference is an AssertionError that names pod and node. Clusters are made from a seed: a failure can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.effects import Effects
from fairlead.core.framework.plugin import takes_part
from fairlead.core.framework.profile import profile_of
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.cluster import Cluster
from fairlead.core.state.nodes import Nodes
from fairlead.testing.builders import NodeBuilder, PodBuilder, node, pod

if TYPE_CHECKING:
    from fairlead.core.framework.plugin import Plugin
    from fairlead.core.model.pod import Pod

__all__ = ["agree", "any_node", "any_pod"]

MakeNode = Callable[[Random, str], NodeBuilder]
MakePod = Callable[[Random, str], PodBuilder]


def agree(
    one: Plugin,
    other: Plugin,
    *,
    clusters: int = 20,
    nodes: int = 12,
    pods: int = 12,
    make_node: MakeNode | None = None,
    make_pod: MakePod | None = None,
    seed: int = 0,
) -> None:
    """Compare two plugins on as many random clusters. `make_node` and `make_pod` describe what is special about yours
    (they get a Random and a name); half of the pods are on nodes, the other half is asked about."""
    points = [point for point in ("filter", "score") if takes_part(one, point) or takes_part(other, point)]
    assert points, f"{_title(one)} and {_title(other)} neither filter nor score"
    for number in range(clusters):
        rng = Random(seed * 1_000_003 + number)
        cluster = _random_cluster(rng, nodes, pods, make_node or any_node, make_pod or any_pod)
        for candidate in _pending(cluster):
            answers = [_answers(plugin, candidate, cluster, points) for plugin in (one, other)]
            _compare(answers, candidate, cluster, titles=(_title(one), _title(other)))


def any_node(rng: Random, name: str) -> NodeBuilder:
    """A node of some size, zone, labels, taints and annotations."""
    made = node(name).offers(cpu=str(rng.randint(1, 8)), memory=f"{rng.randint(1, 16)}Gi")
    made = made.in_zone(f"zone-{rng.randrange(3)}").labelled({"tier": rng.choice(("gold", "silver"))})
    made = made.labelled({"maintenance": rng.choice(("true", "false"))}) if rng.random() < 0.5 else made
    made = made.annotated({"temperature": str(rng.randint(0, 100))}) if rng.random() < 0.5 else made
    made = made.tainted("dedicated", value=rng.choice(("a", "b"))) if rng.random() < 0.3 else made
    return made.cordoned() if rng.random() < 0.1 else made


def any_pod(rng: Random, name: str) -> PodBuilder:
    """A pod of some size, with some labels, selectors and tolerations."""
    made = pod(name).asks(cpu=f"{rng.randint(1, 20)}00m", memory=f"{rng.randint(64, 2048)}Mi")
    made = made.labelled({"app": rng.choice(("web", "db"))})
    made = made.selects(tier="gold") if rng.random() < 0.3 else made
    return made.tolerates("dedicated") if rng.random() < 0.3 else made


def _random_cluster(rng: Random, nodes: int, pods: int, make_node: MakeNode, make_pod: MakePod) -> Cluster:
    cluster = Cluster()
    names = [f"node-{number}" for number in range(rng.randint(1, nodes))]
    for name in names:
        cluster.apply(Change(Happened.ADDED, kinds.NODE, make_node(rng, name).doc()))
    for number in range(pods):
        made = make_pod(rng, f"pod-{number}")
        doc = (made.on(rng.choice(names)) if number % 2 else made).doc()
        doc["metadata"]["uid"] = f"uid-{number}"
        cluster.apply(Change(Happened.ADDED, kinds.POD, doc))
    if len(names) > 2 and rng.random() < 0.5:
        # A row that belongs to nobody: an answer about it must not matter, and asking must not hurt.
        gone = {"metadata": {"name": names[0]}}
        cluster.apply(Change(Happened.DELETED, kinds.NODE, gone))
    return cluster


def _pending(cluster: Cluster) -> Sequence[Pod]:
    return [pod_state.pod for pod_state in cluster.pods.values() if pod_state.row < 0]


def _answers(plugin: Plugin, candidate: Pod, cluster: Cluster, points: Sequence[str]) -> dict[str, list[Any]]:
    """By point, what a plugin says of each row."""
    profile = profile_of("agree", [plugin])
    cycle = Cycle(pod=candidate, cluster=cluster, profile=profile, now=0.0, rng=Random(0), effects=Effects())
    nodes = Nodes(cluster.table)
    if takes_part(plugin, "pre_filter"):
        plugin.pre_filter(cycle)
    answers: dict[str, list[Any]] = {}
    if "filter" in points:
        refusals: list[list[str]] = [[] for _ in range(len(nodes))]
        for reject in plugin.filter(cycle, nodes):
            for row in np.flatnonzero(reject.rows):
                refusals[row].append(reject.reason.text)
        answers["filter"] = refusals
    if "score" in points:
        if takes_part(plugin, "pre_score"):
            plugin.pre_score(cycle, nodes)
        raw = plugin.score(cycle, nodes)
        scores = np.broadcast_to(np.asarray(raw, dtype=np.int64), (len(nodes),))
        answers["score"] = list(
            plugin.normalize_score(cycle, nodes, scores) if takes_part(plugin, "normalize_score") else scores
        )
    return answers


def _compare(
    answers: Sequence[dict[str, list[Any]]], candidate: Pod, cluster: Cluster, *, titles: tuple[str, str]
) -> None:
    for point, said in answers[0].items():
        for row, (first, second) in enumerate(zip(said, answers[1][point], strict=True)):
            if cluster.table.alive[row] and first != second:
                raise AssertionError(
                    f"{point} of pod {candidate.key} on {cluster.table.name(row)}: "
                    f"{titles[0]} says {first!r}, {titles[1]} says {second!r}"
                )


def _title(plugin: Plugin) -> str:
    return f"{type(plugin).__name__} {plugin.name}"
