"""ElasticQuotas, ClusterColocationProfiles and pods as Koordinator's webhooks would have them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc
from fairlead.core.model.kinds import Kind
from fairlead.errors import ApiError
from fairlead.koordinator.kinds import KOORD_COLOCATION_PROFILE, KOORD_ELASTIC_QUOTA
from fairlead.testing.builders import namespace, pod
from fairlead.testing.harness import Harness

Q = "quota.scheduling.koordinator.sh/"
QOS, BAND = "koordinator.sh/qosClass", "koordinator.sh/priority-class"


@pytest.fixture
def cluster() -> Harness:
    return Harness(nodes=0, schedulers=[], housekeeping="none")


def thing(kind: Kind, name: str, labels: Doc | None = None, annotations: Doc | None = None, **fields: Any) -> Doc:
    metadata: Doc = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    if kind.namespaced:
        metadata["namespace"] = "default"
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}


def quota(name: str, least: Doc, most: Doc, *, parent: str = "", notes: Doc | None = None, **labels: str) -> Doc:
    named = {Q + key.replace("_", "-"): value for key, value in labels.items()}
    if parent:
        named[Q + "parent"] = parent
    return thing(KOORD_ELASTIC_QUOTA, name, named, notes, spec={"min": least, "max": most})


def profile(name: str, *, notes: Doc | None = None, **spec: Any) -> Doc:
    return thing(KOORD_COLOCATION_PROFILE, name, None, notes, spec=spec)


def refusal(cluster: Harness, *objects: Any) -> str:
    """What is said of the last of some objects."""
    for one in objects[:-1]:
        cluster.apply(one)
    with pytest.raises(ApiError) as refused:
        cluster.apply(objects[-1])
    assert refused.value.code == 400
    return refused.value.message.partition(" denied the request: ")[2]


# ---- quotas ----


def test_a_new_quota_gets_parent_and_weight(cluster: Harness) -> None:
    stored = cluster.apply(quota("a", {"cpu": "4"}, {"cpu": "8", "memory": "16Gi"}))
    assert stored["metadata"]["labels"][Q + "parent"] == "koordinator-root-quota"
    assert stored["metadata"]["annotations"][Q + "shared-weight"] == '{"cpu":"8","memory":"16Gi"}'
    short = quota("b", {}, {"cpu": "8", "memory": "16Gi"}, notes={Q + "shared-weight": '{"cpu":"1","gpu":"2"}'})
    weight = cluster.apply(short)["metadata"]["annotations"][Q + "shared-weight"]
    assert json.loads(weight) == {"cpu": "1", "memory": "16Gi"}


def test_a_child_gets_the_tree_of_its_parent(cluster: Harness) -> None:
    cluster.apply(quota("p", {"cpu": "8"}, {"cpu": "8"}, is_parent="true", tree_id="t1"))
    stored = cluster.apply(quota("c", {"cpu": "4"}, {"cpu": "8"}, parent="p"))
    assert stored["metadata"]["labels"][Q + "tree-id"] == "t1"


PARENT = quota("p", {"cpu": "8"}, {"cpu": "20"}, is_parent="true")
CHILD = quota("c", {"cpu": "5"}, {"cpu": "9"}, parent="p")
LEAF, OF_LEAF = quota("leaf", {"cpu": "1"}, {"cpu": "2"}), pod("x").labelled({Q + "name": "leaf"})


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ([quota("a", {}, {"cpu": "-1"})], "a quota.Spec.Max's value < 0, in dimensions :[cpu]"),
        ([quota("a", {"cpu": "-1"}, {"cpu": "1"})], "a quota.Spec.Min's value < 0, in dimensions :[cpu]"),
        ([quota("a", {"cpu": "3"}, {"cpu": "2"})], "resourceKey cpu of quota a min 3 > max 2"),
        (
            [quota("a", {"gpu": "3"}, {"cpu": "2"})],
            "resourceKey gpu of quota a is included in min, which is not included in max",
        ),
        ([quota("c", {}, {"cpu": "2"}, parent="nobody")], "fill quota c failed, parent not exist"),
        (
            [LEAF, quota("c", {}, {"cpu": "2"}, parent="leaf")],
            "c has parentName leaf but the parentQuotaInfo's IsParent is false",
        ),
        (
            [PARENT, quota("c", {"cpu": "1"}, {"cpu": "2", "memory": "1Gi"}, parent="p")],
            "failed to check sub and parent group quotaKey, err: checkSubAndParentGroupQuotaKey failed: "
            "p's max keys are not the same with c's",
        ),
        (
            [PARENT, CHILD, quota("d", {"cpu": "4"}, {"cpu": "9"}, parent="p")],
            "checkMinQuotaSum all brothers' MinQuota > parent MinQuota, parent: p",
        ),
        (
            [PARENT, quota("c", {"cpu": "5"}, {"cpu": "9"}, parent="p", tree_id="t")],
            "c tree id is different from parent p, [t] vs []",
        ),
        (
            [quota("a", {}, {"cpu": "1"}, tree_id="t"), quota("a", {}, {"cpu": "1"}, tree_id="u")],
            "a tree id changed [t] vs [u]",
        ),
        (
            [PARENT, CHILD, quota("p", {"cpu": "2"}, {"cpu": "20"}, is_parent="true")],
            "checkMinQuotaSum all children's MinQuota > current MinQuota, current: p",
        ),
        (
            [PARENT, CHILD, quota("p", {"cpu": "8"}, {"cpu": "20"}, is_parent="false")],
            "quota has children, isParent is forbidden to modify as false, quotaName:p",
        ),
        (
            [LEAF, OF_LEAF, quota("leaf", {"cpu": "1"}, {"cpu": "2"}, is_parent="true")],
            "quota has bound pods, isParent is forbidden to modify as true, quotaName: leaf",
        ),
        (
            [PARENT, pod("x").labelled({Q + "name": "p"})],
            "pod can not be linked to a parentQuotaGroup,quota:p, pod:x",
        ),
    ],
)  # fmt: skip
def test_a_quota_is_refused_in_the_webhooks_words(cluster: Harness, objects: list[Any], words: str) -> None:
    assert refusal(cluster, *objects) == words


def test_minima_may_be_forced(cluster: Harness) -> None:
    cluster.apply(PARENT, quota("c", {"cpu": "9"}, {"cpu": "9"}, parent="p", allow_force_update="true"))


def test_a_quota_with_children_or_pods_stays(cluster: Harness) -> None:
    cluster.apply(PARENT, quota("c", {"cpu": "5"}, {"cpu": "9"}, parent="p"), pod("x").labelled({Q + "name": "c"}))
    with pytest.raises(ApiError, match="delete quota failed, quota p has 1 child quotas"):
        cluster.delete(KOORD_ELASTIC_QUOTA, "p")
    with pytest.raises(ApiError, match="delete quota failed, quota c has 1 child pods: x"):
        cluster.delete(KOORD_ELASTIC_QUOTA, "c")
    cluster.delete("pod", "x")
    cluster.delete(KOORD_ELASTIC_QUOTA, "c")
    cluster.delete(KOORD_ELASTIC_QUOTA, "p")


# ---- profiles ----


def batch_class() -> Doc:
    return thing(kinds.PRIORITY_CLASS, "koord-batch", value=5500)


def test_a_profile_makes_a_batch_pod_of_a_plain_one(cluster: Harness) -> None:
    cluster.apply(
        batch_class(),
        namespace("default").labelled(colocation="true"),
        profile(
            "b",
            selector={"matchLabels": {"app": "spark"}},
            qosClass="BE",
            priorityClassName="koord-batch",
            namespaceSelector={"matchLabels": {"colocation": "true"}},
            koordinatorPriority=1000,
            schedulerName="koord-scheduler",
            labels={"x": "1"},
            labelSuffixes={"app": "-be"},
            annotationKeysMapping={"from": "to"},
            patch={"spec": {"terminationGracePeriodSeconds": 7}},
        ),
    )
    spark = pod("s").labelled(app="spark").annotated({"from": "here"}).asks(cpu="1500m", memory="2Gi").doc()
    spark["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "2"}
    stored = cluster.apply(spark)
    assert stored["metadata"]["labels"] == {"app": "spark-be", "x": "1", QOS: "BE", "koordinator.sh/priority": "1000"}
    assert stored["metadata"]["annotations"]["to"] == "here"
    assert stored["spec"]["priority"] == 5500
    assert stored["spec"]["schedulerName"] == "koord-scheduler"
    assert stored["spec"]["terminationGracePeriodSeconds"] == 7
    batch = {"kubernetes.io/batch-cpu": "1500", "kubernetes.io/batch-memory": "2Gi"}
    assert stored["spec"]["containers"][0]["resources"] == {
        "requests": batch,
        "limits": {"kubernetes.io/batch-cpu": "2k"},
    }
    note = json.loads(stored["metadata"]["annotations"]["node.koordinator.sh/extended-resource-spec"])
    (of_container,) = note["containers"].values()
    assert of_container == {"requests": batch, "limits": {"kubernetes.io/batch-cpu": "2k"}}


def test_profiles_apply_in_the_order_of_their_names_and_only_where_they_select(cluster: Harness) -> None:
    cluster.apply(
        profile("b", labels={"who": "b"}),
        profile("a", labels={"who": "a", "first": "yes"}),
        profile("c", labels={"who": "c"}, selector={"matchLabels": {"app": "other"}}),
        profile("d", labels={"who": "d"}, probability="0%"),
    )
    assert cluster.apply(pod("p"))["metadata"]["labels"] == {"who": "b", "first": "yes"}


def test_a_profile_may_leave_the_resources_alone(cluster: Harness) -> None:
    skipping = {"config.koordinator.sh/skip-update-resources": "true"}
    cluster.apply(batch_class(), profile("a", notes=skipping, qosClass="BE", priorityClassName="koord-batch"))
    stored = cluster.apply(pod("p").asks(cpu="1"))
    assert stored["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}


def test_a_profile_whose_class_is_missing_refuses_the_pod(cluster: Harness) -> None:
    words = refusal(cluster, profile("a", priorityClassName="nope"), pod("p"))
    assert words == 'priorityclasses.scheduling.k8s.io "nope" not found'


# ---- pods ----


def labelled(qos: str, band: str = "", **asks: str) -> Doc:
    labels = {QOS: qos} | ({BAND: band} if band else {})
    return pod("p").labelled(labels).asks(**asks).doc()


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (labelled("BE"), f"Pod: Forbidden: {QOS}=BE and priorityClass= cannot be used in combination"),
        (
            labelled("BE", "koord-prod"),
            f"Pod: Forbidden: {QOS}=BE and priorityClass=koord-prod cannot be used in combination",
        ),
        (
            labelled("LSR", "koord-mid", cpu="2"),
            f"Pod: Forbidden: {QOS}=LSR and priorityClass=koord-mid cannot be used in combination",
        ),
        (
            labelled("LSR", "koord-prod"),
            "pod.spec.containers[*].resources.requests: Required value: LSR Pod must declare the requested CPUs",
        ),
        (
            labelled("LSE", cpu="1500m"),
            'pod.spec.containers[*].resources.requests: Invalid value: "1500m": '
            "the requested CPUs of LSR Pod must be integer",
        ),
        (
            pod("p").asks({"kubernetes.io/batch-cpu": "1000"}).doc(),
            f"labels.{QOS}: Required value: must specify koordinator QoS BE with koordinator colocation resources",
        ),
        (
            pod("p").annotated({"scheduling.koordinator.sh/reserve-pod": "true"}).doc(),
            "annotations.scheduling.koordinator.sh/reserve-pod: Forbidden: cannot set in annotations",
        ),
    ],
)  # fmt: skip
def test_a_pod_is_refused_in_the_webhooks_words(cluster: Harness, made: Doc, words: str) -> None:
    assert refusal(cluster, made) == words


@pytest.mark.parametrize(
    ("qos", "band"), [("BE", "koord-batch"), ("BE", "koord-free"), ("LS", ""), ("LSR", "koord-prod")]
)
def test_classes_and_bands_that_go_together_pass(cluster: Harness, qos: str, band: str) -> None:
    assert cluster.apply(labelled(qos, band, cpu="2"))["metadata"]["labels"][QOS] == qos


def test_class_band_and_preemptibility_never_change(cluster: Harness) -> None:
    cluster.apply(labelled("LS"))
    for changes, words in (
        ({QOS: "LSE"}, f'labels.{QOS}: Invalid value: "LSE": field is immutable'),
        ({BAND: "koord-mid"}, 'spec.priority: Invalid value: "koord-mid": field is immutable'),
        ({Q + "preemptible": "false"}, "Preemptible label is forbidden modify now."),
    ):
        with pytest.raises(ApiError) as refused:
            cluster.patch("pod", "p", {"metadata": {"labels": changes}})
        assert words in refused.value.message
