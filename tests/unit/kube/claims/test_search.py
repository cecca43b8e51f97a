"""The search for devices: the order of the answer, and searches that the original gives up after ten seconds."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.cel.selectors import compile_selector
from fairlead.core.model import kinds
from fairlead.core.model.device_claims import claim_spec
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.cluster import Cluster
from fairlead.kube.claims.devices import devices_of
from fairlead.kube.claims.results import allocations
from fairlead.kube.claims.search import AllocationFailed, DeviceSearch, Nothing, Solution, Wanted
from fairlead.kube.claims.selecting import Selecting

DRIVER = "gpu.example.com"


def cluster_with(devices: list[dict[str, Any]], **slice_fields: Any) -> Cluster:
    cluster = Cluster()
    node = {"metadata": {"name": "n0"}, "status": {"allocatable": {"cpu": "8", "pods": "110"}}}
    cluster.apply(Change(Happened.ADDED, kinds.NODE, node))
    spec = {
        "driver": DRIVER, "pool": {"name": "n0", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n0",
        "devices": devices, **slice_fields,
    }  # fmt: skip
    cluster.apply(Change(Happened.ADDED, kinds.RESOURCE_SLICE, {"metadata": {"name": "n0-gpu"}, "spec": spec}))
    cluster.apply(Change(Happened.ADDED, kinds.DEVICE_CLASS, {"metadata": {"name": "gpu"}, "spec": {}}))
    return cluster


def gpus(count: int) -> list[dict[str, Any]]:
    return [{"name": f"gpu-{at}", "attributes": {"slot": {"int": at}, "numa": {"int": at % 2}}} for at in range(count)]


def request(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": "gpu", **more}}


def none_matches(name: str) -> dict[str, Any]:
    expression = f'device.attributes["{DRIVER}"].slot < 0'
    return request(name, selectors=[{"cel": {"expression": expression}}])


def search(cluster: Cluster, requests: list[dict[str, Any]], **devices: Any) -> DeviceSearch:
    index = devices_of(cluster)
    spec = claim_spec({"devices": {"requests": requests, **devices}})
    return DeviceSearch([Wanted("default/c", spec)], index.view(0), index, Selecting(compile_selector))


def picked(cluster: Cluster, found: Solution | Nothing, requests: list[dict[str, Any]], **devices: Any) -> list[str]:
    assert isinstance(found, Solution)
    index = devices_of(cluster)
    wanted = [Wanted("default/c", claim_spec({"devices": {"requests": requests, **devices}}))]
    given = allocations(found, wanted, index.view(0), index.classes, lambda: "share")
    return [result.id.name for result in given[0].results]


def test_the_first_fit_in_order_is_the_answer() -> None:
    cluster, requests = cluster_with(gpus(4)), [request("a", count=2), request("b")]
    assert picked(cluster, search(cluster, requests).run(), requests) == ["gpu-0", "gpu-1", "gpu-2"]


def test_a_constraint_sends_the_search_back() -> None:
    cluster, requests = cluster_with(gpus(4)), [request("a", count=2)]
    constraints = [{"matchAttribute": f"{DRIVER}/numa"}]
    found = search(cluster, requests, constraints=constraints).run()
    assert picked(cluster, found, requests, constraints=constraints) == ["gpu-0", "gpu-2"]


@pytest.mark.parametrize(
    ("count", "requests"),
    [
        (20, [request("a", count=31)]),
        (16, [request("a", count=8), none_matches("b")]),
        (16, [*[request(f"r{at}") for at in range(5)], none_matches("last")]),
        (8, [request(f"r{at}") for at in range(9)]),
    ],
    ids=["31 of 20", "8 of 16 and one that matches nothing", "six requests, the last in vain", "9 requests, 8 devices"],
)
def test_a_search_without_a_solution_ends_after_few_steps(count: int, requests: list[dict[str, Any]]) -> None:
    trial = search(cluster_with(gpus(count)), requests)
    assert trial.run() is Nothing.NO_DEVICES
    assert trial.steps <= 200


def test_equal_devices_are_not_tried_twice() -> None:
    alike = [{"name": f"gpu-{at}", "attributes": {"numa": {"int": at % 2}}} for at in range(24)]
    constraints = [{"matchAttribute": f"{DRIVER}/numa"}]
    trial = search(cluster_with(alike), [request("a", count=13)], constraints=constraints)
    assert trial.run() is Nothing.NO_DEVICES
    assert trial.steps < 500


def test_an_error_of_a_selector_counts_only_if_the_search_reaches_the_device() -> None:
    devices = [*gpus(2), {"name": "odd"}]
    selected = {"selectors": [{"cel": {"expression": f'device.attributes["{DRIVER}"].slot >= 0'}}]}
    assert isinstance(search(cluster_with(devices), [request("a", count=2, **selected)]).run(), Solution)
    with pytest.raises(AllocationFailed, match="claim default/c: selector #0: CEL runtime error: no such key: slot"):
        search(cluster_with(devices), [request("a", count=3, **selected)]).run()


def test_all_devices_need_a_complete_pool() -> None:
    cluster = cluster_with(gpus(2), pool={"name": "n0", "generation": 1, "resourceSliceCount": 2})
    with pytest.raises(AllocationFailed, match="asks for all devices, but resource pool"):
        search(cluster, [request("a", allocationMode="All")]).run()


def test_a_claim_gets_no_more_than_32_devices() -> None:
    with pytest.raises(AllocationFailed, match="number of requested devices 33 exceeds the claim limit of 32"):
        search(cluster_with(gpus(40)), [request("a", count=33)]).run()


def test_partitions_share_the_counters_of_their_card() -> None:
    def part(name: str, memory: str) -> dict[str, Any]:
        counters = [{"counterSet": "card", "counters": {"memory": {"value": memory}}}]
        return {"name": name, "consumesCounters": counters}

    sets = [{"name": "card", "counters": {"memory": {"value": "80Gi"}}}]
    cluster = cluster_with([part("whole", "80Gi"), part("half-0", "40Gi"), part("half-1", "40Gi")], sharedCounters=sets)
    requests = [request("a", count=2)]
    assert picked(cluster, search(cluster, requests).run(), requests) == ["half-0", "half-1"]
    assert search(cluster, [request("a", count=3)]).run() is Nothing.NO_DEVICES
