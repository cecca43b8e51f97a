"""The forms of recordings that families bring: which one a line has, and what is said of a line that has none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from fairlead.errors import ScenarioError
from fairlead.kube.replay.recording import scenarios_in

Doc = dict[str, Any]
CLUSTER: Doc = {"nodes": [], "existing": [], "decisions": []}
STORY: Doc = {"namespace": "default", "steps": []}
ROUND: Doc = {"conf": "", "nodes": [], "pods": [], "steps": [], "after": {"podgroups": {}}}


def form_of(tmp_path: Path, line: Doc) -> str:
    file = tmp_path / "recording.jsonl"
    file.write_bytes(orjson.dumps(line))
    (scenario,) = scenarios_in(file)
    return scenario.form.name


@pytest.mark.parametrize(
    ("line", "form"),
    [
        (CLUSTER, "kube-scheduler"),
        ({**CLUSTER, "config": {}, "objects": []}, "Koordinator"),
        (ROUND, "Volcano"),
        (STORY, "Volcano Jobs"),
    ],
)
def test_forms_are_distinguished_by_their_fields(tmp_path: Path, line: Doc, form: str) -> None:
    assert form_of(tmp_path, line) == form


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"seed": 1}, ":1: neither 'decisions' (kube-scheduler) nor 'steps' (Volcano) is there"),
        ({**CLUSTER, "config": {}}, ":1: the field 'objects' is missing"),
        ({"nodes": [], "steps": []}, ":1: the field 'pods' is missing"),
        ({"steps": []}, ":1: the field 'namespace' is missing"),
        ({**ROUND, "after": {}}, ":1: 'after.podgroups' should be an object"),
        ({**STORY, "steps": [{}]}, ":1: 'steps[0].do' should be a string"),
        ({**CLUSTER, "config": [], "objects": []}, ":1: 'config' should be an object"),
    ],
)
def test_a_line_that_cannot_be_used_is_named_with_what_is_wrong(tmp_path: Path, line: Doc, said: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        form_of(tmp_path, line)
    assert str(refused.value).endswith(said)
