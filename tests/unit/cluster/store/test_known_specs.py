"""Specs that were decoded before are shared; documents come out as if the whole of each had been decoded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cluster.store.known_specs import KnownSpecs, decode_copy
from fairlead.core.model.kinds import POD
from fairlead.errors import ApiError

_SPECS: list[Any] = [
    {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1000m"}}}], "nodeName": ""},
    {"containers": [{"name": "c"}], "unknown": 1},
    {"containers": "none"},
    {},
    None,
]
_PARTS = {
    "apiVersion": st.just("v1"),
    "kind": st.just("Pod"),
    "metadata": st.sampled_from([{"name": "a", "labels": {"x": "1"}}, {"name": "b", "odd": 1}, None, {"labels": []}]),
    "spec": st.sampled_from(_SPECS),
    "status": st.sampled_from([{"phase": "Running"}, {}, None]),
}
_BODIES = st.permutations(list(_PARTS)).flatmap(
    lambda order: st.fixed_dictionaries({}, optional={name: _PARTS[name] for name in order})
)


def _filled(doc: dict[str, Any]) -> None:
    doc.setdefault("apiVersion", "v1")
    doc.setdefault("kind", "Pod")
    if doc.get("metadata") is None:
        doc["metadata"] = {}


def _said(decode: Any, *arguments: Any) -> str:
    try:
        return repr(decode(*arguments))
    except ApiError as error:
        return error.message


@given(st.lists(_BODIES, min_size=1, max_size=8))
def test_a_pod_with_a_known_spec_is_decoded_as_if_it_were_new(bodies: list[dict[str, Any]]) -> None:
    known = KnownSpecs()
    for body in bodies * 3:
        assert _said(known.decode, body, _filled) == _said(decode_copy, POD, body, _filled)


def test_equal_specs_are_one_object_from_the_second_on_and_not_the_writers() -> None:
    known, body = KnownSpecs(), {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}}
    once, first, second = (known.decode(body, _filled).doc for _ in range(3))
    assert once["spec"] == first["spec"]
    assert once["spec"] is not first["spec"]
    assert first["spec"] is second["spec"]
    assert first["spec"]["containers"] is not body["spec"]["containers"]  # type: ignore[index]
    assert first["metadata"] is not second["metadata"]


@pytest.mark.parametrize("body", [None, [], "pod", {"spec": {1, 2}}])
def test_what_is_no_object_is_refused_as_ever(body: Any) -> None:
    with pytest.raises(ApiError):
        KnownSpecs().decode(body, _filled)
