"""Simulated nodes from what the command line says."""

from __future__ import annotations

import pytest

from fairlead.cli.fleet import Fleet, parse_shape, parse_zones
from fairlead.errors import ConfigError


def fleet(*shapes: str, nodes: int | None = None, zones: str = "3") -> Fleet:
    return Fleet(nodes, parse_zones(zones), tuple(map(parse_shape, shapes)))


def offered(made: Fleet, resource: str) -> list[str | None]:
    return [node["status"]["allocatable"].get(resource) for node in made.documents(now=0.0)]


def test_without_a_word_there_is_a_handful_of_equal_nodes_in_three_zones() -> None:
    nodes = fleet().documents(now=0.0)
    assert [node["metadata"]["name"] for node in nodes] == [f"node-{number}" for number in range(10)]
    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes]
    assert zones[:4] == ["zone-a", "zone-b", "zone-c", "zone-a"]
    assert all(
        one["status"] == "True" for node in nodes for one in node["status"]["conditions"] if one["type"] == "Ready"
    )


def test_counted_shapes_come_first_and_the_others_share_the_rest() -> None:
    made = fleet("2:cpu=64,nvidia.com/gpu=8", "cpu=4", "cpu=16", nodes=5)
    assert offered(made, "cpu") == ["64", "64", "4", "16", "4"]
    assert offered(made, "nvidia.com/gpu") == ["8", "8", None, None, None]


def test_shapes_that_are_all_counted_say_how_many_nodes_there_are() -> None:
    assert offered(fleet("2:cpu=64", "1:cpu=2"), "cpu") == ["64", "64", "2"]


def test_more_nodes_are_the_same_nodes_and_some_more() -> None:
    few, many = (fleet("cpu=4", "cpu=8", nodes=count).documents(now=0.0) for count in (3, 30))
    assert many[:3] == few


def test_shapes_and_number_must_agree() -> None:
    with pytest.raises(ConfigError, match="more than --nodes 3"):
        fleet("5:cpu=4", nodes=3)
    with pytest.raises(ConfigError, match="fewer than --nodes 9"):
        fleet("5:cpu=4", nodes=9)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cpu", '"cpu" is not a resource'),
        ("cpu=8,", '"" is not a resource'),
        ("cpu=lots", '"lots" is not a quantity of cpu'),
        ("many:cpu=8", '"many" in "many:cpu=8" is not a number of nodes'),
        ("0:cpu=8", '"0" in "0:cpu=8" is not a number of nodes'),
    ],
)
def test_a_wrong_shape_is_told_with_an_example(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as told:
        parse_shape(text)
    assert words in str(told.value)
    assert "for example" in str(told.value)


def test_zones_are_a_number_or_names() -> None:
    assert parse_zones("2") == ("zone-a", "zone-b")
    assert parse_zones("east, west") == ("east", "west")
    assert len(set(parse_zones("40"))) == 40
    assert "topology.kubernetes.io/zone" not in fleet(zones="0").documents(now=0.0)[0]["metadata"]["labels"]
