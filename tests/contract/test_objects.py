"""Create, read and update: identity, versions, conflicts, generations, defaults, validation."""

from __future__ import annotations

import re

import pytest

from fairlead.core.model.kinds import CONFIG_MAP, DEPLOYMENT, LEASE, NAMESPACE, NODE, POD, PRIORITY_CLASS
from fairlead.errors import AlreadyExists, ApiError, BadRequest, Conflict, Invalid, NotFound
from tests.support.contract.api_under_test import ApiUnderTest
from tests.support.contract.documents import config, deployment, node, pod


async def test_a_created_object_gets_its_identity_from_the_server(world: ApiUnderTest) -> None:
    doc = await world.create(CONFIG_MAP, config("a", {"k": "v"}, uid="mine", resourceVersion="", generation=7))
    metadata = doc["metadata"]
    assert (doc["apiVersion"], doc["kind"]) == ("v1", "ConfigMap")
    assert metadata["namespace"] == world.namespace
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", metadata["uid"])
    assert int(metadata["resourceVersion"]) > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])
    assert doc["data"] == {"k": "v"}
    assert await world.get(CONFIG_MAP, "a") == doc


async def test_generate_name_appends_five_characters(world: ApiUnderTest) -> None:
    names = set()
    for _ in range(3):
        doc = await world.create(CONFIG_MAP, {"metadata": {"generateName": "made-"}})
        assert re.fullmatch(r"made-[bcdfghjklmnpqrstvwxz2456789]{5}", doc["metadata"]["name"])
        assert doc["metadata"]["generateName"] == "made-"
        names.add(doc["metadata"]["name"])
    assert len(names) == 3


async def test_a_name_is_required(world: ApiUnderTest) -> None:
    with pytest.raises(Invalid, match="name or generateName is required"):
        await world.create(CONFIG_MAP, {"metadata": {}})


async def test_a_taken_name_is_refused(world: ApiUnderTest) -> None:
    await world.create(CONFIG_MAP, config("a"))
    with pytest.raises(AlreadyExists) as caught:
        await world.create(CONFIG_MAP, config("a"))
    assert caught.value.message == 'configmaps "a" already exists'
    assert caught.value.details == {"name": "a", "kind": "configmaps"}


async def test_a_missing_object_is_named_in_the_error(world: ApiUnderTest) -> None:
    with pytest.raises(NotFound) as caught:
        await world.get(DEPLOYMENT, "nobody")
    assert caught.value.message == 'deployments.apps "nobody" not found'
    assert caught.value.details == {"name": "nobody", "group": "apps", "kind": "deployments"}
    with pytest.raises(NotFound, match='configmaps "nobody" not found'):
        await world.update(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap"} | config("nobody"))


async def test_a_missing_namespace_is_refused(world: ApiUnderTest) -> None:
    world.namespace += "-nowhere"
    with pytest.raises(NotFound, match=f'namespaces "{world.namespace}" not found'):
        await world.create(CONFIG_MAP, config("a"))
    assert await world.names(CONFIG_MAP) == []


async def test_a_resource_version_that_moved_on_is_a_conflict(world: ApiUnderTest) -> None:
    first = await world.create(CONFIG_MAP, config("a", {"n": "1"}))
    second = await world.update(CONFIG_MAP, first | {"data": {"n": "2"}})
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    with pytest.raises(Conflict) as caught:
        await world.update(CONFIG_MAP, first | {"data": {"n": "3"}})
    assert caught.value.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert (await world.get(CONFIG_MAP, "a"))["data"] == {"n": "2"}


async def test_an_update_without_resource_version_goes_through(world: ApiUnderTest) -> None:
    doc = await world.create(CONFIG_MAP, config("a", {"n": "1"}))
    del doc["metadata"]["resourceVersion"]
    assert (await world.update(CONFIG_MAP, doc | {"data": {"n": "2"}}))["data"] == {"n": "2"}


async def test_an_update_that_changes_nothing_keeps_the_version(world: ApiUnderTest) -> None:
    doc = await world.create(CONFIG_MAP, config("a", {"n": "1"}))
    same = await world.update(CONFIG_MAP, doc)
    assert same["metadata"]["resourceVersion"] == doc["metadata"]["resourceVersion"]


async def test_an_update_cannot_change_who_an_object_is(world: ApiUnderTest) -> None:
    doc = await world.create(CONFIG_MAP, config("a"))
    other = doc | {"metadata": doc["metadata"] | {"uid": "11111111-1111-4111-8111-111111111111"}}
    with pytest.raises(Conflict, match="Precondition failed: UID in precondition"):
        await world.update(CONFIG_MAP, other)


async def test_creating_with_a_resource_version_is_refused(world: ApiUnderTest) -> None:
    with pytest.raises(ApiError, match="resourceVersion should not be set on objects to be created"):
        await world.create(CONFIG_MAP, config("a", resourceVersion="5"))


async def test_the_name_in_the_path_and_in_the_object_must_agree(world: ApiUnderTest) -> None:
    doc = await world.create(CONFIG_MAP, config("a"))
    renamed = doc | {"metadata": doc["metadata"] | {"name": "b"}}
    from fairlead.core.model.flow import Verb, Write

    with pytest.raises(BadRequest, match="the name of the object"):
        await world.api.perform(Write(Verb.UPDATE, CONFIG_MAP, world.namespace, "a", renamed))


async def test_the_namespace_in_the_path_and_in_the_object_must_agree(world: ApiUnderTest) -> None:
    with pytest.raises(BadRequest, match="the namespace of the provided object does not match"):
        await world.create(CONFIG_MAP, config("a", namespace="elsewhere"))


async def test_owner_references_and_finalizers_are_kept(world: ApiUnderTest) -> None:
    owner = await world.create(CONFIG_MAP, config("owner"))
    reference = {
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    doc = await world.create(CONFIG_MAP, config("a", ownerReferences=[reference]))
    assert doc["metadata"]["ownerReferences"] == [reference]


async def test_a_change_of_spec_raises_the_generation_and_nothing_else_does(world: ApiUnderTest) -> None:
    doc = await world.create(DEPLOYMENT, deployment("d"))
    assert doc["metadata"]["generation"] == 1
    doc["metadata"]["labels"] = {"a": "b"}
    doc = await world.update(DEPLOYMENT, doc)
    assert doc["metadata"]["generation"] == 1
    doc["spec"]["replicas"] = 3
    doc = await world.update(DEPLOYMENT, doc)
    assert doc["metadata"]["generation"] == 2


async def test_a_cluster_scoped_object_has_no_namespace(world: ApiUnderTest) -> None:
    name = world.name("node")
    doc = await world.create(NODE, node(name))
    assert "namespace" not in doc["metadata"]
    assert (await world.get(NODE, name))["metadata"]["uid"] == doc["metadata"]["uid"]


async def test_a_namespace_is_active_and_kept_by_its_finalizer(world: ApiUnderTest) -> None:
    doc = await world.get(NAMESPACE, world.namespace)
    assert doc["status"] == {"phase": "Active"}
    assert doc["spec"] == {"finalizers": ["kubernetes"]}
    assert doc["metadata"]["labels"] == {"kubernetes.io/metadata.name": world.namespace}


# defaults


async def test_a_pod_is_filled_in_as_users_know_it(world: ApiUnderTest) -> None:
    doc = await world.create(POD, pod("p"))
    spec = doc["spec"]
    (container,) = spec["containers"]
    assert container == {
        "name": "main",
        "image": "example.com/app:1",
        "resources": {},
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    wanted = {
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler", "securityContext": {}, "enableServiceLinks": True,
        "priority": 0, "preemptionPolicy": "PreemptLowerPriority",
    }  # fmt: skip
    assert {key: spec.get(key) for key in wanted} == wanted
    assert spec["tolerations"] == [
        {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for why in ("not-ready", "unreachable")
    ]
    assert doc["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert doc["metadata"]["generation"] == 1


async def test_requests_are_taken_from_limits_and_decide_the_quality(world: ApiUnderTest) -> None:
    limits = {"cpu": "1", "memory": "1Gi"}
    doc = await world.create(
        POD, pod("p", spec={"containers": [{"name": "c", "image": "i", "resources": {"limits": limits}}]})
    )
    assert doc["spec"]["containers"][0]["resources"] == {"limits": limits, "requests": limits}
    assert doc["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    assert doc["status"]["qosClass"] == "Guaranteed"


async def test_quantities_are_written_in_their_shortest_form(world: ApiUnderTest) -> None:
    resources = {"requests": {"cpu": "0.5", "memory": "1024Mi", "ephemeral-storage": "1000k"}}
    doc = await world.create(POD, pod("p", spec={"containers": [{"name": "c", "image": "i", "resources": resources}]}))
    assert doc["spec"]["containers"][0]["resources"]["requests"] == {
        "cpu": "500m",
        "memory": "1Gi",
        "ephemeral-storage": "1M",
    }


async def test_a_priority_class_gives_a_pod_its_priority(world: ApiUnderTest) -> None:
    name = world.name("prio")
    await world.create(PRIORITY_CLASS, {"metadata": {"name": name}, "value": 77, "preemptionPolicy": "Never"})
    doc = await world.create(POD, pod("p", spec={"priorityClassName": name}))
    assert (doc["spec"]["priority"], doc["spec"]["preemptionPolicy"]) == (77, "Never")
    await world.delete(PRIORITY_CLASS, name)


async def test_allocatable_is_taken_from_capacity(world: ApiUnderTest) -> None:
    name = world.name("node")
    doc = await world.create(NODE, node(name))
    assert doc["status"]["allocatable"] == {"cpu": "4", "memory": "16Gi", "pods": "110"}


async def test_what_a_user_says_of_a_pods_status_is_ignored(world: ApiUnderTest) -> None:
    doc = await world.create(POD, pod("p") | {"status": {"phase": "Running", "podIP": "10.0.0.1"}})
    assert doc["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


async def test_a_deployment_is_filled_in(world: ApiUnderTest) -> None:
    spec = (await world.create(DEPLOYMENT, deployment("d")))["spec"]
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)


# validation


async def causes(world: ApiUnderTest, *, kind: object = POD, body: dict[str, object]) -> list[tuple[str, str]]:
    with pytest.raises(Invalid) as caught:
        await world.create(kind, body)  # type: ignore[arg-type]
    return [(cause["field"], cause["reason"]) for cause in caught.value.details["causes"]]


async def test_an_invalid_pod_is_refused_with_every_field_named(world: ApiUnderTest) -> None:
    body = pod("p", spec={"containers": [{"name": "Main", "image": ""}], "restartPolicy": "Sometimes"})
    assert await causes(world, body=body) == [
        ("spec.containers[0].name", "FieldValueInvalid"),
        ("spec.containers[0].image", "FieldValueRequired"),
        ("spec.restartPolicy", "FieldValueNotSupported"),
    ]


async def test_a_pod_without_containers_is_refused_with_the_words_of_the_original(world: ApiUnderTest) -> None:
    with pytest.raises(Invalid) as caught:
        await world.create(POD, {"metadata": {"name": "p"}, "spec": {"containers": []}})
    assert caught.value.message == 'Pod "p" is invalid: spec.containers: Required value'
    assert caught.value.details == {
        "name": "p",
        "kind": "Pod",
        "causes": [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers"}],
    }


async def test_a_bad_name_is_invalid(world: ApiUnderTest) -> None:
    assert await causes(world, body=pod("Not_A_Name")) == [("metadata.name", "FieldValueInvalid")]


async def test_requests_above_limits_are_invalid(world: ApiUnderTest) -> None:
    resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
    body = pod("p", spec={"containers": [{"name": "c", "image": "i", "resources": resources}]})
    with pytest.raises(Invalid, match="must be less than or equal to cpu limit of 1"):
        await world.create(POD, body)


async def test_a_pods_spec_is_mostly_immutable(world: ApiUnderTest) -> None:
    doc = await world.create(POD, pod("p"))
    doc["spec"]["containers"][0]["image"] = "example.com/app:2"
    doc = await world.update(POD, doc)
    doc["spec"]["nodeName"] = "elsewhere"
    with pytest.raises(Invalid, match="pod updates may not change fields other than"):
        await world.update(POD, doc)


async def test_a_selector_of_a_deployment_is_immutable_and_must_match(world: ApiUnderTest) -> None:
    body = deployment("d")
    body["spec"]["selector"]["matchLabels"]["app"] = "other"
    assert await causes(world, kind=DEPLOYMENT, body=body) == [("spec.template.metadata.labels", "FieldValueInvalid")]


async def test_a_wrong_type_is_a_bad_request(world: ApiUnderTest) -> None:
    with pytest.raises(BadRequest, match="cannot unmarshal string into Go struct field PodSpec"):
        await world.create(POD, {"metadata": {"name": "p"}, "spec": {"containers": "none"}})


async def test_unknown_fields_are_dropped_unless_strict(world: ApiUnderTest) -> None:
    body = pod("p")
    body["spec"]["surprise"] = 1
    doc = await world.create(POD, body)
    assert "surprise" not in doc["spec"]
    body = pod("q")
    body["spec"]["surprise"] = 1
    with pytest.raises(BadRequest, match=r'strict decoding error: unknown field "spec.surprise"'):
        await world.create(POD, body, params={"fieldValidation": "Strict"})


async def test_a_dry_run_changes_nothing(world: ApiUnderTest) -> None:
    doc = await world.create(CONFIG_MAP, config("a"), params={"dryRun": "All"})
    assert doc["metadata"]["name"] == "a"
    assert await world.names(CONFIG_MAP) == []


async def test_a_lease_keeps_microseconds(world: ApiUnderTest) -> None:
    spec = {"holderIdentity": "me", "renewTime": "2026-01-02T03:04:05.000006Z", "leaseDurationSeconds": 15}
    doc = await world.create(LEASE, {"metadata": {"name": "l"}, "spec": spec})
    assert doc["spec"] == spec
