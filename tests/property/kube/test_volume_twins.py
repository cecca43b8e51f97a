"""The volume plugins in columns agree with the plain ones, node by node; and what is kept up agrees with a recount."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.core.framework.plugin import Plugin
from fairlead.core.framework.refusals import trial_statement
from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc, Happened
from fairlead.core.model.pod import compile_pod
from fairlead.kube.volumes.binding import VolumeBinding
from fairlead.kube.volumes.binding import VolumePlan as BindingPlan
from fairlead.kube.volumes.limits import NodeVolumeLimits
from fairlead.kube.volumes.restrictions import VolumeRestrictions
from fairlead.kube.volumes.storage import storage_of
from fairlead.kube.volumes.zone import VolumeZone
from tests.support import storage_twins as twins
from tests.support.plugins import Answer, PendingPod, answer_of, verdicts
from tests.support.random_storage import (
    CLAIMS,
    NODES,
    VOLUMES,
    StorageObjects,
    claim_docs,
    csi_node_docs,
    node_docs,
    pod_docs,
    storage_objects,
    volume_docs,
)
from tests.support.scenario import put

PAIRS: list[tuple[type[Plugin], Callable[[StorageObjects, Doc], Answer]]] = [
    (VolumeRestrictions, twins.restrictions),
    (NodeVolumeLimits, twins.limits),
    (VolumeZone, twins.zone),
    (VolumeBinding, twins.binding),
]


@pytest.mark.parametrize(("plugin", "twin"), PAIRS)
@settings(max_examples=60)
@given(world=storage_objects(), pod=pod_docs("new"))
def test_a_plugin_in_columns_answers_as_its_plain_twin(plugin: Any, twin: Any, world: StorageObjects, pod: Doc) -> None:
    answer, _ = answer_of(plugin(), world.cluster(), pod)
    assert answer == twin(world, pod)


@settings(max_examples=60)
@given(world=storage_objects(), pod=pod_docs("new"))
def test_what_is_reserved_on_a_node_is_what_the_plain_twin_found_there(world: StorageObjects, pod: Doc) -> None:
    cluster, plugin = world.cluster(), VolumeBinding()
    answer, cycle = answer_of(plugin, cluster, pod)
    sorted_out = twins.classify(world, pod)
    if not isinstance(answer, dict) or not isinstance(sorted_out, tuple) or not isinstance(sorted_out[0], list):
        return
    storage = storage_of(cluster)
    for name in [name for name, verdict in answer.items() if verdict is None]:
        node = world.find(kinds.NODE, name)
        assert node is not None
        expected = twins.Plan(world, node, *sorted_out)  # type: ignore[arg-type]
        plugin.reserve(cycle, cluster.table.row_of[name])
        plan: BindingPlan = cycle.notes["VolumeBinding"]
        if plan.reserved is not None:
            assert [(claim.name, volume.name) for claim, volume in plan.reserved.bindings] == expected.matched
            assert [claim.name for claim in plan.reserved.provisions] == expected.made
            assert set(storage.volumes.pretended()) == {volume for _, volume in expected.matched}
        plugin.unreserve(cycle, cluster.table.row_of[name])
        assert not storage.volumes.pretended()
        assert not storage.claims.pretended()


@settings(max_examples=40)
@given(world=storage_objects(), pod=pod_docs("new"), data=st.data())
def test_answers_after_changes_are_those_of_a_cluster_built_anew(
    world: StorageObjects, pod: Doc, data: st.DataObject
) -> None:
    cluster = world.cluster()
    for plugin, _ in PAIRS:
        answer_of(plugin(), cluster, pod)
    for _ in range(data.draw(st.integers(1, 4))):
        _change(world, cluster, data)
        for plugin, twin in PAIRS:
            answer, _ = answer_of(plugin(), cluster, pod)
            assert answer == twin(world, pod)


def _change(world: StorageObjects, cluster: Any, data: st.DataObject) -> None:
    kind, names, make = data.draw(
        st.sampled_from(
            [
                (kinds.PERSISTENT_VOLUME, VOLUMES, volume_docs),
                (kinds.PERSISTENT_VOLUME_CLAIM, CLAIMS, claim_docs),
                (kinds.CSI_NODE, NODES, csi_node_docs),
                (kinds.NODE, NODES, node_docs),
                (kinds.POD, (), None),
            ]
        )
    )
    if make is None:
        if world.existing:
            gone = world.existing.pop(data.draw(st.integers(0, len(world.existing) - 1)))
            put(cluster, kinds.POD, gone, Happened.DELETED)
        return
    doc = data.draw(make(data.draw(st.sampled_from(names))))
    listed = world.objects[kind]
    before = [other for other in listed if other["metadata"]["name"] == doc["metadata"]["name"]]
    listed[:] = [other for other in listed if other not in before]
    if before and kind is not kinds.NODE and data.draw(st.booleans()):
        put(cluster, kind, before[0], Happened.DELETED)
        return
    listed.append(doc)
    put(cluster, kind, doc, Happened.MODIFIED if before else Happened.ADDED)


@settings(max_examples=40)
@given(world=storage_objects(), pod=pod_docs("new"), others=st.lists(st.sampled_from(range(4)), unique=True))
def test_a_trial_that_is_rolled_back_leaves_no_trace(world: StorageObjects, pod: Doc, others: list[int]) -> None:
    cluster = world.cluster()
    for plugin in (VolumeRestrictions(), NodeVolumeLimits()):
        before, cycle = answer_of(plugin, cluster, pod)
        if not isinstance(before, dict):
            continue
        trial = cycle.copy()
        statement = trial_statement(trial)
        for place in others:
            if place < len(world.existing):
                pod_state = cluster.pods[world.existing[place]["metadata"]["uid"]]
                statement.evict(pod_state.pod, pod_state.row)
        left = StorageObjects(world.objects, [e for i, e in enumerate(world.existing) if i not in others])
        if isinstance(plugin, NodeVolumeLimits):
            assert verdicts(plugin, trial) == twins.limits(left, pod)
        statement.rollback()
        assert verdicts(plugin, cycle_of(plugin, cluster, pod)) == before


def cycle_of(plugin: Plugin, cluster: Any, pod: Doc) -> Any:
    cycle = PendingPod(cluster, compile_pod(pod, cluster.shapes)).cycle(plugin)
    plugin.pre_filter(cycle)
    return cycle
