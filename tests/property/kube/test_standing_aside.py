"""A plugin that says that it stands aside would step aside at PreFilter and PreScore, or score every node with 0."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.cel.selectors import compile_selector
from fairlead.core.framework.plugin import takes_part
from fairlead.core.framework.results.cached_plugin import CachedPlugin, overrides
from fairlead.core.model.reasons import SKIP
from fairlead.core.state.nodes import Nodes
from fairlead.kube.affinity.plugin import InterPodAffinity
from fairlead.kube.claims.plugin import DynamicResources
from fairlead.kube.spread.plugin import PodTopologySpread
from tests.support.plugins import PendingPod
from tests.support.random_clusters import pending_pods

PLUGINS: list[CachedPlugin] = [
    PodTopologySpread(),
    PodTopologySpread(default_constraints=[], defaulting="List"),
    InterPodAffinity(),
    InterPodAffinity(ignore_preferred_terms_of_existing_pods=True),
    DynamicResources(compile_selector),
]


@given(st.one_of(pending_pods(), pending_pods(services=True)), st.sampled_from(PLUGINS))
@settings(max_examples=200)
def test_who_stands_aside_has_nothing_to_say(place: PendingPod, plugin: CachedPlugin) -> None:
    assert overrides(plugin, "stands_aside")
    if not plugin.stands_aside(place.cycle(plugin)):
        return
    cycle = place.cycle(plugin)
    nodes = Nodes(place.cluster.table, np.array(sorted(place.nodes()), dtype=np.int32))
    assert plugin.pre_filter(cycle) is SKIP
    if takes_part(plugin, "pre_score"):
        assert plugin.pre_score(cycle, nodes) is SKIP
    elif takes_part(plugin, "score"):
        assert plugin.score(cycle, nodes) == 0
