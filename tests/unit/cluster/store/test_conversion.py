"""One object in two shapes."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairlead.cluster.store.conversion import convert
from fairlead.core.model.kinds import EVENT, EVENT_V1, POD_GROUP, POD_GROUP_BETA, WORKLOAD, WORKLOAD_BETA

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


TYPES = st.sampled_from(["PodGroupScheduled", "Other"])
CONDITIONS = st.lists(st.fixed_dictionaries({"type": TYPES, "status": st.just("True")}), max_size=2)
SPECS = st.fixed_dictionaries(
    {"disruptionMode": st.sampled_from(["Pod", "PodGroup"]), "schedulingPolicy": st.just({"basic": {}})},
    optional={
        "priority": st.integers(0, 9),
        "podGroupTemplateRef": st.just({"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}),
    },
)


@given(SPECS, CONDITIONS)
def test_a_group_survives_the_way_to_the_newer_version_and_back(spec: dict[str, Any], told: list[Any]) -> None:
    group = {"apiVersion": "scheduling.k8s.io/v1alpha2", "spec": spec, "status": {"conditions": told}}
    there = convert(group, POD_GROUP, POD_GROUP_BETA)
    assert there["apiVersion"] == "scheduling.k8s.io/v1beta1"
    assert convert(there, POD_GROUP_BETA, POD_GROUP) == group


def test_a_group_in_the_newer_version() -> None:
    reference = {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}
    spec = {"disruptionMode": "PodGroup", "podGroupTemplateRef": reference}
    told = [{"type": "PodGroupScheduled", "status": "True"}]
    there = convert({"spec": spec, "status": {"conditions": told}}, POD_GROUP, POD_GROUP_BETA)
    assert there["spec"] == {"disruptionMode": {"all": {}}, "workloadRef": {"workloadName": "w", "templateName": "t"}}
    assert there["status"]["conditions"] == [{"type": "PodGroupInitiallyScheduled", "status": "True"}]


def test_templates_of_a_workload_are_converted_too() -> None:
    templates = [{"name": "a", "disruptionMode": "PodGroup"}, {"name": "b"}]
    workload = {"apiVersion": "scheduling.k8s.io/v1alpha2", "spec": {"podGroupTemplates": templates}}
    there = convert(workload, WORKLOAD, WORKLOAD_BETA)
    assert there["spec"]["podGroupTemplates"] == [{"name": "a", "disruptionMode": {"all": {}}}, {"name": "b"}]
    assert convert(there, WORKLOAD_BETA, WORKLOAD) == workload


def test_the_same_kind_needs_no_conversion() -> None:
    event = {"metadata": {"name": "e"}}
    assert convert(event, EVENT, EVENT) is event
