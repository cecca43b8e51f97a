"""The Store: versions, names, namespaces, deletion, subresources, paging, watches and what goes by itself."""

from __future__ import annotations

import random
import uuid

import pytest

from fairlead.client.port import Query
from fairlead.cluster.store.objects import new_uid
from fairlead.cluster.store.retention import RetentionLimits
from fairlead.cluster.store.store import StoreLimits
from fairlead.core.model.flow import PatchType, Verb, Watch, Write
from fairlead.core.model.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    EVENT_V1,
    JOB,
    NAMESPACE,
    NODE,
    POD,
    PRIORITY_CLASS,
)
from fairlead.errors import ApiError, BadRequest, Conflict, Forbidden, Gone, Invalid, NotFound
from tests.support.store_scenario import StoreScenario


@pytest.fixture
def world() -> StoreScenario:
    return StoreScenario()


def test_a_cluster_begins_with_its_namespaces_and_system_priorities(world: StoreScenario) -> None:
    assert world.names(NAMESPACE) == ["default", "kube-node-lease", "kube-public", "kube-system"]
    assert world.names(PRIORITY_CLASS) == ["system-cluster-critical", "system-node-critical"]


def test_every_write_has_a_higher_version_and_a_write_without_effect_has_none(world: StoreScenario) -> None:
    first = world.create(CONFIG_MAP, "a")
    second = world.patch(CONFIG_MAP, "a", {"data": {"k": "v"}})
    third = world.patch(CONFIG_MAP, "a", {"data": {"k": "v"}})
    versions = [int(doc["metadata"]["resourceVersion"]) for doc in (first, second, third)]
    assert versions[0] < versions[1] == versions[2]


def test_a_stale_update_is_a_conflict_in_the_words_of_the_real_server(world: StoreScenario) -> None:
    doc = world.create(CONFIG_MAP, "a")
    world.patch(CONFIG_MAP, "a", {"data": {"k": "v"}})
    with pytest.raises(Conflict) as caught:
        world.store.perform(Write(Verb.UPDATE, CONFIG_MAP, "default", "a", body=doc))
    assert caught.value.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to'
        " the latest version and try again"
    )


def test_what_was_handed_in_or_out_is_never_modified(world: StoreScenario) -> None:
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    before = repr(body)
    doc = world.store.perform(Write(Verb.CREATE, POD, "default", "", body=body))
    handed_out = repr(doc)
    world.bind("p")
    assert repr(body) == before
    assert repr(doc) == handed_out


def test_generated_names_use_the_real_alphabet(world: StoreScenario) -> None:
    doc = world.create(CONFIG_MAP, metadata={"generateName": "web-"})
    suffix = doc["metadata"]["name"].removeprefix("web-")
    assert len(suffix) == 5
    assert set(suffix) <= set("bcdfghjklmnpqrstvwxz2456789")


def test_a_uid_is_a_random_uuid() -> None:
    for seed in range(50):
        given = uuid.UUID(new_uid(random.Random(seed)))
        assert given == uuid.UUID(int=random.Random(seed).getrandbits(128), version=4)
        assert (given.version, given.variant) == (4, uuid.RFC_4122)


def test_a_missing_namespace_takes_in_nothing(world: StoreScenario) -> None:
    with pytest.raises(NotFound, match='namespaces "nope" not found'):
        world.create(CONFIG_MAP, "a", namespace="nope")


def test_a_namespace_waits_for_its_finalizer_and_then_goes(world: StoreScenario) -> None:
    world.create(NAMESPACE, "x")
    assert world.delete(NAMESPACE, "x")["status"]["phase"] == "Terminating"
    with pytest.raises(Forbidden, match="because it is being terminated"):
        world.create(CONFIG_MAP, "a", namespace="x")
    body = {"metadata": {"name": "x"}, "spec": {"finalizers": []}}
    world.store.perform(Write(Verb.UPDATE, NAMESPACE, "", "x", body=body, subresource="finalize"))
    assert world.store.get(NAMESPACE, "", "x") is None


def test_the_default_namespace_stays(world: StoreScenario) -> None:
    with pytest.raises(Forbidden, match="this namespace may not be deleted"):
        world.delete(NAMESPACE, "default")


def test_a_pod_on_a_node_is_deleted_gracefully_and_an_unassigned_one_at_once(world: StoreScenario) -> None:
    world.pod("free")
    world.delete(POD, "free")
    assert world.store.get(POD, "default", "free") is None
    world.pod("placed")
    world.bind("placed")
    doc = world.delete(POD, "placed")
    assert doc["metadata"]["deletionGracePeriodSeconds"] == 30
    assert doc["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:50Z"
    world.delete(POD, "placed", gracePeriodSeconds=0)
    assert world.store.get(POD, "default", "placed") is None


def test_a_second_delete_can_only_shorten_the_grace(world: StoreScenario) -> None:
    world.pod("p")
    world.bind("p")
    world.delete(POD, "p", gracePeriodSeconds=20)
    assert world.delete(POD, "p", gracePeriodSeconds=60)["metadata"]["deletionGracePeriodSeconds"] == 20
    shorter = world.delete(POD, "p", gracePeriodSeconds=5)["metadata"]
    assert (shorter["deletionGracePeriodSeconds"], shorter["deletionTimestamp"]) == (5, "2023-11-14T22:13:25Z")


def test_finalizers_hold_an_object_until_the_last_one_is_gone(world: StoreScenario) -> None:
    world.create(CONFIG_MAP, "a", metadata={"finalizers": ["x.io/a", "x.io/b"]})
    assert "deletionTimestamp" in world.delete(CONFIG_MAP, "a")["metadata"]
    world.patch(CONFIG_MAP, "a", {"metadata": {"finalizers": ["x.io/b"]}})
    with pytest.raises(Invalid, match="no new finalizers can be added if the object is being deleted"):
        world.patch(CONFIG_MAP, "a", {"metadata": {"finalizers": ["x.io/b", "x.io/c"]}})
    world.patch(CONFIG_MAP, "a", {"metadata": {"finalizers": None}})
    assert world.store.get(CONFIG_MAP, "default", "a") is None


@pytest.mark.parametrize(
    ("policy", "finalizers"), [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"]), ("Background", None)]
)
def test_the_propagation_policy_becomes_a_finalizer(
    world: StoreScenario, policy: str, finalizers: list[str] | None
) -> None:
    world.create(CONFIG_MAP, "a")
    world.delete(CONFIG_MAP, "a", propagationPolicy=policy)
    left = world.store.get(CONFIG_MAP, "default", "a")
    assert (left["metadata"]["finalizers"] if left else None) == finalizers


def test_a_delete_with_the_wrong_uid_does_nothing(world: StoreScenario) -> None:
    world.create(CONFIG_MAP, "a")
    with pytest.raises(Conflict, match=r"the UID in the precondition \(other\) does not match"):
        world.delete(CONFIG_MAP, "a", preconditions={"uid": "other"})
    assert world.names(CONFIG_MAP) == ["a"]


def test_a_binding_places_the_pod_once(world: StoreScenario) -> None:
    world.create(NODE, "n1", metadata={"labels": {"topology.kubernetes.io/zone": "z"}})
    world.pod("p")
    world.patch(POD, "p", {"status": {"nominatedNodeName": "n9"}}, subresource="status")
    assert world.bind("p")["status"] == "Success"
    doc = world.store.read(POD, "default", "p")
    assert doc["spec"]["nodeName"] == "n1"
    assert doc["metadata"]["labels"] == {"topology.kubernetes.io/zone": "z"}
    assert "nominatedNodeName" not in doc["status"]
    assert [(c["type"], c["status"]) for c in doc["status"]["conditions"]] == [("PodScheduled", "True")]
    with pytest.raises(Conflict, match='pod p is already assigned to node "n1"'):
        world.bind("p", "n2")


def test_a_pod_takes_over_the_zone_that_its_node_has_when_it_is_bound(world: StoreScenario) -> None:
    zone = "topology.kubernetes.io/zone"
    world.create(NODE, "n1", metadata={"labels": {zone: "before"}})
    for name, label in (("p", "before"), ("q", "after")):
        world.patch(NODE, "n1", {"metadata": {"labels": {zone: label}}})
        world.pod(name)
        world.bind(name)
        assert world.store.read(POD, "default", name)["metadata"]["labels"] == {zone: label}


def test_a_binding_for_another_pod_of_the_same_name_is_refused(world: StoreScenario) -> None:
    world.pod("p")
    with pytest.raises(Conflict, match="Precondition failed: UID in precondition: other"):
        world.bind("p", uid="other")


def test_scaling_changes_the_generation_of_the_object(world: StoreScenario) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    world.create(DEPLOYMENT, "d", spec=spec)
    scale = world.patch(DEPLOYMENT, "d", {"spec": {"replicas": 5}}, subresource="scale")
    assert (scale["kind"], scale["spec"], scale["status"]["selector"]) == ("Scale", {"replicas": 5}, "a=b")
    doc = world.store.read(DEPLOYMENT, "default", "d")
    assert (doc["spec"]["replicas"], doc["metadata"]["generation"]) == (5, 2)


@pytest.mark.parametrize("replicas", [2**31, -(2**31) - 1, 2**63 - 1])
def test_a_scale_beyond_32_bits_is_refused(world: StoreScenario, replicas: int) -> None:
    """Stored, it would be an object that nobody can read any more."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    world.create(DEPLOYMENT, "d", spec=spec)
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": replicas}}
    with pytest.raises(BadRequest, match=f"cannot unmarshal number {replicas} into Go struct field ScaleSpec"):
        world.store.perform(Write(Verb.UPDATE, DEPLOYMENT, "default", "d", scale, subresource="scale"))


def test_a_dry_run_answers_and_stores_nothing(world: StoreScenario) -> None:
    version = world.store.resource_version
    body = {"metadata": {"name": "a"}}
    doc = world.store.perform(Write(Verb.CREATE, CONFIG_MAP, "default", "", body=body, params={"dryRun": "All"}))
    assert doc["metadata"]["uid"]
    assert (world.names(CONFIG_MAP), world.store.resource_version) == ([], version)


def test_an_event_is_the_same_object_in_both_its_groups(world: StoreScenario) -> None:
    world.create(
        EVENT, "e", involvedObject={"kind": "Pod", "name": "p", "namespace": "default"}, reason="Why", message="m"
    )
    doc = world.store.read(EVENT_V1, "default", "e")
    assert (doc["apiVersion"], doc["regarding"]["name"], doc["note"]) == ("events.k8s.io/v1", "p", "m")
    assert world.names(EVENT, field_selector="involvedObject.name=p") == ["e"]
    assert world.names(EVENT_V1, field_selector="regarding.name=p") == ["e"]


def test_a_list_in_chunks_shows_one_moment(world: StoreScenario) -> None:
    for name in "abcd":
        world.create(CONFIG_MAP, name)
    first = world.store.page(CONFIG_MAP, Query(limit=2))
    assert (first.remaining, [d["metadata"]["name"] for d in first.items]) == (2, ["a", "b"])
    world.create(CONFIG_MAP, "bb")
    world.delete(CONFIG_MAP, "d")
    rest = world.store.page(CONFIG_MAP, Query(limit=2, continue_=first.continue_))
    assert [d["metadata"]["name"] for d in rest.items] == ["c", "d"]
    assert (rest.resource_version, rest.continue_) == (first.resource_version, "")


def test_a_list_that_cannot_go_on_is_gone() -> None:
    world = StoreScenario(limits=StoreLimits(history=4))
    for name in "abc":
        world.create(CONFIG_MAP, name)
    first = world.store.page(CONFIG_MAP, Query(limit=1))
    for number in range(10):
        world.patch(CONFIG_MAP, "a", {"data": {"n": str(number)}})
    with pytest.raises(Gone, match="The provided continue parameter is too old"):
        world.store.page(CONFIG_MAP, Query(limit=1, continue_=first.continue_))
    with pytest.raises(Gone, match="too old resource version"):
        world.store.subscribe(CONFIG_MAP, Query(resource_version=first.resource_version))


def test_lists_are_in_the_order_of_their_paths(world: StoreScenario) -> None:
    for namespace in ("a", "a-b"):
        world.create(NAMESPACE, namespace)
        world.create(CONFIG_MAP, "x", namespace=namespace)
    found = [doc["metadata"]["namespace"] for doc in world.store.page(CONFIG_MAP).items]
    assert found == ["a-b", "a"]


def test_fields_that_the_real_server_does_not_index_are_refused(world: StoreScenario) -> None:
    with pytest.raises(BadRequest, match=r"^field label not supported: spec.priority$"):
        world.store.page(POD, Query(field_selector="spec.priority=1"))
    world.pod("p")
    world.bind("p")
    world.pod("q")
    assert world.names(POD, field_selector="spec.nodeName=n1") == ["p"]
    assert world.names(POD, field_selector="spec.nodeName!=n1,status.phase=Pending") == ["q"]


def test_a_label_change_moves_an_object_into_and_out_of_a_selected_watch(world: StoreScenario) -> None:
    world.create(CONFIG_MAP, "a")
    watch = world.store.subscribe(
        CONFIG_MAP, Query(label_selector="on=yes", resource_version=str(world.store.resource_version))
    )
    world.patch(CONFIG_MAP, "a", {"metadata": {"labels": {"on": "yes"}}})
    world.patch(CONFIG_MAP, "a", {"data": {"k": "v"}})
    left = world.patch(CONFIG_MAP, "a", {"metadata": {"labels": {"on": "no"}}})
    events = watch.drain()
    assert [type_ for type_, _, _ in events] == ["ADDED", "MODIFIED", "DELETED"]
    gone = events[-1][1].doc["metadata"]
    assert (gone["labels"], gone["resourceVersion"]) == ({"on": "yes"}, left["metadata"]["resourceVersion"])


def test_a_slow_watcher_is_cut_off_and_the_others_are_not(world: StoreScenario) -> None:
    slow, quick = world.store.subscribe(CONFIG_MAP, buffer=3), world.store.subscribe(CONFIG_MAP, buffer=100)
    for number in range(5):
        world.create(CONFIG_MAP, f"c{number}")
    assert (slow.overflowed, slow.drain()) == (True, [])
    assert len(quick.drain()) == 5


def test_a_version_that_is_still_to_come_is_a_timeout(world: StoreScenario) -> None:
    with pytest.raises(ApiError, match="Too large resource version: 99999") as caught:
        world.store.subscribe(CONFIG_MAP, Query(resource_version="99999"))
    assert (caught.value.code, caught.value.reason) == (504, "Timeout")


def test_a_feed_brings_what_is_there_and_then_every_change_in_order(world: StoreScenario) -> None:
    world.pod("p")
    feed = world.store.feed([Watch(POD), NODE])
    world.create(NODE, "n1")
    world.bind("p")
    seen = [(change.happened.value, change.doc["metadata"]["name"]) for change in feed.drain()]
    assert seen == [("ADDED", "p"), ("ADDED", "n1"), ("MODIFIED", "p")]
    assert feed.drain() == []


def test_lists_of_a_kind_without_namespaces_follow_every_change_and_are_left_alone_by_it(world: StoreScenario) -> None:
    seen = []
    for deed in (
        lambda: world.create(NODE, "n2"),
        lambda: world.create(NODE, "n1"),
        lambda: world.patch(NODE, "n2", {"metadata": {"labels": {"a": "b"}}}),
        lambda: world.delete(NODE, "n1"),
    ):
        deed()
        seen.append(world.store.chunk(NODE, Query()).records)
    names = [[(record.name, record.doc["metadata"].get("labels")) for record in records] for records in seen]
    labels = {"a": "b"}
    assert names == [
        [("n2", None)],
        [("n1", None), ("n2", None)],
        [("n1", None), ("n2", labels)],
        [("n2", labels)],
    ]
    assert [doc["metadata"]["name"] for doc in world.store.list(NODE)] == ["n2"]


def test_followers_see_a_batch_in_its_order_when_it_is_done(world: StoreScenario) -> None:
    woken: list[int] = []
    feed = world.store.feed([Watch(POD, field_selector="status.phase!=Succeeded"), NODE])
    feed.drain()
    feed.wake = lambda: woken.append(len(feed.waiting))
    watcher = world.store.subscribe(POD, Query(label_selector="app=web"))
    with world.store.batch():
        world.pod("p", labels={"app": "web"})
        world.pod("q")
        world.create(NODE, "n1")
        world.bind("p")
        world.patch(POD, "q", {"status": {"phase": "Succeeded"}}, subresource="status")
        world.delete(POD, "p", gracePeriodSeconds=0)
        assert not feed.waiting
        assert not watcher
    told = [(change.happened.value, change.doc["metadata"]["name"]) for change in feed.drain()]
    assert told == [
        ("ADDED", "p"),
        ("ADDED", "q"),
        ("ADDED", "n1"),
        ("MODIFIED", "p"),
        ("DELETED", "q"),
        ("DELETED", "p"),
    ]
    assert woken[-1] == len(told)
    assert [(type_, record.name) for type_, record, _ in watcher.drain()] == [
        ("ADDED", "p"),
        ("MODIFIED", "p"),
        ("DELETED", "p"),
    ]


def test_events_expire_and_history_is_forgotten(world: StoreScenario) -> None:
    version = str(world.store.resource_version)
    world.create(EVENT, "e", involvedObject={"kind": "Pod", "name": "p", "namespace": "default"})
    world.now += 3599
    world.store.tick()
    assert world.names(EVENT) == ["e"]
    world.now += 2
    world.store.tick()
    assert world.names(EVENT) == []
    with pytest.raises(Gone):
        world.store.subscribe(EVENT, Query(resource_version=version))


def test_ended_pods_beyond_the_limit_go_oldest_first() -> None:
    world = StoreScenario(limits=StoreLimits(ended=RetentionLimits(ended_pods=2)))
    for name in ("c", "b", "a"):
        world.now += 1
        world.pod(name)
        world.patch(POD, name, {"status": {"phase": "Succeeded"}}, subresource="status")
    world.pod("alive")
    world.store.tick()
    assert world.names(POD) == ["a", "alive", "b"]


def test_a_job_deleted_without_a_policy_orphans_its_pods(world: StoreScenario) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    world.create(JOB, "j", spec={"template": template})
    assert world.delete(JOB, "j")["metadata"]["finalizers"] == ["orphan"]


def test_strict_writers_are_warned_of_unknown_fields(world: StoreScenario) -> None:
    body = {"metadata": {"name": "a"}, "surprise": 1}
    strict = Write(Verb.CREATE, CONFIG_MAP, "default", "", body=body, params={"fieldValidation": "Strict"})
    with pytest.raises(BadRequest, match='strict decoding error: unknown field "surprise"'):
        world.store.perform(strict)
    warnings: list[str] = []
    world.store.perform(Write(Verb.CREATE, CONFIG_MAP, "default", "", body=body), warnings=warnings)
    assert warnings == ['unknown field "surprise"']


def test_the_same_seed_gives_the_same_bytes() -> None:
    def story() -> list[bytes]:
        world = StoreScenario()
        watch = world.store.subscribe(POD)
        world.create(POD, metadata={"generateName": "p-"}, spec={"containers": [{"name": "c", "image": "x"}]})
        return [record.raw for _, record, _ in watch.drain()]

    assert story() == story()


def test_a_json_patch_that_moves_the_version_back_is_a_conflict(world: StoreScenario) -> None:
    world.create(CONFIG_MAP, "a")
    patch = [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}]
    with pytest.raises(Conflict):
        world.patch(CONFIG_MAP, "a", patch, patch_type=PatchType.JSON)


def test_equal_pods_get_the_priority_that_holds_when_each_is_created() -> None:
    scenario = StoreScenario()
    before = [scenario.pod(f"before-{number}")["spec"]["priority"] for number in range(3)]
    scenario.create(PRIORITY_CLASS, "usual", value=7, globalDefault=True)
    after = [scenario.pod(f"after-{number}")["spec"]["priority"] for number in range(3)]
    scenario.store.perform(Write(Verb.DELETE, PRIORITY_CLASS, "", "usual"))
    last = [scenario.pod(f"last-{number}")["spec"] for number in range(2)]
    assert (before, after, [spec["priority"] for spec in last]) == ([0, 0, 0], [7, 7, 7], [0, 0])
    assert all("priorityClassName" not in spec for spec in last)
