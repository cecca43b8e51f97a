"""Rules of definitions on a real kube-apiserver: it still says what is recorded of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.real.control_plane import ControlPlane
from tests.support.real.rule_answers import RealServer, unpacked

pytestmark = pytest.mark.kube

RECORDED = Path(__file__).parents[1] / "unit" / "cluster" / "custom" / "data" / "rules.jsonl"


def test_recorded_answers_are_those_of_the_server(control_plane: ControlPlane) -> None:
    rows = unpacked(RECORDED.read_text().splitlines())[::9]
    assert len(rows) > 60
    asked = [{key: row[key] for key in ("schema", "rule", "values", "root") if key in row} for row in rows]
    answers = list(RealServer(control_plane.server, control_plane.token).answers(asked))
    by_question = {repr((row["schema"], row["rule"])): row for row in answers}
    for row in rows:
        assert by_question[repr((row["schema"], row["rule"]))] == row
