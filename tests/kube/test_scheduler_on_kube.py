"""`fairlead scheduler` in kube-scheduler's place on a real API server: the same events, conditions and writes."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.client.port import Query
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import EVENT_V1, NODE, POD
from tests.support.real import contenders
from tests.support.real.contenders import FAIRLEAD, KUBE, pod_document
from tests.support.real.control_plane import ControlPlane

pytestmark = pytest.mark.kube

PODS, NODES = 200, 20
HOPELESS = {
    "huge": pod_document("huge", cpu="99"),
    "picky": {
        **pod_document("picky", cpu="1m"),
        "spec": {**pod_document("picky")["spec"], "nodeSelector": {"disk": "tape"}},
    },
    "gated": {
        **pod_document("gated"),
        "spec": {**pod_document("gated")["spec"], "schedulingGates": [{"name": "example.com/g"}]},
    },
}


class Seen:
    """What a scheduler left behind in a namespace, without what must differ."""

    def __init__(self, pods: list[dict[str, Any]], events: list[dict[str, Any]]) -> None:
        self.spread = Counter(pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName"))
        self.conditions = {pod["metadata"]["name"]: _conditions(pod) for pod in pods}
        self.nominated = {pod["status"].get("nominatedNodeName") for pod in pods}
        self.events = Counter(_event(event) for event in events)


def _conditions(pod: dict[str, Any]) -> list[dict[str, Any]]:
    volatile = ("lastTransitionTime", "lastProbeTime")
    return [
        {key: value for key, value in condition.items() if key not in volatile}
        for condition in pod["status"].get("conditions", ())
    ]


def _event(event: dict[str, Any]) -> tuple[str, ...]:
    note = re.sub(r"seen-[0-9a-f]+|web-\d+|node-\d+", "X", event["note"])
    regarding = event["regarding"]
    instance = event["reportingInstance"].partition("-")[0]
    return (
        event["type"],
        event["reason"],
        event["action"],
        note,
        event["reportingController"],
        instance,
        regarding["kind"],
        regarding["apiVersion"],
        str("series" in event),
    )


async def schedule(api: KubeApi, plane: ControlPlane, name: str) -> Seen:
    namespace = f"seen-{uuid.uuid4().hex[:8]}"
    await contenders.make_namespace(api, namespace)
    with contenders.contender(name, plane.kubeconfig, plane.directory / namespace) as running:
        documents = [pod_document(f"web-{number}", cpu="500m", memory="1Gi") for number in range(PODS)]
        await contenders.create(api, POD, namespace, [*documents, *HOPELESS.values()])
        await contenders.until_bound(api, namespace, PODS, running)
        events = await _events(api, namespace)
    pods = (await api.list(POD, Query(namespace=namespace))).items
    await contenders.clear(api, namespace)
    return Seen(pods, events)


async def _events(api: KubeApi, namespace: str) -> list[dict[str, Any]]:
    """All that are to be expected, and a moment more for those that are not."""
    expected = PODS + len(HOPELESS) - 1
    async with asyncio.timeout(180):
        while len((await api.list(EVENT_V1, Query(namespace=namespace))).items) < expected:  # noqa: ASYNC110 (a real server)
            await asyncio.sleep(0.2)
    await asyncio.sleep(1.0)
    return (await api.list(EVENT_V1, Query(namespace=namespace))).items


async def test_events_and_conditions_equal_kube_schedulers(control_plane: ControlPlane, tmp_path: Path) -> None:
    api = KubeApi(load_kubeconfig(control_plane.kubeconfig))
    try:
        others = [node["metadata"]["name"] for node in (await api.list(NODE)).items]
        for other in others:
            await api.perform(Write(Verb.DELETE, NODE, "", other))
        await contenders.make_cluster(api, NODES)
        theirs = await schedule(api, control_plane, KUBE)
        ours = await schedule(api, control_plane, FAIRLEAD)
        for number in range(NODES):
            await api.perform(Write(Verb.DELETE, NODE, "", f"node-{number}"))
    finally:
        await api.close()
    assert ours.conditions == theirs.conditions
    assert ours.events == theirs.events
    assert ours.nominated == theirs.nominated
    assert sum(ours.spread.values()) == sum(theirs.spread.values()) == PODS
    # Nodes with a pod more or less may tie, as scores are whole numbers, and ties are broken at random.
    for seen in (ours, theirs):
        assert max(seen.spread.values()) - min(seen.spread.values()) <= 2, "equal nodes fill evenly"
