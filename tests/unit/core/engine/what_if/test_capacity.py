"""How much fits, what to add, what can go: counted by the scheduler, compared with doing it."""

from typing import Any

from fairlead.testing import Harness, deployment, node, pod, podgroup
from fairlead.testing.asking import answer_of
from fairlead.testing.builders import Builder


def ask(cluster: Harness, kind: str, *objects: Builder, **more: Any) -> dict[str, Any]:
    return answer_of(cluster, {"kind": kind, **more}, [one.doc() for one in objects])


def nodes_of(*cores: int) -> Harness:
    cluster = Harness(nodes=[node(f"n{number}").offers(cpu=str(cpu)) for number, cpu in enumerate(cores)])
    cluster.run(1)
    return cluster


def test_as_many_fit_as_then_run() -> None:
    cluster = nodes_of(5, 4, 3)
    answer = ask(cluster, "FitQuestion", pod("a").asks(cpu="2"))
    assert (answer["fits"], answer["ideal"], answer["fragmentation"]) == (5, 6, 0.1667)
    cluster.apply(deployment("a").replicas(10).of(pod("a").asks(cpu="2")))
    cluster.run(10)
    assert len(cluster.bindings()) == 5


def test_counting_ends_at_its_limit() -> None:
    answer = ask(nodes_of(8), "FitQuestion", pod("a").asks(cpu="1"), most=3)
    assert answer["fits"] == 3
    assert answer["more"]


def test_gangs_fit_as_a_whole() -> None:
    members = [pod(f"m-{number}").asks(cpu="1").in_group("gang") for number in range(3)]
    assert ask(nodes_of(4, 4), "FitQuestion", podgroup("gang", 3), *members)["fits"] == 2


def test_the_fewest_nodes_to_add() -> None:
    cluster = nodes_of(4, 4)
    answer = ask(cluster, "NeedQuestion", deployment("a").replicas(5).of(pod("a").asks(cpu="3")))
    assert answer["shapes"] == [{"like": "n0", "offers": answer["shapes"][0]["offers"], "nodes": 3}]
    assert ask(cluster, "NeedQuestion", pod("a").asks(cpu="3"))["runs"]


def test_which_nodes_can_go() -> None:
    cluster = nodes_of(4, 4)
    cluster.apply(deployment("a").replicas(2).of(pod("a").asks(cpu="2")))
    cluster.run(5)
    answer = ask(cluster, "DrainQuestion", nodes=["n0", "n9"])
    assert answer["nodes"][0]["canGo"]
    assert answer["unknown"] == ["n9"]
    cluster.apply(pod("lonely").asks(cpu="1").on("n0"))
    cluster.run(5)
    answer = ask(cluster, "DrainQuestion", nodes=["n0"])
    assert not answer["nodes"][0]["canGo"]
