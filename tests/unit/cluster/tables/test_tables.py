"""Server-side printing, against tables that were recorded from a real API server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.cluster.tables import render_table
from fairlead.cluster.tables.columns import human_duration
from fairlead.core.model.kinds import CONFIG_MAP, POD, Kind, served_kinds

RECORDED = json.loads((Path(__file__).parents[1] / "data/tables.json").read_text())
KINDS = {f"{kind.api_version}/{kind.kind}": kind for kind in served_kinds()}
# Ages depend on the second of the recording; what they look like is tested on its own.
AGES = {"Age", "AGE", "Last Seen", "First Seen", "Duration", "Last Schedule"}


def clean(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: clean(value) for key, value in node.items() if value is not None}
    return [clean(value) for value in node] if isinstance(node, list) else node


def rendered(kind: Kind, docs: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
    return render_table(kind, docs, **{"now": 1767225600.0, "include_object": "Metadata", "metadata": {}, **options})


@pytest.mark.parametrize("key", RECORDED)
def test_the_columns_are_the_originals(key: str) -> None:
    found = rendered(KINDS[key], [])["columnDefinitions"]
    assert [[one["name"], one["type"], one["format"], one["priority"]] for one in found] == RECORDED[key]["columns"]


def rows() -> list[Any]:
    return [
        pytest.param(key, row, id=f"{key} {row['doc']['metadata']['name']}")
        for key, table in RECORDED.items()
        for row in table["rows"]
    ]


@pytest.mark.parametrize(("key", "row"), rows())
def test_a_row_says_what_the_original_says(key: str, row: dict[str, Any]) -> None:
    titles = [column[0] for column in RECORDED[key]["columns"]]
    doc = clean(row["doc"])
    found = rendered(KINDS[key], [doc])["rows"][0]["cells"]
    assert len(found) == len(titles)
    ours = {title: without_age(cell) for title, cell in zip(titles, found, strict=True) if title not in AGES}
    theirs = {title: without_age(cell) for title, cell in zip(titles, row["cells"], strict=True) if title not in AGES}
    assert ours == theirs


def without_age(cell: Any) -> Any:
    return cell.partition(" (")[0] if isinstance(cell, str) and cell.endswith(" ago)") else cell


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (125, "2m5s"),
        (599, "9m59s"), (600, "10m"),
        (3 * 3600 - 1, "179m"), (3 * 3600, "3h"), (3 * 3600 + 60, "3h1m"), (8 * 3600, "8h"), (48 * 3600, "2d"),
        (50 * 3600, "2d2h"), (8 * 86400, "8d"), (700 * 86400, "700d"), (800 * 86400, "2y70d"), (3000 * 86400, "8y"),
    ],
)  # fmt: skip
def test_durations_are_short_and_round_down(seconds: int, text: str) -> None:
    assert human_duration(seconds) == text


def pod(**status: Any) -> dict[str, Any]:
    metadata = {"name": "a", "creationTimestamp": "2025-12-31T23:55:00Z"}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Running", **status}}


def test_the_age_counts_from_creation() -> None:
    assert rendered(POD, [pod()])["rows"][0]["cells"][4] == "5m"


def test_a_pod_that_is_deleted_is_terminating() -> None:
    doc = pod()
    doc["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert rendered(POD, [doc])["rows"][0]["cells"][2] == "Terminating"


def test_restarts_say_when_the_last_one_was() -> None:
    last = {"terminated": {"exitCode": 1, "finishedAt": "2025-12-31T23:59:00Z"}}
    statuses = [{"name": "c", "restartCount": 2, "lastState": last, "state": {"running": {}}, "ready": True}]
    assert rendered(POD, [pod(containerStatuses=statuses)])["rows"][0]["cells"][3] == "2 (60s ago)"


@pytest.mark.parametrize(
    ("wish", "expected"), [("None", None), ("Metadata", "PartialObjectMetadata"), ("Object", "ConfigMap")]
)
def test_rows_carry_as_much_of_the_object_as_asked(wish: str, expected: str | None) -> None:
    doc = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
    row = rendered(CONFIG_MAP, [doc], include_object=wish)["rows"][0]
    assert row.get("object", {}).get("kind") == expected


def test_a_kind_nobody_knows_shows_name_and_age() -> None:
    kind = Kind("example.com", "v1", "Thing", "things")
    table = rendered(kind, [{"metadata": {"name": "a", "creationTimestamp": "2025-12-31T23:59:00Z"}}])
    assert [one["name"] for one in table["columnDefinitions"]] == ["Name", "Age"]
    assert table["rows"][0]["cells"] == ["a", "60s"]
