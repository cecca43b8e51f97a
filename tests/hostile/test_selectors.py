"""Selectors of devices that take long: an attempt ends after so many steps, and other pods are placed."""

from __future__ import annotations

from typing import Any

from fairlead.cel.selectors import compile_selector
from fairlead.kube.claims.plugin import DynamicResources
from fairlead.kube.claims.selecting import STEPS_PER_ATTEMPT
from tests.support.documents import node, pod
from tests.support.scheduling import SchedulerScenario

THIRTY = "[" + ", ".join(map(str, range(30))) + "]"
LOOPS = f"{THIRTY}.all(a, {THIRTY}.all(b, {THIRTY}.all(c, a + b + c >= 0))) && device.driver == 'nobody'"
NODES, DEVICES = 50, 8


def slices() -> list[dict[str, Any]]:
    """Every device is of a kind of its own, so that no answer serves for two."""
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"n{at}-gpu"},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": f"n{at}",
                "pool": {"name": f"n{at}", "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {"name": f"gpu-{one}", "attributes": {"slot": {"int": at * DEVICES + one}}}
                    for one in range(DEVICES)
                ],
            },
        }
        for at in range(NODES)
    ]


def claim(expression: str) -> dict[str, Any]:
    request = {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}]}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}
    metadata = {"name": "gpu", "namespace": "default"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def test_loops_over_many_devices_hold_up_nobody_else() -> None:
    plugin = DynamicResources(compile_selector)
    stage = SchedulerScenario(plugin)
    stage.tell(*(node(f"n{at}") for at in range(NODES)), *slices())
    stage.tell({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}})
    stage.tell(claim(LOOPS))
    stage.tell(pod("greedy", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]), pod("plain"))
    assert stage.binds().keys() == {"plain"}
    (condition,) = stage.conditions("greedy")
    assert condition["reason"] == "Unschedulable"
    assert (
        f"claim default/gpu: selector #0: CEL evaluations of one attempt cost more than {STEPS_PER_ATTEMPT}"
        in (condition["message"])
    )
    assert plugin.selecting.evaluations < NODES * DEVICES / 10


def test_a_pattern_that_needs_exponential_time_with_backtracking_takes_linear_time() -> None:
    """It is matched on the scheduler's thread, for every device: pods of others wait as long as it takes."""
    stage = SchedulerScenario(DynamicResources(compile_selector))
    stage.tell(node("n0"), slices()[0])
    stage.tell({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}})
    stage.tell(claim(f'"{"a" * 40}!".matches("^(a+)+$") || true'))
    stage.tell(pod("patterned", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]), pod("plain"))
    assert "plain" in stage.binds()
    assert "gpu" in {write.name for write in stage.writes}


def test_what_an_attempt_has_found_out_serves_the_next() -> None:
    plugin = DynamicResources(compile_selector)
    stage = SchedulerScenario(plugin)
    stage.tell(node("n0"), slices()[0])
    stage.tell({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}})
    found = LOOPS.replace("device.driver == 'nobody'", "device.attributes['gpu.example.com'].slot == 7")
    stage.tell(claim(found.replace(THIRTY, "[" + ", ".join(map(str, range(38))) + "]")))
    stage.tell(pod("greedy", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]))
    assert (stage.binds(), stage.writes[-1].subresource) == ({}, "status")
    before = plugin.selecting.evaluations
    assert before < DEVICES
    for at in range(3):
        stage.tell(node(f"m{at}"))
        stage.run(after=30.0)
    assert plugin.selecting.evaluations > DEVICES
    assert "gpu" in {write.name for write in stage.writes}
