"""Resource claims from end to end: templates, shared claims, devices given back, gangs, extended resources."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model import kinds as k
from fairlead.errors import Invalid
from fairlead.testing.harness import Harness
from tests.support.claims import DRIVER, claim, device_class, devices, gang, gpus, held, pod, template


@pytest.fixture
def cluster() -> Harness:
    harness = Harness(nodes=3)
    harness.apply(device_class(), *[gpus(f"node-{at}") for at in range(3)])
    return harness


def test_each_pod_of_a_template_gets_a_device_of_its_own_and_the_last_waits(cluster: Harness) -> None:
    cluster.apply(template("one", devices()), *[pod(f"p{at}", of="one") for at in range(7)])
    cluster.run(30)
    assert len(cluster.bindings()) == 6
    assert held(cluster) == [(f"node-{node}", f"gpu-{at}") for node in range(3) for at in range(2)]
    waiting = next(f"p{at}" for at in range(7) if f"p{at}" not in cluster.bindings())
    assert "3 cannot allocate all claims" in cluster.explain(waiting).message


def test_a_device_is_given_back_when_its_pod_goes_and_the_next_pod_gets_it(cluster: Harness) -> None:
    cluster.apply(template("two", devices(2)), *[pod(f"p{at}", of="two") for at in range(4)])
    cluster.run(30)
    first = next(iter(cluster.bindings()))
    cluster.delete(k.POD, first)
    cluster.run(60)
    assert len(cluster.bindings()) == 3
    assert first not in cluster.bindings()
    assert len(held(cluster)) == len(set(held(cluster))) == 6
    assert len(list(cluster.store.list(k.RESOURCE_CLAIM))) == 3


def test_pods_that_share_a_claim_go_where_its_device_is(cluster: Harness) -> None:
    cluster.apply(claim("shared", devices()), *[pod(f"p{at}", shared="shared") for at in range(3)])
    cluster.run(30)
    assert len(cluster.bindings()) == 3
    assert len(set(cluster.bindings().values())) == 1
    assert len(held(cluster)) == 1
    for name in list(cluster.bindings()):
        cluster.delete(k.POD, name)
    cluster.run(60)
    assert held(cluster) == []


def test_a_claim_that_waits_for_its_template_is_made_when_it_comes(cluster: Harness) -> None:
    cluster.apply(pod("p", of="late"))
    cluster.run(10)
    assert cluster.bindings() == {}
    cluster.apply(template("late", devices()))
    cluster.run(30)
    assert set(cluster.bindings()) == {"p"}


def test_two_devices_of_one_numa_node_and_all_devices_of_a_node() -> None:
    cluster = Harness(nodes=1)
    cluster.apply(device_class(), gpus("node-0", 4))
    constraints = [{"matchAttribute": f"{DRIVER}/numa"}]
    everything = {
        "devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}]}
    }
    cluster.apply(claim("pair", devices(2, constraints=constraints)), pod("p", shared="pair"))
    cluster.run(10)
    assert held(cluster) == [("node-0", "gpu-0"), ("node-0", "gpu-2")]
    cluster.delete(k.POD, "p")
    cluster.run(30)
    cluster.apply(claim("all", everything), pod("q", shared="all"))
    cluster.run(10)
    assert len(held(cluster)) == 4


def test_an_extended_resource_is_served_by_a_device_class(cluster: Harness) -> None:
    cluster.apply(device_class("cards", extendedResourceName="example.com/card"))
    container = {"name": "c", "image": "x", "resources": {"limits": {"example.com/card": "2"}}}
    metadata = {"name": "p", "namespace": "default"}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}})
    cluster.run(30)
    assert set(cluster.bindings()) == {"p"}
    assert len(held(cluster)) == 2
    stored = cluster.store.get(k.POD, "default", "p")
    assert stored is not None
    mappings = stored["status"]["extendedResourceClaimStatus"]["requestMappings"]
    assert [one["resourceName"] for one in mappings] == ["example.com/card"]


def test_a_gang_gets_devices_for_all_its_members_or_for_none(cluster: Harness) -> None:
    cluster.apply(template("two", devices(2)), gang("big", 4), gang("fits", 3))
    label = "scheduling.x-k8s.io/pod-group"
    cluster.apply(*[pod(f"big-{at}", of="two", labels={label: "big"}) for at in range(4)])
    cluster.run(30)
    assert cluster.bindings() == {}
    assert held(cluster) == []
    cluster.apply(*[pod(f"fits-{at}", of="two", labels={label: "fits"}) for at in range(3)])
    cluster.run(30)
    assert set(cluster.bindings()) == {"fits-0", "fits-1", "fits-2"}
    assert len(set(held(cluster))) == len(held(cluster)) == 6


def test_members_of_a_gang_may_share_a_claim(cluster: Harness) -> None:
    cluster.apply(claim("ours", devices(2)), gang("team", 3))
    label = "scheduling.x-k8s.io/pod-group"
    cluster.apply(*[pod(f"m{at}", shared="ours", labels={label: "team"}) for at in range(3)])
    cluster.run(60)
    assert len(cluster.bindings()) == 3
    assert len(set(cluster.bindings().values())) == 1
    assert len(held(cluster)) == 2


@pytest.mark.parametrize(
    ("doc", "text"),
    [
        (claim("c", {"devices": {"requests": [{"name": "a"}]}}), "exactly one of `exactly` or `firstAvailable`"),
        (claim("c", {"devices": {"requests": [{"name": "a", "exactly": {}}]}}), "deviceClassName: Required value"),
        (device_class("x", selectors=[{"cel": {"expression": "device.driver =="}}]), "compilation failed"),
        (device_class("x", selectors=[{"cel": {"expression": "uint(-2) == 1u"}}]),
         "Internal error: program instantiation failed: unsigned integer overflow"),
        (claim("c", devices(constraints=[{"requests": ["b"], "matchAttribute": "x/y"}])), "must be the name"),
    ],
)  # fmt: skip
def test_what_an_api_server_would_not_store_is_refused(cluster: Harness, doc: dict[str, Any], text: str) -> None:
    with pytest.raises(Invalid, match=text):
        cluster.apply(doc)
