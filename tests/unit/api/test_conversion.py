"""One object in two shapes."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.conversion import convert
from fairlead.model.kinds import EVENT, EVENT_V1, POD_GROUP, POD_GROUP_BETA

EVENTS = st.fixed_dictionaries(
    {"metadata": st.just({"name": "e"}), "involvedObject": st.just({"kind": "Pod", "name": "p"})},
    optional={
        "message": st.text(max_size=5), "count": st.integers(1, 9), "source": st.just({"component": "k"}),
        "firstTimestamp": st.just("2026-01-01T00:00:00Z"), "lastTimestamp": st.just("2026-01-01T00:00:00Z"),
        "reportingComponent": st.text(max_size=3), "reason": st.text(max_size=3), "type": st.just("Normal"),
    },
)  # fmt: skip


@given(EVENTS)
def test_an_event_survives_the_way_there_and_back(event: dict[str, Any]) -> None:
    there = convert(event, EVENT, EVENT_V1)
    assert there["apiVersion"] == "events.k8s.io/v1"
    assert there["regarding"] == event["involvedObject"]
    assert convert(there, EVENT_V1, EVENT) == {**event, "apiVersion": "v1"}


def test_versions_with_the_same_fields_change_their_name_only() -> None:
    group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "spec": {"a": 1}}
    assert convert(group, POD_GROUP_BETA, POD_GROUP) == {**group, "apiVersion": "scheduling.k8s.io/v1alpha2"}


def test_the_same_kind_needs_no_conversion() -> None:
    event = {"metadata": {"name": "e"}}
    assert convert(event, EVENT, EVENT) is event
