"""What ElasticQuotas do to new pods: limits on what they request together, and the nodes of the quota's tree."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.errors import ApiError
from fairlead.koordinator.kinds import KOORD_ELASTIC_QUOTA, KOORD_QUOTA_PROFILE
from fairlead.testing.builders import namespace, node, pod
from fairlead.testing.harness import Harness

Q = "quota.scheduling.koordinator.sh/"
BATCH_CPU, BATCH_MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"


@pytest.fixture
def cluster() -> Harness:
    return Harness(nodes=0, schedulers=[], housekeeping="none")


def quota(
    name: str, most: Doc, limits: Doc | str | None = None, *, home: str = "default", tree: str = "", spaces: Any = ()
) -> Doc:
    """A quota; `limits` is its annotation, as amounts or as the text itself."""
    notes: Doc = {Q + "namespaces": json.dumps(spaces)} if spaces else {}
    if limits is not None:
        notes[Q + "admission"] = limits if isinstance(limits, str) else json.dumps(limits)
    labels = {Q + "tree-id": tree} if tree else {}
    metadata = {"name": name, "namespace": home, "labels": labels, "annotations": notes}
    kind = KOORD_ELASTIC_QUOTA
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": {"max": most}}


def of(name: str, quota_name: str, home: str = "default", **asks: str) -> Doc:
    """A pod of a quota, with underscores for what a resource's name has besides letters."""
    names = {"batch_cpu": BATCH_CPU, "batch_memory": BATCH_MEMORY}
    asked = {names.get(resource, resource): amount for resource, amount in asks.items()}
    made = pod(name, namespace=home).asks(asked)
    labels = {Q + "name": quota_name} if quota_name else {}
    if "batch_cpu" in asks:
        labels |= {"koordinator.sh/qosClass": "BE", "koordinator.sh/priority-class": "koord-batch"}
    return made.labelled(labels).doc()


def refusal(cluster: Harness, one: Doc) -> str:
    with pytest.raises(ApiError) as refused:
        cluster.apply(one)
    assert refused.value.code == 400
    webhook, _, words = refused.value.message.partition(" denied the request: ")
    assert webhook == 'admission webhook "vpod.koordinator.sh"'
    return words


# ---- limits ----

TIGHT = {"cpu": "4", "memory": "8Gi"}


@pytest.mark.parametrize(
    ("most", "limits", "there", "comes", "words"),
    [
        (
            {"cpu": "10", "memory": "20Gi"}, TIGHT, [{"cpu": "4", "memory": "4Gi"}], {"cpu": "2", "memory": "4Gi"},
            "exceeded quota: default/q, requested: cpu=2, used: cpu=4, limited: cpu=4",
        ),
        (
            {"cpu": "10", "memory": "20Gi"}, TIGHT, [{"cpu": "1", "memory": "8Gi"}, {"cpu": "3"}],
            {"cpu": "2", "memory": "4Gi"},
            "exceeded quota: default/q, requested: cpu=2,memory=4Gi, used: cpu=4,memory=8Gi, limited: cpu=4,memory=8Gi",
        ),
        (
            {BATCH_CPU: "10", BATCH_MEMORY: "20Gi"}, {BATCH_CPU: "4", BATCH_MEMORY: "8Gi"},
            [{"batch_cpu": "4", "batch_memory": "8Gi"}], {"batch_cpu": "1", "batch_memory": "2Gi"},
            "exceeded quota: default/q, requested: kubernetes.io/batch-cpu=1,kubernetes.io/batch-memory=2Gi, used: "
            "kubernetes.io/batch-cpu=4,kubernetes.io/batch-memory=8Gi, limited: "
            "kubernetes.io/batch-cpu=4,kubernetes.io/batch-memory=8Gi",
        ),
        (
            {"cpu": "1", "memory": "2Gi"}, {}, [], {"cpu": "2", "memory": "4Gi"},
            "exceeded quota: default/q, requested: cpu=2,memory=4Gi, used: , limited: cpu=1,memory=2Gi",
        ),
        (
            {"cpu": "1", "memory": "2Gi"}, {"cpu": "0", "memory": "0Gi"}, [], {"cpu": "2", "memory": "4Gi"},
            "exceeded quota: default/q, requested: cpu=2,memory=4Gi, used: , limited: cpu=0,memory=0",
        ),
    ],
)  # fmt: skip
def test_a_pod_beyond_what_its_quota_admits_is_refused(
    cluster: Harness, most: Doc, limits: Doc, there: list[Doc], comes: Doc, words: str
) -> None:
    cluster.apply(quota("q", most, limits), *(of(f"p{at}", "q", **asks) for at, asks in enumerate(there)))
    assert refusal(cluster, of("new", "q", **comes)) == words


@pytest.mark.parametrize(
    ("most", "limits", "comes"),
    [
        ({"cpu": "2"}, None, {"cpu": "9"}),
        ({"cpu": "2"}, {"cpu": "9"}, {"cpu": "9"}),
        ({"cpu": "2"}, {"memory": "1Gi"}, {"cpu": "9", "memory": "9Gi"}),
        ({"example.com/other": "2"}, {"cpu": "1"}, {"cpu": "9"}),
        ({"cpu": "2"}, {"cpu": "1"}, {"memory": "9Gi"}),
    ],
    ids=["no annotation", "up to the limit", "not named in max", "max of other resources", "nothing of it asked for"],
)
def test_a_pod_within_what_its_quota_admits_passes(cluster: Harness, most: Doc, limits: Doc | None, comes: Doc) -> None:
    cluster.apply(quota("q", most, limits), of("new", "q", **comes))


def test_limits_that_nobody_can_read_refuse_all_pods(cluster: Harness) -> None:
    cluster.apply(quota("q", {"cpu": "9"}, "{"))
    assert "Expecting" in refusal(cluster, of("new", "q", cpu="1"))
    cluster.apply(quota("r", {"cpu": "9"}, {"cpu": "many"}))
    assert "many" in refusal(cluster, of("new", "r", cpu="1"))


def test_pods_that_ended_or_went_leave_room(cluster: Harness) -> None:
    cluster.apply(quota("q", {"cpu": "9"}, {"cpu": "2"}), of("a", "q", cpu="1"), of("b", "q", cpu="1"))
    assert refusal(cluster, of("c", "q", cpu="1")).endswith("requested: cpu=1, used: cpu=2, limited: cpu=2")
    cluster.delete("pod", "a")
    cluster.apply(of("c", "q", cpu="1"))
    ended = Write(Verb.PATCH, kinds.POD, "default", "b", body={"status": {"phase": "Succeeded"}}, subresource="status")
    cluster.perform(ended)
    cluster.apply(of("d", "q", cpu="1"))
    assert refusal(cluster, of("e", "q", cpu="1"))


def test_pods_that_name_no_quota_count_in_that_of_their_namespace(cluster: Harness) -> None:
    cluster.apply(namespace("team"), namespace("listed"))
    cluster.apply(
        quota("team", {"cpu": "9"}, {"cpu": "1"}, home="team"),
        quota("shared", {"cpu": "9"}, {"cpu": "1"}, spaces=["listed", "team"]),
        of("a", "", "team", cpu="1"),
        of("b", "", "listed", cpu="1"),
        of("c", "", cpu="1"),
    )
    assert "team/team, requested: cpu=1, used: cpu=1," in refusal(cluster, of("d", "", "team", cpu="1"))
    assert "default/shared, requested: cpu=1, used: cpu=1," in refusal(cluster, of("d", "", "listed", cpu="1"))
    cluster.apply(of("d", "", cpu="1"))


def test_a_running_pod_may_change_in_a_quota_that_admits_no_more(cluster: Harness) -> None:
    cluster.apply(quota("q", {"cpu": "9"}, {"cpu": "1"}), of("a", "q", cpu="1"))
    cluster.patch("pod", "a", {"metadata": {"labels": {"seen": "yes"}}})


# ---- the nodes of a tree ----


def profile(tree: str, **selector: Any) -> Doc:
    kind = KOORD_QUOTA_PROFILE
    metadata = {"name": f"of-{tree}", "namespace": "default", "labels": {Q + "tree-id": tree}}
    spec = {"quotaName": f"root-{tree}", "nodeSelector": selector}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def terms(stored: Doc) -> Any:
    wish = stored["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return wish["nodeSelectorTerms"]


GPUS = {"key": "pool", "operator": "In", "values": ["gpu"]}
NOT_OLD = {"key": "age", "operator": "NotIn", "values": ["old"]}
ZONE = {"key": "zone", "operator": "Exists"}


def test_a_pod_of_a_tree_is_bound_to_the_trees_nodes(cluster: Harness) -> None:
    cluster.apply(profile("t", matchLabels={"pool": "gpu"}, matchExpressions=[NOT_OLD]))
    cluster.apply(quota("q", {"cpu": "9"}, tree="t"), quota("elsewhere", {"cpu": "9"}, tree="u"))
    assert terms(cluster.apply(of("a", "q"))) == [{"matchExpressions": [GPUS, NOT_OLD]}]
    for name, other in (("b", "elsewhere"), ("c", ""), ("d", "unknown")):
        assert "affinity" not in cluster.apply(of(name, other))["spec"]


def test_every_term_that_a_pod_has_gets_the_trees_nodes(cluster: Harness) -> None:
    cluster.apply(profile("t", matchLabels={"pool": "gpu"}), quota("q", {"cpu": "9"}, tree="t"))
    wish = of("a", "q")
    given = [{"matchExpressions": [ZONE]}, {"matchFields": [{**GPUS, "key": "metadata.name"}]}]
    preferred = [{"weight": 1, "preference": {"matchExpressions": [ZONE]}}]
    wish["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": given},
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        }
    }
    stored = cluster.apply(wish)
    assert terms(stored) == [{"matchExpressions": [ZONE, GPUS]}, {**given[1], "matchExpressions": [GPUS]}]
    kept = stored["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert kept == preferred


def test_the_quota_of_a_namespace_gives_its_tree_to_pods_that_name_none(cluster: Harness) -> None:
    cluster.apply(namespace("team"), namespace("listed"), profile("t", matchLabels={"pool": "gpu"}))
    cluster.apply(quota("team", {"cpu": "9"}, tree="t"), quota("q", {"cpu": "9"}, tree="t", spaces=["listed"]))
    for home in ("team", "listed"):
        assert terms(cluster.apply(of("a", "", home))) == [{"matchExpressions": [GPUS]}]


def test_a_profile_that_selects_all_nodes_binds_nobody(cluster: Harness) -> None:
    cluster.apply(profile("t"), quota("q", {"cpu": "9"}, tree="t"))
    assert "affinity" not in cluster.apply(of("a", "q"))["spec"]


def test_pods_of_two_trees_run_on_the_nodes_of_their_own() -> None:
    nodes = [node("a").labelled(pool="gpu"), node("b").labelled(pool="cpu")]
    cluster = Harness(nodes=nodes, config="koordinator")
    for tree in ("gpu", "cpu"):
        cluster.apply(profile(tree, matchLabels={"pool": tree}), quota(f"q-{tree}", {"cpu": "9"}, tree=tree))
    names = [f"{tree}-{at}" for tree in ("gpu", "cpu") for at in range(2)]
    for name in names:
        one = of(name, f"q-{name.partition('-')[0]}", cpu="1")
        cluster.apply({**one, "spec": {**one["spec"], "schedulerName": "koord-scheduler"}})
    cluster.run(5)
    assert cluster.bindings() == {"gpu-0": "a", "gpu-1": "a", "cpu-0": "b", "cpu-1": "b"}
