"""Simulated nodes from what the command line says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairlead.cli.fleet import Fleet, parse_shape, parse_zones
from fairlead.cli.fleet_file import read_fleet_file
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
        ("gpu=8", '"gpu" is not a resource of nodes (extended resources have a domain, for example nvidia.com/gpu)'),
        ("BAD NAME=8", '"BAD NAME" is not a resource of nodes'),
        ("cpu=4,cpu=8", 'cpu is given twice in "cpu=4,cpu=8"'),
        ("cpu=-4", "cpu=-4 must not be negative"),
        ("cpu=4,name=Big_One", '"Big_One" cannot begin a node name'),
        ("cpu=4,label.a b=c", '"a b=c" is not a label'),
        ("cpu=4,taint.gpu=yes:Never", '"Never" is not the effect of a taint'),
    ],
)
def test_a_wrong_shape_is_reported_with_an_example(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as told:
        parse_shape(text)
    assert words in str(told.value)
    assert "for example" in str(told.value)


def test_zones_are_a_number_or_names() -> None:
    assert parse_zones("2") == ("zone-a", "zone-b")
    assert parse_zones("east, west") == ("east", "west")
    assert len(set(parse_zones("40"))) == 40
    assert "topology.kubernetes.io/zone" not in fleet(zones="0").documents(now=0.0)[0]["metadata"]["labels"]


def test_a_shape_names_types_labels_and_taints_its_nodes() -> None:
    made = fleet("2:cpu=96,name=gpu,type=p4d.24xlarge,label.team=ml,taint.gpu=yes:NoSchedule", "cpu=4", nodes=3)
    first, second, third = made.documents(now=0.0)
    assert [node["metadata"]["name"] for node in (first, second, third)] == ["gpu-0", "gpu-1", "node-2"]
    assert first["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "p4d.24xlarge"
    assert second["metadata"]["labels"]["team"] == "ml"
    assert second["spec"]["taints"] == [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    assert "taints" not in third["spec"]


@pytest.mark.parametrize("text", ["-2", "a b", "a,b c"])
def test_zones_that_no_label_could_name_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not the name of a zone"):
        parse_zones(text)


FILE = """
nodes:
- count: 2
  name: gpu
  instanceType: p4d.24xlarge
  resources: {cpu: 96, memory: 1152Gi, nvidia.com/gpu: 8}
  labels: {team: ml}
  taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: copied, uid: old}, status: {allocatable: {cpu: "4"}}}
"""


def test_a_file_gives_shapes_and_whole_nodes(tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(FILE)
    shapes, objects = read_fleet_file(path)
    first, second, copied = Fleet(shapes=shapes, objects=objects).documents(now=0.0)
    assert [node["metadata"]["name"] for node in (first, second, copied)] == ["gpu-0", "gpu-1", "copied"]
    assert first["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert first["spec"]["taints"] == [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
    assert copied["metadata"] == {"name": "copied", "annotations": {"fairlead.io/simulated": "true"}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nodes: [{cores: 4}]", r"nodes.yaml: nodes\[0\].cores: unknown field \(known: count"),
        ("nodes: [{count: none}]", r"nodes\[0\].count: is not a number of nodes"),
        ("nodes: [{resources: {gpu: 8}}]", r'nodes\[0\]: "gpu" is not a resource of nodes'),
        ("nodes: [{taints: [{key: a}]}]", "is not the effect of a taint"),
        ("nodes: [{labels: {a: [b]}}]", r"nodes\[0\].labels: is not a mapping of plain values"),
        ("nodes: [{taints: none}]", r"nodes\[0\].taints: is not a list of taints"),
        ("nodes: [{devices: [4]}]", r"devices: is not a list of devices \(for example \[gpu.example.com:8\]\)"),
        ("nodes: [4]", r"nodes\[0\]: is not a mapping"),
        ("nodes: [", r"nodes.yaml:1: not valid YAML"),
        ("kind: Pod", "a Node with a name is expected here, not Pod"),
        ("", "names no nodes"),
    ],
)
def test_a_wrong_file_is_reported_by_file_and_field(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words):
        read_fleet_file(path)


def test_the_table_in_the_documentation_says_how_many_nodes_there_are() -> None:
    text = (Path(__file__).parents[3] / "docs" / "up.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (nothing|`--.*?) \| (.*) \|$", text.partition("## Data")[0], re.MULTILINE)
    assert len(rows) == 9
    for said, promised in rows:
        for flags in re.findall(r"`(.*?)`", said) or [""]:
            shapes = [
                shape.replace("A", "cpu=64").replace("B", "cpu=2") for shape in re.findall(r"--shape (\S+)", flags)
            ]
            number = re.search(r"--nodes (\d+)", flags)
            nodes = int(number[1]) if number else None
            if promised.startswith("an error"):
                with pytest.raises(ConfigError):
                    fleet(*shapes, nodes=nodes)
            else:
                cpus = offered(fleet(*shapes, nodes=nodes), "cpu")
                assert len(cpus) == int(promised.split()[0])
                assert [cpus.count("64"), cpus.count("2")] == expected(promised, len(cpus), shapes)


def expected(promised: str, total: int, shapes: list[str]) -> list[int]:
    """How many nodes of shape A and of shape B a line of the table promises."""
    if counted := re.search(r": (\d+) of A", promised):
        return [int(counted[1]), total - int(counted[1])]
    if "in turn" in promised:
        return [total // 2, total // 2]
    of_a = sum(int(shape.partition(":")[0]) for shape in shapes if ":cpu=64" in shape)
    return [of_a, sum(int(shape.partition(":")[0]) for shape in shapes if ":cpu=2" in shape)]
