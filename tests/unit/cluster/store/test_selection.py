"""Field selectors: what the bytes of an object say first is what its document would say."""

from __future__ import annotations

import pytest

from fairlead.client.port import Query
from fairlead.cluster.store.objects import Record, encode
from fairlead.cluster.store.selection import Selection, parse_field_selector
from fairlead.core.model.kinds import EVENT, JOB, NODE, POD, Kind

_POD = {"apiVersion": "v1", "kind": "Pod"}
_RUNNING = {**_POD, "spec": {"nodeName": "node-1"}, "status": {"phase": "Running", "podIP": "10.0.0.1"}}
_TALKATIVE = {**_RUNNING, "metadata": {"labels": {"phase": "Failed", "a": "node-2"}}}
_QUOTED = {**_POD, "spec": {"nodeName": 'a"b'}, "status": {"phase": "Failed"}}
_PENDING = {**_POD, "spec": {"hostNetwork": True}, "status": {"phase": "Pending"}}
_JOB = {"apiVersion": "batch/v1", "kind": "Job"}
_EVENT = {"apiVersion": "v1", "kind": "Event", "source": {"component": "kubelet"}}


@pytest.mark.parametrize(
    ("kind", "selector"),
    [
        (POD, "status.phase!=Succeeded,status.phase!=Failed"), (POD, "status.phase=Failed"), (POD, "spec.nodeName="),
        (POD, "spec.nodeName!="), (POD, "spec.nodeName=node-2"), (POD, "spec.nodeName!=node-1"),
        (POD, 'spec.nodeName=a"b'), (POD, "spec.hostNetwork=true"), (POD, "spec.hostNetwork!=false"),
        (POD, "spec.hostNetwork=false"), (POD, "status.podIPs=10.0.0.1"), (NODE, "spec.unschedulable=false"),
        (JOB, "status.successful=0"), (JOB, "status.successful=3"), (EVENT, "source=kubelet"), (EVENT, "source!="),
    ],
)  # fmt: skip
def test_bytes_are_asked_first_and_never_say_anything_else(kind: Kind, selector: str) -> None:
    selection, terms = Selection(kind, Query(field_selector=selector)), parse_field_selector(kind, selector)
    node = {"apiVersion": "v1", "kind": "Node", "spec": {}}
    jobs = [_JOB, {**_JOB, "status": {"succeeded": 3}}, {**_JOB, "metadata": {"name": "job-3"}}]
    for doc in (
        _RUNNING,
        _TALKATIVE,
        _QUOTED,
        _PENDING,
        node,
        {**node, "spec": {"unschedulable": True}},
        *jobs,
        _EVENT,
    ):
        record = Record("", "x", 1, encode(doc))
        assert selection.matches(record) is all(term.matches(doc) for term in terms), (selector, doc)


def test_a_document_is_not_decoded_for_a_value_that_is_nowhere_in_it() -> None:
    record = Record("", "x", 1, b'{"status":{"phase":"Running"}, this is no JSON')
    assert Selection(POD, Query(field_selector="status.phase!=Succeeded,status.phase!=Failed")).matches(record)
    assert not Selection(POD, Query(field_selector="spec.nodeName=node-1")).matches(record)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        (Query(), ["a", "b", "c"]), (Query(namespace="one"), ["a", "c"]),
        (Query(field_selector="status.phase=Running"), ["a", "b"]),
        (Query(namespace="one", field_selector="status.phase=Running"), ["a"]),
    ],
)  # fmt: skip
def test_records_are_chosen_by_namespace_and_fields(query: Query, names: list[str]) -> None:
    docs = [("one", "a", _RUNNING), ("two", "b", _RUNNING), ("one", "c", _PENDING)]
    records = [Record(namespace, name, 1, encode(doc)) for namespace, name, doc in docs]
    assert [record.name for record in Selection(POD, query).chosen(records)] == names
