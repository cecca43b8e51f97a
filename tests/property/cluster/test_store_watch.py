"""A watch from any version replays to the state that a list shows; a list at any version shows what was true then."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.client.port import Query
from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.kinds import CONFIG_MAP
from fairlead.errors import ApiError

State = dict[str, Doc]
NAMES = st.sampled_from(["a", "b", "c", "d"])
LABELS = st.sampled_from(["x", "y"])
STEPS = st.lists(
    st.tuples(st.sampled_from(["create", "patch", "delete", "hold", "release"]), NAMES, LABELS), max_size=25
)


def write(action: str, name: str, label: str) -> Write:
    metadata = {"name": name, "labels": {"l": label}}
    match action:
        case "create":
            return Write(Verb.CREATE, CONFIG_MAP, "default", name, body={"metadata": metadata})
        case "delete":
            return Write(Verb.DELETE, CONFIG_MAP, "default", name)
        case "hold" | "release":
            finalizers = {"finalizers": ["x.io/f"] if action == "hold" else None}
            return Write(Verb.PATCH, CONFIG_MAP, "default", name, body={"metadata": finalizers})
    return Write(Verb.PATCH, CONFIG_MAP, "default", name, body={"metadata": {"labels": {"l": label}}})


def listed(store: Store, selector: str, version: str = "") -> State:
    match = "Exact" if version else ""
    page = store.page(
        CONFIG_MAP, Query(label_selector=selector, resource_version=version, resource_version_match=match)
    )
    return {doc["metadata"]["name"]: doc for doc in page.items}


@settings(max_examples=60)
@given(STEPS, st.sampled_from(["", "l=x", "l!=x"]))
def test_a_watch_from_any_version_leads_to_the_state_of_a_list(
    steps: list[tuple[str, str, str]], selector: str
) -> None:
    store = Store(clock=lambda: 1.7e9, rng=random.Random(1))
    moments = [(str(store.resource_version), listed(store, selector))]
    for step in steps:
        try:
            store.perform(write(*step))
        except ApiError:
            continue
        moments.append((str(store.resource_version), listed(store, selector)))
    present = moments[-1][1]
    for version, state in moments:
        assert listed(store, selector, version) == state
        replayed = dict(state)
        watch = store.subscribe(CONFIG_MAP, Query(label_selector=selector, resource_version=version))
        for type_, record, at in watch.drain():
            assert record.doc["metadata"]["resourceVersion"] == str(at)
            assert (record.name in replayed) == (type_ != "ADDED")
            if type_ == "DELETED":
                del replayed[record.name]
            else:
                replayed[record.name] = record.doc
        assert replayed == present
