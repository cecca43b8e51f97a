"""Decoding: types, unknown fields, canonical values; the words are the original's."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cluster.store.quantities import amount, canonical
from fairlead.cluster.store.schema import check_types, decode, is_custom, strict_error
from fairlead.core.model.kinds import DEPLOYMENT, LEASE, NODE, POD, SECRET, Kind, served_kinds
from fairlead.errors import ApiError, BadRequest, Invalid
from fairlead.volcano.kinds import VC_JOB, VC_QUEUE


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def complaint(kind: Kind, doc: dict[str, Any]) -> str:
    with pytest.raises(BadRequest) as refused:
        check_types(kind, doc)
    return refused.value.message.partition(f"cannot be handled as a {kind.kind}: ")[2]


GO = "json: cannot unmarshal"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"containers": "x"}, f"{GO} string into Go struct field PodSpec.spec.containers of type []v1.Container"),
        ({"containers": [1]}, f"{GO} number into Go struct field PodSpec.spec.containers of type v1.Container"),
        ({"containers": [{"name": 1}]},
         f"{GO} number into Go struct field Container.spec.containers.name of type string"),
        ({"priority": "x"}, f"{GO} string into Go struct field PodSpec.spec.priority of type int32"),
        ({"priority": 1.5}, f"{GO} number 1.5 into Go struct field PodSpec.spec.priority of type int32"),
        ({"hostNetwork": "x"}, f"{GO} string into Go struct field PodSpec.spec.hostNetwork of type bool"),
        ({"restartPolicy": 1}, f"{GO} number into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy"),
        ({"nodeSelector": {"a": 1}}, f"{GO} number into Go struct field PodSpec.spec.nodeSelector of type string"),
        ({"nodeSelector": [1]}, f"{GO} array into Go struct field PodSpec.spec.nodeSelector of type map[string]string"),
        ({"affinity": []}, f"{GO} array into Go struct field PodSpec.spec.affinity of type v1.Affinity"),
        ({"volumes": [{"emptyDir": 1}]},
         f"{GO} number into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource"),
        ({"containers": [{"command": "x"}]},
         f"{GO} string into Go struct field Container.spec.containers.command of type []string"),
        ({"containers": [{"resources": {"requests": {"cpu": "abc"}}}]},
         "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_refused_in_the_originals_words(spec: dict[str, Any], message: str) -> None:
    assert complaint(POD, pod(**spec)) == message


def test_times_and_bytes_must_be_readable() -> None:
    assert complaint(POD, {"metadata": {"creationTimestamp": "x"}}) == (
        'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'
    )
    assert complaint(LEASE, {"spec": {"renewTime": "x"}}) == (
        'parsing time "x" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "x" as "2006"'
    )
    assert complaint(SECRET, {"data": {"a": "@@@"}}) == "illegal base64 data at input byte 0"


@pytest.mark.parametrize(
    ("time", "part"),
    [
        ("2024-02-31T00:00:00Z", "day"),
        ("2024-13-01T00:00:00Z", "month"),
        ("2024-01-01T24:00:00.000000Z", "hour"),
        ("2024-01-01T00:60:00Z", "minute"),
        ("2024-01-01T00:00:60+01:00", "second"),
    ],
)
def test_a_moment_that_never_is_is_refused(time: str, part: str) -> None:
    """It would break whoever shows it later, such as a table of Events."""
    assert complaint(LEASE, {"spec": {"renewTime": time}}) == f'parsing time "{time}": {part} out of range'
    assert complaint(POD, {"metadata": {"creationTimestamp": time}}) == f'parsing time "{time}": {part} out of range'


def test_unknown_fields_are_named_by_path_in_the_order_of_the_document() -> None:
    doc = {"spec": {"template": {"spec": {"containers": [{"name": "c", "bar": {"x": 1}}]}}, "foo": 1}}
    unknown = decode(DEPLOYMENT, doc).unknown
    assert unknown == ["spec.template.spec.containers[0].bar", "spec.foo"]
    assert strict_error(DEPLOYMENT, unknown).message == (
        'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: '
        'unknown field "spec.template.spec.containers[0].bar", unknown field "spec.foo"'
    )


def test_decoding_drops_what_is_unknown_null_or_empty_and_keeps_what_means_something() -> None:
    doc = pod(
        foo=1, nodeName="", volumes=[], affinity=None, terminationGracePeriodSeconds=0, tolerations=[{"key": "a"}]
    )
    spec = decode(POD, doc).doc["spec"]
    assert not spec.keys() & {"foo", "nodeName", "volumes", "affinity"}
    assert spec["terminationGracePeriodSeconds"] == 0
    assert spec["tolerations"] == [{"key": "a"}]


def test_a_null_among_strings_is_an_empty_string() -> None:
    doc = {"metadata": {"name": "a", "labels": {"x": None, "y": "1"}}, "spec": {"containers": [{"args": [None, "b"]}]}}
    decoded = decode(POD, doc).doc
    assert decoded["metadata"]["labels"] == {"x": "", "y": "1"}
    assert decoded["spec"]["containers"][0]["args"] == ["", "b"]


def test_decoding_writes_what_go_always_writes() -> None:
    status = {"status": {"containerStatuses": [{"name": "c"}]}}
    written = decode(POD, status).doc["status"]["containerStatuses"][0]
    assert written == {
        "name": "c",
        "image": "",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "lastState": {},
        "state": {},
    }
    assert decode(NODE, {"metadata": {"name": "n"}}).doc["status"]["daemonEndpoints"] == {
        "kubeletEndpoint": {"Port": 0}
    }


def test_decoding_leaves_its_argument_alone_and_settles_at_once() -> None:
    doc = pod(foo=1, nodeName="", resources={"requests": {"cpu": "1000m"}})
    before = copy.deepcopy(doc)
    once = decode(POD, doc).doc
    assert doc == before
    assert decode(POD, once).doc == once


def test_a_custom_resource_is_refused_as_custom_resources_are() -> None:
    with pytest.raises(Invalid) as refused:
        check_types(VC_QUEUE, {"metadata": {"name": "q"}, "spec": {"weight": "x"}})
    assert refused.value.message == (
        'Queue.scheduling.volcano.sh "q" is invalid: spec.weight: Invalid value: "string": '
        'spec.weight in body must be of type integer: "string"'
    )
    assert refused.value.details["causes"][0]["reason"] == "FieldValueTypeInvalid"


def test_pod_templates_in_custom_resources_have_the_fields_of_pods() -> None:
    task = {"name": "t", "template": {"spec": {"containers": [{"name": "c", "imagee": "i"}]}}}
    assert decode(VC_JOB, {"spec": {"tasks": [task]}}).unknown == ["spec.tasks[0].template.spec.containers[0].imagee"]


def test_a_kind_without_a_schema_takes_anything() -> None:
    kind = Kind("example.com", "v1", "Thing", "things")
    doc = {"anything": [1, "two", None]}
    assert decode(kind, doc) == (doc, [])
    assert is_custom(kind)


@pytest.mark.parametrize("kind", served_kinds(), ids=repr)
def test_every_built_in_kind_has_a_schema(kind: Kind) -> None:
    doc = {"apiVersion": "x", "kind": "y", "metadata": {"name": "z"}, "no such": 1}
    assert decode(kind, doc).unknown == ["no such"]


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("1000m", "1"), ("0.5", "500m"), (1.5, "1500m"), (1, "1"), ("1024Mi", "1Gi"), ("1023Mi", "1023Mi"),
        ("1.5Gi", "1536Mi"), ("1e3", "1e3"), ("1000", "1k"), ("0", "0"), ("-1", "-1"), ("100Ki", "100Ki"),
        ("0.1Ki", "102400m"),
        ("1E", "1E"), ("12e6", "12e6"), ("1.0000000001", "1000000001n"), ("1000000", "1M"), ("512", "512"),
        ("1.5e3", "1500"),
    ],
)  # fmt: skip
def test_quantities_take_their_canonical_form(given_text: Any, expected: str) -> None:
    assert canonical(given_text) == expected


@given(st.integers(0, 10**12), st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "n", "u"]))
def test_the_canonical_form_keeps_the_amount_and_itself(number: int, suffix: str) -> None:
    text = canonical(f"{number}{suffix}")
    assert amount(text) == amount(f"{number}{suffix}")
    assert canonical(text) == text


@pytest.mark.parametrize("text", ["", "x", "1x", "1.2.3", "--1", "1 Gi", "0x10", True, None, []])
def test_what_is_no_quantity_is_refused(text: Any) -> None:
    with pytest.raises((ValueError, ApiError)):
        canonical(text)


def test_a_custom_resource_keeps_its_pod_templates_as_they_were_written() -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": "1000m"}}, "args": []}
    task = {"name": "t", "template": {"spec": {"containers": [container], "nodeName": ""}}}
    assert decode(VC_JOB, {"spec": {"tasks": [task]}}).doc["spec"]["tasks"] == [task]
