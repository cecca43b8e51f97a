"""Explanations of pods that lack devices: how many match, which selector refuses the others, and who holds them."""

from __future__ import annotations

from typing import Any

from fairlead.cli.explain.device_text import device_lines
from fairlead.testing.harness import Harness
from tests.support.claims import DRIVER, device_class, devices, gpus, pod, template


def explained(cluster: Harness, name: str) -> dict[str, Any]:
    explanation = cluster.explain(name)
    assert explanation is not None
    return explanation.to_document()


def test_who_holds_the_devices_that_would_do() -> None:
    cluster = Harness(nodes=2)
    cluster.apply(device_class(), *[gpus(f"node-{at}", 2) for at in range(2)])
    cluster.apply(template("two", devices(2)), template("one", devices()))
    cluster.apply(pod("first", of="two"), pod("second", of="one"))
    cluster.run(20)
    cluster.apply(pod("late", of="two"))
    cluster.run(20)
    (request,) = explained(cluster, "late")["devices"]
    assert (request["request"], request["deviceClass"], request["wanted"]) == ("a", "gpu", 2)
    assert (request["devices"], request["matching"], request["free"]) == (4, 4, 1)
    assert request["mostOnOneNode"]["free"] == 1
    assert [(holder["pods"], holder["devices"]) for holder in request["heldBy"]] == [(["first"], 2), (["second"], 1)]
    assert "heldBy" in request["nearest"]
    text = "\n".join(map(str, device_lines({"devices": [request]})))
    assert "4 devices, 4 match, 1 free, at most 1 of them on one node" in text
    assert "of pod first" in text


def test_the_selector_that_refuses_and_the_nearest_device() -> None:
    cluster = Harness(nodes=1)
    cluster.apply(device_class(), gpus("node-0", 2))
    spec = devices()
    expressions = [f'device.attributes["{DRIVER}"].numa == 1', f'device.attributes["{DRIVER}"].numa > 4']
    spec["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression": one}} for one in expressions]
    cluster.apply(template("odd", spec), pod("p", of="odd"))
    cluster.run(20)
    (request,) = explained(cluster, "p")["devices"]
    assert request["matching"] == 0
    assert {one["selector"]: one["devices"] for one in request["refusedBy"]} == dict.fromkeys(expressions, 1)
    assert {one["of"] for one in request["refusedBy"]} == {"request"}
    assert request["nearest"] == {
        "device": f"{DRIVER}/node-0/gpu-1",
        "node": "node-0",
        "fails": expressions[1:],
        "has": {"numa": 1},
    }
    assert "refused by" in "\n".join(map(str, device_lines({"devices": [request]})))
