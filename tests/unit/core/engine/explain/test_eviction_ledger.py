"""Evictions are known after the pods are gone, and names stay in their namespaces."""

from fairlead.testing import Harness, namespace, node, pod, priority_class
from fairlead.testing.asking import answer_of


def evictions(cluster: Harness, where: str) -> list[dict[str, object]]:
    answer = answer_of(cluster, {"kind": "EvictionsQuestion", "namespace": where}, [])
    items: list[dict[str, object]] = answer["items"]
    return items


def test_an_eviction_outlives_its_pod() -> None:
    cluster = Harness(nodes=[node("only").offers(cpu="4")])
    cluster.apply(namespace("vips"), priority_class("high", 1000), pod("low").asks(cpu="3"))
    cluster.run(30)
    cluster.apply(pod("vip", "vips").asks(cpu="3").of_priority("high"))
    cluster.run(120)
    assert cluster.bindings() == {"vips/vip": "only"}
    (known,) = evictions(cluster, "")
    assert (known["name"], known["node"], known["beneficiary"]) == ("low", "only", "vips/vip")
    assert known["rule"] == "its priority 0 is lower than 1000"
    assert isinstance(known["lostSeconds"], float)
    assert known["lostSeconds"] > 25
    (told,) = evictions(cluster, "default")
    assert told["beneficiary"] == "in another namespace"
    assert evictions(cluster, "vips") == []
