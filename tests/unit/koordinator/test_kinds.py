"""Koordinator's kinds as its definitions have them: defaults, rules, statuses, columns, discovery."""

from __future__ import annotations

import pytest

from fairlead.cluster.server.discovery import discovery_document
from fairlead.cluster.store.schema import struct_of
from fairlead.cluster.tables import render_table
from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.kinds import Kind
from fairlead.errors import Invalid
from fairlead.koordinator.kinds import KOORD_ELASTIC_QUOTA, KOORD_MIGRATION_JOB, KOORD_RESERVATION
from fairlead.koordinator.kinds import SERVED as KOORDINATOR
from fairlead.testing.harness import Harness

QUOTA_SPEC: Doc = {"min": {"cpu": 4}, "max": {"cpu": "8", "memory": "16Gi"}}
POD_TEMPLATE: Doc = {"spec": {"containers": [{"name": "c", "anything": "goes"}]}}


@pytest.fixture
def cluster() -> Harness:
    return Harness(nodes=0, schedulers=[], housekeeping="none")


def thing(kind: Kind, name: str = "x", **fields: object) -> Doc:
    metadata = {"name": name, "namespace": "default"} if kind.namespaced else {"name": name}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}


def reservation(**spec: object) -> Doc:
    owners = [{"labelSelector": {"matchLabels": {"app": "web"}}}]
    return thing(KOORD_RESERVATION, spec={"owners": owners, "template": POD_TEMPLATE, **spec})


@pytest.mark.parametrize("kind", KOORDINATOR, ids=lambda kind: kind.plural)
def test_every_kind_has_its_fields_and_columns(kind: Kind) -> None:
    struct = struct_of(kind)
    assert struct is not None
    assert struct.custom
    columns = render_table(kind, [], now=0.0, include_object="None", metadata={})["columnDefinitions"]
    assert columns[0]["name"] == "Name"


def test_a_reservation_gets_the_defaults_of_its_definition(cluster: Harness) -> None:
    stored = cluster.apply(reservation(unknown=1, taints=[{"key": "k", "effect": "NoSchedule", "colour": "red"}]))
    assert stored["spec"] == {
        "owners": [{"labelSelector": {"matchLabels": {"app": "web"}}}],
        "template": POD_TEMPLATE,
        "ttl": "24h",
        "allocateOnce": True,
        "taints": [{"key": "k", "effect": "NoSchedule"}],
    }


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"allocatePolicy": "Loose"}, 'spec.allocatePolicy: Unsupported value: "Loose": supported values: "Aligned", '),
        ({"owners": [{}]}, "spec.owners[0]: Invalid value: 0: spec.owners[0] in body should have at least 1 propert"),
        ({"owners": None}, "spec.owners: Required value"),
    ],
)
def test_what_a_definition_forbids_is_refused(cluster: Harness, spec: Doc, words: str) -> None:
    with pytest.raises(Invalid) as refused:
        cluster.apply(reservation(**spec))
    assert words in refused.value.message


def test_where_there_is_a_status_subresource_the_status_has_its_own_door(cluster: Harness) -> None:
    stored = cluster.apply({**reservation(), "status": {"phase": "Available"}})
    assert "status" not in stored
    body = {"status": {"nodeName": "n1", "allocatable": {"cpu": "2"}}}
    write = Write(Verb.PATCH, KOORD_RESERVATION, "", "x", body=body, subresource="status")
    assert cluster.perform(write)["status"] == {"phase": "Pending", "nodeName": "n1", "allocatable": {"cpu": "2"}}
    quota = thing(KOORD_ELASTIC_QUOTA, spec=QUOTA_SPEC, status={"used": {"cpu": "1"}})
    assert cluster.apply(quota)["status"] == {"used": {"cpu": "1"}}, "quotas have none"


def test_columns_are_those_of_the_definitions(cluster: Harness) -> None:
    job = thing(
        KOORD_MIGRATION_JOB,
        metadata={"name": "m", "creationTimestamp": "1970-01-01T00:00:00Z"},
        spec={"podRef": {"namespace": "default", "name": "web-1"}, "ttl": "5m"},
        status={"phase": "Running", "status": "WaitingForScheduled", "nodeName": "n2"},
    )
    table = render_table(KOORD_MIGRATION_JOB, [job], now=60.0, include_object="None", metadata={})
    titles = [column["name"] for column in table["columnDefinitions"]]
    assert titles == ["Name", "Phase", "Status", "Age", "Node", "Reservation", "PodNamespace", "Pod", "NewPod", "TTL"]
    assert table["rows"][0]["cells"] == [
        "m",
        "Running",
        "WaitingForScheduled",
        "60s",
        "n2",
        None,
        "default",
        "web-1",
        None,
        "5m",
    ]


def test_discovery_names_them(cluster: Harness) -> None:
    found = discovery_document("/apis/scheduling.koordinator.sh/v1alpha1", kinds.Registry())
    assert found is not None
    served = {one["name"]: one for one in found["resources"]}
    assert served["podmigrationjobs"]["shortNames"] == ["pmj"]
    assert "reservations/status" in served
    assert "devices/status" not in served


def test_applying_koordinators_own_definitions_changes_nothing(cluster: Harness) -> None:
    names = {"kind": "Reservation", "plural": "reservations"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "scheduling.koordinator.sh", "scope": "Cluster", "names": names, "versions": [version]}
    cluster.apply(thing(kinds.CUSTOM_RESOURCE_DEFINITION, "reservations.scheduling.koordinator.sh", spec=spec))
    assert cluster.apply(reservation())["spec"]["ttl"] == "24h"
