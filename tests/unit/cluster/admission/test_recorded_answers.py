"""Defaults, admission and validation, against answers that were recorded from a real API server."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.cluster.admission import Admission
from fairlead.cluster.store.schema import decode, strict_error
from fairlead.core.model.kinds import PRIORITY_CLASS, Kind, Registry
from fairlead.errors import ApiError
from tests.support.recorded_answers import FINALIZERS, clean

RECORDED = json.loads((Path(__file__).parents[1] / "data/recorded.json").read_text())
REGISTRY = Registry()
UID = "5f1f3a52-0000-4000-8000-000000000000"


class Objects:
    """A DocView over a few documents."""

    def __init__(self, docs: list[dict[str, Any]]) -> None:
        self.docs = {(kind_of(doc), doc["metadata"]["name"]): doc for doc in docs}

    def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        return self.docs.get((kind, name))

    def list(self, kind: Kind, namespace: str = "") -> list[dict[str, Any]]:
        return [doc for (one, _), doc in self.docs.items() if one is kind]


def kind_of(doc: dict[str, Any]) -> Kind:
    kind = REGISTRY.by_kind(doc["apiVersion"], doc["kind"])
    assert kind is not None
    return kind


SURROUNDINGS = Objects(RECORDED["surroundings"])


def comparable(doc: dict[str, Any]) -> dict[str, Any]:
    """A document without what each server fills in for itself."""
    out: dict[str, Any] = clean(copy.deepcopy(doc))
    metadata = out["metadata"]
    for key in ("uid", "creationTimestamp", "resourceVersion"):
        metadata.pop(key, None)
    kept = [one for one in metadata.pop("finalizers", []) if one not in FINALIZERS]
    if kept:
        metadata["finalizers"] = kept
    out.get("status", {}).pop("lastPhaseTransitionTime", None)
    for condition in out.get("status", {}).get("conditions", ()):
        condition.pop("lastTransitionTime", None)
    if out["kind"] == "Pod":
        out["spec"].pop("serviceAccount", None)
        out["spec"].pop("serviceAccountName", None)
    return out


def with_uid(node: Any, uid: str) -> Any:
    return json.loads(json.dumps(node).replace(uid, UID)) if uid else node


def uid_in(answer: dict[str, Any]) -> str:
    labels = answer.get("spec", {}).get("template", {}).get("metadata", {}).get("labels", {})
    return labels.get("controller-uid", "")


def named(case: dict[str, Any]) -> str:
    doc = case.get("doc") or case["new"]
    text = case["answer"].get("message") or json.dumps(doc.get("spec", {}))
    return f"{doc['kind']}: {text[:60]}"


def shortened(message: str) -> str:
    """Without the diff of Go structs that the original appends, and without uids."""
    first = message.partition("\n@@")[0].partition("\n-")[0].rstrip("\n")
    return first.partition('{"labels"')[0].partition('{"metadata"')[0]


def admit(doc: dict[str, Any]) -> dict[str, Any]:
    kind = kind_of(doc)
    decoded = decode(kind, doc)
    if decoded.unknown:
        raise strict_error(kind, decoded.unknown)
    metadata = {**decoded.doc["metadata"], "uid": UID, "creationTimestamp": "2026-01-01T00:00:00Z"}
    if kind.namespaced:
        metadata["namespace"] = "default"
    return Admission(SURROUNDINGS).create(kind, {**decoded.doc, "metadata": metadata})


GOOD = [case for case in RECORDED["created"] if case["answer"]["kind"] != "Status"]
BAD = [case for case in RECORDED["created"] if case["answer"]["kind"] == "Status"]


@pytest.mark.parametrize("case", GOOD, ids=named)
def test_a_created_object_is_defaulted_like_the_original(case: dict[str, Any]) -> None:
    expected = with_uid(case["answer"], uid_in(case["answer"]))
    assert comparable(admit(case["doc"])) == comparable(expected)


@pytest.mark.parametrize("case", BAD, ids=named)
def test_a_wrong_object_is_refused_in_the_originals_words(case: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refused:
        admit(case["doc"])
    error, expected = refused.value, case["answer"]
    if "not auto-generated" in expected["message"]:
        assert "not auto-generated" in error.message
        return
    assert error.message == expected["message"]
    assert error.code == expected["code"]
    details = dict(expected.get("details", {}))
    assert {k: v for k, v in error.details.items() if k != "causes"} == {
        k: v for k, v in details.items() if k != "causes"
    }
    ours = [tuple(sorted(cause.items())) for cause in error.details.get("causes", [])]
    assert set(ours) == {tuple(sorted(cause.items())) for cause in details.get("causes", [])}


CHANGED = [case for case in RECORDED["updated"] if case["answer"]["kind"] != "Status"]
REFUSED = [case for case in RECORDED["updated"] if case["answer"]["kind"] == "Status"]


def update(case: dict[str, Any]) -> dict[str, Any]:
    kind = kind_of(case["new"])
    old, new = decode(kind, case["old"]).doc, decode(kind, case["new"]).doc
    return Admission(SURROUNDINGS).update(kind, new, old, case["subresource"])


@pytest.mark.parametrize("case", CHANGED, ids=named)
def test_an_update_keeps_and_counts_what_the_original_does(case: dict[str, Any]) -> None:
    assert comparable(update(case)) == comparable(case["answer"])


@pytest.mark.parametrize("case", REFUSED, ids=named)
def test_a_forbidden_update_is_refused_in_the_originals_words(case: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refused:
        update(case)
    assert shortened(refused.value.message) == shortened(case["answer"]["message"])
    assert refused.value.code == case["answer"]["code"]


def test_the_global_default_priority_class_is_given_to_pods_without_one() -> None:
    default = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "usual"},
               "value": 7, "globalDefault": True}  # fmt: skip
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = Admission(Objects([default])).create(REGISTRY.by_kind("v1", "Pod"), pod)["spec"]  # type: ignore[arg-type]
    assert (spec["priorityClassName"], spec["priority"]) == ("usual", 7)


def test_a_remembered_spec_still_asks_for_todays_priority_class() -> None:
    view = Objects(RECORDED["surroundings"])
    admission = Admission(view)
    kind = REGISTRY.by_kind("v1", "Pod")
    assert kind is not None
    spec = {"containers": [{"name": "c", "image": "i"}], "priorityClassName": "high"}
    first = admission.create(kind, {"metadata": {"name": "a"}, "spec": spec})
    view.docs[PRIORITY_CLASS, "high"] = {**view.docs[PRIORITY_CLASS, "high"], "value": 5}
    second = admission.create(kind, {"metadata": {"name": "b"}, "spec": spec})
    assert (first["spec"]["priority"], second["spec"]["priority"]) == (1000, 5)


def test_admission_leaves_its_argument_alone() -> None:
    kind = REGISTRY.by_kind("v1", "Pod")
    assert kind is not None
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    before = copy.deepcopy(pod)
    Admission(SURROUNDINGS).create(kind, pod)
    assert pod == before


def service(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}], **spec}}


def test_services_get_addresses_of_their_own_and_keep_them() -> None:
    kind = kind_of(service("a"))
    view = Objects([])
    admission = Admission(view)
    first = admission.create(kind, service("a", type="NodePort"))
    view.docs[kind, "a"] = first
    again = Admission(view).create(kind, service("a", type="NodePort"))
    assert first["spec"]["clusterIP"] != again["spec"]["clusterIP"]
    assert first["spec"]["ports"][0]["nodePort"] != again["spec"]["ports"][0]["nodePort"]
    silent = admission.update(kind, service("a", type="NodePort", sessionAffinity="ClientIP"), first)
    assert silent["spec"]["clusterIPs"] == [first["spec"]["clusterIP"]]
    assert silent["spec"]["ports"] == first["spec"]["ports"]


def custom(api_version: str, kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


VOLCANO = ("scheduling.volcano.sh/v1beta1", "batch.volcano.sh/v1alpha1", "topology.volcano.sh/v1alpha1")
TASK = {"replicas": -1, "template": {"spec": {"containers": [{"image": "x"}]}}}


@pytest.mark.parametrize(
    ("doc", "message"),
    [
        (custom(VOLCANO[0], "Queue", weight=-1),
         'Queue.scheduling.volcano.sh "x" is invalid: spec.weight: Invalid value: -1: '
         "spec.weight in body should be greater than or equal to 1"),
        (custom(VOLCANO[0], "Queue", dequeueStrategy="y"),
         'Queue.scheduling.volcano.sh "x" is invalid: spec.dequeueStrategy: Unsupported value: "y": '
         'supported values: "fifo", "traverse"'),
        (custom(VOLCANO[1], "Job", tasks=[TASK]),
         'Job.batch.volcano.sh "x" is invalid: [spec.minAvailable: Invalid value: -1: spec.minAvailable in body should '
         "be greater than or equal to 0, spec.tasks[0].minAvailable: Invalid value: -1: spec.tasks[0].minAvailable in "
         "body should be greater than or equal to 0, spec.tasks[0].replicas: Invalid value: -1: spec.tasks[0].replicas "
         "in body should be greater than or equal to 0, spec.tasks[0].template.spec.containers[0].name: Required "
         "value]"),
        (custom(VOLCANO[1], "CronJob", concurrencyPolicy="z", schedule=""),
         'CronJob.batch.volcano.sh "x" is invalid: [spec.concurrencyPolicy: Unsupported value: "z": '
         'supported values: "Allow", "Forbid", "Replace", spec.jobTemplate: Required value]'),
    ],
)  # fmt: skip
def test_custom_resources_follow_their_own_schemas(doc: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as refused:
        admit(doc)
    assert refused.value.message == message


def test_custom_resources_get_the_defaults_of_their_schemas() -> None:
    queue = admit(custom(VOLCANO[0], "Queue", weight=2))
    assert queue["spec"] == {"weight": 2, "dequeueStrategy": "traverse", "reclaimable": True}


def test_defaults_reach_into_the_lists_of_custom_resources() -> None:
    policy = [{"name": "a"}, {"name": "b", "subGroupSize": 4, "networkTopology": {"highestTierAllowed": 1}}]
    group = admit(custom(VOLCANO[0], "PodGroup", minMember=1, subGroupPolicy=policy))
    assert group["spec"]["queue"] == "default"
    tight = {"highestTierAllowed": 1, "mode": "hard"}
    assert group["spec"]["subGroupPolicy"] == [
        {"name": "a", "minSubGroups": 0, "subGroupSize": 1},
        {"name": "b", "minSubGroups": 0, "subGroupSize": 4, "networkTopology": tight},
    ]
