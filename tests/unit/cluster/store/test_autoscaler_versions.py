"""autoscaling/v1 beside autoscaling/v2, held to what a real API server shows of the same objects."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.core.model.kinds import HORIZONTAL_POD_AUTOSCALER as V2
from fairlead.core.model.kinds import HORIZONTAL_POD_AUTOSCALER_V1 as V1

RECORDED = json.loads((Path(__file__).parents[1] / "data/autoscalers.json").read_text())
KINDS = {"autoscaling/v1": V1, "autoscaling/v2": V2}


@pytest.fixture
def store() -> Store:
    return Store(clock=lambda: 1_800_000_000.0, rng=random.Random(1))


def shown(store: Store, kind: Any, name: str) -> dict[str, Any]:
    """The object as a list of that version has it, without what no two servers have in common."""
    doc = dict(store.read(kind, "default", name))
    apart = ("uid", "resourceVersion", "creationTimestamp", "managedFields")
    doc["metadata"] = {key: value for key, value in doc["metadata"].items() if key not in apart}
    return doc


def without_nulls(doc: dict[str, Any]) -> dict[str, Any]:
    """Go writes null for a list of metrics that nobody has set."""
    return {**doc, "status": {key: value for key, value in doc["status"].items() if value is not None}}


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["doc"]["metadata"]["name"])
def test_both_versions_show_what_a_real_server_shows(store: Store, case: dict[str, Any]) -> None:
    doc = case["doc"]
    kind, name = KINDS[doc["apiVersion"]], doc["metadata"]["name"]
    store.perform(Write(Verb.CREATE, kind, "default", name, doc))
    if "status" in case:
        status = {**store.read(V2, "default", name), "status": case["status"]}
        store.perform(Write(Verb.UPDATE, V2, "default", name, status, subresource="status"))
    assert shown(store, V1, name) == case["v1"]
    assert shown(store, V2, name) == without_nulls(case["v2"])
    # What v1 shows, written back, is what v2 said (but for a second metric of cpu).
    store.perform(Write(Verb.UPDATE, V1, "default", name, store.read(V1, "default", name)))
    assert shown(store, V2, name) == without_nulls(case["back"])


def test_a_patch_of_the_old_version_changes_the_metric_of_the_new_one(store: Store) -> None:
    spec = {
        "scaleTargetRef": {"kind": "Deployment", "name": "d"},
        "maxReplicas": 3,
        "targetCPUUtilizationPercentage": 9,
    }
    store.perform(Write(Verb.CREATE, V1, "default", "a", {"metadata": {"name": "a"}, "spec": spec}))
    change = {"spec": {"targetCPUUtilizationPercentage": 33}}
    store.perform(Write(Verb.PATCH, V1, "default", "a", change, patch_type=PatchType.MERGE))
    (metric,) = store.read(V2, "default", "a")["spec"]["metrics"]
    assert metric["resource"]["target"] == {"type": "Utilization", "averageUtilization": 33}


def test_a_status_written_in_the_old_version_is_a_current_metric_of_the_new_one(store: Store) -> None:
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3}
    store.perform(Write(Verb.CREATE, V1, "default", "a", {"metadata": {"name": "a"}, "spec": spec}))
    status = {"currentReplicas": 1, "desiredReplicas": 1, "currentCPUUtilizationPercentage": 12}
    doc = {**store.read(V1, "default", "a"), "status": status}
    store.perform(Write(Verb.UPDATE, V1, "default", "a", doc, subresource="status"))
    (current,) = store.read(V2, "default", "a")["status"]["currentMetrics"]
    assert current == {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 12}}}
    noted = store.read(V1, "default", "a")["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/current-metrics"]
    assert json.loads(noted)[0]["resource"]["currentAverageValue"] == "0"
