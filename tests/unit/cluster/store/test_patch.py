"""The three dialects of PATCH; the strategic one also against answers recorded from a real API server."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cluster.admission.chain import default
from fairlead.cluster.store.patch import apply_patch, merge_patch, status_part, with_status_set, with_the_rest
from fairlead.cluster.store.schema import decode
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.core.model.kinds import DEPLOYMENT, POD
from fairlead.errors import ApiError, BadRequest, Invalid, UnsupportedMedia
from fairlead.volcano.kinds import VC_POD_GROUP, VC_QUEUE

RECORDED = json.loads((Path(__file__).parents[1] / "data/patches.json").read_text())


def pod() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"x": "1"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "tolerations": [{"key": "old"}]},
    }


def clean(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: clean(value) for key, value in node.items() if value is not None}
    return [clean(value) for value in node] if isinstance(node, list) else node


@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: json.dumps(case["patch"])[:60])
def test_a_patch_does_what_the_original_does(case: dict[str, Any]) -> None:
    before = copy.deepcopy(RECORDED["doc"])
    if "error" in case:
        with pytest.raises(ApiError) as refused:
            apply_patch(DEPLOYMENT, before, case["patch"], PatchType(case["type"]))
        assert refused.value.message == case["error"]
    else:
        patched = apply_patch(DEPLOYMENT, before, case["patch"], PatchType(case["type"]))
        found = clean(default(DEPLOYMENT, decode(DEPLOYMENT, patched).doc))
        found.pop("status", None)
        assert found == case["result"]
    assert before == RECORDED["doc"]


def json_patched(*operations: dict[str, Any]) -> dict[str, Any]:
    return apply_patch(POD, pod(), list(operations), PatchType.JSON)


def test_a_json_patch_adds_tests_and_removes() -> None:
    patched = json_patched(
        {"op": "test", "path": "/metadata/labels/x", "value": "1"},
        {"op": "remove", "path": "/metadata/labels/x"},
        {"op": "add", "path": "/spec/containers/-", "value": {"name": "d", "image": "j"}},
    )
    assert patched["metadata"]["labels"] == {}
    assert [one["name"] for one in patched["spec"]["containers"]] == ["c", "d"]


def test_replacing_a_missing_member_adds_it_as_the_original_does() -> None:
    assert json_patched({"op": "replace", "path": "/metadata/labels/y", "value": "2"})["metadata"]["labels"]["y"] == "2"


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/metadata/labels/x", "value": "2"},
        {"op": "remove", "path": "/metadata/labels/zz"},
        {"op": "add", "path": "/metadata/nothing/zz", "value": 1},
        {"op": "bogus", "path": "/metadata"},
        {"op": "add", "path": "/spec/containers/7", "value": {}},
        {"op": "add", "path": "no-slash", "value": {}},
    ],
)
def test_a_json_patch_that_does_not_fit_is_unprocessable(operation: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="the server rejected our request due to an error in our request"):
        json_patched(operation)


def test_a_json_patch_must_be_a_list() -> None:
    with pytest.raises(BadRequest) as refused:
        apply_patch(POD, pod(), {"op": "add"}, PatchType.JSON)
    assert refused.value.message == (
        "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
    )


def test_a_merge_patch_removes_with_null_and_replaces_lists() -> None:
    patch = {"metadata": {"labels": {"x": None, "y": "2"}}, "spec": {"tolerations": [{"key": "new"}]}}
    patched = apply_patch(POD, pod(), patch, PatchType.MERGE)
    assert patched["metadata"]["labels"] == {"y": "2"}
    assert patched["spec"]["tolerations"] == [{"key": "new"}]


def test_a_patch_that_leaves_a_wrong_type_names_patch_as_the_field() -> None:
    with pytest.raises(Invalid) as refused:
        apply_patch(POD, pod(), {"metadata": {"labels": {"x": 1}}}, PatchType.STRATEGIC)
    assert refused.value.message == (
        ' "" is invalid: patch: Invalid value: "map[metadata:map[labels:map[x:1]]]": cannot convert int64 to string'
    )
    assert refused.value.details["causes"][0]["field"] == "patch"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"priority": "x"}, "unrecognized type: int32"),
        ({"priority": 1.5}, "cannot convert float64 to int32"),
        ({"restartPolicy": 1}, "cannot convert int64 to v1.RestartPolicy"),
        ({"nodeSelector": [1]}, "cannot restore map from slice"),
        ({"affinity": []}, "cannot restore struct from: slice"),
        ({"containers": "x"}, "cannot restore slice from string"),
        ({"tolerations": [1]}, "cannot restore struct from: int64"),
    ],
)
def test_a_strategic_patch_with_a_wrong_type_complains_of_the_restoring(spec: Any, problem: str) -> None:
    with pytest.raises(Invalid) as refused:
        apply_patch(POD, pod(), {"spec": spec}, PatchType.STRATEGIC)
    assert refused.value.message.endswith(f'": {problem}')


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"spec": {"containers": [{"image": "x"}]}}, "map: map[image:x] does not contain declared merge key: name"),
        ({"spec": {"$patch": "foo"}}, "unknown patch type: foo in map: map[$patch:foo]"),
    ],
)
def test_a_strategic_patch_that_cannot_be_read_fails_as_in_the_original(patch: Any, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        apply_patch(POD, pod(), patch, PatchType.STRATEGIC)
    assert (refused.value.message, refused.value.code) == (message, 400)


def test_custom_resources_take_no_strategic_patch() -> None:
    with pytest.raises(UnsupportedMedia, match=r"accepted media types include: application/json-patch\+json"):
        apply_patch(VC_QUEUE, {"metadata": {"name": "q"}}, {}, PatchType.STRATEGIC)


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.text(max_size=2), inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=8,
)


@given(documents, documents)
def test_merging_the_same_patch_twice_is_merging_it_once(doc: Any, patch: Any) -> None:
    once = merge_patch(doc, patch)
    assert merge_patch(once, patch) == once


def test_a_patch_of_the_status_alone_gives_what_decoding_the_whole_document_gives() -> None:
    group = {
        "apiVersion": VC_POD_GROUP.api_version, "kind": "PodGroup", "metadata": {"name": "g"},
        "spec": {"minMember": 1}, "status": {"phase": "Pending"},
    }  # fmt: skip
    for status in ({"phase": "Running", "running": 1, "unknown": 5}, {"phase": None}, None):
        write = Write(Verb.PATCH, VC_POD_GROUP, "default", "g", {"status": status})
        patched = apply_patch(VC_POD_GROUP, group, write.body, write.patch_type)
        part = status_part(write, patched)
        assert part is not None
        assert "spec" not in part
        whole = decode(VC_POD_GROUP, patched).doc
        decoded = with_the_rest(decode(VC_POD_GROUP, part).doc, patched)
        assert (decoded, list(decoded)) == (whole, list(whole))


@pytest.mark.parametrize(
    "write",
    [
        Write(Verb.PATCH, POD, "default", "a", {"status": {}, "spec": {}}),
        Write(Verb.PATCH, POD, "default", "a", {"metadata": {"labels": {}}}),
        Write(Verb.PATCH, POD, "default", "a", [], patch_type=PatchType.JSON),
    ],
)
def test_any_other_patch_is_decoded_whole(write: Write) -> None:
    assert status_part(write, pod()) is None


_NAMES = st.sampled_from(
    ["phase", "message", "reason", "podIP", "startTime", "conditions", "hostIPs", "nope", "labels"]
)
_TIMES = st.sampled_from(["2026-01-01T00:00:00Z", "yesterday", ""])
_CONDITIONS = st.fixed_dictionaries(
    {}, optional={"type": st.sampled_from(["", "Ready", None]), "lastProbeTime": st.none() | _TIMES, "odd": st.just(1)}
)
_VALUES = st.none() | _TIMES | st.integers(0, 1) | st.lists(_CONDITIONS, max_size=2) | st.just([{"ip": "10.0.0.1"}])
_STATUSES = st.dictionaries(_NAMES, _VALUES, max_size=4)


@given(_STATUSES, _STATUSES, st.dictionaries(_NAMES, st.none() | st.just("u") | st.just({"a": "b"}), max_size=2))
def test_a_patch_that_sets_a_status_ends_like_one_that_is_decoded_whole(
    known: dict[str, Any], status: dict[str, Any], metadata: dict[str, Any]
) -> None:
    try:
        before = decode(POD, pod() | {"status": known}).doc
    except ApiError:
        return
    write = Write(Verb.PATCH, POD, "default", "a", {"status": status, "metadata": metadata}, subresource="status")
    quickly = with_status_set(write, before)
    if quickly is not None:
        whole = decode(POD, apply_patch(POD, before, write.body, write.patch_type))
        assert (repr(quickly), []) == (repr(whole.doc), whole.unknown)


def test_a_patch_that_only_sets_a_status_is_not_decoded_whole() -> None:
    before = decode(POD, pod() | {"status": {"phase": "Pending"}}).doc
    write = Write(Verb.PATCH, POD, "default", "a", {"status": {"phase": "Running"}, "metadata": {"uid": "u"}})
    after = with_status_set(write, before)
    assert after is not None
    assert after["spec"] is before["spec"]
    assert before["status"] == {"phase": "Pending"}
