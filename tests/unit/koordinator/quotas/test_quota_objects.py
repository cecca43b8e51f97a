"""Quotas that are made for people: trees from profiles of nodes, and the built-in ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.cluster.admission.webhook_denial import Denied
from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.hashes import fnv64a
from fairlead.koordinator.kinds import KOORD_ELASTIC_QUOTA, KOORD_QUOTA_PROFILE
from fairlead.koordinator.quotas.built_in import BuiltInQuotas
from fairlead.koordinator.quotas.profiles import QuotaProfiles
from fairlead.testing.builders import node, pod
from fairlead.testing.harness import Harness

QUOTA, PREFIX = KOORD_ELASTIC_QUOTA, "quota.scheduling.koordinator.sh/"


def profile(**spec: Any) -> Doc:
    kind = KOORD_QUOTA_PROFILE
    chosen = {"quotaName": "gpu-root", "nodeSelector": {"matchLabels": {"pool": "gpu"}}, **spec}
    metadata = {"name": "gpu", "namespace": "default"}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": chosen}


def cluster_of(*controllers: Any) -> Harness:
    nodes = [node("a").labelled(pool="gpu"), node("b").labelled(pool="gpu"), node("c").labelled(pool="cpu")]
    return Harness(nodes=nodes, config="koordinator", controllers=controllers)


def quota(cluster: Harness, name: str, namespace: str = "default") -> Doc:
    found = cluster.store.get(QUOTA, namespace, name)
    assert found is not None
    return found


@pytest.mark.parametrize(("text", "digest"), [("", 14695981039346656037), ("a", 12638187200555641996)])
def test_the_hash_of_64_bits(text: str, digest: int) -> None:
    assert fnv64a(text) == digest


def test_a_profile_makes_the_root_of_a_tree_from_its_nodes_and_follows_them() -> None:
    cluster = cluster_of(QuotaProfiles)
    cluster.apply(profile(quotaLabels={"team": "ml"}, resourceRatio="0.5"))
    cluster.run(2)
    made = quota(cluster, "gpu-root")
    tree = str(fnv64a("default/gpu"))
    labels = made["metadata"]["labels"]
    assert labels["team"] == "ml"
    assert (labels[PREFIX + "tree-id"], labels[PREFIX + "is-root"], labels[PREFIX + "profile"]) == (tree, "true", "gpu")
    assert made["spec"]["min"] == {"cpu": "8", "memory": "32Gi"}
    assert made["spec"]["max"] == {"cpu": "4611686018427387", "memory": "4611686018427387"}
    known = cluster.store.get(KOORD_QUOTA_PROFILE, "default", "gpu")
    assert known is not None
    assert known["metadata"]["labels"][PREFIX + "tree-id"] == tree
    cluster.apply(node("d").labelled(pool="gpu"))
    doc = cluster.store.get(kinds.NODE, "", "a")
    assert doc is not None
    cluster.apply({**doc, "spec": {**doc["spec"], "unschedulable": True}})
    cluster.run(2)
    made = quota(cluster, "gpu-root")
    assert made["spec"]["min"]["cpu"] == "12"
    total, without = (
        json.loads(made["metadata"]["annotations"][PREFIX + key])
        for key in ("total-resource", "unschedulable-resource")
    )
    assert (total["cpu"], without["cpu"]) == ("12", "4")
    version = made["metadata"]["resourceVersion"]
    cluster.run(60)
    assert quota(cluster, "gpu-root")["metadata"]["resourceVersion"] == version, "what is right is not written again"


@pytest.mark.parametrize("ratio", ["2", "-1", "all"])
def test_a_ratio_that_is_none_counts_as_all(ratio: str) -> None:
    cluster = cluster_of(QuotaProfiles)
    cluster.apply(profile(resourceRatio=ratio))
    cluster.run(2)
    assert quota(cluster, "gpu-root")["spec"]["min"]["cpu"] == "16"


def test_the_built_in_quotas_show_what_pods_without_a_quota_use() -> None:
    cluster = cluster_of(BuiltInQuotas)
    plain = pod("p").asks(cpu="2").doc()
    cluster.apply({**plain, "spec": {**plain["spec"], "schedulerName": "koord-scheduler"}})
    cluster.run(5)
    namespace = "koordinator-system"
    assert quota(cluster, "koordinator-default-quota", namespace)["status"]["used"]["cpu"] == "2"
    assert quota(cluster, "koordinator-root-quota", namespace)["metadata"]["labels"][PREFIX + "is-parent"] == "true"
    with pytest.raises(Denied, match="can not delete quotaGroup :koordinator-system-quota"):
        cluster.store.perform(Write(Verb.DELETE, QUOTA, namespace, "koordinator-system-quota"))
