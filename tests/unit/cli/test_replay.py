"""`fairlead replay`: what it says of recordings that agree, that differ in one field, and that cannot be used.

What the small cluster here decides is what the real plugins decided in it.
"""

from __future__ import annotations

import copy
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from fairlead.cli.replay import replay_command
from tests.support.documents import node, plain_pod

Doc = dict[str, Any]
NODES = [node("a"), node("b", allocatable={"cpu": "8", "memory": "8Gi", "pods": "9"}), node("c")]
NODES[2]["spec"]["unschedulable"] = True
PREEMPTED = "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."
REFUSED = (
    "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient memory. no new claims to deallocate,"
    " preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
)
FLAT = {"DynamicResources": 0, "ImageLocality": 0, "TaintToleration": 300}


def asking(name: str, priority: int = 0, **requests: str) -> Doc:
    return plain_pod(name, requests=requests, schedulerName="default-scheduler", priority=priority)


def recording() -> Doc:
    """A pod that has a choice, one that nobody has room for, one that evicts another, and one that fits once."""
    there = plain_pod("v", requests={"cpu": "7"}, nodeName="b")
    scores = {"a": {**FLAT, "NodeResourcesFit": 97}, "b": {**FLAT, "NodeResourcesFit": 53}}
    nobody = {"nominated": None, "victims": []}
    return {
        "seed": 7,
        "family": "small",
        "nodes": NODES,
        "objects": [],
        "existing": [there],
        "decisions": [
            {"pod": asking("p0"), "node": "a", "message": None, "scores": scores, **nobody},
            {"pod": asking("p1", memory="90Gi"), "node": None, "message": REFUSED, "scores": {}, **nobody},
            {
                "pod": asking("p2", 5, cpu="5"),
                "node": None,
                "message": PREEMPTED,
                "scores": {},
                "nominated": "b",
                "victims": ["v"],
            },
            {"pod": asking("p3", cpu="5"), "node": "b", "message": None, "scores": {}, **nobody},
        ],
    }


def write(path: Path, *docs: Doc) -> Path:
    text = b"".join(orjson.dumps(doc) + b"\n" for doc in docs)
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def replay(*arguments: object) -> Result:
    return CliRunner().invoke(replay_command, [str(argument) for argument in arguments], catch_exceptions=False)


def test_plain_and_gzipped_files_together(tmp_path: Path) -> None:
    plain, packed = write(tmp_path / "a.jsonl", recording()), write(tmp_path / "b.jsonl.gz", recording(), recording())
    result = replay(plain, packed)
    assert result.output.splitlines()[-2:] == ["small  12 of 12", "12 of 12 decisions agree"]
    assert result.exit_code == 0


def test_a_waiting_pod_may_name_its_node(tmp_path: Path) -> None:
    doc = recording()
    doc["decisions"] = [{"pod": asking("p"), "node": "b", "message": None, "scores": {}}]
    doc["decisions"][0]["pod"]["spec"]["nodeName"] = "b"
    assert replay(write(tmp_path / "a.jsonl", doc)).output.splitlines()[-1] == "1 of 1 decisions agree"


def test_families_are_chosen_and_skipped(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", recording(), {**recording(), "family": "other"})
    assert replay(file, "--family", "other").output.splitlines()[-1] == "4 of 4 decisions agree"
    assert replay(file, "--skip-family", "other").output.splitlines()[0] == "small  4 of 4"


def test_the_report_in_json(tmp_path: Path) -> None:
    changed = recording()
    changed["decisions"][1]["message"] = "0/3 nodes"
    file = write(tmp_path / "a.jsonl", changed)
    result = replay(file, "-o", "json")
    difference = {"file": str(file), "seed": 7, "index": 1, "field": "message", "expected": "0/3 nodes", "got": REFUSED}
    assert orjson.loads(result.stdout) == {
        "total": 4,
        "agree": 3,
        "families": {"small": {"total": 4, "agree": 3}},
        "differences": [difference],
    }
    assert result.exit_code == 1


def _set(index: int, **fields: Any) -> Callable[[list[Doc]], None]:
    return lambda decisions: decisions[index].update(fields)


@pytest.mark.parametrize(
    ("index", "change", "fields"),
    [
        (0, lambda d: d[0]["scores"]["b"].update(NodeResourcesFit=55), ["scores.b.NodeResourcesFit"]),
        (0, lambda d: d[0]["scores"]["a"].pop("ImageLocality"), ["scores.a.ImageLocality"]),
        (0, lambda d: d[0]["scores"]["a"].update(Other=1), ["scores.a.Other"]),
        (0, lambda d: d[0]["scores"].pop("b"), ["feasible"]),
        (0, lambda d: d[0]["scores"].update(c=FLAT), ["feasible"]),
        (0, _set(0, feasible=["b"]), ["feasible"]),
        (0, _set(0, node="b"), ["node"]),
        (0, _set(0, node=None), ["node"]),
        (0, _set(0, message="0/3"), ["message"]),
        (1, _set(1, message=None), ["message"]),
        (1, _set(1, message=REFUSED + " "), ["message"]),
        (1, _set(1, node="a", message=None), ["feasible"]),
        (1, _set(1, nominated="a"), ["nominated"]),
        (1, _set(1, victims=["v"]), ["victims"]),
        (2, _set(2, nominated="a"), ["nominated"]),
        (2, _set(2, nominated=None), ["nominated"]),
        (2, _set(2, victims=[]), ["victims"]),
        (2, _set(2, victims=["v", "w"]), ["victims"]),
        (3, _set(3, node="a"), ["feasible"]),
        (3, _set(3, nominated="b"), ["nominated"]),
    ],
)
def test_one_changed_field_is_the_field_that_differs(
    tmp_path: Path, index: int, change: Callable[[list[Doc]], None], fields: list[str]
) -> None:
    changed = copy.deepcopy(recording())
    change(changed["decisions"])
    report = orjson.loads(replay(write(tmp_path / "a.jsonl", changed), "-o", "json").stdout)
    about = [(found["index"], found["field"]) for found in report["differences"] if found["index"] == index]
    assert about == [(index, field) for field in fields]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{", "not JSON"),
        (b"[1]", "not an object"),
        (b"{}", "neither 'decisions' (kube-scheduler) nor 'steps' (Volcano) is there"),
        (b'{"decisions": []}', "the field 'nodes' is missing"),
        (b'{"decisions": 1, "nodes": [], "existing": []}', "'decisions' should be a list"),
        (b'{"decisions": [1], "nodes": [], "existing": []}', "'decisions[0]' should be an object"),
        (b'{"decisions": [{}], "nodes": [], "existing": []}', "'decisions[0].pod' should be an object"),
        (b'{"decisions": [], "nodes": [{"metadata": {}}], "existing": []}',
         "'nodes[0].metadata.name' should be a string"),
        (b'{"decisions": [], "nodes": [], "existing": [], "objects": [{"kind": "Service"}]}',
         "'objects[0].apiVersion' should be a string"),
        (b'{"decisions": [], "nodes": [], "existing": [], "objects": [{"apiVersion": "v9", "kind": "Unheard",'
         b' "metadata": {"name": "x"}}]}', "unknown kind v9 Unheard"),
        (b'{"decisions": [], "nodes": [{"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "lots"}}}],'
         b' "existing": []}', "Node a: status.allocatable[cpu]: quantities must"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_used_is_named(tmp_path: Path, line: bytes, words: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(orjson.dumps(recording()) + b"\n\n" + line + b"\n")
    result = replay(file)
    assert result.exit_code == 2
    assert result.output.startswith(f"Error: {file}:3: ")
    assert words in result.output


def _wrong(*path: str | int, value: Any) -> Doc:
    doc: Any = copy.deepcopy(recording())
    at = doc
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return doc  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("doc", "words"),
    [
        (
            _wrong("decisions", 0, "scores", value={"a": {"X": "1"}}),
            "'decisions[0].scores.a.X' should be a whole number",
        ),
        (_wrong("decisions", 0, "scores", value=[]), "'decisions[0].scores' should be an object"),
        (_wrong("decisions", 0, "node", value=["a"]), "'decisions[0].node' should be a string"),
        (_wrong("decisions", 2, "victims", value=True), "'decisions[2].victims' should be a list"),
        (_wrong("decisions", 0, "feasible", value=[1]), "'decisions[0].feasible[0]' should be a string"),
        (_wrong("decisions", 0, "pod", "spec", "schedulerName", value="mine"), "wants the scheduler 'mine'"),
        (_wrong("decisions", 0, "pod", "spec", "containers", value=7), ""),
        (_wrong("existing", 0, "spec", "affinity", value=[1]), ""),
        (_wrong("nodes", 0, "status", "images", value="none"), ""),
    ],
)
def test_a_damaged_object_is_an_unusable_line_and_never_a_crash(tmp_path: Path, doc: Doc, words: str) -> None:
    file = write(tmp_path / "a.jsonl", doc)
    result = replay(file)
    assert result.exit_code == 2
    assert result.output.startswith(f"Error: {file}:1: ")
    assert words in result.output


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert replay(tmp_path / "none.jsonl").exit_code == 2
    assert replay(tmp_path).exit_code == 2
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(orjson.dumps(recording()))[:-20])
    result = replay(cut)
    assert result.exit_code == 2
    assert result.output.startswith(f"Error: {cut}: cannot be read: ")
