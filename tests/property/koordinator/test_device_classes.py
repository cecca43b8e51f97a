"""DeviceShare judges classes of nodes: it says of each row what it would say of the row alone, whatever came before."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pytest

from fairlead.core.framework.cycle import Cycle
from fairlead.core.model.flow import Doc
from fairlead.core.model.reasons import Reject, Status
from fairlead.core.state.nodes import Nodes
from fairlead.koordinator.devices.choice import DeviceChoice
from fairlead.koordinator.devices.plugin import DeviceSharePlugin
from fairlead.koordinator.kinds import KOORD_DEVICE
from fairlead.koordinator.reservations.shown import chosen_on
from tests.support.documents import asking, node
from tests.support.koordinator import GPU, SCHEDULING, KoordScenario, koord_pod, koord_reservation

RDMA = "koordinator.sh/rdma"
PARTITIONS = json.dumps(
    {"1": [{"minors": [at], "allocationScore": 1} for at in range(4)], "2": [{"minors": [0, 1], "allocationScore": 2}]}
)


def _alone(plugin: DeviceSharePlugin, cycle: Cycle, row: int, *, scored: bool) -> DeviceChoice | None:
    """The choice on one row, from its own Device object and what its own pods hold."""
    rows, note = plugin.rows(cycle), cycle.notes[plugin.name]
    devices, found = rows.devices(row), cycle.cluster.table.nodes[row]
    if devices is None or found is None:
        return None
    settings = plugin._settings
    return DeviceChoice(
        devices,
        rows.holdings(row),
        note.request,
        plugin._scorer if scored else None,
        model=found.labels,
        swaps_free_and_total=settings.swaps_free_and_total,
        ascending_partitions=settings.ascending_partitions,
    )


def _device_node(name: str, rng: Random) -> tuple[Doc, Doc]:
    """A node of one of a few kinds, so that some are equal."""
    gpus, cards, placed, table = rng.choice([(2, 0, True, False), (4, 2, True, False), (4, 0, False, True)])
    memory = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100",
              "koordinator.sh/gpu-memory": "16Gi"}  # fmt: skip
    devices: list[Doc] = []
    for kind, count, resources in (("gpu", gpus, memory), ("rdma", cards, {RDMA: "100"})):
        for at in range(count):
            place = {"topology": {"nodeID": at % 2, "pcieID": str(at % 2), "socketID": 0}} if placed else {}
            entry = {"type": kind, "id": f"{name}-{kind}-{at}", "minor": at, "health": rng.random() < 0.95}
            devices.append({**entry, "resources": resources, **place})
    offered = {key: str(100 * gpus) for key in (GPU, "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory-ratio")}
    annotations = {SCHEDULING + "gpu-partitions": PARTITIONS} if table else {}
    document = {
        "apiVersion": KOORD_DEVICE.api_version,
        "kind": "Device",
        "spec": {"devices": devices},
        "metadata": {"name": name, "uid": f"device-{name}", "annotations": annotations},
    }
    return node(name, cpu=16, **{**offered, RDMA: str(100 * cards)}), document


def _step(scenario: KoordScenario, rng: Random, number: int) -> None:
    what = rng.randrange(12)
    pods = sorted(key for key in scenario.docs if key[0] == "pods")
    if what == 0:
        scenario.tell(*_device_node(f"m{number}", rng))
    elif what == 1:
        scenario.tell(koord_reservation(f"r{number}", request={"cpu": "1", GPU: "100"}, owners={"app": "web"}))
    elif what in (2, 3) and pods:
        scenario.gone(scenario.docs[rng.choice(pods)])
    elif what == 4:
        name = f"n{rng.randrange(3)}"
        scenario.run(*(scenario.as_change(document) for document in _device_node(name, rng)))
    else:
        wish = rng.choice([{GPU: "50"}, {GPU: "30"}, {GPU: "100"}, {GPU: "200"}, {GPU: "100", RDMA: "100"}, {}])
        annotations = {}
        if rng.random() < 0.3:
            annotations[SCHEDULING + "device-joint-allocate"] = json.dumps({"deviceTypes": ["gpu", "rdma"]})
        labels = {"app": rng.choice(["web", "db"])}
        asked = {"cpu": "1", **wish}
        scenario.tell(koord_pod(f"p{number}", containers=[asking(asked)], labels=labels, annotations=annotations))


@pytest.mark.parametrize("seed", range(4))
def test_what_is_said_of_a_class_is_said_of_each_of_its_rows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = {"filter": 0, "score": 0}
    filter_, score = DeviceSharePlugin.filter, DeviceSharePlugin.score

    def checked_filter(self: DeviceSharePlugin, cycle: Cycle, nodes: Nodes) -> list[Reject]:
        found = list(filter_(self, cycle, nodes))
        for at, row in enumerate(nodes.row_numbers().tolist()):
            said = {(reject.reason.text, reject.reason.final) for reject in found if reject.rows[at]}
            choice = _alone(self, cycle, row, scored=False)
            alone = choice.choose(self._limits(cycle, row)) if choice is not None else None
            refused = isinstance(alone, Status)
            wanted = {(text, alone.code.name == "UNRESOLVABLE") for text in alone.reasons} if refused else set()
            assert said == wanted
            compared["filter"] += choice is not None
        return found

    def checked_score(self: DeviceSharePlugin, cycle: Cycle, nodes: Nodes) -> Any:
        found = score(self, cycle, nodes)
        if self.name not in cycle.notes:
            return found
        alone = []
        for row in nodes.row_numbers().tolist():
            choice, chosen = _alone(self, cycle, row, scored=True), chosen_on(cycle, row)
            counts = chosen is None or self.rows(cycle).left_of(chosen)
            alone.append(choice.node_score(self._limits(cycle, row)) if choice is not None and counts else 0)
        np.testing.assert_array_equal(found, alone)
        compared["score"] += len(alone)
        return found

    monkeypatch.setattr(DeviceSharePlugin, "filter", checked_filter)
    monkeypatch.setattr(DeviceSharePlugin, "score", checked_score)
    rng, scenario = Random(seed), KoordScenario()
    for number in range(3):
        scenario.tell(*_device_node(f"n{number}", rng))
    for number in range(40):
        _step(scenario, rng, number)
        scenario.settle()
    assert compared["filter"] > 20
    assert compared["score"] > 10
    assert not scenario.backlog.complaints
